// Renders the marks inside a paragraph as SillyTavern shows them: emphasis, quotations and code.
// Each character is read once, and a mark that is not closed is shown as text.

import { el } from "./dom.js";
import { renderPlain } from "./text.js";

/** The elements of one mark and of two marks. @type {Record<string, [string | null, string]>} */
const EMPHASIS = { "*": ["em", "strong"], _: ["em", "u"], "~": [null, "s"] };
/** The quotation marks, with their closing marks. @type {Record<string, string>} */
const QUOTES = { '"': '"', "“": "”", "「": "」", "『": "』", "«": "»", "＂": "＂" };
/** Maximum length of a quotation, in characters. */
const MAX_QUOTE = 2000;

/** Matches a run of marks, an escaped character or a line break. */
const MARKS = /\*+|_+|~+|`+|\\[\\`*_{}[\]()>#+.!~=|:-]|["“”「」『』«»＂]|\n/g;

/**
 * Text that follows an opening mark. It becomes an element when the mark is closed.
 * @typedef {object} Open
 * @property {string} mark
 * @property {string} tag
 * @property {number} start position of the mark
 * @property {Node[]} nodes
 */

/** Renders a paragraph. @param {string} text @returns {Node[]} */
export function renderInline(text) {
  /** Each mark can be open once, so this list is short. @type {Open[]} */
  const open = [{ mark: "", tag: "", start: 0, nodes: [] }];
  const findCode = codeFinder(text);
  let end = 0;
  const add = (/** @type {Node[]} */ nodes) => void open[open.length - 1].nodes.push(...nodes);
  const indexOf = (/** @type {string} */ mark) => open.findIndex((one) => one.mark === mark);
  const begin = (/** @type {string} */ mark, /** @type {string} */ tag, /** @type {number} */ at) =>
    void open.push({ mark, tag, start: at, nodes: [] });
  /** Turns an opening mark into text. @param {number} index */
  const giveUp = (index) => {
    const [{ mark, nodes }] = open.splice(index, 1);
    open[index - 1].nodes.push(new Text(mark), ...nodes);
  };
  /** Closes a mark. Later marks that are still open become text. @param {number} index */
  const finish = (index, quote = "") => {
    const [outer, inner] = open.slice(index);
    if (inner?.start === outer.start) {
      // Both were opened by "***", whose order is not known before one is closed.
      open.splice(index, 2, { ...inner, nodes: [] }, { ...outer, nodes: inner.nodes });
      index++;
    }
    while (open.length > index + 1) giveUp(open.length - 1);
    const [{ mark, tag, nodes }] = open.splice(index);
    const children = quote ? [new Text(mark), ...nodes, new Text(quote)] : nodes;
    add([el(tag, {}, children)]);
  };
  /** Opens or closes emphasis. Returns whether the run is a mark. @param {string} run */
  const emphasise = (run, /** @type {number} */ at) => {
    const [mark] = run;
    const [before, after] = [text[at - 1] ?? " ", text[at + run.length] ?? " "];
    const isInWord = mark === "_" && [before, after].every((one) => /[\p{L}\p{N}]/u.test(one));
    if (run.length > 3 || isInWord) return false;
    const isThree = run.length === 3;
    const marks = isThree ? [mark + mark, mark] : [run];
    if (/\S/.test(before)) {
      const closed = marks.map(indexOf).filter((index) => index > 0);
      if (closed.length === marks.length) {
        closed.sort((a, b) => b - a).forEach((index) => finish(index));
        return true;
      }
    }
    const tags = marks.map((one) => EMPHASIS[mark][one.length - 1]);
    if (/\s/.test(after) || tags.includes(null) || marks.some((one) => indexOf(one) > 0))
      return false;
    marks.forEach((one, n) => begin(one, tags[n] ?? "", at));
    return true;
  };
  /** Opens or closes a quotation. Returns whether the mark is one. @param {string} mark */
  const quote = (mark, /** @type {number} */ at) => {
    const closed = open.findIndex((one) => QUOTES[one.mark] === mark);
    if (closed > 0) {
      if (at - open[closed].start <= MAX_QUOTE) return (finish(closed, mark), true);
      giveUp(closed);
    }
    if (!Object.hasOwn(QUOTES, mark) || indexOf(mark) > 0) return false;
    begin(mark, "q", at);
    return true;
  };
  for (const { 0: run, index: at } of text.matchAll(MARKS)) {
    if (at < end) continue;
    const isBreak = run === "\n";
    const code = run[0] === "`" ? findCode(run.length, at) : -1;
    if (run[0] === "`" && code < 0) continue;
    add(renderPlain(text.slice(end, at)));
    end = at;
    if (isBreak) {
      // A quotation ends on its line.
      const first = open.findIndex((one) => one.tag === "q");
      if (first > 0) giveUp(first);
      add([el("br")]);
    } else if (code >= 0) {
      add([el("code", {}, renderPlain(trimCode(text.slice(at + run.length, code))))]);
      end = code + run.length;
      continue;
    } else if (run[0] === "\\") {
      add([new Text(run[1])]);
    } else if (!(Object.hasOwn(EMPHASIS, run[0]) ? emphasise(run, at) : quote(run, at))) {
      continue;
    }
    end = at + run.length;
  }
  add(renderPlain(text.slice(end)));
  if (open.length > 1) giveUp(1);
  return open[0].nodes;
}

/** Removes the spaces that separate code from its marks. @param {string} code */
function trimCode(code) {
  return /^ .* $/s.test(code) && code.trim() ? code.slice(1, -1) : code;
}

/**
 * Returns a function that finds the run of backticks that closes a run of the same length. Runs are
 * asked for in order, so finding all of them reads the text once.
 * @param {string} text
 */
function codeFinder(text) {
  /** Positions of runs by their length, last one first. @type {Map<number, number[]>} */
  const runs = new Map();
  for (const { 0: run, index } of [...text.matchAll(/`+/g)].reverse()) {
    const positions = runs.get(run.length);
    if (positions) positions.push(index);
    else runs.set(run.length, [index]);
  }
  return (/** @type {number} */ length, /** @type {number} */ from) => {
    const positions = runs.get(length) ?? [];
    while (positions.length && positions[positions.length - 1] <= from) positions.pop();
    return positions[positions.length - 1] ?? -1;
  };
}
