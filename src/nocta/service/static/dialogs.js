// What people enter: a visit, a correction, the end of a case.

import { change, tryOut } from "./api.js";
import { h, replace, say } from "./dom.js";
import { day, listed, money, number, slotTime, today, words } from "./format.js";

// A dialog with a form; `send` returns the changed case, or throws a sentence.
function open(title, content, action, send, done) {
  const problem = h("p", { class: "problem", role: "alert" });
  const submit = h("button", { type: "submit", class: "primary" }, action);
  const dialog = h(
    "dialog",
    { "aria-label": title },
    h(
      "form",
      { method: "dialog", novalidate: true },
      h("h2", {}, title),
      content,
      problem,
      h("div", { class: "actions" }, submit, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    ),
  );
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    problem.textContent = "";
    try {
      const changed = await send();
      dialog.close();
      done(changed);
    } catch (error) {
      problem.textContent = error.message;
      if (error.status === 409) done(null);
    }
    submit.disabled = false;
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// -- values -----------------------------------------------------------------------

// The fields of one feature: a value for each column, or not available.
function fields(feature, cell) {
  const inputs = feature.columns.map((column) => {
    const id = `value-${feature.name}-${column}`;
    const texts = feature.categories[column];
    const before = cell && cell.values[column] !== undefined ? String(cell.values[column]) : "";
    const input = texts
      ? h("select", { id }, h("option", { value: "" }, "–"), texts.map((t) => h("option", { value: t, selected: t === before }, t)))
      : h("input", { id, inputmode: "decimal", autocomplete: "off", value: before });
    const label = feature.columns.length > 1 ? words(column) : "value";
    const unit = feature.unit && feature.columns.length === 1 ? ` (${feature.unit})` : "";
    return { column, input, label: h("label", { for: id }, label + unit) };
  });
  const missing = h("input", { type: "checkbox", id: `missing-${feature.name}`, checked: cell?.state === "unavailable" });
  const lock = () => inputs.forEach(({ input }) => (input.disabled = missing.checked));
  missing.addEventListener("change", lock);
  lock();
  const element = h(
    "div",
    { class: "fields" },
    inputs.map(({ input, label }) => h("div", { class: "field" }, label, input)),
    h("div", { class: "field check" }, missing, h("label", { for: missing.id }, "not available")),
  );
  return { element, result: () => resultOf(feature, inputs, missing.checked) };
}

function resultOf(feature, inputs, missing) {
  if (missing) return { unavailable: true };
  const values = {};
  for (const { column, input } of inputs) {
    const text = input.value.trim();
    if (!text) continue;
    if (feature.categories[column]) {
      values[column] = text;
      continue;
    }
    const value = Number(text);
    if (!Number.isFinite(value)) {
      input.focus();
      const hint = /^-?\d+,\d+$/.test(text) ? " Write decimals with a point." : "";
      throw new Error(`${words(column)}: “${text}” is not a number.${hint}`);
    }
    values[column] = value;
  }
  return Object.keys(values).length ? { values } : null;
}

// -- a visit ----------------------------------------------------------------------

export function enterVisit(model, shown, done) {
  const later = shown.slots.filter((slot) => slot.slot > shown.now);
  const choice = h(
    "select",
    { id: "visit-slot" },
    later.map((slot) =>
      h(
        "option",
        { value: slot.slot, selected: slot.slot === (shown.next?.slot ?? later[0].slot) },
        `Visit ${slot.slot + 1}`,
        slot.due ? `, around ${day(slot.due)}` : model.slot_times ? `, ${slotTime(model, slot.slot)}` : "",
        slot.slot === shown.next?.slot ? " (recommended)" : "",
      ),
    ),
  );
  const date = h("input", { type: "date", id: "visit-date", value: "" });
  const list = h("div", { class: "entries" });
  let entries = [];
  const show = async () => {
    const slot = Number(choice.value);
    let advised = [];
    let note = "";
    try {
      const found = await tryOut(`/api/cases/${shown.id}/what-if`, { arriving: slot });
      advised = found.slot === slot ? found.features : [];
      note = advised.length
        ? `Recommended at this visit: ${listed(advised)}, for ${money(found.cost)}.`
        : "Nothing is recommended at this visit.";
    } catch (error) {
      note = error.message;
    }
    const offered = model.features.filter((f) => f.costs[slot] !== null);
    offered.sort((a, b) => advised.includes(b.name) - advised.includes(a.name));
    entries = offered.map((feature) => ({ feature, ...fields(feature) }));
    replace(
      list,
      h("p", { class: "advice" }, note),
      entries.map(({ feature, element }) =>
        h(
          "fieldset",
          { class: advised.includes(feature.name) ? "advised" : null },
          h("legend", {}, words(feature.name), " ", h("span", { class: "price" }, money(feature.costs[slot]))),
          element,
        ),
      ),
    );
  };
  choice.addEventListener("change", show);
  const content = h(
    "div",
    {},
    h(
      "div",
      { class: "fields" },
      h("div", { class: "field" }, h("label", { for: "visit-slot" }, "Which visit"), choice),
      model.is_dated && h("div", { class: "field" }, h("label", { for: "visit-date" }, "Date it takes place"), date),
    ),
    list,
  );
  const send = () => {
    const results = {};
    for (const { feature, result } of entries) {
      const given = result();
      if (given) results[feature.name] = given;
    }
    const body = { slot: Number(choice.value), date: date.value || null, results };
    return change("POST", `/api/cases/${shown.id}/visits`, body, shown.version);
  };
  date.value = today();
  const dialog = open("Enter a visit", content, "Save the visit", send, done);
  dialog.classList.add("wide");
  show();
}

// -- an entry of a visit that took place --------------------------------------------

export function changeEntry(model, shown, name, slot, done) {
  const feature = model.features.find((f) => f.name === name);
  const cell = shown.features.find((f) => f.name === name).cells[slot];
  const isNew = !["acquired", "unavailable"].includes(cell.state);
  const entry = fields(feature, isNew ? null : cell);
  const reason = h("input", { id: "reason", autocomplete: "off", maxlength: "1000" });
  const remove = h("input", { type: "checkbox", id: "remove" });
  const content = h(
    "div",
    {},
    !isNew &&
      h("p", { class: "quiet" }, `Entered: ${cell.state === "unavailable" ? "not available" : Object.values(cell.values).map(number).join(", ")}. The old entry stays in the history.`),
    entry.element,
    !isNew && h("div", { class: "field check" }, remove, h("label", { for: "remove" }, "take the entry back: it was not acquired")),
    !isNew && h("div", { class: "field" }, h("label", { for: "reason" }, "Reason (kept in the history)"), reason),
  );
  const send = async () => {
    const given = entry.result();
    if (isNew) {
      if (!given) throw new Error("Enter a value, or say that it is not available.");
      return change("POST", `/api/cases/${shown.id}/visits/${slot}/results`, { results: { [name]: given } }, shown.version);
    }
    if (!given && !remove.checked) throw new Error("Enter the right value, or take the entry back.");
    const body = { slot, feature: name, result: remove.checked ? null : given, reason: reason.value };
    return change("POST", `/api/cases/${shown.id}/corrections`, body, shown.version);
  };
  open(`${words(name)}, visit ${slot + 1}`, content, isNew ? "Save" : "Correct", send, done);
}

// -- the case -----------------------------------------------------------------------

export function newCase(model, done) {
  const name = h("input", { id: "case-name", required: true, maxlength: "200", autocomplete: "off" });
  const start = h("input", { type: "date", id: "case-start", value: today() });
  const context = Object.entries(model.context).map(([column, texts]) => {
    const id = `context-${column}`;
    const input = texts
      ? h("select", { id }, h("option", { value: "" }, "not known"), texts.map((t) => h("option", { value: t }, t)))
      : h("input", { id, inputmode: "decimal", autocomplete: "off" });
    return { column, texts, input, element: h("div", { class: "field" }, h("label", { for: id }, words(column)), input) };
  });
  const content = h(
    "div",
    { class: "fields" },
    h("div", { class: "field" }, h("label", { for: "case-name" }, "Name or number"), name),
    model.is_dated && h("div", { class: "field" }, h("label", { for: "case-start" }, "First visit (planned or real)"), start),
    context.map(({ element }) => element),
  );
  const send = () => {
    if (!name.value.trim()) throw new Error("Give the case a name or a number.");
    const known = {};
    for (const { column, texts, input } of context) {
      const text = input.value.trim();
      if (!text) continue;
      if (!texts && !Number.isFinite(Number(text))) throw new Error(`${words(column)}: “${text}” is not a number.`);
      known[column] = texts ? text : Number(text);
    }
    const body = { name: name.value, context: known, start: (model.is_dated && start.value) || null };
    return change("POST", "/api/cases", body);
  };
  open("New case", content, "Open the case", send, done);
}

export function closeCase(shown, done) {
  const reason = h("input", { id: "close-reason", autocomplete: "off", maxlength: "1000" });
  const content = h(
    "div",
    {},
    h("p", {}, "A closed case can be read and exported, but not changed any more."),
    h("div", { class: "field" }, h("label", { for: "close-reason" }, "Reason (kept in the history)"), reason),
  );
  const send = () => change("POST", `/api/cases/${shown.id}/close`, { reason: reason.value }, shown.version);
  open(`Close ${shown.name}`, content, "Close the case", send, (changed) => {
    if (changed) say("The case is closed.");
    done(changed);
  });
}
