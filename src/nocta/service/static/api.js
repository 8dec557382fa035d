// Requests to this server, and to no other.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, { body, version, key, signal } = {}) {
  const headers = { "X-Nocta-Page": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (version !== undefined) headers["If-Match"] = `"${version}"`;
  if (key) headers["Idempotency-Key"] = key;
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer. Nothing was lost; try again.");
  }
  const kind = answer.headers.get("content-type") || "";
  const told = kind.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Refused(answer.status, told.error || `Refused (${answer.status}).`);
  return told;
}

export const read = (path, options) => ask("GET", path, options);
export const tryOut = (path, body, signal) => ask("POST", path, { body, signal });

// A change has a key of its own: sent again after a lost answer, it changes nothing.
export async function change(method, path, body, version) {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");
  const options = { body, version, key };
  try {
    return await ask(method, path, options);
  } catch (error) {
    if (error.status !== 0) throw error;
    return ask(method, path, options);
  }
}

export const signIn = (token) => ask("POST", "/session", { body: { token } });
export const signOut = () => ask("DELETE", "/session");
