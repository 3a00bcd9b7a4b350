// A standalone file, written by `stvc view --out`: the answers that it contains, and requests that
// are answered from them.

import { t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {import("./api.js").Answer} Answer */

/**
 * Names the snapshot that a line describes, chat and lorebook, for a later request. Unlike a tag or
 * a timeline, it always means the same snapshot.
 * @param {Line} line
 * @returns {string}
 */
export function momentOf(line) {
  return line.moment ?? line.id;
}

/**
 * Messages or entries per request. Requests start at a multiple of it, because a standalone file
 * contains only these answers.
 */
export const PAGE = 50;
/** Lanes of the map per request. */
export const LANES = 200;

/**
 * The file has every line once. An answer is a list of ranges: the first line, and how many.
 * @typedef {{ rows: [number, number][], exit: number, next: number | null }} StoredAnswer
 * @typedef {{ lines: Line[], answers: Record<string, StoredAnswer> }} Stored
 */

/** @type {Stored | null} */
const stored = JSON.parse(document.getElementById("answers")?.textContent ?? "null");

export const isStandalone = stored !== null;

/**
 * Answers a request as the program would.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @returns {Answer}
 */
export function answerFromFile(verb, args) {
  if (verb === "search") return search(String(args.text ?? ""));
  if (verb === "lore" && args.entry !== undefined && args.book !== undefined)
    return entryHistory(String(args.book), String(args.entry));
  const answer = stored?.answers[requestKey(verb, args)];
  if (!stored || !answer) {
    const missing = { type: "error", message: t("notInFile"), hint: null };
    return { lines: [missing], exit: 1, next: null };
  }
  const lines = answer.rows.flatMap(([first, count]) => stored.lines.slice(first, first + count));
  return { lines, exit: answer.exit, next: answer.next };
}

/**
 * Returns the key of an answer in the file: the arguments are sorted by name.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 */
function requestKey(verb, args) {
  return `${verb} ${JSON.stringify(args, Object.keys(args).sort())}`;
}

/**
 * Returns whether a request can be answered: every one by the program, some by a standalone file.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 */
export function canAnswer(verb, args) {
  return stored === null || requestKey(verb, args) in stored.answers;
}

/** Returns all pages of a request. @param {string} verb @param {string} snapshot */
function allLines(verb, snapshot) {
  /** @type {Line[]} */
  const lines = [];
  for (let first = /** @type {number | null} */ (0); first !== null;) {
    const page = answerFromFile(verb, { snapshot, first, count: PAGE });
    lines.push(...page.lines);
    first = page.next;
  }
  return lines;
}

/** Returns the snapshots in the file, the oldest first. */
function snapshots() {
  const lines = stored?.lines.filter((line) => line.type === "snapshot") ?? [];
  const unique = new Map(lines.map((line) => [momentOf(line), line]));
  return [...unique.values()].sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
}

/**
 * Returns the changes of a lorebook entry between the snapshots in the file, the newest first.
 * @param {string} book
 * @param {string} uid
 * @returns {Answer}
 */
function entryHistory(book, uid) {
  /** @type {Line[]} */
  const lines = [];
  /** @type {string | undefined} */
  let before;
  for (const line of snapshots()) {
    const { time, messages } = line;
    const id = momentOf(line);
    const entry = allLines("lore", id).find((line) => line.lorebook === book && line.uid === uid);
    const after = entry && textOf(entry);
    if (after === before) continue;
    lines.unshift({
      type: "lore_change",
      snapshot: id,
      story: id,
      time,
      index: messages ? messages - 1 : null,
      change: { before: { content: before ?? "" }, after: { content: after ?? "" } },
    });
    before = after;
  }
  return { lines, exit: 0, next: null };
}

/**
 * Searches messages and lorebook entries for all words. Each match names its latest snapshot.
 * @param {string} text
 * @returns {Answer}
 */
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const hasWords = (/** @type {Line} */ line) =>
    words.every((word) => textOf(line).toLowerCase().includes(word));
  /** @type {Map<Line, Line>} */
  const matches = new Map();
  for (const snapshot of snapshots().reverse()) {
    const { timeline, time } = snapshot;
    const id = momentOf(snapshot);
    for (const [verb, part] of [
      ["messages", "message"],
      ["lore", "lorebook"],
    ]) {
      for (const line of allLines(verb, id)) {
        if (!textOf(line) || matches.has(line) || !hasWords(line)) continue;
        const { index, uid } = line;
        matches.set(line, {
          type: "match",
          part,
          timeline,
          snapshot: id,
          time,
          index,
          uid,
          name: line.name ?? line.value?.comment ?? "",
          said: line.said,
          text: excerpt(textOf(line), words[0]),
          live: true,
        });
      }
    }
  }
  return { lines: [...matches.values()].slice(0, 200), exit: 0, next: null };
}

/** Returns the text of a message or lorebook entry, else "". @param {Line} line */
function textOf(line) {
  return String(
    line.type === "message"
      ? line.text
      : line.type === "lore_entry"
        ? (line.value?.content ?? "")
        : "",
  );
}

/** @param {string} text @param {string} word */
function excerpt(text, word) {
  const start = Math.max(0, text.toLowerCase().indexOf(word) - 80);
  const end = start + 240;
  return `${start ? "…" : ""}${text.slice(start, end)}${end < text.length ? "…" : ""}`;
}
