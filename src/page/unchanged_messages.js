// The unchanged messages between two changes of a comparison. They are shown on request.

import { el } from "./dom.js";
import { messagesFrom } from "./messages.js";
import { renderText } from "./rich_text.js";
import { PAGE } from "./standalone.js";
import { shorten } from "./text.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/**
 * Returns the unchanged messages before each change: their number, and the first one in the older
 * chat. A change has none if its position is not certain, for example after moved messages.
 * @param {Line[]} lines
 * @param {number} first number of the first change
 */
export function unchangedBetween(lines, first) {
  /** The next message of both chats, or null if it is not known. @type {(number | null)[]} */
  let [old, now] = first ? [null, null] : [0, 0];
  const hasMoved = lines.some((line) => [line.kind, ...line.also].includes("moved"));
  return lines.map(({ from, index, after, before }) => {
    const start = old;
    const oldGap = before === null || old === null ? null : from - old;
    const newGap = after === null || now === null ? null : index - now;
    const gaps = [oldGap, newGap].filter((gap) => gap !== null);
    const count = gaps.every((gap) => gap === gaps[0]) ? (gaps[0] ?? null) : null;
    const skip = (/** @type {number | null} */ at) =>
      at === null || count === null || count < 0 ? null : at + count;
    old = before === null ? skip(old) : from + 1;
    now = after === null ? skip(now) : index + 1;
    return !hasMoved && start !== null && count !== null && count > 0 ? { start, count } : null;
  });
}

/**
 * Renders a button that shows unchanged messages.
 * @param {string} moment
 * @param {number} start
 * @param {number} count
 * @returns {HTMLElement}
 */
export function renderGap(moment, start, count) {
  const show = async () => {
    const page = Math.floor(start / PAGE) * PAGE;
    const end = Math.min(start + count, page + PAGE);
    const lines = await messagesFrom(moment, page);
    const shown = lines.filter((line) => line.index >= start && line.index < end);
    const rest = start + count - end;
    gap.closest("li")?.focus({ preventScroll: true });
    gap.replaceWith(
      ...shown.map(renderUnchanged),
      ...(rest > 0 ? [renderGap(moment, end, rest)] : []),
    );
  };
  const label = t("unchangedMessages", { n: count });
  const gap = el("button", { type: "button", class: "gap", onclick: show }, `… ${label}`);
  return gap;
}

/** @param {Line} line */
function renderUnchanged(line) {
  return el(
    "div",
    { class: "unchanged-message prose" },
    el("span", { class: "number" }, `#${line.index}`),
    " ",
    el("b", {}, shorten(line.name)),
    renderText(line.text),
  );
}
