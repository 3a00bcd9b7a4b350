// What was written in a chat, made of nodes. A chat is hostile: a few marks are known, everything else is text as it stands.

import { el } from "./nodes.js";

// Longer texts are not searched for marks.
const LONGEST = 50_000;
const MARKS =
  /\*\*\*([^*\n]+)\*\*\*|\*\*([^*\n]+)\*\*|\*([^*\n]+)\*|`([^`\n]+)`|("[^"\n]{1,2000}"|“[^”\n]{1,2000}”|「[^」\n]{1,2000}」)/gu;

/**
 * @param {string} text
 * @returns {Node[]}
 */
export function told(text) {
  /** @type {Node[]} */
  const blocks = [];
  for (const block of text.split(/\n{2,}/)) {
    const lines = block
      .split("\n")
      .flatMap((line, n) => (n ? [el("br"), ...marked(line)] : marked(line)));
    blocks.push(el("p", { dir: "auto" }, lines));
  }
  return blocks;
}

/** @param {string} text @returns {Node[]} */
function marked(text) {
  if (text.length > LONGEST) return [new Text(text)];
  /** @type {Node[]} */
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(MARKS)) {
    nodes.push(new Text(text.slice(at, found.index)));
    const [all, both, bold, italic, code, said] = found;
    if (both) nodes.push(el("strong", {}, el("em", {}, both)));
    else if (bold) nodes.push(el("strong", {}, bold));
    else if (italic) nodes.push(el("em", {}, italic));
    else if (code) nodes.push(el("code", {}, code));
    else nodes.push(el("q", {}, said ?? all));
    at = (found.index ?? 0) + all.length;
  }
  nodes.push(new Text(text.slice(at)));
  return nodes;
}

// Words, or single signs of scripts that have no spaces.
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_']+|\s+|[^\p{L}\p{N}\s]/gu;
// More than this is compared as a whole.
const MANY = 3000;

/**
 * What became of a text, word by word.
 * @param {string} before
 * @param {string} after
 * @returns {Node[]}
 */
export function changed(before, after) {
  const [a, b] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  )
    tail++;
  const [old, now] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const nodes = [new Text(a.slice(0, head).join(""))];
  const pieces = old.length * now.length > MANY * MANY ? whole(old, now) : woven(old, now);
  return [...nodes, ...pieces, new Text(a.slice(a.length - tail).join(""))];
}

/** @param {string[]} old @param {string[]} now @returns {Node[]} */
function whole(old, now) {
  return [
    old.length ? el("del", {}, old.join("")) : new Text(""),
    now.length ? el("ins", {}, now.join("")) : new Text(""),
  ];
}

/** By the longest common row of words. @param {string[]} old @param {string[]} now @returns {Node[]} */
function woven(old, now) {
  const width = now.length + 1;
  const best = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      best[i * width + j] =
        old[i] === now[j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  /** @type {Node[]} */
  const nodes = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    /** @type {string[]} */ const gone = [];
    /** @type {string[]} */ const come = [];
    while (i < old.length && j < now.length && old[i] === now[j]) {
      gone.push(old[i]);
      i++;
      j++;
    }
    if (gone.length) nodes.push(new Text(gone.splice(0).join("")));
    while (
      (i < old.length || j < now.length) &&
      !(i < old.length && j < now.length && old[i] === now[j])
    ) {
      if (
        j >= now.length ||
        (i < old.length && best[(i + 1) * width + j] >= best[i * width + j + 1])
      )
        gone.push(old[i++]);
      else come.push(now[j++]);
    }
    nodes.push(...whole(gone, come));
  }
  return nodes;
}
