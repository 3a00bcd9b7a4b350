// What was done, and the way back.

import { ask, mayWrite, of } from "./ask.js";
import { plan } from "./changes.js";
import { el, show } from "./nodes.js";
import { date, t } from "./words.js";

/** @type {import("./main.js").Place} */
export async function operations(place) {
  const draw = async () => {
    const list = of(await ask("operations", { count: 100 }), "operation");
    show(
      place,
      el("h1", {}, t("operations")),
      list.length ? el("ol", { class: "operations" }, list.map(row)) : el("p", {}, t("nothing")),
    );
  };
  await draw();
  return { changed: draw };
}

/** @param {import("./ask.js").Line} line */
function row(line) {
  const words = line.command.map((/** @type {string} */ word) =>
    /[\s"]/.test(word) ? `"${word}"` : word,
  );
  words[0] = words[0]?.split(/[\\/]/).pop();
  const note = line.undone_by
    ? t("undone", { n: line.undone_by })
    : line.undoes
      ? t("undid", { n: line.undoes })
      : "";
  const button = (/** @type {number} */ operation, /** @type {"undo" | "redo"} */ word) =>
    el("button", { type: "button", onclick: () => plan("undo", { operation }) }, t(word));
  // A part of a command is undone with the last one of it.
  const stands = !line.undone_by && !line.undoes && !line.continued_by;
  const redoes = line.undone_by && !line.undoes && !line.continued_by;
  const back = !mayWrite()
    ? null
    : stands
      ? button(line.number, "undo")
      : redoes
        ? button(line.undone_by, "redo")
        : null;
  return el(
    "li",
    { value: line.number },
    el("code", {}, words.join(" ")),
    " ",
    el("span", { class: "facts" }, date(line.time), " ", note),
    " ",
    back,
  );
}
