// Renders plain text of chats and lorebooks as DOM nodes. The text is untrusted, so it becomes text
// nodes only. Long text is folded, because a browser needs minutes to lay it out.

import { el } from "./dom.js";
import { t } from "./words.js";

/** Number of characters that are shown before the rest of a text is folded. */
export const MAX_SHOWN = 10_000;
/** Number of characters without a space that are shown before the rest is folded. */
const MAX_UNBROKEN = 300;

/**
 * Renders the beginning of a text, and a button that shows more of it.
 * @param {string} text
 * @param {number} length number of characters to show
 * @param {(shown: string) => Node[]} render
 * @returns {Node[]}
 */
function fold(text, length, render) {
  if (!isWorthFolding(text, length)) return render(text);
  const end = wholeCharacters(text, length);
  const label = t("showMore", { n: text.length - end });
  const more = unfoldButton(label, () => fold(text.slice(end), length, render));
  return [...render(text.slice(0, end)), more];
}

/**
 * Returns whether a text is longer than a length. The button of a fold needs space itself, so it is
 * not worth it for a few characters.
 * @param {string} text
 * @param {number} length
 */
export function isWorthFolding(text, length) {
  return text.length > 1.2 * length;
}

/**
 * Returns the length of the beginning of a text that has at most `length` code units and does not
 * end inside a character.
 * @param {string} text
 * @param {number} length
 */
export function wholeCharacters(text, length) {
  return /[\uD800-\uDBFF]/.test(text[length - 1]) ? length - 1 : length;
}

/**
 * Returns a button that is replaced by what it shows.
 * @param {string} label
 * @param {() => Node[]} show
 */
export function unfoldButton(label, show) {
  const unfold = () => {
    const owner = /** @type {HTMLElement | null} */ (folded.closest("[tabindex]"));
    folded.replaceWith(...show());
    // The focus stays near the text, so that the next Tab continues there.
    owner?.focus({ preventScroll: true });
  };
  const folded = el("button", { type: "button", class: "folded", onclick: unfold }, `… ${label}`);
  return folded;
}

/** Renders a text without marks. Long words are folded. @param {string} text @returns {Node[]} */
export function renderPlain(text) {
  return fold(text, MAX_SHOWN, (shown) => {
    /** @type {Node[]} */
    const nodes = [];
    let end = 0;
    // Text of scripts without spaces can be broken anywhere.
    for (const match of shown.matchAll(/[!-~\u00A1-\u024F]+/g)) {
      const { length } = match[0];
      if (length <= MAX_UNBROKEN) continue;
      const start = match.index ?? 0;
      const word = (/** @type {string} */ part) => [new Text(part)];
      nodes.push(new Text(shown.slice(end, start)), ...fold(match[0], MAX_UNBROKEN, word));
      end = start + length;
    }
    const last = shown.slice(end);
    return last ? [...nodes, new Text(last)] : nodes;
  });
}

/** Shortens a name or title. @param {unknown} text */
export function shorten(text) {
  const name = String(text ?? "");
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}
