// Shows the viewer in a popup. The viewer's requests go through the mailbox.

import { deletedPaths } from "./actions.js";
import { runAction } from "./badge.js";
import { readStatus, requireWatch, send } from "./mailbox.js";
import { openAnyChat, reloadFromDisk, reloadLists, saveOpenChat } from "./sillytavern.js";
import { currentLanguage } from "./words.js";

/** The popup with the viewer. @type {any} */
let popup;

/** The interface that the viewer in its frame uses instead of a server. */
globalThis.stvc = {
  /**
   * Sends a request. Saves the open chat before a plan is made, and reloads the chat after files
   * were replaced.
   * @param {string} verb
   * @param {Record<string, unknown>} args
   */
  ask: async (verb, args) => {
    const replaces = verb === "undo" || (verb === "restore" && args.name === undefined);
    if (replaces && args.dry_run) await saveOpenChat(true);
    const answer = await send(verb, replaces ? { ...args, rereads: true } : args);
    if (replaces && !args.dry_run && !answer.lines.some((line) => line.type === "error"))
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

/** Opens the viewer. @param {string} place the address to show in the viewer, such as `#/tree/…` */
export async function openViewer(place) {
  await requireWatch();
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const frame = document.createElement("iframe");
  frame.className = "stvc-viewer";
  frame.title = "stvc";
  // The viewer is light or dark like SillyTavern's theme. Light text means a dark theme.
  frame.addEventListener("load", () => {
    const [r, g, b] = (
      getComputedStyle(document.body)
        .getPropertyValue("--SmartThemeBodyColor")
        .match(/[\d.]+/g) ?? ["0", "0", "0"]
    ).map(Number);
    const root = frame.contentDocument?.documentElement;
    if (root) root.style.colorScheme = r + g + b > 380 ? "dark" : "light";
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
