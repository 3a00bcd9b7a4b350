// The status badge below the chat, and notifications. Both show the contents of the status file,
// which the watch writes.

import { el } from "../page/dom.js";
import {
  describeSync,
  formatAge,
  t,
  translateError,
  translateFinding,
  withoutCommands,
} from "../page/words.js";
import * as actions from "./actions.js";
import { NoAnswer, PROTOCOL, Refused, readStatus, send } from "./mailbox.js";
import { settings } from "./settings.js";
import { openTimeline, reloadWrittenFiles } from "./sillytavern.js";

/** Milliseconds between two reads of the status file. */
const INTERVAL = 15_000;
/** Age in seconds from which a status does not prove that the watch is still running. */
const STALE = 45;

export const badge = el("div", { id: "stvc_badge", role: "status", title: "stvc" });
/** Tells other windows of this browser to read the status file at once. */
const windows = new BroadcastChannel("stvc");

/** Keys of the alarms that were in an earlier status. @type {Set<string>} */
const seenAlarms = new Set();
let isFirstStatus = true;
/** Number of running actions. While one runs, `refresh` reloads no files: actions reload theirs. */
let runningActions = 0;
/**
 * For each timeline, the latest snapshot for which checkpoints at scene ends were created.
 * @type {Map<string, string>}
 */
const checkpointedSnapshots = new Map();

/** Explains how to start the watch. */
const howToStartWatch = () => [t("startWatch"), t("installWatch")].join(" ");

/** @param {unknown} error */
function showError(error) {
  const shown = /** @type {{ code?: string, message: string, hint?: string }} */ (error);
  if (error instanceof NoAnswer) toastr.warning(howToStartWatch(), t("notRunning"));
  else
    toastr.error(withoutCommands(shown.hint), translateError(shown), {
      escapeHtml: true,
      timeOut: 15_000,
    });
}

/**
 * Runs an action and shows its error, if any. Returns the action's result, or an empty string.
 * @param {() => Promise<string>} action
 */
export async function runAction(action) {
  runningActions++;
  try {
    return await action();
  } catch (error) {
    showError(error);
    return "";
  } finally {
    runningActions--;
    windows.postMessage("look");
    void refresh();
  }
}

/** Updates the badge, reloads files that other programs wrote, and shows new alarms. */
export async function refresh() {
  badge.hidden = !settings().badge;
  if (document.hidden) return;
  const status = await currentStatus();
  badge.classList.toggle("stvc-warning", !status?.alive || status.protocol !== PROTOCOL);
  if (!status?.alive) {
    badge.textContent = t("notRunning");
    badge.title = howToStartWatch();
    return;
  }
  if (status.protocol !== PROTOCOL) {
    badge.textContent = t("versionsDiffer");
    badge.title = t("updateExtension");
    return;
  }
  if (!runningActions) await reloadWrittenFiles(status.written ?? []);
  const name = openTimeline();
  const own = status.timelines.find((/** @type {any} */ one) => one.timeline === name);
  badge.textContent = own
    ? t("snapshotAge", { ago: formatAge(timeOf(own)) })
    : name
      ? t("noSnapshot")
      : "";
  badge.title = `stvc ${status.program}\n${status.sync ? describeSync(status.sync) : ""}`.trim();
  if (status.sync?.failure) badge.classList.add("stvc-warning");
  showAlarms(status.alarms, name);
  if (settings().scenes && status.write && own) await checkpointScenes(own);
}

/**
 * Returns the time of a snapshot, but never a later time than now, because the clocks of the two
 * computers may differ.
 * @param {{ taken: number }} snapshot
 */
const timeOf = ({ taken }) => new Date(Math.min(taken * 1000, Date.now())).toISOString();

/**
 * Reads the status. If the status is stale, asks the watch to write a new one. Returns null if the
 * watch does not answer.
 */
async function currentStatus() {
  const status = await readStatus();
  const isStale = !status?.alive || Date.now() / 1000 - status.alive > STALE;
  return isStale ? send("hello", {}, 4000).then(readStatus, () => null) : status;
}

/**
 * @typedef {object} Alarm
 * @property {string} code
 * @property {string} subject
 * @property {string} message
 * @property {string | null} snapshot the moment before the loss
 * @property {number} noticed
 */

/** @type {(alarm: Alarm) => void} */
let onAlarmClick = () => {};

/** @param {Alarm[]} alarms @param {string} name the open timeline */
function showAlarms(alarms, name) {
  for (const alarm of alarms) {
    const key = `${alarm.code} ${alarm.subject} ${alarm.noticed}`;
    if (seenAlarms.has(key)) continue;
    seenAlarms.add(key);
    // Alarms from before SillyTavern's page was opened are only listed in the viewer's Library.
    if (!settings().alarms || isFirstStatus) continue;
    const isOpen = alarm.snapshot && alarm.subject === name;
    toastr.warning(isOpen ? t("clickToRestore") : alarm.subject, translateFinding(alarm), {
      escapeHtml: true,
      timeOut: 30_000,
      onclick: () => onAlarmClick(alarm),
    });
  }
  isFirstStatus = false;
}

/**
 * Creates checkpoints at scene ends if the open chat has a new snapshot.
 * @param {{ timeline: string, snapshot: string }} own entry of the open chat in the status
 */
async function checkpointScenes({ timeline, snapshot }) {
  if (checkpointedSnapshots.get(timeline) === snapshot) return;
  try {
    await actions.checkpointScenes(timeline);
    checkpointedSnapshots.set(timeline, snapshot);
  } catch (error) {
    // ST-Auto-Recap is still working on the scene. The next refresh tries again.
    if (!(error instanceof Refused)) throw error;
  }
}

/**
 * Shows the badge and starts to read the status regularly.
 * @param {(alarm: Alarm) => unknown} onClick called when the user clicks an alarm
 */
export function followStatus(onClick) {
  const { eventSource, eventTypes } = SillyTavern.getContext();
  onAlarmClick = onClick;
  // The badge has its own row, because it would cover buttons of messages if it were in the chat.
  document.getElementById("form_sheld")?.before(badge);
  eventSource.on(eventTypes.CHAT_CHANGED, () => void refresh());
  document.addEventListener("visibilitychange", () => void refresh());
  windows.addEventListener("message", () => void refresh());
  setInterval(() => void refresh(), INTERVAL);
}
