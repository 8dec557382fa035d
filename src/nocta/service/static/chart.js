// Predicted probabilities at every visit, as a plain drawing with a table of the same numbers.

import { h, svg } from "./dom.js";
import { percent } from "./format.js";

const WIDTH = 720;
const HEIGHT = 250;
const EDGE = { left: 44, right: 168, top: 14, bottom: 34 };
const DASHES = ["", "7 4", "2 4", "10 3 2 3", "1 3"];

export function chart(model, shown) {
  const n = model.slots.length;
  const inner = { w: WIDTH - EDGE.left - EDGE.right, h: HEIGHT - EDGE.top - EDGE.bottom };
  const times = model.slot_times && n > 1 ? model.slot_times : [...Array(n).keys()];
  const span = times[n - 1] - times[0] || 1;
  const x = (slot) => EDGE.left + (inner.w * (times[slot] - times[0])) / span;
  const y = (share) => EDGE.top + inner.h * (1 - share);
  const now = shown.now;
  const future = now < 0 ? x(0) : now >= n - 1 ? x(n - 1) : x(now);
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      class: "chart",
      role: "img",
      "aria-label": `Predicted probability of each outcome at each visit. ${summary(model, shown)}`,
    },
    svg("rect", {
      x: future, y: EDGE.top, width: x(n - 1) - future, height: inner.h, class: "to-come",
    }),
    [0, 0.25, 0.5, 0.75, 1].map((share) => [
      svg("line", { x1: EDGE.left, x2: x(n - 1), y1: y(share), y2: y(share), class: "rule" }),
      svg("text", { x: EDGE.left - 8, y: y(share) + 4, class: "tick", "text-anchor": "end" }, `${100 * share}%`),
    ]),
    labelled(times, x).map((slot) =>
      svg("text", { x: x(slot), y: HEIGHT - 12, class: "tick", "text-anchor": "middle" }, tick(model, slot)),
    ),
    now >= 0 &&
      svg("line", { x1: x(now), x2: x(now), y1: EDGE.top, y2: EDGE.top + inner.h, class: "now" }),
    now >= 0 && now < n - 1 &&
      svg("text", { x: x(now) + 5, y: EDGE.top + 11, class: "tick" }, "now"),
    model.classes.map((name, c) => line(shown, c, x, y)),
    ends(model, shown, y).map(({ name, c, at, share }) => [
      svg("circle", { cx: x(n - 1) + 13, cy: at - 4, r: 4, class: `class-${c % 5} dot at-end` }),
      svg("text", { x: x(n - 1) + 22, y: at, class: "end" }, `${percent(share)} ${short(name)}`),
    ]),
  );
  const key = h(
    "p",
    { class: "key", "aria-hidden": "true" },
    model.classes.map((name, c) => h("span", {}, svg("svg", { viewBox: "0 0 26 10" }, svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, class: `class-${c % 5} curve`, "stroke-dasharray": DASHES[c % 5] })), name)),
  );
  return h("figure", { class: "figure" }, drawing, key, numbers(model, shown));
}

function line(shown, c, x, y) {
  const points = shown.predictions.map((row, slot) => `${x(slot)},${y(row[c])}`).join(" ");
  return [
    svg("polyline", { points, class: `class-${c % 5} curve`, "stroke-dasharray": DASHES[c % 5] }),
    shown.predictions.map((row, slot) =>
      svg("circle", {
        cx: x(slot), cy: y(row[c]), r: slot === Math.max(shown.now, 0) ? 5 : 3.2, class: `class-${c % 5} dot`,
      }),
    ),
  ];
}

// Labels at the right end, moved apart where they would overlap.
function ends(model, shown, y) {
  const last = shown.predictions.at(-1);
  const rows = model.classes.map((name, c) => ({ name, c, share: last[c], at: y(last[c]) + 4 }));
  rows.sort((a, b) => a.at - b.at);
  for (let i = 1; i < rows.length; i++) rows[i].at = Math.max(rows[i].at, rows[i - 1].at + 17);
  const over = rows.at(-1).at - (HEIGHT - EDGE.bottom + 6);
  if (over > 0) rows.forEach((row, i) => (row.at = Math.min(row.at, HEIGHT - EDGE.bottom + 6 - 17 * (rows.length - 1 - i))));
  return rows;
}

const short = (name) => (name.length > 17 ? `${name.slice(0, 16)}…` : name);

const tick = (model, slot) =>
  model.slot_times ? `${model.slot_times[slot]} ${model.time_unit.slice(0, 1)}` : String(slot + 1);

// Visits whose labels have room.
function labelled(times, x) {
  const kept = [];
  times.forEach((_, slot) => {
    if (!kept.length || x(slot) - x(kept.at(-1)) > 34) kept.push(slot);
  });
  return kept;
}

function summary(model, shown) {
  const at = Math.max(shown.now, 0);
  const named = model.classes.map((name, c) => `${name} ${percent(shown.predictions[at][c])}`);
  return `Now: ${named.join(", ")}.`;
}

function numbers(model, shown) {
  return h(
    "details",
    {},
    h("summary", {}, "Show the numbers"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Predicted probabilities" },
      h(
        "table",
        { class: "plain" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Visit"), model.classes.map((c) => h("th", { scope: "col", class: "n" }, c)))),
        h(
          "tbody",
          {},
          shown.predictions.map((row, slot) =>
            h("tr", {}, h("th", { scope: "row" }, `${slot + 1}`), row.map((share) => h("td", { class: "n" }, percent(share)))),
          ),
        ),
      ),
    ),
  );
}
