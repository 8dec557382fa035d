// Elements from plain values. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

// Tell everybody, also those who listen to the page, what happened.
let hiding;
export function say(text, wrong = false) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.toggle("wrong", wrong);
  said.classList.add("shown");
  clearTimeout(hiding);
  hiding = setTimeout(() => said.classList.remove("shown"), wrong ? 9000 : 3500);
}
