// The timeline: features by visits, what was acquired, not available, planned and passed over.

import { h } from "./dom.js";
import { day, number, slotTime, words } from "./format.js";

const STATES = {
  acquired: ["●", "acquired"],
  unavailable: ["∅", "not available"],
  planned: ["○", "planned"],
  "passed over": ["–", "passed over"],
  open: ["", "not planned"],
  closed: ["", "cannot be acquired at this visit"],
};
const LEGEND = ["acquired", "unavailable", "planned", "passed over"];

// `plan` is what is shown as planned: by visit, names of features. `edit` opens an entry, if it may.
export function grid(model, shown, plan, edit) {
  const groups = new Set(shown.features.map((f) => f.group).filter(Boolean));
  return h(
    "div",
    {},
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline, scrolls sideways" },
      h(
        "table",
        { class: "grid" },
        h("caption", { class: "hidden" }, "What was acquired at each visit, and what is planned"),
        h(
          "thead",
          {},
          h("tr", {}, h("td", {}), shown.slots.map((slot) => heading(model, slot, plan))),
        ),
        h(
          "tbody",
          {},
          shown.features.map((feature) => row(feature, shown, plan, edit, groups.size > 0)),
        ),
      ),
    ),
    h(
      "p",
      { class: "legend", "aria-hidden": "true" },
      LEGEND.map((state) => h("span", {}, h("i", { class: `mark ${name(state)}` }, STATES[state][0]), STATES[state][1])),
    ),
  );
}

const name = (state) => state.replace(" ", "-");

function heading(model, slot, plan) {
  const when = slot.date ? day(slot.date) : slot.due ? `~ ${day(slot.due)}` : slotTime(model, slot.slot);
  const classes = [slot.state === "now" && "is-now", plan.visits[slot.slot] && "has-plan"];
  return h(
    "th",
    { scope: "col", class: classes.filter(Boolean).join(" ") || null },
    h("span", { class: "visit" }, `Visit ${slot.slot + 1}`),
    h("span", { class: "when" }, when),
    slot.state === "now" && h("span", { class: "tag" }, "now"),
    slot.state === "missed" && h("span", { class: "tag quiet" }, "no visit"),
    plan.slot === slot.slot && h("span", { class: "tag next" }, "next"),
  );
}

function row(feature, shown, plan, edit, grouped) {
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      h("span", { class: "name" }, words(feature.name)),
      grouped && feature.group && h("span", { class: "group" }, feature.group),
      feature.unit && h("span", { class: "group" }, feature.unit),
    ),
    feature.cells.map((cell, slot) => cellOf(feature, cell, slot, shown, plan, edit)),
  );
}

function cellOf(feature, cell, slot, shown, plan, edit) {
  const planned = (plan.visits[slot] || []).includes(feature.name);
  const state = cell.state === "planned" || cell.state === "open" ? (planned ? "planned" : "open") : cell.state;
  const [mark, said] = STATES[state];
  const shownText = state === "acquired" ? Object.values(cell.values).map(number).join(" · ") : mark;
  const label = `${words(feature.name)}, visit ${slot + 1}: ${
    state === "acquired" ? described(feature, cell) : said
  }${cell.corrected ? ", corrected" : ""}`;
  const classes = `cell ${name(state)}${cell.corrected ? " corrected" : ""}${plan.slot === slot && planned ? " soon" : ""}`;
  const visited = ["now", "over"].includes(shown.slots[slot].state);
  const content =
    edit && visited && state !== "closed"
      ? h("button", { class: classes, type: "button", "aria-label": `${label}. Change`, onclick: () => edit(feature.name, slot) }, shownText)
      : h("span", { class: classes }, h("span", { "aria-hidden": "true" }, shownText), h("span", { class: "hidden" }, label));
  const here = shown.slots[slot].state === "now" ? "is-now" : null;
  return h("td", { class: here }, content);
}

const described = (feature, cell) =>
  Object.entries(cell.values)
    .map(([column, value]) => (feature.columns.length > 1 ? `${words(column)} ${number(value)}` : number(value)))
    .join(", ");
