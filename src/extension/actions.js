// Actions on the open chat. Each action saves the chat first, and replaces only files that its plan
// listed.

import { t } from "../page/words.js";
import { NoAnswer, Refused, ask } from "./mailbox.js";
import {
  NotIdle,
  chatFileId,
  openChat,
  openTimeline,
  reloadFromDisk,
  requireIdle,
  saveOpenChat,
  timeline,
} from "./sillytavern.js";

/**
 * A planned restore. `moment` contains snapshot ids, so the restore writes the planned snapshot
 * even if newer snapshots are created meanwhile.
 * @typedef {import("./mailbox.js").Line} Line
 * @typedef {{ moment: string, snapshot: string, timeline: string, messages?: number, files: Line[] }} Plan
 */

/**
 * Creates a snapshot of the open chat.
 * @param {{ message?: string, tag?: string, at?: number }} [options]
 * @param {boolean} [leavesChat] whether the page will reload the chat or open another
 */
export async function createSnapshot(options = {}, leavesChat = false) {
  requireIdle(leavesChat);
  const args = { timelines: [timeline()], ...options };
  const saveAndAsk = async () => (await saveOpenChat(leavesChat), ask("snapshot", args));
  const holds = await chatFileId();
  // The program may have refused because the chat is not saved yet, so the chat is saved and the
  // request is sent again. If there was another reason, the second request fails with it.
  const { lines } = await (holds
    ? ask("snapshot", { ...args, holds }).catch((error) =>
        error instanceof NoAnswer ? Promise.reject(error) : saveAndAsk(),
      )
    : saveAndAsk());
  const line = lines.find((line) => line.type === "snapshot");
  return { id: line?.id ?? "", moment: line?.moment, unchanged: line?.unchanged !== false };
}

/** Tags the open chat as it is at a message. @param {string} name @param {number} [message] */
export async function tag(name, message) {
  const isEarlier = message !== undefined && message < SillyTavern.getContext().chat.length - 1;
  await createSnapshot({ tag: name, ...(isEarlier ? { at: message } : {}) });
  return name;
}

/**
 * Returns the findings of the readiness check for a checkpoint at a message of the chat file.
 * @param {number} message
 * @returns {Promise<Line[]>}
 */
export async function checkReadiness(message) {
  const isProblem = (/** @type {Line} */ line) => line.type === "finding" && line.level !== "info";
  const lines = await ask("snapshot", { timelines: [timeline()], at: message, dry_run: true }).then(
    (answer) => answer.lines,
    (error) => (error instanceof Refused ? error.lines : []),
  );
  return lines.filter(isProblem);
}

/**
 * Returns what a timeline contains now: numbers of its lorebook and recaps.
 * @param {string} name
 */
export async function contentsOf(name) {
  const { lines } = await ask("restore", { snapshot: name, dry_run: true });
  return lines.find((line) => line.type === "restored");
}

/** Milliseconds between two checks whether ST-Auto-Recap has finished. */
const READY_INTERVAL = 2000;

/** Whether a finding or an error says that ST-Auto-Recap is still working. */
export const isBusy = (/** @type {Line} */ { code }) => code === "queue-active";

/**
 * Runs an action as soon as ST-Auto-Recap has finished its work. Returns null if the user cancels
 * or opens another chat.
 * @template T
 * @param {() => Promise<T>} action
 * @param {AbortSignal} cancelled
 * @returns {Promise<T | null>}
 */
export async function whenReady(action, cancelled) {
  const chat = openTimeline();
  while (!cancelled.aborted && openTimeline() === chat) {
    try {
      return await action();
    } catch (error) {
      const isTemporary =
        error instanceof NotIdle || (error instanceof Refused && error.lines.some(isBusy));
      if (!isTemporary) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, READY_INTERVAL));
  }
  return null;
}

/**
 * Lists the possible repairs of a timeline and its lorebook.
 * @param {string} name
 * @returns {Promise<Line[]>}
 */
export async function repairsOf(name) {
  const { lines } = await ask("doctor", { timelines: [name] });
  return lines.filter((line) => line.type === "repair");
}

/**
 * Carries out a repair that {@link repairsOf} listed.
 * @param {string} name of the timeline
 * @param {Line} planned
 */
export async function repair(name, planned) {
  await saveOpenChat(true);
  const args = { timelines: [name], what: planned.what, rereads: true };
  const answer = await ask("repair", args);
  if (answer.exit !== 0) {
    const finding = answer.lines.find((line) => line.type === "finding" && line.level === "error");
    throw new Refused(finding?.message ?? planned.what, null, answer.lines);
  }
  await reloadFromDisk(answer);
}

