// History: lists the operations, newest first, with a button to undo or redo each.

import { ask, linesOf, mayWrite } from "./api.js";
import { confirmPlan } from "./dialogs.js";
import { el, redraw, setChildren } from "./dom.js";
import { formatDate, t } from "./words.js";

/** Number of operations per page. */
const PAGE = 100;

/** @type {import("./main.js").Place} */
export async function operations(place) {
  const list = el("ol", { class: "operations" });
  const more = el("div");
  /** Number of operations that are shown. */
  let shown = PAGE;
  const draw = async () => {
    /** @type {import("./api.js").Line[]} */
    const lines = [];
    let next = /** @type {number | null} */ (0);
    while (next !== null && lines.length < shown) {
      const answer = /** @type {import("./api.js").Answer} */ (
        await ask("operations", { first: next, count: PAGE })
      );
      lines.push(...linesOf(answer, "operation"));
      next = answer.next;
    }
    redraw(list, lines.length ? lines.map(row) : el("li", {}, t("empty")));
    const showMore = () => ((shown += PAGE), draw());
    const button = el("button", { type: "button", onclick: showMore }, t("more"));
    redraw(more, next === null ? null : button);
  };
  await draw();
  setChildren(place, el("h1", {}, t("history")), list, more);
  return { onChange: draw };
}

/** @param {import("./api.js").Line} line */
function row(line) {
  const words = line.command.map((/** @type {string} */ word) =>
    /[\s"]/.test(word) ? `"${word}"` : word,
  );
  words[0] = words[0]?.split(/[\\/]/).pop();
  const note = line.undone_by
    ? t("undoneBy", { n: line.undone_by })
    : line.undoes
      ? t("undoes", { n: line.undoes })
      : "";
  const button = (/** @type {number} */ operation, /** @type {"undo" | "redo"} */ label) =>
    el("button", { type: "button", onclick: () => confirmPlan("undo", { operation }) }, t(label));
  // Undoing the last operation of a command undoes all operations of that command, so only the last
  // operation has a button. Redo undoes the undo.
  const isWholeCommand = !line.undoes && !line.continued_by;
  const action =
    !mayWrite() || !isWholeCommand
      ? null
      : line.undone_by
        ? button(line.undone_by, "redo")
        : button(line.number, "undo");
  return el(
    "li",
    { value: line.number, "data-key": line.number },
    el("code", {}, words.join(" ")),
    " ",
    el("span", { class: "facts" }, formatDate(line.time), " ", note),
    " ",
    action,
  );
}
