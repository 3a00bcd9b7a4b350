// A page that was written into a file: what it holds, and what it answers from that.

/**
 * Names the state that a line showed, chat and lorebook, for a later request. A name would be resolved again, to another state perhaps.
 * @param {import("./ask.js").Line} line
 * @returns {string}
 */
export function momentOf(line) {
  return line.moment ?? line.id;
}

/** So many messages or entries are asked for at a time, always from a multiple of it: a file has just these answers. */
export const PAGE = 50;
/** So many lanes of the map. */
export const LANES = 200;

/**
 * Every line once; an answer is rows of lines that follow each other: where each begins, and how many they are.
 * @typedef {{ rows: [number, number][], exit: number, next: number | null }} KeptAnswer
 * @typedef {{ lines: import("./ask.js").Line[], answers: Record<string, KeptAnswer> }} Kept
 */

/** @type {Kept | null} */
const kept = JSON.parse(document.getElementById("kept")?.textContent ?? "null");

/** Whether this is a page that was written into a file. */
export const isFile = kept !== null;

/**
 * What the program would have answered.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @returns {import("./ask.js").Answer}
 */
export function fromFile(verb, args) {
  if (verb === "search") return found(String(args.text ?? ""));
  if (verb === "lore" && args.entry !== undefined && args.book !== undefined)
    return past(String(args.book), String(args.entry));
  const answer = kept?.answers[key(verb, args)];
  const missing = { type: "error", message: "This file does not hold that.", hint: null };
  if (!kept || !answer) return { lines: [missing], exit: 1, next: null };
  const lines = answer.rows.flatMap(([first, count]) => kept.lines.slice(first, first + count));
  return { lines, exit: answer.exit, next: answer.next };
}

/** Answers are kept with the arguments in the order of their names. @param {string} verb @param {Record<string, unknown>} args */
function key(verb, args) {
  return `${verb} ${JSON.stringify(args, Object.keys(args).sort())}`;
}

/** Whether it can be asked here. @param {string} verb @param {Record<string, unknown>} args */
export function holds(verb, args) {
  return kept === null || key(verb, args) in kept.answers;
}

/** Every page of what a snapshot has. @param {string} verb @param {string} snapshot @returns {import("./ask.js").Line[]} */
function all(verb, snapshot) {
  const lines = [];
  for (let first = /** @type {number | null} */ (0); first !== null;) {
    const page = fromFile(verb, { snapshot, first, count: PAGE });
    lines.push(...page.lines);
    first = page.next;
  }
  return lines;
}

/** The snapshots here, oldest first. */
function snapshots() {
  const lines = kept?.lines.filter((line) => line.type === "snapshot") ?? [];
  const once = new Map(lines.map((line) => [momentOf(line), line]));
  return [...once.values()].sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
}

/** What became of an entry in the snapshots that are here. @param {string} book @param {string} uid @returns {import("./ask.js").Answer} */
function past(book, uid) {
  /** @type {import("./ask.js").Line[]} */
  const lines = [];
  /** @type {string | undefined} */
  let before;
  for (const line of snapshots()) {
    const { time, messages } = line;
    const id = momentOf(line);
    const entry = all("lore", id).find((line) => line.lorebook === book && line.uid === uid);
    const after = entry && said(entry);
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

/** Where these words stand: in which timeline, and in which snapshot last. @param {string} text @returns {import("./ask.js").Answer} */
function found(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  /** @param {import("./ask.js").Line} line */
  const has = (line) => words.every((word) => said(line).toLowerCase().includes(word));
  /** @type {Map<import("./ask.js").Line, import("./ask.js").Line>} */
  const matches = new Map();
  for (const line of snapshots().reverse()) {
    const { timeline, time } = line;
    const id = momentOf(line);
    for (const [verb, part] of [
      ["messages", "message"],
      ["lore", "lorebook"],
    ]) {
      for (const line of all(verb, id).filter(
        (line) => said(line) && !matches.has(line) && has(line),
      )) {
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
          text: excerpt(said(line), words[0]),
          live: true,
        });
      }
    }
  }
  return { lines: [...matches.values()].slice(0, 200), exit: 0, next: null };
}

/** @param {import("./ask.js").Line} line */
function said(line) {
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
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 80);
  return `${at ? "…" : ""}${text.slice(at, at + 240)}${at + 240 < text.length ? "…" : ""}`;
}
