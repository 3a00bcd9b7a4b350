// Renders text of chats and lorebooks as DOM nodes. The text is untrusted: only a few Markdown
// marks are interpreted, and everything else is shown as plain text. Every step reads the text a
// constant number of times, and long text is folded, because a browser needs minutes to lay it out.

import { el } from "./dom.js";
import { formatSize, t } from "./words.js";

/** Number of characters that are shown before the rest of a text is folded. */
const MAX_SHOWN = 10_000;
/** Number of characters without a space that are shown before the rest is folded. */
const MAX_UNBROKEN = 300;
/** Maximum length of a picture inside a text, in characters. */
const MAX_PICTURE = 8_000_000;

/**
 * Matches data inside a text. Every part excludes the character that ends it, so that each
 * character is read once.
 */
const DATA =
  /data:([\w.+-]{1,80}\/[\w.+-]{1,80})?((?:;[\w.+=-]{1,80}){0,5}),([\w+/=%.~!*-]{100,})/g;
/** Match the Markdown or HTML around a picture. */
const BEFORE_PICTURE = /(?:!\[[^\]]{0,200}\]\(|<img [^<>]{0,200})$/;
const AFTER_PICTURE = /^(?:["'][^<>]{0,200}>|\))/;
/** Number of pictures that are shown before the rest of a text is folded. */
const MAX_PICTURES = 20;
/** Kinds of pictures that contain only pixels. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif)$/;

/** Renders a text as paragraphs and pictures. @param {string} text @returns {Node[]} */
export function renderText(text) {
  /** @type {Node[]} */
  const nodes = [];
  let [end, shown, pictures] = [0, 0, 0];
  for (const match of text.matchAll(DATA)) {
    const start = match.index ?? 0;
    // The Markdown or HTML around a picture is not shown.
    const around = text.slice(Math.max(end, start - 300), start).match(BEFORE_PICTURE)?.[0] ?? "";
    nodes.push(...renderParagraphs(text.slice(end, start - around.length)), renderData(match));
    shown += start - end;
    end = start + match[0].length;
    if (around) end += text.slice(end, end + 300).match(AFTER_PICTURE)?.[0].length ?? 0;
    pictures++;
    if (pictures === MAX_PICTURES || shown > MAX_SHOWN) {
      const rest = text.slice(end);
      if (rest) nodes.push(button(t("showMore", { n: rest.length }), () => renderText(rest)));
      return nodes;
    }
  }
  return [...nodes, ...renderParagraphs(text.slice(end))];
}

/**
 * Renders data as a picture, or as its kind and size.
 * @param {RegExpMatchArray} match of {@link DATA}
 */
function renderData([uri, kind = "text/plain", parameters, data]) {
  const bytes = parameters.endsWith(";base64") ? (data.length * 3) / 4 : data.length;
  const size = t("data", { kind, size: formatSize(bytes) });
  const label = el("p", {}, el("span", { class: "data" }, size));
  if (!PICTURE.test(kind) || uri.length > MAX_PICTURE) return label;
  const onerror = () => picture.replaceWith(label);
  const picture = el("img", { src: uri, alt: size, decoding: "async", onerror });
  return picture;
}

/** @param {string} text @returns {Node[]} */
function renderParagraphs(text) {
  if (!text.trim()) return [];
  return fold(text, MAX_SHOWN, (shown) =>
    shown.split(/\n{2,}/).map((paragraph) => {
      const lines = paragraph
        .split("\n")
        .flatMap((line, n) => (n ? [el("br"), ...renderLine(line)] : renderLine(line)));
      return el("p", { dir: "auto" }, lines);
    }),
  );
}

/**
 * Renders the beginning of a text, and a button that shows more of it.
 * @param {string} text
 * @param {number} length number of characters to show
 * @param {(shown: string) => Node[]} render
 * @returns {Node[]}
 */
function fold(text, length, render) {
  // The button itself needs space, so it is not worth it for a few characters.
  if (text.length <= 1.2 * length) return render(text);
  // A character may consist of two code units.
  const end = /[\uD800-\uDBFF]/.test(text[length - 1]) ? length - 1 : length;
  const label = t("showMore", { n: text.length - end });
  const more = button(label, () => fold(text.slice(end), length, render));
  return [...render(text.slice(0, end)), more];
}

/**
 * Returns a button that is replaced by what it shows.
 * @param {string} label
 * @param {() => Node[]} show
 */
function button(label, show) {
  const unfold = () => folded.replaceWith(...show());
  const folded = el("button", { type: "button", class: "folded", onclick: unfold }, `… ${label}`);
  return folded;
}

/** Renders a text without marks. Long words are folded. @param {string} text @returns {Node[]} */
export function renderPlain(text) {
  return fold(text, MAX_SHOWN, (shown) => {
    /** @type {Node[]} */
    const nodes = [];
    let end = 0;
    // Text of scripts without spaces can be broken anywhere.
    for (const match of shown.matchAll(/[!-~\u00A1-\u024F]+/g)) {
      const { length } = match[0];
      if (length <= MAX_UNBROKEN) continue;
      const start = match.index ?? 0;
      const word = (/** @type {string} */ part) => [new Text(part)];
      nodes.push(new Text(shown.slice(end, start)), ...fold(match[0], MAX_UNBROKEN, word));
      end = start + length;
    }
    const last = shown.slice(end);
    return last ? [...nodes, new Text(last)] : nodes;
  });
}

/** Shortens a name or title. @param {unknown} text */
export function shorten(text) {
  const name = String(text ?? "");
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}

/** The quotation marks, with their closing marks. @type {Record<string, string>} */
const QUOTES = { '"': '"', "“": "”", "「": "」" };
/** Maximum length of a quotation, in characters. */
const MAX_QUOTE = 2000;

/** Renders a line with its Markdown marks. @param {string} line @returns {Node[]} */
function renderLine(line) {
  /** @type {Node[]} */
  const nodes = [];
  const find = finder(line);
  let end = 0;
  for (let at = 0; at < line.length;) {
    const marked = markAt(line, at, find);
    if (!marked) {
      at++;
      continue;
    }
    nodes.push(...renderPlain(line.slice(end, at)), marked.node);
    end = at = marked.end;
  }
  nodes.push(...renderPlain(line.slice(end)));
  return nodes;
}

/**
 * Returns a function that finds the next occurrence of a character. It remembers the last one of
 * each character, so that finding all of them reads the line once.
 * @param {string} line
 */
function finder(line) {
  /** @type {Map<string, { from: number, found: number }>} */
  const last = new Map();
  return (/** @type {string} */ character, /** @type {number} */ from) => {
    const known = last.get(character);
    if (known && known.from <= from && from <= known.found) return known.found;
    const index = line.indexOf(character, from);
    const found = index < 0 ? Infinity : index;
    last.set(character, { from, found });
    return found;
  };
}

/**
 * Returns the marked text that begins at a position.
 * @param {string} line
 * @param {number} at
 * @param {ReturnType<typeof finder>} find
 * @returns {{ node: Node, end: number } | undefined}
 */
function markAt(line, at, find) {
  const mark = line[at];
  /** @param {string} opened @param {string} closed @returns {string | undefined} */
  const between = (opened, closed) => {
    const start = at + opened.length;
    if (!line.startsWith(opened, at)) return;
    const end = find(closed[0], start);
    if (end > start && line.startsWith(closed, end)) return line.slice(start, end);
  };
  if (mark === "*") {
    for (const marks of ["***", "**", "*"]) {
      const text = between(marks, marks);
      if (text === undefined) continue;
      const children = renderPlain(text);
      const node =
        marks === "***"
          ? el("strong", {}, el("em", {}, children))
          : el(marks === "**" ? "strong" : "em", {}, children);
      return { node, end: at + text.length + 2 * marks.length };
    }
  } else if (mark === "`") {
    const text = between(mark, mark);
    if (text !== undefined)
      return { node: el("code", {}, renderPlain(text)), end: at + text.length + 2 };
  } else if (Object.hasOwn(QUOTES, mark)) {
    const text = between(mark, QUOTES[mark]);
    if (text === undefined || text.length > MAX_QUOTE) return;
    const end = at + text.length + 2;
    return { node: el("q", {}, renderPlain(line.slice(at, end))), end };
  }
}

/** Matches a word, white space, a punctuation mark, or one character of a script without spaces. */
const TOKENS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_']+|\s+|[^\p{L}\p{N}\s]/gu;
/** Maximum number of tokens of texts that are compared word by word. */
const MAX_COMPARED = 1500;
/** Maximum length of texts that are split into tokens. */
const MAX_TOKENIZED = 100_000;
/** Length of unchanged text that is shown, and of the part of it before and after a fold. */
const [MAX_UNCHANGED, CONTEXT] = [600, 200];

/**
 * Renders the difference of two texts, word by word. Long unchanged text is folded.
 * @param {string} before
 * @param {string} after
 * @returns {Node[]}
 */
export function renderDiff(before, after) {
  const shortest = Math.min(before.length, after.length);
  let head = 0;
  while (head < shortest && before[head] === after[head]) head++;
  // The first changed word is compared as a whole.
  while (head > 0 && isInsideWord(before, head)) head--;
  let tail = 0;
  while (
    tail < shortest - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++;
  while (tail > 0 && isInsideWord(before, before.length - tail)) tail--;
  const [removed, added] = [before, after].map((text) => text.slice(head, text.length - tail));
  return [
    ...renderUnchanged(before.slice(0, head)),
    ...diffWords(removed, added),
    ...renderUnchanged(before.slice(before.length - tail)),
  ];
}

/**
 * Returns whether a position is inside a word or a character.
 * @param {string} text
 * @param {number} at
 */
function isInsideWord(text, at) {
  return (
    /[\p{L}\p{N}_'\uDC00-\uDFFF]/u.test(text[at] ?? "") &&
    /[\p{L}\p{N}_'\uD800-\uDBFF]/u.test(text[at - 1] ?? "")
  );
}

/** @param {string} text @returns {Node[]} */
function renderUnchanged(text) {
  if (text.length <= MAX_UNCHANGED) return renderPlain(text);
  const hidden = text.slice(CONTEXT, -CONTEXT);
  const more = button(t("showUnchanged", { n: hidden.length }), () => renderPlain(hidden));
  return [...renderPlain(text.slice(0, CONTEXT)), more, ...renderPlain(text.slice(-CONTEXT))];
}

/** @param {string} before @param {string} after @returns {Node[]} */
function diffWords(before, after) {
  if (Math.max(before.length, after.length) > MAX_TOKENIZED)
    return renderReplacement(before, after);
  const [removed, added] = [before.match(TOKENS) ?? [], after.match(TOKENS) ?? []];
  return removed.length * added.length > MAX_COMPARED * MAX_COMPARED
    ? renderReplacement(before, after)
    : diffTokens(removed, added);
}

/** @param {string} removed @param {string} added @returns {Node[]} */
function renderReplacement(removed, added) {
  return [
    ...(removed ? [el("del", {}, renderPlain(removed))] : []),
    ...(added ? [el("ins", {}, renderPlain(added))] : []),
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
    if (i > start) nodes.push(...renderUnchanged(old.slice(start, i).join("")));
    /** @type {string[]} */ const removed = [];
    /** @type {string[]} */ const added = [];
    while ((i < old.length || j < now.length) && !isCommon()) {
      const isRemoved =
        j >= now.length ||
        (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]);
      if (isRemoved) removed.push(old[i++]);
      else added.push(now[j++]);
    }
    nodes.push(...renderReplacement(removed.join(""), added.join("")));
  }
  return nodes;
}
