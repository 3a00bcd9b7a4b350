// The messages of a snapshot, a page at a time; the pages looked at last are kept.

import { ask, of } from "./ask.js";
import { PAGE } from "./file.js";

/** @type {Map<string, Promise<import("./ask.js").Line[]>>} */
const known = new Map();
const MOST = 40;

/**
 * The page of messages that begins there.
 * @param {string} snapshot
 * @param {number} first a multiple of the page
 */
export function messagesFrom(snapshot, first) {
  const key = `${snapshot} ${first}`;
  const asked =
    known.get(key) ??
    ask("messages", { snapshot, first, count: PAGE }).then((answer) => of(answer, "message"));
  known.delete(key);
  known.set(key, asked);
  asked.catch(() => known.delete(key));
  for (const old of known.keys()) if (known.size > MOST) known.delete(old);
  return asked;
}

/** @param {string} snapshot @param {number} index */
export async function messageAt(snapshot, index) {
  const lines = await messagesFrom(snapshot, Math.floor(index / PAGE) * PAGE);
  return lines.find((line) => line.index === index);
}
