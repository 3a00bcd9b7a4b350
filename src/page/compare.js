// Comparison of two snapshots, or of a snapshot with the current files.

import { ask, linesOf } from "./api.js";
import { address, el, link, setChildren } from "./dom.js";
import { PAGE, momentOf } from "./standalone.js";
import { renderDiff, renderPlain, renderText, shorten } from "./text.js";
import { fieldLabel, formatDate, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/**
 * The parts of a comparison: the name in answers, the name in requests, the title, and the function
 * that renders a change.
 * @type {[string, string, import("./words.js").Key, (line: Line) => Node][]}
 */
const PARTS = [
  ["message", "chat", "chat", renderMessage],
  ["lorebook", "lorebook", "lorebook", renderEntry],
  ["card", "card", "character", renderValue],
  ["metadata", "metadata", "metadata", renderValue],
];

/** @type {import("./main.js").Place} */
export async function compare(place, [before, after]) {
  const moments = { before, ...(after ? { after } : {}) };
  const [answer, left, right] = await Promise.all([
    ask("diff", { ...moments, stat: true }),
    snapshotLink(before),
    after ? snapshotLink(after) : null,
  ]);
  const [{ counts, changes }] = linesOf(answer, "comparison");
  const section = (
    /** @type {string} */ part,
    /** @type {string} */ only,
    /** @type {import("./words.js").Key} */ title,
    /** @type {(line: Line) => Node} */ render,
  ) => {
    if (!counts[part]) return null;
    const total = Object.values(counts[part]).reduce((sum, count) => sum + count, 0);
    const list = el("div", {}, t("loading"));
    const load = async (first = 0) => {
      const page = await ask("diff", { ...moments, only, first, count: PAGE });
      if (!first) setChildren(list);
      list.append(...linesOf(page, "change").map(render));
      const { next } = page;
      if (next === null) return;
      const onclick = () => (more.remove(), load(next));
      const more = el("button", { type: "button", onclick }, `${t("more")} (${total - next})`);
      list.append(more);
    };
    // The changes of a part are loaded when it is opened.
    const ontoggle = () => {
      if (details.open && !list.childElementCount) load().catch(showError);
    };
    const showError = (/** @type {Error} */ error) => setChildren(list, error.message);
    const details = /** @type {HTMLDetailsElement} */ (
      el(
        "details",
        { open: part !== "metadata", ontoggle },
        el("summary", {}, el("h2", {}, `${t(title)} (${total})`)),
        list,
      )
    );
    return details;
  };
  setChildren(
    place,
    el("h1", {}, `${t("before")} ↔ ${t("after")}`),
    el("div", { class: "columns sides" }, left, right ?? el("p", {}, t("currentFiles"))),
    changes ? null : el("p", {}, t("noDifference")),
    PARTS.map(([part, only, title, render]) => section(part, only, title, render)),
  );
}

/** @param {string} moment */
async function snapshotLink(moment) {
  try {
    const [line] = linesOf(await ask("show", { snapshot: moment }), "snapshot");
    const [folder, name] = splitTimeline(line.timeline);
    return el(
      "p",
      {},
      link(address("read", momentOf(line)), `${folder} / ${name}`),
      el("span", { class: "facts" }, ` ${formatDate(line.time)}`),
    );
  } catch {
    return el("p", {}, moment);
  }
}

/** Labels of the kinds of changes. @type {Map<string, import("./words.js").Key>} */
const KIND_LABELS = new Map([
  ["added", "added"],
  ["removed", "removed"],
  ["edited", "edited"],
  ["moved", "moved"],
  ["swipe", "swiped"],
  ["hidden", "hidden"],
  ["shown", "shownAgain"],
  ["recap", "recap"],
  ["link", "link"],
  ["reused", "reused"],
  ["renamed", "renamed"],
  ["order", "reordered"],
  ["rewritten", "rewritten"],
]);

/** @param {string} kind */
function kindLabel(kind) {
  const key = KIND_LABELS.get(kind);
  return key ? t(key) : kind;
}

/** @param {Line} line @param {string} title @param {...import("./dom.js").Child} children */
function renderChange(line, title, ...children) {
  return el(
    "article",
    { class: `change ${line.kind}` },
    el(
      "header",
      {},
      el("b", {}, shorten(title)),
      " ",
      el("span", { class: "label" }, [line.kind, ...line.also].map(kindLabel).join(", ")),
    ),
    ...children,
  );
}

/** Renders a text that was added or removed. @param {Line} line @param {unknown} text */
function renderWhole(line, text) {
  const className = line.after === null ? "text-removed" : "text-added";
  return el("div", { class: className }, renderText(String(text ?? "")));
}

/** Lists the fields that differ. @param {Line} line */
function renderFields(line) {
  const row = (/** @type {Line} */ field) => [
    el("dt", {}, shorten(fieldLabel(field.field))),
    el("dd", { dir: "auto" }, renderField(field)),
  ];
  return el("dl", { class: "fields" }, line.fields.flatMap(row));
}

/** @param {Line} field @returns {Node[]} */
function renderField({ before, after, added, removed }) {
  const item = (/** @type {string} */ tag) => (/** @type {unknown} */ value) =>
    el(tag, { class: "item" }, renderPlain(asText(value)));
  const items = [...(removed ?? []).map(item("del")), ...(added ?? []).map(item("ins"))];
  if (items.length) return items;
  // Numbers and switches have no words to compare.
  const isText = [before, after].some((value) => ["string", "object"].includes(typeof value));
  if (isText) return renderDiff(asText(before), asText(after));
  return [
    ...(before === undefined ? [] : [item("del")(before)]),
    ...(after === undefined ? [] : [item("ins")(after)]),
  ];
}

/** Returns a value as text. @param {unknown} value */
function asText(value) {
  if (value === undefined) return "";
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  if (typeof value === "string") return value;
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isList ? value.join("\n") : JSON.stringify(value, null, 1);
}

/** @param {Line} line */
function renderMessage(line) {
  const { name = "", mes } = line.after ?? line.before ?? {};
  const from = line.from !== undefined && line.from !== line.index ? `#${line.from} → ` : "";
  const title = `${from}#${line.index} ${name}`;
  const isWhole = line.before === null || line.after === null;
  return renderChange(line, title, isWhole ? renderWhole(line, mes) : renderFields(line));
}

/** @param {Line} line */
function renderEntry(line) {
  if (line.uid === undefined) return renderValue(line);
  const { comment, content, key } = line.after ?? line.before ?? {};
  const keys = Array.isArray(key) ? shorten(key.join(", ")) : "";
  const isWhole = line.before === null || line.after === null;
  return renderChange(
    line,
    comment || keys || `UID ${line.uid}`,
    keys && el("p", { class: "facts" }, t("keywords", { keys })),
    isWhole ? renderWhole(line, content) : renderFields(line),
  );
}

/** @param {Line} line */
function renderValue(line) {
  const title = fieldLabel(line.path ?? "");
  if (line.before === null || line.after === null)
    return renderChange(line, title, renderWhole(line, asText(line.after ?? line.before)));
  const before = asText(line.before);
  const after = asText(line.after);
  return renderChange(
    line,
    title,
    line.fields.length
      ? renderFields(line)
      : before === after
        ? null
        : el("p", { dir: "auto" }, renderDiff(before, after)),
  );
}
