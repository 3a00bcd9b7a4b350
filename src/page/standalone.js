// Answers requests in a standalone file, which `stvc view --out` writes. The file contains the
// answers.

import { t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {import("./api.js").Answer} Answer */

/**
 * Returns the name of the moment that a line describes, for a later request. Unlike a tag or a
 * timeline, the name always means the same snapshots of the chat and its lorebook.
 * @param {Line} line
 * @returns {string}
 */
export function momentOf(line) {
  return line.moment ?? line.id;
}

/**
 * Number of messages or entries per request. The first message of a request must be a multiple of
 * this number, because a standalone file contains only the answers to such requests.
 */
export const PAGE = 50;
/** Number of lanes of the map per request. */
export const LANES = 200;

/**
 * The file contains every line once. An answer is a list of ranges of lines. A range is stored as
 * the index of its first line and the number of its lines.
 * @typedef {{ rows: [number, number][], exit: number, next: number | null }} StoredAnswer
 * @typedef {{ extent: string, lines: Line[], answers: Record<string, StoredAnswer> }} Stored
 */

/** @type {Stored | null} */
const stored = JSON.parse(document.getElementById("answers")?.textContent ?? "null");

export const isStandalone = stored !== null;

/**
 * Whether the file contains only the text that the reader of a story sees: no other versions,
 * swipes, hidden messages, dates or names of lorebooks.
 */
export const isStory = stored?.extent === "story";

/** Returns the lines of the file that have the name of a group. */
export function groupLines() {
  return stored?.lines.filter((line) => line.type === "timeline" && line.group) ?? [];
}

/** Returns the timeline of the story, if the file contains exactly one. */
export function onlyStory() {
  const timelines = stored?.lines.filter((line) => line.type === "timeline") ?? [];
  return isStory && timelines.length === 1 ? String(timelines[0].timeline) : null;
}

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
 * Returns the key of an answer in the file: the verb, and the arguments sorted by name.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 */
function requestKey(verb, args) {
  return `${verb} ${JSON.stringify(args, Object.keys(args).sort())}`;
}

/**
 * Returns whether a request can be answered. The program answers every request; a standalone file
 * contains only some answers.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 */
export function canAnswer(verb, args) {
  return stored === null || requestKey(verb, args) in stored.answers;
}

/** Returns the lines of all pages of an answer. @param {string} verb @param {string} snapshot */
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

/** Returns the snapshots in the file, oldest first. */
function snapshots() {
  const lines = stored?.lines.filter((line) => line.type === "snapshot") ?? [];
  const unique = new Map(lines.map((line) => [momentOf(line), line]));
  return [...unique.values()].sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
}

/**
 * Returns the changes of a lorebook entry between the snapshots in the file, newest first.
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
 * Finds messages and lorebook entries that contain all words. Each match names the latest snapshot
 * that contains it.
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
          user: line.user,
          live: true,
        });
      }
    }
  }
  return { lines: [...matches.values()].slice(0, 200), exit: 0, next: null };
}

/** Returns the text of a message or lorebook entry, or "" for other lines. @param {Line} line */
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
