// A round picture for a person or a group: the first character of the name, on a colour that always
// belongs to the name.

import { el } from "./dom.js";

/** Number of colours in the style sheet. */
const COLOURS = 6;

/** @param {string} name */
export function avatar(name) {
  const [first = "?"] = name.trim();
  let sum = 0;
  for (const character of name.slice(0, 100)) sum += character.codePointAt(0) ?? 0;
  const properties = { class: `avatar colour${sum % COLOURS}`, "aria-hidden": "true" };
  return el("span", properties, first.toUpperCase());
}
