// The page of `stvc view` in a popup, over the mailbox.

import { goneBy } from "./deeds.js";
import { send, status } from "./mailbox.js";
import { readLists, reread, save } from "./memory.js";
import { spoken } from "./words.js";

/** What the page in the frame asks instead of a server. */
globalThis.stvc = {
  /**
   * What is in memory is saved before a plan is made, and forgotten after files were replaced.
   * @param {string} verb @param {Record<string, unknown>} args
   */
  ask: async (verb, args) => {
    const replaces = verb === "undo" || (verb === "restore" && args.name === undefined);
    if (replaces && args.dry_run) await save(true);
    const answer = await send(verb, replaces ? { ...args, rereads: true } : args);
    if (replaces && !args.dry_run && !answer.lines.some((line) => line.type === "error"))
      await reread({ ...answer, gone: goneBy(answer.lines) });
    else if (verb === "restore" && !args.dry_run) await readLists();
    return answer;
  },
  state: async () => {
    const told = await status();
    return { state: JSON.stringify(told?.timelines ?? null), write: told?.write === true };
  },
};

/** @param {string} place such as `#/tree/…` */
export function view(place) {
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const frame = document.createElement("iframe");
  frame.className = "stvc-viewer";
  frame.title = "stvc";
  // As light or dark as SillyTavern is.
  frame.addEventListener("load", () => {
    const [r, g, b] = (
      getComputedStyle(document.body)
        .getPropertyValue("--SmartThemeBodyColor")
        .match(/[\d.]+/g) ?? ["0", "0", "0"]
    ).map(Number);
    const root = frame.contentDocument?.documentElement;
    if (root) root.style.colorScheme = r + g + b > 380 ? "dark" : "light";
  });
  frame.src = `${new URL("viewer.html", import.meta.url).pathname}?lang=${spoken()}${place}`;
  return new Popup(frame, POPUP_TYPE.TEXT, "", {
    okButton: "OK",
    wide: true,
    large: true,
    allowVerticalScrolling: true,
  }).show();
}
