// Loads the messages of a snapshot in pages. The most recently used pages are cached.

import { ask, linesOf } from "./api.js";
import { PAGE } from "./standalone.js";

/** Pages, least recently used first. @type {Map<string, Promise<import("./api.js").Line[]>>} */
const cache = new Map();
const MAX_PAGES = 40;

/**
 * Returns the page of messages that starts at `first`.
 * @param {string} snapshot
 * @param {number} first a multiple of {@link PAGE}
 */
export function messagesFrom(snapshot, first) {
  const key = `${snapshot} ${first}`;
  const page =
    cache.get(key) ??
    ask("messages", { snapshot, first, count: PAGE }).then((answer) => linesOf(answer, "message"));
  cache.delete(key);
  cache.set(key, page);
  page.catch(() => cache.delete(key));
  for (const oldest of cache.keys()) if (cache.size > MAX_PAGES) cache.delete(oldest);
  return page;
}

/** @param {string} snapshot @param {number} index */
export async function messageAt(snapshot, index) {
  const lines = await messagesFrom(snapshot, Math.floor(index / PAGE) * PAGE);
  return lines.find((line) => line.index === index);
}
