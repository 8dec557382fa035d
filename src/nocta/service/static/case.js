// One case: what is known, predicted, recommended and spent.

import { change, read, tryOut } from "./api.js";
import { readAddress, writeAddress } from "./address.js";
import { chart } from "./chart.js";
import { changeEntry, closeCase, enterVisit } from "./dialogs.js";
import { h, replace, say } from "./dom.js";
import { day, moment, money, number, words } from "./format.js";
import { grid } from "./grid.js";
import { alternatives, controls, recommendation, showKeep } from "./plan.js";

const others = "BroadcastChannel" in window ? new BroadcastChannel("nocta") : null;

export async function showCase(model, main, caseId) {
  let shown = await read(`/api/cases/${caseId}`);
  let plan = shown.next;
  let trying = null;
  const parts = {};
  document.title = `${shown.name} – nocta`;

  const own = () => ({ weight: plan0().cost_weight, budget: plan0().budget });
  const plan0 = () => shown.next;
  const address = readAddress();
  const settings = shown.next
    ? {
        weight: address.weight ?? shown.next.cost_weight,
        budget: address.budget === "none" ? null : (address.budget ?? shown.next.budget),
      }
    : null;
  const isOther = () => settings && (settings.weight !== own().weight || settings.budget !== own().budget);
  const mayChange = () => !shown.read_only && model.role === "write";

  function draw() {
    const foreign = !shown.next;
    parts.next = h("div", { class: "region" });
    parts.timeline = h("div", { class: "region" });
    parts.chart = h("div", { class: "region" });
    parts.side = h("div", { class: "region" });
    replace(
      main,
      title(shown, model),
      shown.read_only && h("p", { class: "banner" }, shown.read_only),
      shown.remarks.map((text) => h("p", { class: "banner remark" }, words(text))),
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "left" },
          !foreign && parts.next,
          !foreign && controls(model, shown, settings, (given) => replan(given)),
          h("section", { class: "card", "aria-labelledby": "timeline-title" }, h("h2", { id: "timeline-title" }, "Timeline"), parts.timeline),
          !foreign &&
            h(
              "section",
              { class: "card", "aria-labelledby": "chart-title" },
              h("h2", { id: "chart-title" }, "Predicted outcome"),
              h("p", { class: "hint" }, "From what is known now. Shaded: visits to come."),
              parts.chart,
            ),
          !foreign && parts.side,
        ),
        h(
          "div",
          { class: "right" },
          !foreign && ledger(shown),
          context(shown),
          past(shown),
          tools(),
        ),
      ),
    );
    drawPlan();
  }

  function drawPlan() {
    const planned = plan ? { visits: plan.plans[0].visits, slot: plan.slot } : { visits: {}, slot: null };
    const edit = mayChange() && shown.next ? (name, slot) => changeEntry(model, shown, name, slot, changed) : null;
    replace(parts.timeline, shown.next ? grid(model, shown, planned, edit) : foreignTable(shown));
    if (!plan) return;
    const isLast = shown.now >= model.slots.length - 1;
    const enter =
      mayChange() && !isLast &&
      h("div", { class: "actions no-print" }, h("button", { type: "button", class: "primary", id: "enter-visit", onclick: () => enterVisit(model, shown, changed) }, "Enter a visit"));
    replace(parts.next, recommendation(model, shown, plan, enter));
    replace(parts.chart, chart(model, { ...shown, predictions: plan.predictions }));
    replace(parts.side, alternatives(model, shown, plan));
    const place = main.querySelector("#keep");
    if (place) showKeep(place, isOther(), mayChange() && keep, reset);
  }

  async function replan(given) {
    Object.assign(settings, given);
    writeAddress({
      case: caseId,
      weight: settings.weight === own().weight ? null : settings.weight,
      budget: settings.budget === own().budget ? null : (settings.budget ?? "none"),
    });
    trying?.abort();
    trying = new AbortController();
    try {
      const body = { cost_weight: settings.weight, budget: settings.budget };
      plan = isOther() ? await tryOut(`/api/cases/${caseId}/what-if`, body, trying.signal) : shown.next;
    } catch (error) {
      if (error.name !== "AbortError") say(error.message, true);
      return;
    }
    drawPlan();
    say(words(plan.headline));
  }

  async function keep() {
    const body = { cost_weight: settings.weight, budget: settings.budget };
    try {
      changed(await change("PATCH", `/api/cases/${caseId}/settings`, body, shown.version));
      say("Kept for this case.");
    } catch (error) {
      say(error.message, true);
      if (error.status === 409) changed(null);
    }
  }

  function reset() {
    Object.assign(settings, own());
    writeAddress({ case: caseId });
    plan = shown.next;
    draw();
  }

  // After a change here (`after`), or elsewhere (`null`: look again).
  async function changed(after) {
    const before = shown.next ? own() : null;
    shown = after ?? (await read(`/api/cases/${caseId}`));
    if (after) others?.postMessage({ id: caseId, version: shown.version });
    if (settings && before && settings.weight === before.weight) settings.weight = own().weight;
    if (settings && before && settings.budget === before.budget) settings.budget = own().budget;
    plan = shown.next;
    const focused = document.activeElement?.id;
    draw();
    if (isOther()) await replan({});
    else writeAddress({ case: caseId });
    if (focused) document.getElementById(focused)?.focus();
    if (after && plan) say(words(plan.headline));
  }

  async function lookAgain() {
    if (document.querySelector("dialog[open]")) return;
    try {
      const now = await read(`/api/cases/${caseId}`);
      if (now.version !== shown.version) {
        say("The case was changed elsewhere; this is how it is now.");
        await changed(now.version > shown.version ? null : now);
      }
    } catch {
      // The next action says what is wrong.
    }
  }

  function tools() {
    const link = (format, text) => h("a", { class: "button", href: `/api/cases/${caseId}/export?format=${format}`, download: `case.${format}` }, text);
    return h(
      "div",
      { class: "tools no-print" },
      shown.next && link("csv", "Export CSV"),
      link("json", "Export JSON"),
      h("button", { type: "button", onclick: () => window.print() }, "Print"),
      mayChange() && h("button", { type: "button", class: "quiet", onclick: () => closeCase(shown, changed) }, "Close the case"),
    );
  }

  if (others) {
    others.onmessage = ({ data }) => {
      if (data.id === caseId && data.version !== shown.version) lookAgain();
    };
  }
  window.onfocus = lookAgain;
  draw();
  if (isOther()) await replan({});
}

