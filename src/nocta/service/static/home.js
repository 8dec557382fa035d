// The list of cases, a new one, and the demo.

import { change, read, signIn } from "./api.js";
import { newCase } from "./dialogs.js";
import { h, replace, say } from "./dom.js";
import { moment } from "./format.js";

export async function showHome(model, main, go) {
  document.title = "Cases – nocta";
  const cases = await read("/api/cases");
  const mayWrite = model.role === "write" && !model.read_only;
  const toCase = (opened) => opened && go({ case: opened.id });
  const demo = async () => {
    try {
      toCase(await change("POST", "/api/demo-case"));
    } catch (error) {
      say(error.message, true);
    }
  };
  replace(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Cases"),
      h("p", { class: "quiet" }, "Follow one person from visit to visit: what is known, what to acquire next and when, what it costs, and why."),
    ),
    mayWrite &&
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "primary", onclick: () => newCase(model, toCase) }, "New case"),
        h("button", { type: "button", id: "demo", onclick: demo }, "Try the demo case"),
      ),
    cases.length
      ? h(
          "ul",
          { class: "cases" },
          cases.map((row) =>
            h(
              "li",
              {},
              h(
                "a",
                { href: `/?case=${encodeURIComponent(row.id)}` },
                h("span", { class: "name" }, row.name),
                h("span", { class: "quiet" }, [!row.open && "closed", !row.same_model && "other model", `changed ${moment(row.changed)}`].filter(Boolean).join(" · ")),
              ),
            ),
          ),
        )
      : h("p", { class: "empty quiet" }, "No case yet."),
  );
}

export function showSignIn(main, message, done) {
  document.title = "Sign in – nocta";
  const token = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const problem = h("p", { class: "problem", role: "alert" }, message);
  const form = h(
    "form",
    { class: "card sign-in" },
    h("h1", {}, "Sign in"),
    h("p", { class: "quiet" }, "Open the address that the service printed when it started, or enter a token that was made with “nocta token”."),
    h("div", { class: "field" }, h("label", { for: "token" }, "Token"), token),
    problem,
    h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Sign in")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await signIn(token.value.trim());
      done();
    } catch (error) {
      problem.textContent = error.message;
    }
  });
  replace(main, form);
  token.focus();
}
