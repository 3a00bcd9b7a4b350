// Renders a change between two moments: its title, and its fields before and after side by side.

import { el, link } from "./dom.js";
import { renderPlainSides, renderSides } from "./diff_text.js";
import { renderText } from "./rich_text.js";
import { renderPlain, shorten } from "./text.js";
import { fieldLabel, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/**
 * Labels and colours of the kinds of changes.
 * @type {Map<string, [import("./words.js").Key, string]>}
 */
const KINDS = new Map([
  ["added", ["added", "added"]],
  ["removed", ["removed", "removed"]],
  ["edited", ["edited", "edited"]],
  ["swipe", ["swiped", "edited"]],
  ["hidden", ["hidden", "other"]],
  ["shown", ["shownAgain", "other"]],
  ["renamed", ["renamed", "edited"]],
  ["moved", ["moved", "other"]],
  ["order", ["reordered", "other"]],
  ["link", ["link", "other"]],
  ["recap", ["recap", "other"]],
  ["reused", ["reused", "edited"]],
  ["rewritten", ["rewritten", "other"]],
]);
/** Fields that are shown first, in this order. Other fields with a label follow. */
const FIRST = ["mes", "content", "comment", "key", "keysecondary", "constant", "disable", "order"];
/** Matches the fields whose text may have Markdown. */
const PROSE = /^(?:mes|content|extra\.reasoning|swipes\[\d+\]|note_prompt)$/;
/** Number of characters that identify a message whose text did not change. */
const EXCERPT = 140;

/** Returns the kinds of changes in the order in which they are counted. */
export function kinds() {
  return [...KINDS.keys()];
}

/** Renders a kind of change. @param {string} kind @param {number} [count] */
export function kindChip(kind, count) {
  const known = KINDS.get(kind);
  const label = known ? t(known[0]) : kind;
  const number = count === undefined ? null : el("b", {}, count);
  return el("span", { class: `kind ${colourOf(kind)}` }, label, number && " ", number);
}

/** Returns the colour of a kind, as a class. @param {string} kind */
export function colourOf(kind) {
  return `is-${KINDS.get(kind)?.[1] ?? "other"}`;
}

/**
 * Renders a change.
 * @param {Line} line
 * @param {(line: Line) => string | null} addressOf returns the address of a message
 */
export function renderChange(line, addressOf) {
  const [title, children] =
    line.index !== undefined
      ? renderMessage(line, addressOf(line))
      : line.uid !== undefined
        ? renderEntry(line)
        : renderValue(line);
  const chips = [line.kind, ...line.also].map((kind) => kindChip(kind));
  return el(
    "article",
    // A fold and its counterpart on the other side open together.
    { class: "change", onclick: unfoldTogether },
    el("header", {}, title, chips),
    ...children,
  );
}

/** @param {MouseEvent} event */
function unfoldTogether({ target, currentTarget }) {
  const [folded, article] = /** @type {Element[]} */ ([target, currentTarget]);
  if (!folded.matches(".unchanged")) return;
  const others = /** @type {NodeListOf<HTMLElement>} */ (article.querySelectorAll(".unchanged"));
  for (const other of others) other.click();
}

/** @typedef {[title: Node[], children: import("./dom.js").Child[]]} Rendered */

/** @param {Line} line @param {string | null} href @returns {Rendered} */
function renderMessage(line, href) {
  const { name = "", mes = "" } = line.after ?? line.before ?? {};
  const number = `#${line.index}`;
  const title = [
    href ? link(href, number, { class: "number" }) : el("span", { class: "number" }, number),
    el("b", {}, shorten(name)),
  ];
  if (line.from !== undefined && line.from !== line.index)
    title.splice(1, 0, el("span", { class: "facts" }, `← #${line.from}`));
  if (isWhole(line)) return [title, [renderWhole(line, mes)]];
  const hasText = line.fields.some((/** @type {Line} */ field) => field.field === "mes");
  const excerpt = hasText ? null : el("p", { class: "facts excerpt" }, excerptOf(mes));
  return [title, [excerpt, ...renderFields(line)]];
}

/** @param {Line} line @returns {Rendered} */
function renderEntry(line) {
  const { comment, content, key, order, constant, disable } = line.after ?? line.before ?? {};
  const keys = Array.isArray(key) ? key.map(asText).filter(Boolean) : [];
  const title = [el("b", {}, shorten(comment || keys.join(", ") || `UID ${line.uid}`))];
  const hasKeys = line.fields.some((/** @type {Line} */ field) => field.field === "key");
  const facts = [
    keys.length && !hasKeys ? t("keywords", { keys: shorten(keys.join(", ")) }) : "",
    isWhole(line) && order !== undefined ? `${fieldLabel("order")}: ${asText(order)}` : "",
    constant && isWhole(line) ? fieldLabel("constant") : "",
    disable && isWhole(line) ? fieldLabel("disable") : "",
  ].filter(Boolean);
  const about =
    facts.length && line.kind !== "rewritten"
      ? el("p", { class: "facts" }, facts.join(" · "))
      : null;
  return [title, [about, ...(isWhole(line) ? [renderWhole(line, content)] : renderFields(line))]];
}

/** @param {Line} line @returns {Rendered} */
function renderValue(line) {
  const { path = "", before, after, fields } = line;
  const title = [el("b", {}, shorten(fieldLabel(path)))];
  if (fields.length) return [title, renderFields(line)];
  const [old, now] = [before, after].map((value) => value ?? undefined);
  return [title, [renderField({ ...line, field: path, before: old, after: now }, "")]];
}

/** Returns whether only one side has the value. @param {Line} line */
function isWhole({ before, after }) {
  return before === null || after === null;
}

/** @param {unknown} text */
function excerptOf(text) {
  const words = String(text)
    .slice(0, 4 * EXCERPT)
    .replace(/\s+/g, " ");
  return words.length > EXCERPT ? `${words.slice(0, EXCERPT)}…` : words;
}

/** Renders a text that only one side has. @param {Line} line @param {unknown} text */
function renderWhole(line, text) {
  const nodes = renderText(asText(text ?? ""));
  return line.after === null ? pair("", nodes, [], "prose") : pair("", [], nodes, "prose");
}

/** Renders the fields that differ. Fields without a label are folded. @param {Line} line */
function renderFields(line) {
  const rank = (/** @type {Line} */ { field }) => (FIRST.indexOf(field) + 1 || 99) - 1;
  const fields = [...line.fields].sort((a, b) => rank(a) - rank(b));
  const text = fields.find((field) => field.field === "mes");
  const isCopy = (/** @type {Line} */ field) =>
    /^swipes\[\d+\]$/.test(field.field) &&
    [field.before, field.after].every((value, n) => value === [text?.before, text?.after][n]);
  const isMain = (/** @type {Line} */ field) =>
    fieldLabel(field.field) !== field.field && field.field !== "send_date" && !isCopy(field);
  const main = fields.filter(isMain);
  const rest = fields.filter((field) => !isMain(field));
  const render = (/** @type {Line} */ field) =>
    renderField(field, field.field === "mes" ? "" : fieldLabel(field.field));
  if (!rest.length) return main.map(render);
  const more = () => rest.map(render);
  if (!main.length) return more();
  const ontoggle = () => {
    if (details.childElementCount < 2) details.append(...more());
  };
  const label = t("moreFields", { n: rest.length });
  const details = el("details", { class: "more", ontoggle }, el("summary", {}, label));
  return [...main.map(render), details];
}

/** @param {Line} field @param {string} label */
function renderField({ field, before, after, added, removed }, label) {
  const item = (/** @type {string} */ tag) => (/** @type {unknown} */ value) =>
    el(tag, { class: "item" }, renderPlain(asText(value)));
  const values = [before, after].filter((value) => value !== undefined);
  if (added || removed || values.every(isListOfStrings)) {
    const list = (/** @type {unknown} */ value, /** @type {string[]} */ marked, tag = "ins") =>
      (Array.isArray(value) ? value : []).map((one) =>
        item(marked.includes(one) ? tag : "span")(one),
      );
    const [gone, come] = [removed ?? before ?? [], added ?? after ?? []];
    return pair(label, list(before, gone, "del"), list(after, come), "items");
  }
  // Numbers and switches have no words to compare.
  if (!values.some((value) => ["string", "object"].includes(typeof value))) {
    const one = (/** @type {unknown} */ value, /** @type {string} */ tag) =>
      value === undefined ? [] : [item(tag)(value)];
    return pair(label, one(before, "del"), one(after, "ins"), "items");
  }
  const isProse = PROSE.test(field) && values.every((value) => typeof value === "string");
  const isJson = values.some((value) => typeof value === "object");
  const className = isJson ? "json" : isProse ? "prose" : "";
  if (values.length < 2) {
    const nodes = isProse
      ? renderText(asText(values[0]))
      : [el("p", { dir: "auto" }, renderPlain(asText(values[0])))];
    const [left, right] = after === undefined ? [nodes, []] : [[], nodes];
    return pair(label, left, right, className);
  }
  const sides = (isProse ? renderSides : renderPlainSides)(asText(before), asText(after));
  return pair(label, ...sides, className);
}

/** @param {unknown} value */
function isListOfStrings(value) {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/**
 * Renders a field side by side. The label of short values is beside each, so that it does not need
 * a line of its own.
 * @param {string} label
 * @param {Node[]} before
 * @param {Node[]} after
 */
function pair(label, before, after, className = "") {
  const isShort = className === "items";
  const name = label && el(isShort ? "span" : "div", { class: "field" }, shorten(label));
  const side = (/** @type {"before" | "after"} */ which, /** @type {Node[]} */ nodes) =>
    el(
      "div",
      { class: `side ${which}${nodes.length ? "" : " nothing"}` },
      el("small", { class: "side-name" }, t(which)),
      isShort && name && name.cloneNode(true),
      nodes.length ? nodes : el("span", { class: "facts" }, isShort ? "—" : ""),
    );
  const isWhole = !before.length || !after.length;
  return el(
    "div",
    { class: `pair ${className}${isWhole && !isShort ? " whole" : ""}` },
    isShort ? null : name,
    side("before", before),
    side("after", after),
  );
}

/** Returns a value as text. @param {unknown} value */
function asText(value) {
  if (value === undefined) return "";
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, 2);
}
