// The recommendation with its reasons, the thrift slider and the budget, and the alternatives.

import { h, replace } from "./dom.js";
import { day, listed, money, number, percent, words } from "./format.js";

export function recommendation(model, shown, plan, actions) {
  const stop = plan.stop;
  return h(
    "section",
    { class: "card next-card", "aria-labelledby": "next-title" },
    h("p", { class: "eyebrow", id: "next-title" }, "What to do next"),
    h("h2", { class: "headline" }, stop ? stopText(plan) : headline(plan)),
    !stop &&
      h(
        "ul",
        { class: "chips", "aria-label": "To acquire" },
        plan.features.map((name) => h("li", {}, words(name))),
        h("li", { class: "total" }, money(plan.cost)),
      ),
    h("ul", { class: "reasons" }, plan.reasons.map((text) => h("li", {}, words(text)))),
    actions,
  );
}

const stopText = (plan) => words(plan.headline);

function headline(plan) {
  const when = plan.due ? `around ${day(plan.due)}` : "";
  return [`Visit ${plan.slot + 1}`, when && `, ${when}`, ": acquire ", h("strong", {}, listed(plan.features)), "."];
}

// The slider goes through the operating points of the model, from thrifty to thorough.
export function controls(model, shown, settings, onChange) {
  const points = model.points;
  const index = nearest(points, settings.weight);
  const said = h("output", { class: "said-point", for: "thrift" });
  const describe = (i) => {
    const point = points[i];
    const parts = [];
    if (point?.cost !== null && point?.cost !== undefined) parts.push(`${money(point.cost)} a patient on average`);
    if (point?.accuracy !== null && point?.accuracy !== undefined) parts.push(`${percent(point.accuracy)} of predictions right`);
    const text = parts.length ? `In the model's validation: ${parts.join(", ")}.` : "";
    const own = Math.abs(points[i].cost_weight - settings.weight) > 1e-12 * settings.weight && i === index;
    return own ? `A setting of its own, near this point. ${text}` : text;
  };
  const slider = h("input", {
    type: "range", id: "thrift", min: 0, max: Math.max(points.length - 1, 0), step: 1,
    "aria-describedby": "thrift-said", list: "thrift-points",
  });
  slider.value = String(index);
  const update = () => {
    const i = Number(slider.value);
    said.textContent = points.length ? describe(i) : "";
    slider.setAttribute("aria-valuetext", `${i + 1} of ${points.length}, ${i ? "more thorough" : "most thrifty"}. ${said.textContent}`);
  };
  said.id = "thrift-said";
  slider.addEventListener("input", () => {
    update();
    onChange({ weight: points[Number(slider.value)].cost_weight });
  });
  update();
  const budget = h("input", {
    id: "budget", inputmode: "decimal", autocomplete: "off", placeholder: "no limit",
    value: settings.budget === null ? "" : number(settings.budget), "aria-describedby": "budget-said",
  });
  const problem = h("span", { id: "budget-said", class: "hint" }, budgetSaid(shown, settings.budget));
  budget.addEventListener("input", () => {
    const text = budget.value.trim();
    const amount = text === "" ? null : Number(text);
    const wrong = amount !== null && !(amount >= 0 && Number.isFinite(amount));
    budget.setAttribute("aria-invalid", wrong ? "true" : "false");
    problem.textContent = wrong ? "A number of at least 0." : budgetSaid(shown, amount);
    if (!wrong) onChange({ budget: amount });
  });
  return h(
    "section",
    { class: "card controls", "aria-label": "How much to spend" },
    points.length > 1 &&
      h(
        "div",
        { class: "control grow" },
        h("label", { for: "thrift" }, "How thorough"),
        slider,
        h("datalist", { id: "thrift-points" }, points.map((_, i) => h("option", { value: i }))),
        h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, "thrifty"), h("span", {}, "thorough")),
        said,
      ),
    h("div", { class: "control" }, h("label", { for: "budget" }, "Budget for the whole case"), budget, problem),
    h("div", { class: "control keep", id: "keep" }),
  );
}

const budgetSaid = (shown, budget) =>
  budget === null ? `Spent so far: ${money(shown.spent)}` : `${money(Math.max(budget - shown.spent, 0))} left of it`;

export function showKeep(place, isOther, keep, reset) {
  replace(
    place,
    isOther && [
      h("p", { class: "trying" }, "Only tried, not saved."),
      keep && h("button", { type: "button", class: "primary", onclick: keep }, "Keep for this case"),
      h("button", { type: "button", onclick: reset }, "Back to the case's own"),
    ],
  );
}

function nearest(points, weight) {
  let best = 0;
  points.forEach((point, i) => {
    const gap = (p) => Math.abs(Math.log((p.cost_weight + 1e-12) / (weight + 1e-12)));
    if (gap(point) < gap(points[best])) best = i;
  });
  return best;
}

export function alternatives(model, shown, plan) {
  const stopping = plan.plans.at(-1).label === "nothing more" ? plan.plans.at(-1) : null;
  const base = stopping ? stopping.expected_loss : plan.plans[0].expected_loss;
  const removed = (p) => (base > 0 ? percent(Math.max(1 - p.expected_loss / base, 0)) : "–");
  return h(
    "section",
    { class: "card", "aria-labelledby": "side-title" },
    h("h2", { id: "side-title" }, "Side by side"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Alternatives, scrolls sideways" },
      h(
        "table",
        { class: "plain compare" },
        h("thead", {}, h("tr", {}, h("td", {}), plan.plans.map((p) => h("th", { scope: "col" }, LABELS[p.label])))),
        h(
          "tbody",
          {},
          shown.slots
            .filter((slot) => plan.plans.some((p) => p.visits[slot.slot]))
            .map((slot) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, `Visit ${slot.slot + 1}`),
                plan.plans.map((p) => h("td", {}, p.visits[slot.slot] ? listed(p.visits[slot.slot]) : "–")),
              ),
            ),
          rowOf("Expected cost", plan.plans, (p) => money(p.expected_charge)),
          rowOf("At most", plan.plans, (p) => money(p.cost)),
          rowOf("Prediction error removed", plan.plans, removed),
        ),
      ),
    ),
    h("p", { class: "hint" }, "Only the next visit is settled; the rest is planned again with every result."),
  );
}

const LABELS = { recommended: "Recommended", "runner-up": "Next best", "nothing more": "Nothing more" };

const rowOf = (name, plans, text) =>
  h("tr", { class: "sum" }, h("th", { scope: "row" }, name), plans.map((p) => h("td", { class: "n" }, text(p))));