/**
 * Forks the open chat at a message, with its own lorebook, and opens the fork.
 * @param {number} message
 * @param {string} wanted name of the fork; the file may get another name
 */
export async function fork(message, wanted) {
  const { id, moment } = await createSnapshot({}, true);
  const withOldLorebook = await ask("restore", {
    snapshot: moment ?? id,
    at: message,
    name: wanted,
  }).catch((error) => {
    if (error instanceof Refused && error.hasCode("lorebook-then-unknown")) return null;
    throw error;
  });
  // If the lorebook at that message is unknown, the fork gets the current lorebook. `moment` names
  // it, because it may be newer than the lorebook in the chat's latest snapshot.
  const answer =
    withOldLorebook ??
    (await ask("restore", { snapshot: moment ?? timeline(), cut: message, name: wanted }));
  const restored = answer.lines.find((line) => line.type === "restored");
  const name =
    String(restored?.timeline ?? wanted)
      .split("/")
      .pop() ?? wanted;
  await openChat(name, answer.operation);
  return { name, hasOldLorebook: withOldLorebook !== null, restored };
}

/**
 * Creates a checkpoint at every scene end of a chat file that has no checkpoint yet.
 * @param {string} name of the timeline
 */
export async function checkpointScenes(name) {
  await ask("snapshot", { timelines: [name], scenes: true });
}

/** Saves the open chat and plans a restore. @param {string} moment @returns {Promise<Plan>} */
export async function planRestore(moment) {
  await saveOpenChat(true);
  const { lines } = await ask("restore", { snapshot: moment, dry_run: true, rereads: true });
  const line = lines.find((line) => line.type === "restored");
  return {
    moment: line?.moment ?? moment,
    snapshot: line?.snapshot ?? moment,
    timeline: line?.timeline ?? "",
    messages: line?.messages,
    files: lines.filter((line) => line.type === "file"),
  };
}

/** Throws if a plan would write a chat that is not the open chat. @param {Plan} plan */
export function requireOpenChat({ timeline: owner, files }) {
  const chat = `${timeline()}.jsonl`;
  const lorebook = `worlds/${SillyTavern.getContext().chatMetadata?.world_info}.json`;
  const isOther = (/** @type {string} */ path) => path.endsWith(".jsonl") && path !== chat;
  if (
    files.some(({ path }) => path === chat || path === lorebook) &&
    !files.some(({ path }) => isOther(path))
  )
    return;
  throw new Refused(t("otherChat", { name: owner }), t("openThatChat"));
}

/** @param {Line} line a file of a plan */
export function replacesLorebook(line) {
  return line.replaces && line.path.startsWith("worlds/");
}

/**
 * Carries out a planned restore, unless a file changed since the plan.
 * @param {Plan} plan
 * @param {"chat"} [only] restores the chat but not its lorebook
 */
export async function restore({ moment, files }, only) {
  // A reply or an edit may have begun while the user looked at the plan.
  requireIdle(true);
  const written = files.filter((line) => !only || !line.path.startsWith("worlds/"));
  const expect = written.map((line) => line.blake3_before).filter(Boolean);
  const answer = await ask("restore", {
    snapshot: moment,
    expect,
    rereads: true,
    ...(only ? { only } : {}),
  });
  // New files of other chats are not in the memory of SillyTavern's page, so they need no reload.
  if (written.some((line) => line.replaces || line.path === `${openTimeline()}.jsonl`))
    await reloadFromDisk(answer);
  return answer.lines.find((line) => line.type === "restored");
}

/** Undoes the last operation. Returns its number, or 0 if there is nothing to undo. */
export async function undo() {
  await saveOpenChat(true);
  const answer = await ask("undo", { rereads: true });
  await reloadFromDisk({ ...answer, deleted: deletedPaths(answer.lines) });
  return answer.lines.find((line) => line.type === "operation")?.number ?? 0;
}

/**
 * Restores a version as a new chat, which is offered if an operation cannot be undone. Opens the
 * new chat if its character or group is open.
 * @param {{ timeline: string, moment: string, name: string }} offer
 */
export async function restoreOffer({ timeline: owner, moment, name }) {
  await saveOpenChat(true);
  const answer = await ask("restore", { snapshot: moment, name });
  const folder = (/** @type {string} */ path) => path.slice(0, path.lastIndexOf("/"));
  if (folder(owner) === folder(openTimeline())) await openChat(name, answer.operation);
  return name;
}

/** @param {Line[]} lines @returns {string[]} */
export function deletedPaths(lines) {
  return lines
    .filter((line) => line.type === "file" && line.action === "delete")
    .map((line) => line.path);
}
