// The model card: the little of Markdown that it uses.

import { read } from "./api.js";
import { h, replace } from "./dom.js";

export async function showCard(main) {
  document.title = "Model card – nocta";
  const text = await read("/api/model/card");
  replace(main, h("article", { class: "card prose" }, blocks(text)));
}

function blocks(text) {
  return text
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter(Boolean)
    .map((block) => {
      const lines = block.split("\n");
      const head = /^(#{1,4}) (.*)/.exec(lines[0]);
      if (head) return h(`h${head[1].length}`, {}, inline(head[2]));
      if (lines.every((line) => line.startsWith("- "))) return h("ul", {}, lines.map((line) => h("li", {}, inline(line.slice(2)))));
      if (lines.length > 1 && lines.every((line) => line.startsWith("|"))) return table(lines);
      return h("p", {}, inline(lines.join(" ")));
    });
}

function table(lines) {
  const cells = (line) => line.replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const [head, , ...rows] = lines.map(cells);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table by ${head[0] || "row"}` },
    h(
      "table",
      { class: "plain" },
      h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, inline(cell))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, inline(cell)))))),
    ),
  );
}

function inline(text) {
  return text.split(/(`[^`]*`|\*\*[^*]*\*\*)/).map((part) => {
    if (part.startsWith("`") && part.endsWith("`") && part.length > 1) return h("code", {}, part.slice(1, -1));
    if (part.startsWith("**") && part.endsWith("**") && part.length > 4) return h("strong", {}, part.slice(2, -2));
    return part;
  });
}
