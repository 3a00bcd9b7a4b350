// Renders the difference of two texts, word by word: as one text, or side by side.

import { el } from "./dom.js";
import { renderText } from "./rich_text.js";
import { MAX_SHOWN, isWorthFolding, renderPlain, unfoldButton, wholeCharacters } from "./text.js";
import { t } from "./words.js";

/**
 * A part of two texts: the words of both texts, which are equal if the part is unchanged.
 * @typedef {{ before: string, after: string, isSame: boolean }} Piece
 */

/** Matches a word, white space, a punctuation mark, or one character of a script without spaces. */
const TOKENS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_']+|\s+|[^\p{L}\p{N}\s]/gu;
/** Matches a character that belongs to the same word as the next one. */
const IN_WORD = /(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{N}_']/u;
/** Maximum number of tokens of texts that are compared word by word. */
const MAX_COMPARED = 1500;
/** Maximum length of texts that are split into tokens. */
const MAX_TOKENIZED = 100_000;
/** Length of unchanged text that is shown, and of the part of it before and after a fold. */
const [MAX_UNCHANGED, CONTEXT] = [600, 200];
/** Two texts are compared word by word if they share at least this part of the shorter one. */
const LEAST_SHARED = 0.25;
/** Matches punctuation and white space between two changes, which then become one change. */
const BETWEEN_CHANGES = /^[^\p{L}\p{N}]{1,4}$/u;

/**
 * Renders the difference of two texts as one text. Long unchanged text is folded.
 * @param {string} before
 * @param {string} after
 * @returns {Node[]}
 */
export function renderDiff(before, after) {
  return diffPieces(before, after).flatMap((piece) =>
    piece.isSame
      ? renderUnchanged(piece.after)
      : [...renderMarked("del", piece.before), ...renderMarked("ins", piece.after)],
  );
}

/**
 * Renders the difference of two texts with Markdown side by side. Long unchanged text is folded.
 * @param {string} before
 * @param {string} after
 * @returns {[Node[], Node[]]}
 */
export function renderSides(before, after) {
  return renderFormatted(before, after) ?? renderPlainSides(before, after);
}

/**
 * Renders the difference of two texts without Markdown side by side.
 * @param {string} before
 * @param {string} after
 * @returns {[Node[], Node[]]}
 */
export function renderPlainSides(before, after) {
  const pieces = diffPieces(before, after);
  const side = (/** @type {"del" | "ins"} */ tag) => {
    const nodes = pieces.flatMap((piece) => {
      const text = tag === "del" ? piece.before : piece.after;
      return piece.isSame ? renderUnchanged(text) : renderMarked(tag, text);
    });
    return [el("p", { dir: "auto" }, nodes)];
  };
  return [side("del"), side("ins")];
}

/** @param {"del" | "ins"} tag @param {string} text */
function renderMarked(tag, text) {
  return text ? [el(tag, {}, renderPlain(text))] : [];
}

/** @param {string} text @returns {Node[]} */
function renderUnchanged(text) {
  if (text.length <= MAX_UNCHANGED) return renderPlain(text);
  const start = boundaryAt(text, CONTEXT);
  const end = boundaryAt(text, text.length - CONTEXT);
  const hidden = text.slice(start, end);
  const more = unchangedButton(t("showUnchanged", { n: hidden.length }), () => renderPlain(hidden));
  return [...renderPlain(text.slice(0, start)), more, ...renderPlain(text.slice(end))];
}

/** Returns the end of a word near a position. @param {string} text @param {number} at */
function boundaryAt(text, at) {
  const space = text.lastIndexOf(" ", at);
  return space > at - CONTEXT / 2 ? space : wholeCharacters(text, at);
}

/** @param {string} label @param {() => Node[]} show */
function unchangedButton(label, show) {
  const button = unfoldButton(label, show);
  button.classList.add("unchanged");
  return button;
}

/**
 * Renders both texts with their Markdown, and marks the words that differ. Returns undefined if
 * that would hide something: the rest of a long text, a picture, or a change of only the Markdown.
 * @param {string} before
 * @param {string} after
 * @returns {[Node[], Node[]] | undefined}
 */
function renderFormatted(before, after) {
  if ([before, after].some((text) => isWorthFolding(text, MAX_SHOWN))) return;
  const [left, right] = [before, after].map((text) => el("div", {}, renderText(text)));
  if ([left, right].some((side) => side.querySelector("img, .data, .folded"))) return;
  const [old, now] = [left, right].map(wordsOf);
  if (old.text === now.text) return;
  const pieces = diffPieces(old.text, now.text);
  markPieces(left, old.nodes, pieces, "del");
  markPieces(right, now.nodes, pieces, "ins");
  return [[...left.childNodes], [...right.childNodes]];
}

/**
 * Returns the text of an element with its text nodes. Lines and blocks are separated by line
 * breaks, which are not part of a node.
 * @param {Element} element
 */
function wordsOf(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  /** @type {{ node: Text, start: number }[]} */
  const nodes = [];
  let text = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node instanceof Text) {
      nodes.push({ node, start: text.length });
      text += node.data;
    } else if (/^(BR|P|LI|BLOCKQUOTE|PRE|TR|TD|TH)$/.test(node.nodeName) && text) text += "\n";
  }
  return { nodes, text };
}

