// What is done for the open chat. Everything is saved first, and nothing is replaced that was not in a plan.

import { Away, Refused, ask } from "./mailbox.js";
import { held, may, open, reread, save, timeline } from "./memory.js";

/** @typedef {import("./mailbox.js").Line} Line */

/**
 * Take a snapshot of the open chat.
 * @param {{ message?: string, tag?: string, at?: number }} [wish]
 * @param {boolean} [leaves] whether the page will then show something else
 */
export async function snapshot(wish = {}, leaves = false) {
  may(leaves);
  const asked = { timelines: [timeline()], ...wish };
  const saved = async () => (await save(leaves), ask("snapshot", asked));
  const holds = await held();
  // Where the file is not what the page has it is saved; and what is refused for another reason, is refused again.
  const { lines } = await (holds ? ask("snapshot", { ...asked, holds }).catch((error) => (error instanceof Away ? Promise.reject(error) : saved())) : saved());
  const line = lines.find((line) => line.type === "snapshot");
  return { id: line?.id ?? "", unchanged: line?.unchanged !== false };
}

/** Name the chat as it is at a message. @param {string} name @param {number} [message] */
export async function tag(name, message) {
  const isEarlier = message !== undefined && message < SillyTavern.getContext().chat.length - 1;
  await snapshot({ tag: name, ...(isEarlier ? { at: message } : {}) });
  return name;
}

/** What is not ready for a checkpoint at this message, as far as the files tell. @param {number} message @returns {Promise<Line[]>} */
export async function unready(message) {
  const isReason = (/** @type {Line} */ line) => line.type === "finding" && line.level !== "info";
  const judged = ask("snapshot", { timelines: [timeline()], at: message, dry_run: true });
  return judged.then(({ lines }) => lines, (error) => (error instanceof Refused ? error.lines : [])).then((lines) => lines.filter(isReason));
}

/** A chat of its own from a message on, with a lorebook of its own, and open it. @param {number} message @param {string} name */
export async function fork(message, name) {
  const { id } = await snapshot({}, true);
  const wish = { snapshot: id, name };
  const then = await ask("restore", { ...wish, at: message }).catch((error) => {
    if (error instanceof Refused && error.is("lorebook-then-unknown")) return null;
    throw error;
  });
  const made = then ?? (await ask("restore", { ...wish, cut: message }));
  await open(name, made.operation);
  return { name, then: then !== null };
}

/** A checkpoint at the end of every scene that has none yet; of what is on the disk. @param {string} name */
export async function markScenes(name) {
  await ask("snapshot", { timelines: [name], scenes: true });
}

/** What a restore would do. @param {string} snapshot @returns {Promise<Line[]>} */
export async function planned(snapshot) {
  await save(true);
  const { lines } = await ask("restore", { snapshot, dry_run: true, rereads: true });
  return lines.filter((line) => line.type === "file");
}

/** Set the open chat and its lorebook back, where the plan's files are still there. @param {string} snapshot @param {Line[]} plan */
export async function restore(snapshot, plan) {
  // Somebody looked at the plan meanwhile.
  may(true);
  const expect = plan.map((line) => line.there).filter(Boolean);
  await reread(await ask("restore", { snapshot, expect, rereads: true }));
}

/** Take the last change back. */
export async function undo() {
  await save(true);
  const answer = await ask("undo", { rereads: true });
  await reread({ ...answer, gone: goneBy(answer.lines) });
  return answer.lines.find((line) => line.type === "operation")?.number ?? 0;
}

/** The files that went. @param {Line[]} lines @returns {string[]} */
export function goneBy(lines) {
  return lines.filter((line) => line.type === "file" && line.action === "delete").map((line) => line.path);
}
