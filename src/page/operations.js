// History: lists the operations, newest first, with a button to undo or redo each.

import { ask, linesOf, mayWrite } from "./api.js";
import { confirmPlan } from "./dialogs.js";
import { el, redraw, setChildren } from "./dom.js";
import { formatDate, isChat, splitTimeline, t } from "./words.js";

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

/** Names of the programs' parts that send requests of a page. */
const PAGES = ["view", "watch", "extension"];

/**
 * Describes an operation in a sentence. Returns "" if its command has no sentence.
 * @param {import("./api.js").Line} line
 */
function describe(line) {
  const [first = "", second = ""] = plainWords(line.command);
  const verb = PAGES.includes(first) && second ? second : first;
  const branches = (line.refs ?? []).flatMap((/** @type {{ ref: string }} */ { ref }) =>
    ref.startsWith("refs/heads/") ? [decode(ref.slice("refs/heads/".length))] : [],
  );
  const tags = (line.refs ?? []).flatMap((/** @type {{ ref: string }} */ { ref }) =>
    ref.startsWith("refs/tags/") ? [decode(ref.slice("refs/tags/".length))] : [],
  );
  const chats = (line.files ?? [])
    .map((/** @type {{ path: string }} */ { path }) => path.replace(/\.jsonl$/, ""))
    .filter(isChat);
  const names = [...new Set([...chats, ...branches.filter(isChat), ...branches])];
  const key = SENTENCES[verb];
  if (!key) return "";
  if (verb === "tag" && tags.length) return t(key, { name: tags.join(", ") });
  if (verb === "undo") return t(key, { n: line.undoes ?? 0 });
  if (!names.length) return "";
  const [, name] = splitTimeline(names[0]);
  const more = names.length - 1;
  return t(key, { name: more ? t("andMore", { name, n: more }) : name });
}

/** Returns the words of a command line without its options. @param {string[]} command */
function plainWords([, ...words]) {
  const isValue = (/** @type {number} */ n) =>
    /^--(data|store|user|color|date)$/.test(words[n - 1]);
  return words.filter((word, n) => !word.startsWith("-") && !isValue(n));
}

/** Decodes the name of a ref, whose special characters are percent-encoded. @param {string} name */
function decode(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The sentences of commands. @type {Record<string, import("./words.js").Key>} */
const SENTENCES = {
  snapshot: "didStore",
  watch: "didStore",
  setup: "didStore",
  restore: "didRestore",
  fork: "didFork",
  doctor: "didRepair",
  repair: "didRepair",
  merge: "didMerge",
  import: "didImport",
  sync: "didSync",
  forget: "didForget",
  erase: "didErase",
  tag: "didTag",
  undo: "didUndo",
};

/** @param {import("./api.js").Line} line */
function row(line) {
  const sentence = describe(line);
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
    el(
      "div",
      {},
      el("span", { class: "sentence" }, sentence || el("code", {}, words.join(" "))),
      el(
        "span",
        { class: "facts" },
        [formatDate(line.time), note].filter(Boolean).join(" · "),
        sentence ? " · " : "",
        sentence ? el("code", {}, words.join(" ")) : null,
      ),
    ),
    action,
  );
}
