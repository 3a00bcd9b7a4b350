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

/** Number of messages, entries or changes per request. */
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
stored?.lines.forEach(withEmptyFields);

export const isStandalone = stored !== null;

/**
 * Whether the file contains only the text that the reader of a story sees: no other versions,
 * swipes, hidden messages, dates or names of lorebooks.
 */
export const isStory = stored?.extent === "story";

/**
 * Adds the fields of a message that the file omits: empty lists, and the text that is also a swipe.
 * @param {Line} line
 */
function withEmptyFields(line) {
  if (line.type !== "message") return;
  line.swipes ??= [];
  line.attachments ??= [];
  line.text ??= line.swipes[line.swipe] ?? "";
}

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
  if ((verb === "messages" || verb === "lore") && args.first !== undefined)
    return pageOf(verb, String(args.snapshot), Number(args.first), Number(args.count));
  const answer = stored?.answers[requestKey(verb, args)];
  const known = answer || verb !== "show" ? undefined : moments().get(String(args.snapshot));
  if (known) return { lines: [known], exit: 0, next: null };
  if (!answer) return notInFile();
  const lines = linesIn(answer);
  return {
    lines: verb === "diff" ? withMessages(lines, args) : lines,
    exit: answer.exit,
    next: answer.next,
  };
}

/** @returns {Answer} */
function notInFile() {
  const lines = [{ type: "error", message: t("notInFile"), hint: null }];
  return { lines, exit: 1, next: null };
}

/** @param {StoredAnswer} answer @returns {Line[]} */
function linesIn({ rows }) {
  return rows.flatMap(([first, count]) => stored?.lines.slice(first, first + count) ?? []);
}

/**
 * Returns a page of the messages or lorebook entries of a moment. The file contains all of them as
 * one answer.
 * @param {"messages" | "lore"} verb
 * @param {string} snapshot
 * @param {number} first
 * @param {number} count
 * @returns {Answer}
 */
function pageOf(verb, snapshot, first, count) {
  if (!stored || !(requestKey(verb, { snapshot }) in stored.answers)) return notInFile();
  const all = allLines(verb, snapshot);
  const summary = all.filter((line) => line.type === "summary");
  const items = all.filter((line) => line.type !== "summary");
  // A blank line of a chat has a number but no message.
  const number = (/** @type {Line} */ line, /** @type {number} */ n) => line.index ?? n;
  const isIn = (/** @type {Line} */ line, /** @type {number} */ n) =>
    number(line, n) >= first && number(line, n) < first + count;
  const isLast = !items.length || number(items[items.length - 1], items.length - 1) < first + count;
  return {
    lines: [...items.filter(isIn), ...summary],
    exit: 0,
    next: isLast ? null : first + count,
  };
}

/**
 * Adds the messages to changes that add or remove one. The file contains them only once.
 * @param {Line[]} lines
 * @param {Record<string, unknown>} args
 */
function withMessages(lines, { before, after }) {
  return lines.map((line) => {
    const isWhole = line.kind === "added" || line.kind === "removed";
    if (line.type !== "change" || line.part !== "message" || !isWhole) return line;
    const [side, moment] = line.kind === "added" ? ["after", after] : ["before", before];
    const found = allLines("messages", String(moment)).find(({ index }) => index === line.index);
    return found ? { ...line, [side]: { name: found.name, mes: found.text } } : line;
  });
}

/** @type {Map<string, Line> | undefined} */
let momentsInLogs;

/**
 * Returns the lines of snapshots by their moments, with the current name of their timeline, as
 * `show` answers them.
 */
function moments() {
  if (momentsInLogs) return momentsInLogs;
  momentsInLogs = new Map();
  for (const [key, answer] of Object.entries(stored?.answers ?? {})) {
    if (!key.startsWith("log ")) continue;
    const { timeline } = JSON.parse(key.slice("log ".length));
    for (const line of linesIn(answer))
      if (line.type === "snapshot")
        momentsInLogs.set(momentOf(line), { ...line, timeline_now: timeline });
  }
  return momentsInLogs;
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

/** Number of lists of lines that stay in memory. */
const MAX_LISTS = 4;
/** Lists of lines, least recently used first. @type {Map<string, Line[]>} */
const lists = new Map();

/**
 * Returns all messages or entries of a moment, and the summary.
 * @param {string} verb
 * @param {string} snapshot
 */
function allLines(verb, snapshot) {
  const key = requestKey(verb, { snapshot });
  const answer = stored?.answers[key];
  const lines = lists.get(key) ?? (answer ? linesIn(answer) : []);
  lists.delete(key);
  lists.set(key, lines);
  for (const oldest of lists.keys()) if (lists.size > MAX_LISTS) lists.delete(oldest);
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
