// What to show: sign-in, the list of cases, a case, or the model card.

import { read, signOut } from "./api.js";
import { readAddress, writeAddress } from "./address.js";
import { showCard } from "./card.js";
import { showCase } from "./case.js";
import { h, replace } from "./dom.js";
import { setCurrency } from "./format.js";
import { showHome, showSignIn } from "./home.js";

const main = document.getElementById("main");
const LOOKS = ["auto", "light", "dark"];

function applyLook(look) {
  if (look === "auto") delete document.documentElement.dataset.look;
  else document.documentElement.dataset.look = look;
  localStorage.setItem("look", look);
}

function lookButton() {
  const now = () => localStorage.getItem("look") || "auto";
  const text = () => `Colors: ${now()}`;
  const button = h("button", { type: "button", class: "link" }, text());
  button.addEventListener("click", () => {
    applyLook(LOOKS[(LOOKS.indexOf(now()) + 1) % LOOKS.length]);
    button.textContent = text();
  });
  return button;
}

function navigation(model) {
  const leave = h("button", { type: "button", class: "link" }, "Sign out");
  leave.addEventListener("click", async () => {
    await signOut();
    start();
  });
  replace(
    document.getElementById("nav"),
    model && h("a", { href: "/" }, "Cases"),
    model && h("a", { href: "/?view=card" }, "About the model"),
    lookButton(),
    model && model.person !== "key of this start" && leave,
  );
  const line = model ? `Model “${model.name}”, ${model.hash.slice(0, 12)}` : "";
  document.getElementById("model-line").textContent = line;
}

async function start() {
  let model;
  window.onfocus = null;
  try {
    model = await read("/api/model");
  } catch (error) {
    navigation(null);
    if (error.status === 401) return showSignIn(main, "", start);
    return replace(main, h("p", { class: "banner" }, error.message));
  }
  setCurrency(model.currency);
  navigation(model);
  const address = readAddress();
  const go = (parts) => {
    writeAddress(parts, true);
    start();
  };
  try {
    if (address.view === "card") await showCard(main);
    else if (address.caseId) await showCase(model, main, address.caseId);
    else await showHome(model, main, go);
  } catch (error) {
    replace(main, h("p", { class: "banner" }, error.message), h("p", {}, h("a", { href: "/" }, "Back to the cases")));
  }
}

window.addEventListener("popstate", start);
// Links within the page change what is shown without loading it again.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname !== "/" || link.getAttribute("href").startsWith("#")) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  start().then(() => main.focus());
});

applyLook(localStorage.getItem("look") || "auto");
start();