/**
 * Marks the changed words of one side, and folds what did not change.
 * @param {Element} side
 * @param {{ node: Text, start: number }[]} nodes
 * @param {Piece[]} pieces
 * @param {"del" | "ins"} tag
 */
function markPieces(side, nodes, pieces, tag) {
  /** Blocks with changes, also with words that only the other side has. @type {Set<Node>} */
  const changed = new Set();
  const blockOf = (/** @type {Node} */ node) => {
    while (node.parentNode && node.parentNode !== side) node = node.parentNode;
    return node;
  };
  let position = 0;
  const ranges = pieces.map((piece) => {
    const start = position;
    position += (tag === "del" ? piece.before : piece.after).length;
    return { start, end: position, isSame: piece.isSame };
  });
  let first = 0;
  for (const { node, start } of nodes) {
    const end = start + node.data.length;
    /** @type {(string | Node)[]} */
    const parts = [];
    let at = first;
    for (; at < ranges.length && ranges[at].start <= end; at++) {
      const range = ranges[at];
      if (range.end < start) continue;
      if (!range.isSame) changed.add(blockOf(node));
      const words = node.data.slice(Math.max(0, range.start - start), range.end - start);
      if (words) parts.push(range.isSame ? words : el(tag, {}, words));
    }
    // The last range may continue in the next node.
    first = Math.max(first, at - 1);
    node.replaceWith(...parts);
  }
  foldBlocks(side, changed);
}

/** Folds blocks that are not next to a change. @param {Element} side @param {Set<Node>} changed */
function foldBlocks(side, changed) {
  const blocks = [...side.childNodes];
  const isNear = blocks.map((_, n) => [-1, 0, 1].some((by) => changed.has(blocks[n + by])));
  blocks.filter((_, n) => isNear[n]).forEach(foldLongText);
  for (let n = 0; n < blocks.length; n++) {
    const start = n;
    while (n < blocks.length && !isNear[n]) n++;
    const hidden = blocks.slice(start, n);
    const length = hidden.reduce((sum, one) => sum + (one.textContent ?? "").length, 0);
    if (length <= MAX_UNCHANGED - CONTEXT) continue;
    const label = t("showUnchanged", { n: length });
    const [first, ...others] = hidden;
    others.forEach((one) => one.remove());
    side.replaceChild(
      unchangedButton(label, () => hidden),
      first,
    );
  }
}

/** Folds long text without changes inside a block. @param {Node} block */
function foldLongText(block) {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const long = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = /** @type {Text} */ (node);
    if (text.length > MAX_UNCHANGED && !text.parentElement?.closest("ins, del")) long.push(text);
  }
  for (const text of long) text.replaceWith(...renderUnchanged(text.data));
}

