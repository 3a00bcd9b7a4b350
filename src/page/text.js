// Renders text of chats and lorebooks as DOM nodes. The text is untrusted: only a few Markdown
// marks are interpreted, and everything else is shown as plain text.

import { el } from "./dom.js";

/** Maximum length of a line in which Markdown marks are interpreted. */
const MAX_MARKED_LENGTH = 50_000;
const MARKS = new RegExp(
  [
    /\*\*\*([^*\n]+)\*\*\*/,
    /\*\*([^*\n]+)\*\*/,
    /\*([^*\n]+)\*/,
    /`([^`\n]+)`/,
    /("[^"\n]{1,2000}"|“[^”\n]{1,2000}”|「[^」\n]{1,2000}」)/,
  ]
    .map((mark) => mark.source)
    .join("|"),
  "gu",
);

/** Renders a text as paragraphs. @param {string} text @returns {Node[]} */
export function renderText(text) {
  return text.split(/\n{2,}/).map((paragraph) => {
    const lines = paragraph
      .split("\n")
      .flatMap((line, n) => (n ? [el("br"), ...renderLine(line)] : renderLine(line)));
    return el("p", { dir: "auto" }, lines);
  });
}

/** @param {string} line @returns {Node[]} */
function renderLine(line) {
  if (line.length > MAX_MARKED_LENGTH) return [new Text(line)];
  /** @type {Node[]} */
  const nodes = [];
  let end = 0;
  for (const match of line.matchAll(MARKS)) {
    nodes.push(new Text(line.slice(end, match.index)));
    const [all, boldItalic, bold, italic, code, speech] = match;
    if (boldItalic) nodes.push(el("strong", {}, el("em", {}, boldItalic)));
    else if (bold) nodes.push(el("strong", {}, bold));
    else if (italic) nodes.push(el("em", {}, italic));
    else if (code) nodes.push(el("code", {}, code));
    else nodes.push(el("q", {}, speech ?? all));
    end = (match.index ?? 0) + all.length;
  }
  nodes.push(new Text(line.slice(end)));
  return nodes;
}

/** Matches a word, white space, a punctuation mark, or one character of a script without spaces. */
const TOKENS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_']+|\s+|[^\p{L}\p{N}\s]/gu;
/** Maximum number of tokens of texts that are compared word by word. */
const MAX_COMPARED = 3000;

/**
 * Renders the difference of two texts, word by word.
 * @param {string} before
 * @param {string} after
 * @returns {Node[]}
 */
export function renderDiff(before, after) {
  const [a, b] = [before.match(TOKENS) ?? [], after.match(TOKENS) ?? []];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  )
    tail++;
  const [removed, added] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const isLong = removed.length * added.length > MAX_COMPARED * MAX_COMPARED;
  return [
    new Text(a.slice(0, head).join("")),
    ...(isLong ? renderReplacement(removed, added) : diffTokens(removed, added)),
    new Text(a.slice(a.length - tail).join("")),
  ];
}

/** @param {string[]} removed @param {string[]} added @returns {Node[]} */
function renderReplacement(removed, added) {
  return [
    removed.length ? el("del", {}, removed.join("")) : new Text(""),
    added.length ? el("ins", {}, added.join("")) : new Text(""),
  ];
}

/**
 * Renders a difference by the longest common subsequence of tokens.
 * @param {string[]} old
 * @param {string[]} now
 * @returns {Node[]}
 */
function diffTokens(old, now) {
  const width = now.length + 1;
  /** At `i * width + j`: length of the longest common subsequence of `old[i..]` and `now[j..]`. */
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        old[i] === now[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  /** @type {Node[]} */
  const nodes = [];
  let [i, j] = [0, 0];
  const isCommon = () => i < old.length && j < now.length && old[i] === now[j];
  while (i < old.length || j < now.length) {
    const start = i;
    while (isCommon()) {
      i++;
      j++;
    }
    if (i > start) nodes.push(new Text(old.slice(start, i).join("")));
    /** @type {string[]} */ const removed = [];
    /** @type {string[]} */ const added = [];
    while ((i < old.length || j < now.length) && !isCommon()) {
      const isRemoved =
        j >= now.length ||
        (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]);
      if (isRemoved) removed.push(old[i++]);
      else added.push(now[j++]);
    }
    nodes.push(...renderReplacement(removed, added));
  }
  return nodes;
}
