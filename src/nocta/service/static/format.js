// Amounts, probabilities, dates and visits as people write them.

let currency = "";
export const setCurrency = (unit) => {
  currency = unit;
};

export function money(amount) {
  const text = new Intl.NumberFormat("en-US", {
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  }).format(amount);
  if (!currency) return text;
  return /\p{Sc}$/u.test(currency) ? `${currency}${text}` : `${text} ${currency}`;
}

// A probability is never shown as certain.
export function percent(share) {
  if (share > 0 && share < 0.005) return "<1%";
  if (share < 1 && share > 0.995) return ">99%";
  return `${Math.round(100 * share)}%`;
}

export const number = (value) =>
  typeof value === "number" ? String(Number(value.toPrecision(4))) : value;

export function day(text) {
  if (!text) return "";
  const [year, month, date] = text.split("-").map(Number);
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" }).format(
    new Date(year, month - 1, date),
  );
}

export const moment = (text) =>
  new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));

export function today() {
  const now = new Date();
  const two = (n) => String(n).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

// Names of features as words: `drinks_per_week` is read as "drinks per week".
export const words = (name) => name.replaceAll("_", " ");

export function listed(names) {
  const all = names.map(words);
  return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
}

export function slotTime(model, slot) {
  if (!model.slot_times) return "";
  const time = model.slot_times[slot];
  const unit = time === 1 ? model.time_unit.replace(/s$/, "") : model.time_unit;
  return `${number(time)} ${unit}`;
}
