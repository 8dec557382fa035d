// What is shown is in the address, so that a link reopens it.

export function readAddress() {
  const given = new URLSearchParams(location.search);
  const amount = (name) => {
    const text = given.get(name);
    return text !== null && text !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
  };
  return {
    view: given.get("view"),
    caseId: given.get("case"),
    weight: amount("weight"),
    budget: given.get("budget") === "none" ? "none" : amount("budget"),
  };
}

export function writeAddress(parts, push = false) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) {
    if (value !== null && value !== undefined) given.set(name, value);
  }
  const text = given.toString();
  const address = text ? `/?${text}` : "/";
  if (address === location.pathname + location.search) return;
  history[push ? "pushState" : "replaceState"](null, "", address);
}
