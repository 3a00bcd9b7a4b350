// How it stands: the badge near the chat, and what is told without being asked.

import * as deeds from "./deeds.js";
import { Away, PROTOCOL, Refused, send, status } from "./mailbox.js";
import { hear, openTimeline } from "./memory.js";
import { settings } from "./settings.js";
import { ago, node, reason, t } from "./words.js";

const INTERVAL = 15_000;
/** Who was silent for longer is asked whether he is there. */
const SILENCE = 45;

export const badge = node("div", { id: "stvc_badge", role: "status", title: "stvc" });
/** Other windows of this browser are told at once; others read the status. */
const windows = new BroadcastChannel("stvc");

/** @type {Set<string>} */
const heard = new Set();
let isFirst = true;
/** How many deeds are under way: what these write, their own answer tells of. */
let working = 0;
/** The ends of scenes that are marked, by chat. @type {Map<string, number>} */
const marked = new Map();

/** Say what went wrong, in words. @param {unknown} error */
function complain(error) {
  const { message, hint } = /** @type {{ message: string, hint?: string }} */ (error);
  if (error instanceof Away)
    toastr.warning(
      t(
        "Run `stvc watch` beside SillyTavern's data (`stvc watch --install` starts it at every login).",
      ),
      t("watch is not running"),
    );
  else toastr.error(hint ?? "", message, { escapeHtml: true, timeOut: 15_000 });
}

/** Do it; whatever goes wrong is told, and a script gets nothing. @param {() => Promise<string>} deed */
export async function careful(deed) {
  working++;
  try {
    return await deed();
  } catch (error) {
    complain(error);
    return "";
  } finally {
    working--;
    windows.postMessage("look");
    void refresh();
  }
}

/** Tell how it stands. */
export async function refresh() {
  badge.hidden = !settings().badge;
  if (document.hidden) return;
  const told = await present();
  badge.classList.toggle("away", !told?.alive || told.protocol !== PROTOCOL);
  if (!told?.alive) {
    badge.textContent = t("watch is not running");
    badge.title = t(
      "Run `stvc watch` beside SillyTavern's data (`stvc watch --install` starts it at every login).",
    );
    return;
  }
  if (told.protocol !== PROTOCOL) {
    badge.textContent = t("another version of stvc");
    badge.title = t("`stvc extension update`, then reload this page.");
    return;
  }
  if (!working) await hear(told.written ?? []);
  const name = openTimeline();
  const own = told.timelines.find((/** @type {any} */ one) => one.timeline === name);
  badge.textContent = own
    ? t("snapshot {ago}", { ago: ago(own.taken) })
    : name
      ? t("no snapshot yet")
      : "";
  badge.title = `stvc ${told.program}`;
  alarm(told.alarms, name);
  if (settings().scenes && told.write && own) await markScenes(name);
}

async function present() {
  const told = await status();
  const isSilent = !told?.alive || Date.now() / 1000 - told.alive > SILENCE;
  return isSilent ? send("hello", {}, 4000).then(status, () => null) : told;
}

/** @typedef {{ code: string, subject: string, message: string, snapshot: string | null, noticed: number }} Alarm */

/** @type {(alarm: Alarm) => void} */
let answerAlarm = () => {};

/** @param {Alarm[]} alarms @param {string} name */
function alarm(alarms, name) {
  for (const alarm of alarms) {
    const key = `${alarm.code} ${alarm.subject} ${alarm.noticed}`;
    if (heard.has(key)) continue;
    heard.add(key);
    // What happened before the page was opened is in the Library.
    if (!settings().alarms || isFirst) continue;
    const onclick = () => answerAlarm(alarm);
    const isRestorable = alarm.snapshot && alarm.subject === name;
    toastr.warning(isRestorable ? t("Click here to restore it.") : alarm.subject, reason(alarm), {
      escapeHtml: true,
      timeOut: 30_000,
      onclick,
    });
  }
  isFirst = false;
}

/** Once there are more ends of scenes than were marked. @param {string} name */
async function markScenes(name) {
  const memory = (/** @type {any} */ one) =>
    one.extra?.auto_recap_memory ?? one.extra?.auto_summarize_memory;
  const ends = SillyTavern.getContext().chat.filter(
    (/** @type {any} */ one) => memory(one)?.scene_break,
  ).length;
  if (ends === (marked.get(name) ?? 0)) return;
  try {
    await deeds.markScenes(name);
    marked.set(name, ends);
  } catch (error) {
    // The extension is still at work on it: later.
    if (!(error instanceof Refused)) throw error;
  }
}

/** @param {(alarm: Alarm) => unknown} clicked what a click on an alarm does */
export function watchTheWatch(clicked) {
  const { eventSource, eventTypes } = SillyTavern.getContext();
  answerAlarm = clicked;
  // A row of its own: over the chat it would lie on the messages' buttons.
  document.getElementById("form_sheld")?.before(badge);
  eventSource.on(eventTypes.CHAT_CHANGED, () => void refresh());
  document.addEventListener("visibilitychange", () => void refresh());
  windows.addEventListener("message", () => void refresh());
  setInterval(() => void refresh(), INTERVAL);
}