/**
 * Splits two texts into parts that are equal and parts that differ.
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]}
 */
function diffPieces(before, after) {
  const shortest = Math.min(before.length, after.length);
  let head = 0;
  while (head < shortest && before[head] === after[head]) head++;
  // The first changed word is compared as a whole.
  while (head > 0 && isInsideWord(before, after, head)) head--;
  let tail = 0;
  while (
    tail < shortest - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++;
  while (tail > 0 && isInsideWord(before, after, -tail)) tail--;
  const [removed, added] = [before, after].map((text) => text.slice(head, text.length - tail));
  return joinPieces([
    same(before.slice(0, head)),
    ...diffWords(removed, added),
    same(before.slice(before.length - tail)),
  ]);
}

/** @param {string} text @returns {Piece} */
function same(text) {
  return { before: text, after: text, isSame: true };
}

/**
 * Returns whether a position is inside a word or a character of one of the texts.
 * @param {string} before
 * @param {string} after
 * @param {number} at from the beginning, or negative from the end
 */
function isInsideWord(before, after, at) {
  return [before, after].some((text) => {
    const index = at < 0 ? text.length + at : at;
    const [last, next] = [text[index - 1] ?? "", text[index] ?? ""];
    const isCharacter = /[\uD800-\uDBFF]/.test(last) && /[\uDC00-\uDFFF]/.test(next);
    return isCharacter || (IN_WORD.test(last) && IN_WORD.test(next));
  });
}

/** @param {string} before @param {string} after @returns {Piece[]} */
function diffWords(before, after) {
  const replaced = [{ before, after, isSame: false }];
  if (Math.max(before.length, after.length) > MAX_TOKENIZED) return replaced;
  const [removed, added] = [before.match(TOKENS) ?? [], after.match(TOKENS) ?? []];
  if (removed.length * added.length > MAX_COMPARED * MAX_COMPARED) return replaced;
  const pieces = diffTokens(removed, added);
  const lengthOf = (/** @type {string} */ text) => text.replace(/\s/g, "").length;
  const shared = pieces.reduce((sum, one) => sum + (one.isSame ? lengthOf(one.after) : 0), 0);
  const shortest = Math.min(lengthOf(before), lengthOf(after));
  // Texts that share only words such as "the" are easier to read one after the other.
  return shared < LEAST_SHARED * shortest ? replaced : pieces;
}

/**
 * Compares two texts by the longest common subsequence of tokens.
 * @param {string[]} old
 * @param {string[]} now
 * @returns {Piece[]}
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
  /** @type {Piece[]} */
  const pieces = [];
  let [i, j] = [0, 0];
  const isCommon = () => i < old.length && j < now.length && old[i] === now[j];
  while (i < old.length || j < now.length) {
    const start = i;
    while (isCommon()) {
      i++;
      j++;
    }
    pieces.push(same(old.slice(start, i).join("")));
    /** @type {string[]} */ const removed = [];
    /** @type {string[]} */ const added = [];
    while ((i < old.length || j < now.length) && !isCommon()) {
      const isRemoved =
        j >= now.length ||
        (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]);
      if (isRemoved) removed.push(old[i++]);
      else added.push(now[j++]);
    }
    pieces.push({ before: removed.join(""), after: added.join(""), isSame: false });
  }
  return pieces;
}

/**
 * Joins equal neighbours, and changes that only punctuation or white space separates.
 * @param {Piece[]} pieces
 */
function joinPieces(pieces) {
  /** @type {Piece[]} */
  const joined = [];
  const present = pieces.filter((piece) => piece.before || piece.after);
  for (const [n, piece] of present.entries()) {
    const last = joined[joined.length - 1];
    const isBetween =
      last?.isSame === false &&
      present[n + 1]?.isSame === false &&
      BETWEEN_CHANGES.test(piece.after);
    const isSame = piece.isSame && !isBetween;
    if (last?.isSame !== isSame) joined.push({ ...piece, isSame });
    else {
      last.before += piece.before;
      last.after += piece.after;
    }
  }
  return joined;
}
