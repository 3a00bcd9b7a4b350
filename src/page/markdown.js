// Renders the blocks of a text as SillyTavern shows them: paragraphs, lists, headings, code,
// quotations and tables. The text is untrusted. Only the elements of this module and of inline.js
// are created, and HTML in a text is shown as text. Every step reads the text a constant number of
// times: nesting has a maximum depth, and long text is folded.

import { el } from "./dom.js";
import { renderInline } from "./inline.js";
import { MAX_SHOWN, isWorthFolding, unfoldButton, wholeCharacters } from "./text.js";
import { t } from "./words.js";

/** Maximum depth of lists and quotations inside others. Deeper ones are shown as text. */
const MAX_DEPTH = 8;
/** Columns that a line is indented more than an item if it belongs to the item. */
const NESTED = 2;

const FENCE = /^ {0,3}(`{3,20}|~{3,20}) *([^\s`~]{0,40}) *$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]*([^#\s].*)$/;
const UNDERLINE = /^ {0,3}(?:={3,}|-{3,})[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)([-+*]|\d{1,9}\.)[ \t]+(?=\S)/;
const DELIMITERS = /^ {0,3}\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)+(?:[ \t]*:?-{2,}:?[ \t]*)?$/;

/** Matches a letter of a script that is written from right to left. */
const RIGHT_TO_LEFT =
  /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/**
 * A node, and the index of the line after it.
 * @typedef {{ node: Node, end: number }} Block
 */

/**
 * Renders the beginning of a text, and a button for the rest.
 * @param {string} text
 * @returns {Node[]}
 */
export function renderMarkdown(text) {
  if (!text.trim()) return [];
  if (!isWorthFolding(text, MAX_SHOWN)) return renderBlocks(text.split(/\r?\n/));
  const end = endOfPart(text);
  const lines = text.slice(0, end).split(/\r?\n/);
  let rest = text.slice(end).replace(/^\r?\n/, "");
  // Code that is cut is closed, and opened again in the rest.
  const fence = openFence(lines);
  if (fence && closesFence(rest.split(/\r?\n/), 0, fence) >= 0) {
    lines.push(fence[1]);
    rest = `${fence[0]}\n${rest}`;
  }
  const label = t("showMore", { n: text.length - end });
  return [...renderBlocks(lines), unfoldButton(label, () => renderMarkdown(rest))];
}

/**
 * Returns where a long text is cut: between paragraphs, or else between lines.
 * @param {string} text
 */
function endOfPart(text) {
  for (const between of ["\n\n", "\n"]) {
    const end = text.lastIndexOf(between, MAX_SHOWN);
    if (end > MAX_SHOWN / 2) return end;
  }
  return wholeCharacters(text, MAX_SHOWN);
}

/**
 * Returns the beginning of the code block that is open after these lines.
 * @param {string[]} lines
 */
function openFence(lines) {
  /** @type {RegExpMatchArray | null} */
  let open = null;
  for (const line of lines) {
    if (!open) open = line.match(FENCE);
    else if (isEndOf(open, line)) open = null;
  }
  return open;
}

/** @param {RegExpMatchArray} fence of {@link FENCE} @param {string} line */
function isEndOf(fence, line) {
  const [, marks = "", language] = line.match(FENCE) ?? [];
  return !language && marks.startsWith(fence[1]);
}

/**
 * Returns the index of the line that closes a code block, or -1.
 * @param {string[]} lines
 * @param {number} from
 * @param {RegExpMatchArray} fence of {@link FENCE}
 */
function closesFence(lines, from, fence) {
  for (let at = from; at < lines.length; at++) if (isEndOf(fence, lines[at])) return at;
  return -1;
}

/**
 * Returns the direction of a text by its first letter. With `dir="auto"`, browsers read the text of
 * an element again for each node that is added.
 * @param {string} text
 */
function directionOf(text) {
  const [letter] = text.slice(0, MAX_SHOWN).match(/\p{L}/u) ?? [];
  return letter && RIGHT_TO_LEFT.test(letter) ? "rtl" : undefined;
}

/** @param {string[]} lines @param {number} [depth] @returns {Node[]} */
function renderBlocks(lines, depth = 0) {
  /** @type {Node[]} */
  const nodes = [];
  /** @type {string[]} */
  let paragraph = [];
  const addParagraph = () => {
    if (paragraph.length) {
      const text = paragraph.join("\n");
      nodes.push(el("p", { dir: directionOf(text) }, renderInline(text)));
    }
    paragraph = [];
  };
  const renderFence = fenceRenderer(lines);
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (!line.trim()) {
      addParagraph();
      at++;
      continue;
    }
    if (paragraph.length && UNDERLINE.test(line)) {
      const title = paragraph.pop() ?? "";
      addParagraph();
      nodes.push(renderHeading(title, line.includes("=") ? 1 : 2));
      at++;
      continue;
    }
    const block =
      depth < MAX_DEPTH
        ? (renderFence(at) ??
          renderLine(lines, at) ??
          renderQuote(lines, at, depth) ??
          renderList(lines, at, depth) ??
          renderTable(lines, at))
        : undefined;
    if (block) {
      addParagraph();
      nodes.push(block.node);
      at = block.end;
    } else {
      paragraph.push(line);
      at++;
    }
  }
  addParagraph();
  return nodes;
}

/** Returns whether a line cannot continue the paragraph of an item or a quotation. */
function isBlock(/** @type {string} */ line) {
  return [FENCE, HEADING, RULE, QUOTE].some((start) => start.test(line));
}

/**
 * Returns a function that renders the code block that begins at a line. As in SillyTavern, a block
 * that is not closed is text. The function does not search for the end of another one.
 * @param {string[]} lines
 * @returns {(at: number) => Block | undefined}
 */
