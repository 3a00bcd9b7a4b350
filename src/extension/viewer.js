// Shows the viewer in a popup. The viewer's requests go through the mailbox.

import { currentLanguage } from "../page/words.js";
import { deletedPaths } from "./actions.js";
import { runAction } from "./badge.js";
import { readStatus, requireWatch, send } from "./mailbox.js";
import { openAnyChat, reloadFromDisk, reloadLists, saveOpenChat } from "./sillytavern.js";

/** The popup with the viewer. @type {any} */
let popup;

/** The interface that the viewer in its frame uses instead of a server. */
globalThis.stvc = {
  /**
   * Sends a request. Saves the open chat before a plan is made or a sync begins, and reloads the
   * chat after files were replaced.
   * @param {string} verb
   * @param {Record<string, unknown>} args
   */
  ask: async (verb, args) => {
    const replaces =
      ["undo", "repair", "sync"].includes(verb) || (verb === "restore" && args.name === undefined);
    const isUnplanned = verb === "repair" || (verb === "sync" && !args.running);
    if (replaces && (args.dry_run || isUnplanned)) await saveOpenChat(true);
    const answer = await send(verb, replaces ? { ...args, rereads: true } : args);
    const isOpen = answer.lines.some((line) => line.type === "error" || line.running);
    if (replaces && !args.dry_run && !isOpen)
      await reloadFromDisk({ ...answer, deleted: deletedPaths(answer.lines) });
    else if (verb === "restore" && !args.dry_run) {
      await reloadLists();
      const restored = answer.lines.find((line) => line.type === "restored");
      // A fork that was made in the viewer is opened, if its character or group is known.
      if (restored) await globalThis.stvc.open(restored.timeline);
    }
    return answer;
  },
  /**
   * Closes the viewer, opens a chat in SillyTavern, and shows one of its messages.
   * @param {string} timeline
   * @param {number} [message]
   */
  open: async (timeline, message) => {
    await runAction(async () => {
      await openAnyChat(timeline, message);
      await popup?.completeAffirmative();
      return timeline;
    });
  },
  state: async () => {
    const status = await readStatus();
    return { state: JSON.stringify(status?.timelines ?? null), write: status?.write === true };
  },
};

/** Least contrast of text at which SillyTavern's colours are used. */
const MIN_CONTRAST = 7;

/**
 * Shows the viewer in the fonts and colours of SillyTavern's theme. Colours that are hard to read
 * are not used; then the viewer is only light or dark like the theme.
 * @param {HTMLElement} root
 */
function applyTheme(root) {
  const theme = getComputedStyle(document.body);
  const channels = (/** @type {string} */ name) =>
    (theme.getPropertyValue(name).match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [ink, paper] = [channels("--SmartThemeBodyColor"), channels("--SmartThemeBlurTintColor")];
  root.style.fontFamily = theme.fontFamily;
  root.style.colorScheme = luminance(ink) > 0.3 ? "dark" : "light";
  const [low, high] = [luminance(ink), luminance(paper)].sort((a, b) => a - b);
  if ((high + 0.05) / (low + 0.05) < MIN_CONTRAST) return;
  const mixed = (/** @type {number} */ share) =>
    `color-mix(in srgb, rgb(${ink.join()}) ${share}%, rgb(${paper.join()}))`;
  for (const [name, share] of Object.entries({
    "--ink": 100,
    "--soft": 76,
    "--line": 20,
    "--hover": 9,
    "--user": 6,
    "--card": 3,
    "--paper": 0,
  }))
    root.style.setProperty(name, mixed(share));
}

/** Returns the relative luminance of a colour, as WCAG defines it. @param {number[]} channels */
function luminance([r = 0, g = 0, b = 0]) {
  const linear = (/** @type {number} */ channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** Opens the viewer. @param {string} place the address to show in the viewer, such as `#/tree/…` */
export async function openViewer(place) {
  await requireWatch();
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const frame = document.createElement("iframe");
  frame.className = "stvc-viewer";
  frame.title = "stvc";
  frame.addEventListener("load", () => {
    if (frame.contentDocument) applyTheme(frame.contentDocument.documentElement);
  });
  const url = new URL("viewer.html", import.meta.url).pathname;
  frame.src = `${url}?lang=${currentLanguage()}${place}`;
  popup = new Popup(frame, POPUP_TYPE.TEXT, "", {
    okButton: "OK",
    wide: true,
    large: true,
    allowVerticalScrolling: true,
  });
  return popup.show();
}
