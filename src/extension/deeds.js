// What is done for the open chat. Everything is saved first, and nothing is replaced that was not in a plan.

import { Away, Refused, ask } from "./mailbox.js";
import { held, may, open, openTimeline, reread, save, timeline } from "./memory.js";
import { t } from "./words.js";

/**
 * A planned restore. `moment` names the state as it was resolved, so the restore writes it however much is saved meanwhile.
 * @typedef {import("./mailbox.js").Line} Line
 * @typedef {{ moment: string, snapshot: string, timeline: string, files: Line[] }} Plan
 */

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
  const { lines } = await (holds
    ? ask("snapshot", { ...asked, holds }).catch((error) =>
        error instanceof Away ? Promise.reject(error) : saved(),
      )
    : saved());
  const line = lines.find((line) => line.type === "snapshot");
  return { id: line?.id ?? "", moment: line?.moment, unchanged: line?.unchanged !== false };
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
  return judged
    .then(
      ({ lines }) => lines,
      (error) => (error instanceof Refused ? error.lines : []),
    )
    .then((lines) => lines.filter(isReason));
}

/**
 * Forks the open chat at a message, with a lorebook of its own, and opens the fork under the name that its file has.
 * @param {number} message
 * @param {string} wanted
 */
export async function fork(message, wanted) {
  const { id, moment } = await snapshot({}, true);
  const then = await ask("restore", { snapshot: moment ?? id, at: message, name: wanted }).catch(
    (error) => {
      if (error instanceof Refused && error.is("lorebook-then-unknown")) return null;
      throw error;
    },
  );
  // The lorebook of now may be later than the one of the chat's latest snapshot.
  const made =
    then ?? (await ask("restore", { snapshot: moment ?? timeline(), cut: message, name: wanted }));
  const restored = made.lines.find((line) => line.type === "restored");
  const name =
    String(restored?.timeline ?? wanted)
      .split("/")
      .pop() ?? wanted;
  await open(name, made.operation);
  return { name, then: then !== null, restored };
}

/** A checkpoint at the end of every scene that has none yet; of what is on the disk. @param {string} name */
export async function markScenes(name) {
  await ask("snapshot", { timelines: [name], scenes: true });
}

/** Plans a restore of the files as they are once the page has saved. @param {string} asked @returns {Promise<Plan>} */
export async function planned(asked) {
  await save(true);
  const { lines } = await ask("restore", { snapshot: asked, dry_run: true, rereads: true });
  const line = lines.find((line) => line.type === "restored");
  return {
    moment: line?.moment ?? asked,
    snapshot: line?.snapshot ?? asked,
    timeline: line?.timeline ?? "",
    files: lines.filter((line) => line.type === "file"),
  };
}

/** Refuses a plan that would write another chat than the open one. @param {Plan} plan */
export function mustBeOpen({ timeline: owner, files }) {
  const chat = `${timeline()}.jsonl`;
  const book = `worlds/${SillyTavern.getContext().chatMetadata?.world_info}.json`;
  const isOther = (/** @type {string} */ path) => path.endsWith(".jsonl") && path !== chat;
  if (
    files.some(({ path }) => path === chat || path === book) &&
    !files.some(({ path }) => isOther(path))
  )
    return;
  throw new Refused(
    t("This is a snapshot of {name}, which is not open. Nothing was changed.", { name: owner }),
    t("Open that chat first."),
  );
}

/** Whether a file of a plan is a lorebook on disk that the restore replaces. @param {Line} line */
export function replacesBook(line) {
  return line.replaces && line.path.startsWith("worlds/");
}

/**
 * Restores what was planned, if the files are still those that the plan found.
 * @param {Plan} plan
 * @param {"chat"} [only] leaves the lorebook as it is
 */
export async function restore({ moment, files }, only) {
  // The user looked at the plan meanwhile.
  may(true);
  const written = files.filter((line) => !only || !line.path.startsWith("worlds/"));
  const expect = written.map((line) => line.there).filter(Boolean);
  const answer = await ask("restore", {
    snapshot: moment,
    expect,
    rereads: true,
    ...(only ? { only } : {}),
  });
  // A page that shows none of these files need not read them again.
  if (written.some((line) => line.replaces || line.path === `${openTimeline()}.jsonl`))
    await reread(answer);
}

/** Take the last change back. */
export async function undo() {
  await save(true);
  const answer = await ask("undo", { rereads: true });
  await reread({ ...answer, gone: goneBy(answer.lines) });
  return answer.lines.find((line) => line.type === "operation")?.number ?? 0;
}

/**
 * Restores the state before what cannot be undone as a chat of its own, and opens that if its character or group is open.
 * @param {{ timeline: string, moment: string, name: string }} offer
 */
export async function restoreBefore({ timeline: owner, moment, name }) {
  await save(true);
  const made = await ask("restore", { snapshot: moment, name });
  const folder = (/** @type {string} */ path) => path.slice(0, path.lastIndexOf("/"));
  if (folder(owner) === folder(openTimeline())) await open(name, made.operation);
  return name;
}

/** The files that went. @param {Line[]} lines @returns {string[]} */
export function goneBy(lines) {
  return lines
    .filter((line) => line.type === "file" && line.action === "delete")
    .map((line) => line.path);
}