function title(shown, model) {
  const at = shown.now < 0 ? "before the first visit" : `at visit ${shown.now + 1} of ${model.slots.length}`;
  return h(
    "div",
    { class: "title" },
    h("h1", {}, shown.name),
    h("p", { class: "quiet" }, [at, shown.start && `since ${day(shown.start)}`, !shown.open && "closed"].filter(Boolean).join(" · ")),
  );
}

function context(shown) {
  const known = Object.entries(shown.context);
  if (!known.length) return null;
  return h(
    "section",
    { class: "card", "aria-labelledby": "context-title" },
    h("h2", { id: "context-title" }, "Known from the start"),
    h("dl", { class: "pairs" }, known.map(([name, value]) => [h("dt", {}, words(name)), h("dd", {}, value === null ? "not known" : number(value))])),
  );
}

function ledger(shown) {
  return h(
    "section",
    { class: "card", "aria-labelledby": "ledger-title" },
    h("h2", { id: "ledger-title" }, "Costs so far"),
    shown.ledger.length
      ? h(
          "table",
          { class: "plain ledger" },
          h(
            "tbody",
            {},
            shown.ledger.map((line) => [
              h("tr", { class: "sum" }, h("th", { scope: "row" }, `Visit ${line.slot + 1}`), h("td", { class: "n" }, money(line.total))),
              line.items.map(([name, cost]) => h("tr", { class: "item" }, h("th", { scope: "row" }, words(name)), h("td", { class: "n" }, money(cost)))),
            ]),
          ),
          h("tfoot", {}, h("tr", { class: "sum all" }, h("th", { scope: "row" }, "Together"), h("td", { class: "n" }, money(shown.spent)))),
        )
      : h("p", { class: "quiet" }, "Nothing was acquired yet. What is not available is not charged."),
  );
}

const KINDS = {
  opened: () => "opened the case",
  visited: (body) => `went to visit ${body.slot + 1}${body.date ? `, ${day(body.date)}` : ""}`,
  entered: (body) => `entered ${Object.keys(body.results).map(words).join(", ")} at visit ${body.slot + 1}`,
  corrected: (body) =>
    `${body.removed ? "took back" : "corrected"} ${words(body.feature)} at visit ${body.slot + 1}: ${result(body.had_entry ? body.before : undefined)} → ${result(body.removed ? undefined : body.after)}${body.reason ? ` (${body.reason})` : ""}`,
  context_corrected: (body) => `corrected ${words(body.name)}`,
  settings_changed: () => "changed thrift or budget",
  closed: (body) => `closed the case${body.reason ? ` (${body.reason})` : ""}`,
};
const result = (values) =>
  values === undefined ? "nothing" : values === null ? "not available" : Object.values(values).map(number).join(", ");

function past(shown) {
  const list = h("ol", { class: "history" });
  const details = h("details", { class: "card fold" }, h("summary", {}, h("h2", {}, "History")), list);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    const events = await read(`/api/cases/${shown.id}/history`);
    replace(
      list,
      events.reverse().map((event) =>
        h("li", {}, h("span", { class: "quiet" }, `${moment(event.at)}, ${event.who}: `), (KINDS[event.kind] || (() => event.kind))(event.body)),
      ),
    );
  });
  return details;
}

// A case of another model: its entries, without that model's schedule.
function foreignTable(shown) {
  return h(
    "table",
    { class: "plain" },
    h("thead", {}, h("tr", {}, h("td", {}), shown.slots.map((slot) => h("th", { scope: "col" }, `Visit ${slot.slot + 1}`)))),
    h(
      "tbody",
      {},
      shown.features.map((feature) =>
        h("tr", {}, h("th", { scope: "row" }, words(feature.name)), feature.cells.map((cell) => h("td", {}, cell.state === "unavailable" ? "not available" : Object.values(cell.values).map(number).join(", ") || "–"))),
      ),
    ),
  );
}
