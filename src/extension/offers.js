// Notices and offers after SillyTavern itself opened a chat or created a checkpoint: what a fork
// contains, its own lorebook if it shares that of its parent, and repairs of a missing lorebook.

import { el } from "../page/dom.js";
import { t, translateFinding } from "../page/words.js";
import * as actions from "./actions.js";
import { runAction } from "./badge.js";
import { readStatus } from "./mailbox.js";
import { settings } from "./settings.js";
import { missingLorebook, openTimeline, openedHere, timelineOfChat } from "./sillytavern.js";

/**
 * Lists the sizes of a fork's lorebook and recaps.
 * @param {Record<string, any> | undefined} restored
 */
export function forkFacts(restored) {
  const facts = /** @type {const} */ ([
    ["factEntries", restored?.entries],
    ["factRunningRecap", restored?.running_recap_version],
    ["factCombinedRecap", restored?.combined_recap_message_count],
  ]);
  return facts.filter(([, n]) => Number.isInteger(n)).map(([text, n]) => t(text, { n }));
}

/** Names a repair of a missing lorebook. @param {Record<string, any>} repair @returns {string} */
const describeRepair = ({ choice, what }) =>
  ({
    "": t("missingRestore"),
    empty: t("missingEmpty"),
    clone: t("missingClone"),
    detach: t("missingDetach"),
  })[String(choice ?? "")] ?? what;

/** Milliseconds until SillyTavern has written a new checkpoint. */
const SAVE_DELAY = 1500;

/** Timelines for which a notice was shown since the page was opened. @type {Set<string>} */
const noticed = new Set();

/** @param {string} name */
async function isFirstNotice(name) {
  if (!settings().offers || noticed.has(name) || openedHere.has(name)) return false;
  const status = await readStatus();
  if (!status?.alive || !status.write) return false;
  noticed.add(name);
  return true;
}

/**
 * Waits until ST-Auto-Recap has finished, and then runs the action. A notification shows that it
 * waits, and cancels it when it is clicked.
 * @template T
 * @param {() => Promise<T>} action
 */
export async function runWhenReady(action) {
  const cancel = new AbortController();
  const waiting = setTimeout(() => {
    toastr.info(t("clickToCancel"), t("waitingForRecap"), {
      timeOut: 0,
      extendedTimeOut: 0,
      toastClass: "toast stvc-waiting",
      onclick: () => cancel.abort(),
    });
  }, 300);
  try {
    return await actions.whenReady(action, cancel.signal);
  } finally {
    clearTimeout(waiting);
    document.querySelectorAll(".stvc-waiting").forEach((toast) => toast.remove());
  }
}

/**
 * Offers a fork its own lorebook, if it shares one with another chat. Otherwise shows what the fork
 * contains.
 * @param {string} name of the timeline
 * @param {number} message the last message of the fork
 */
async function noticeFork(name, message) {
  if (!(await isFirstNotice(name))) return;
  const chat = name.split("/").pop() ?? name;
  const repairs = await actions.repairsOf(name);
  const own = repairs.find((line) => line.code === "lorebook-shared" && line.subject === name);
  const opened = await actions.contentsOf(name);
  if (!own) {
    const facts = forkFacts(opened);
    if (facts.length) toastr.info(facts.join(" "), chat, { escapeHtml: true });
    return;
  }
  const notReady =
    openTimeline() === name ? (await actions.checkReadiness(message)).map(translateFinding) : [];
  const text = [t("sharesLorebook"), ...notReady];
  const give = () =>
    runAction(async () => {
      if ((await runWhenReady(() => actions.repair(name, own))) === null) return "";
      toastr.success(t("hasOwnLorebook", { name: chat }), "", {
        escapeHtml: true,
      });
      return name;
    });
  toastr.warning(text.join(" "), chat, { escapeHtml: true, timeOut: 30_000, onclick: give });
}

/** Offers the repairs of a missing lorebook. @param {string} name of the timeline */
async function offerMissingLorebook(name) {
  const book = await missingLorebook();
  if (!book || !(await isFirstNotice(name))) return;
  const repairs = (await actions.repairsOf(name)).filter(
    (line) =>
      line.code === "lorebook-missing" &&
      (line.subject === name || line.subject.startsWith("worlds/")),
  );
  if (!repairs.length || openTimeline() !== name) return;
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const content = el(
    "div",
    { class: "stvc-repairs" },
    el("h3", {}, t("lorebookMissing", { book })),
    el("p", {}, t("lorebookMissingQuestion")),
  );
  const popup = new Popup(content, POPUP_TYPE.TEXT, "", {
    okButton: t("nothingNow"),
    customButtons: repairs.map((line, n) => ({ text: describeRepair(line), result: n + 2 })),
  });
  const chosen = repairs[Number(await popup.show()) - 2];
  if (!chosen) return;
  await actions.repair(name, chosen);
  toastr.success(t("repaired"));
}

async function followOpenChat() {
  const name = openTimeline();
  if (!name) return;
  if (await missingLorebook()) return offerMissingLorebook(name);
  const { chat, chatMetadata } = SillyTavern.getContext();
  if (chatMetadata?.main_chat) await noticeFork(name, chat.length - 1);
}

/** Runs an offer. Its failure is not shown, because the user did not ask for it. */
const quietly = (/** @type {() => unknown} */ offer) =>
  Promise.resolve()
    .then(offer)
    .catch((error) => console.debug("stvc", error));

/** Shows notices when a chat is opened and when SillyTavern creates a checkpoint. */
export function followChats() {
  const { eventSource, eventTypes } = SillyTavern.getContext();
  eventSource.on(eventTypes.CHAT_CHANGED, () => void quietly(followOpenChat));
  void quietly(followOpenChat);
  // SillyTavern has no event for a new checkpoint, but marks its message.
  const marks = new MutationObserver((changes) => {
    for (const { target, oldValue } of changes) {
      const element = /** @type {Element} */ (target);
      const link = element.getAttribute("bookmark_link");
      const message = Number(element.getAttribute("mesid"));
      if (!link || link === oldValue) continue;
      const name = timelineOfChat(link);
      setTimeout(() => void quietly(() => name && noticeFork(name, message)), SAVE_DELAY);
    }
  });
  const chat = document.getElementById("chat");
  if (chat)
    marks.observe(chat, {
      subtree: true,
      attributes: true,
      attributeFilter: ["bookmark_link"],
      attributeOldValue: true,
    });
}
