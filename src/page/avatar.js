// A round picture for a person or a group: the portrait, or else the first character of the name,
// on a colour that always belongs to the name.

import { el } from "./dom.js";
import { showPortrait } from "./pictures.js";
import { isChat, splitTimeline } from "./words.js";

/** Number of colours in the style sheet. */
const COLOURS = 6;

/**
 * @param {string} name
 * @param {string | null} [character] name of the card with the portrait
 */
export function avatar(name, character) {
  const [first = "?"] = name.trim();
  let sum = 0;
  for (const letter of name.slice(0, 100)) sum += letter.codePointAt(0) ?? 0;
  const properties = { class: `avatar colour${sum % COLOURS}`, "aria-hidden": "true" };
  const picture = el("span", properties, first.toUpperCase());
  if (character) showPortrait(picture, character);
  return picture;
}

/** Returns the picture of a chat's character or group, or of a character. @param {string} timeline */
export function timelineAvatar(timeline) {
  const [owner, name] = splitTimeline(timeline);
  if (isChat(timeline)) return avatar(owner, timeline.startsWith("chats/") ? owner : null);
  return avatar(name, timeline.startsWith("characters/") ? name : null);
}
