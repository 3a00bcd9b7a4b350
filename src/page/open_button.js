// The button that opens a chat in SillyTavern, if SillyTavern's page shows the viewer.

import { openInSillyTavern } from "./api.js";
import { el } from "./dom.js";
import { isChat, t } from "./words.js";

/**
 * Returns the button, or null outside of SillyTavern and for timelines that are not chats.
 * @param {string} timeline
 * @param {() => number | undefined} [message] returns the message to show in SillyTavern
 */
export function openButton(timeline, message = () => undefined) {
  const open = openInSillyTavern;
  if (!open || !isChat(timeline)) return null;
  const onclick = () => void open(timeline, message() ?? undefined);
  return el("button", { type: "button", class: "open", onclick }, t("openHere"));
}