function fenceRenderer(lines) {
  /** @type {Set<string>} */
  const neverClosed = new Set();
  return (at) => {
    const fence = lines[at].match(FENCE);
    if (!fence || neverClosed.has(fence[1])) return;
    const end = closesFence(lines, at + 1, fence);
    if (end < 0) return void neverClosed.add(fence[1]);
    const [, , language] = fence;
    const text = lines.slice(at + 1, end).join("\n");
    const node = el(
      "div",
      { class: "code" },
      language && el("small", {}, language),
      // The keyboard scrolls an element that has the focus.
      el("pre", { tabIndex: 0, role: "group", "aria-label": t("code") }, el("code", {}, text)),
    );
    return { node, end: end + 1 };
  };
}

/** Renders a heading or a horizontal rule. @param {string[]} lines @param {number} at */
function renderLine(lines, at) {
  const line = lines[at];
  if (RULE.test(line)) return { node: el("hr"), end: at + 1 };
  const heading = line.match(HEADING);
  if (!heading) return;
  const text = heading[2].trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end--;
  return { node: renderHeading(text.slice(0, end), heading[1].length), end: at + 1 };
}

/**
 * Renders a heading of a text. It is a paragraph for screen readers: headings lead through the
 * viewer, and those of a chat would hide these among hundreds, at levels that do not fit.
 * @param {string} text
 * @param {number} level
 */
function renderHeading(text, level) {
  return el(
    "p",
    { class: `heading level${level}`, dir: directionOf(text) },
    renderInline(text.trim()),
  );
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {Block | undefined}
 */
function renderQuote(lines, at, depth) {
  if (!QUOTE.test(lines[at])) return;
  const quoted = [];
  let end = at;
  for (; end < lines.length; end++) {
    const line = lines[end];
    const isQuoted = QUOTE.test(line);
    const isBlank = !line.trim();
    if (!isQuoted && !isBlank && (!quoted[quoted.length - 1]?.trim() || isBlock(line))) break;
    quoted.push(isQuoted ? line.replace(QUOTE, "") : line);
  }
  return { node: el("blockquote", {}, renderBlocks(quoted, depth + 1)), end };
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {Block | undefined}
 */
function renderList(lines, at, depth) {
  const first = lines[at].match(ITEM);
  if (!first) return;
  const isOrdered = (/** @type {RegExpMatchArray} */ item) => item[2].endsWith(".");
  const indent = width(first[1]);
  /** @type {string[][]} */
  const items = [];
  let [end, step, isAfterBlank] = [at, 0, false];
  for (; end < lines.length; end++) {
    const line = lines[end];
    const last = items[items.length - 1];
    if (!line.trim()) {
      last.push("");
      isAfterBlank = true;
      continue;
    }
    const own = indentOf(line);
    const item = own < indent + NESTED && !RULE.test(line) ? line.match(ITEM) : null;
    if (item) {
      if (isOrdered(item) !== isOrdered(first)) break;
      items.push([line.slice(item[0].length)]);
      step = 0;
    } else if (own >= indent + NESTED) {
      step ||= Math.min(own, width(first[0]));
      last.push(dedent(line, step));
    } else if (isAfterBlank || isBlock(line)) break;
    else last.push(line.trimStart());
    isAfterBlank = false;
  }
  const properties = { class: "list", ...(isOrdered(first) ? { start: parseInt(first[2]) } : {}) };
  const rows = items.map((item) =>
    el("li", { dir: directionOf(item[0]) }, renderItem(item, depth)),
  );
  return { node: el(isOrdered(first) ? "ol" : "ul", properties, rows), end };
}

/** Renders an item without a paragraph around its first lines. */
function renderItem(/** @type {string[]} */ lines, /** @type {number} */ depth) {
  const [first, ...nodes] = renderBlocks(lines, depth + 1);
  const isParagraph = first instanceof HTMLParagraphElement && !first.className;
  return [...(isParagraph ? first.childNodes : [first]), ...nodes];
}

/** Returns the number of columns of white space. @param {string} space */
function width(space) {
  return space.length + 3 * space.split("\t").length - 3;
}

/** @param {string} line */
function indentOf(line) {
  return width(line.slice(0, line.length - line.trimStart().length));
}

/** Removes indentation. @param {string} line @param {number} columns */
function dedent(line, columns) {
  let at = 0;
  for (let left = columns; left > 0 && /[ \t]/.test(line[at] ?? ""); at++)
    left -= line[at] === "\t" ? 4 : 1;
  return line.slice(at);
}

/** @param {string[]} lines @param {number} at @returns {Block | undefined} */
function renderTable(lines, at) {
  if (!lines[at].includes("|") || !DELIMITERS.test(lines[at + 1] ?? "")) return;
  const alignments = cellsOf(lines[at + 1]).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "centre" : "end") : "",
  );
  const row = (/** @type {string} */ line, tag = "td") => {
    const cells = cellsOf(line).slice(0, alignments.length);
    const cell = (/** @type {string} */ text, /** @type {number} */ n) =>
      el(tag, { class: alignments[n], dir: directionOf(text) }, renderInline(text));
    return el("tr", {}, cells.map(cell));
  };
  let end = at + 2;
  while (lines[end]?.includes("|")) end++;
  const rows = lines.slice(at + 2, end).map((line) => row(line));
  const table = el("table", {}, el("thead", {}, row(lines[at], "th")), el("tbody", {}, rows));
  const properties = { class: "table", tabIndex: 0, role: "group", "aria-label": t("table") };
  return { node: el("div", properties, table), end };
}

/** @param {string} line */
function cellsOf(line) {
  const cells = line.trim().split("|");
  if (!cells[0]) cells.shift();
  if (!cells[cells.length - 1]) cells.pop();
  return cells.map((cell) => cell.trim());
}
