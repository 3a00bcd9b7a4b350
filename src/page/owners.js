// The names of the characters and groups that chats belong to.

import { ask, linesOf } from "./api.js";
import { splitTimeline } from "./words.js";

/** Names of groups, by their chats. @type {Map<string, string>} */
const groups = new Map();

/**
 * Loads the names of the groups of chats, if any of them belongs to a group.
 * @param {string[]} timelines
 */
export async function loadGroups(timelines) {
  const isUnknown = (/** @type {string} */ name) =>
    name.startsWith("group chats/") && !groups.has(name);
  if (!timelines.some(isUnknown)) return;
  for (const line of linesOf(await ask("library"), "timeline"))
    if (line.group) groups.set(line.timeline, line.group);
}

/** Returns the name of the character or group of a chat. @param {string} timeline */
export function ownerOf(timeline) {
  return groups.get(timeline) ?? splitTimeline(timeline)[0];
}
