// What is done for the open chat. Everything is saved first, and nothing is replaced that was not in a plan.

import { Refused, ask } from "./mailbox.js";
import { t } from "./words.js";

const WORLDS = "/scripts/world-info.js";

/** The open chat as the program calls it. */
export function timeline() {
  const { characterId, characters, getCurrentChatId, groupId } = SillyTavern.getContext();
  const chat = getCurrentChatId();
  if (!chat) throw new Refused(t("No chat is open."));
  if (groupId) return `group chats/${chat}`;
  return `chats/${characters[characterId].avatar.replace(/\.[^.]*$/, "")}/${chat}`;
}

/** What the page has in memory goes to the disk. @param {boolean} [leaves] whether the page will then show something else */
export async function save(leaves = false) {
  if (document.body.dataset.generating) throw new Refused(t("A reply is being generated; wait until it is done."));
  // What is typed there is nowhere else, and would go with the page.
  if (leaves && document.querySelector("#curEditTextarea, .reasoning_edit_textarea")) throw new Refused(t("A message is being edited; finish that first."));
  const { chatMetadata, saveChat } = SillyTavern.getContext();
  await saveChat();
  if (chatMetadata?.world_info) await bookIsSaved(chatMetadata.world_info);
}

/** SillyTavern writes a lorebook a second after its last change: wait until the disk has what the page has. @param {string} name */
async function bookIsSaved(name) {
  const { worldInfoCache } = await import(WORLDS);
  for (let tries = 0; tries < 30; tries++) {
    const mine = worldInfoCache.get(name);
    if (!mine) return;
    const headers = SillyTavern.getContext().getRequestHeaders();
    const there = await fetch("/api/worldinfo/get", { method: "POST", headers, body: JSON.stringify({ name }) });
    if (there.ok && JSON.stringify(await there.json()) === JSON.stringify(mine)) return;
    await new Promise((done) => setTimeout(done, 150));
  }
}

/** Take a snapshot of the open chat. @param {{ message?: string, tag?: string }} [wish] @param {boolean} [leaves] */
export async function snapshot(wish = {}, leaves = false) {
  await save(leaves);
  const { lines } = await ask("snapshot", { timelines: [timeline()], ...wish });
  const line = lines.find((line) => line.type === "snapshot");
  return { id: line?.id ?? "", unchanged: line?.unchanged !== false };
}

/** Name the chat as it is at a message. @param {string} name @param {number} [message] */
export async function tag(name, message) {
  await save();
  const isEarlier = message !== undefined && message < SillyTavern.getContext().chat.length - 1;
  await ask("snapshot", { timelines: [timeline()], tag: name, ...(isEarlier ? { at: message } : {}) });
  return name;
}

/** A chat of its own from a message on, with a lorebook of its own, and open it. @param {number} message @param {string} name */
export async function fork(message, name) {
  const { id } = await snapshot({}, true);
  const wish = { snapshot: id, name };
  const then = await ask("restore", { ...wish, at: message }).then(() => true, (error) => {
    if (error instanceof Refused && error.is("lorebook-then-unknown")) return false;
    throw error;
  });
  if (!then) await ask("restore", { ...wish, cut: message });
  await open(name);
  return { name, then };
}

/** @param {string} chat */
async function open(chat) {
  const { getCharacters, groupId, openCharacterChat, openGroupChat, updateWorldInfoList } = SillyTavern.getContext();
  await updateWorldInfoList();
  // Groups are read anew with the characters: the new chat is listed there.
  await getCharacters();
  await (groupId ? openGroupChat(groupId, chat) : openCharacterChat(chat));
}

/** What a restore would do. @param {string} snapshot @returns {Promise<import("./mailbox.js").Line[]>} */
export async function planned(snapshot) {
  await save(true);
  const { lines } = await ask("restore", { snapshot, dry_run: true });
  return lines.filter((line) => line.type === "file");
}

/** Set the open chat and its lorebook back, where the plan's files are still there. @param {string} snapshot @param {import("./mailbox.js").Line[]} plan */
export async function restore(snapshot, plan) {
  const expect = plan.map((line) => line.there).filter(Boolean);
  await ask("restore", { snapshot, expect, chat_closed: true });
  await reread();
}

/** Take the last change back. */
export async function undo() {
  await save(true);
  const { lines } = await ask("undo", { chat_closed: true });
  await reread();
  return lines.find((line) => line.type === "operation")?.number ?? 0;
}

/** The page forgets what it had in memory, and reads the files. */
export async function reread() {
  const { worldInfoCache } = await import(WORLDS);
  worldInfoCache.clear();
  const { chatMetadata, getCurrentChatId, reloadCurrentChat, reloadWorldInfoEditor, updateWorldInfoList } = SillyTavern.getContext();
  await updateWorldInfoList();
  if (getCurrentChatId()) await reloadCurrentChat();
  if (chatMetadata?.world_info) reloadWorldInfoEditor?.(chatMetadata.world_info, false);
}
