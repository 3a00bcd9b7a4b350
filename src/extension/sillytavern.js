// Accesses SillyTavern's page: finds and saves the open chat, and reloads files that were replaced
// on disk.
//
// SillyTavern's page keeps chats, lorebooks and lists of chats in memory and writes them back
// later. Therefore they are saved before an action, and reloaded after files were replaced.

import { t } from "../page/words.js";
import { Refused, hex } from "./mailbox.js";

const WORLD_INFO = "/scripts/world-info.js";
const GROUPS = "/scripts/group-chats.js";
const SCRIPT = "/script.js";
/** Milliseconds to wait for a group's file, which SillyTavern writes a second after the chat. */
const GROUP_SAVE_DELAY = 1200;

/**
 * Number of the newest operation whose files SillyTavern's page has loaded, or null before the
 * first status was read.
 * @type {number | null}
 */
let loadedOperation = null;

/** Returns the timeline of the open chat. Throws if no chat is open. */
export function timeline() {
  const { characterId, characters, getCurrentChatId, groupId } = SillyTavern.getContext();
  const chat = getCurrentChatId();
  if (!chat) throw new Refused(t("noChatOpen"));
  if (groupId) return `group chats/${chat}`;
  return `chats/${characters[characterId].avatar.replace(/\.[^.]*$/, "")}/${chat}`;
}

/** Returns the timeline of another chat of the open character or group. @param {string} chat */
export function timelineOfChat(chat) {
  const folder = openTimeline().split("/").slice(0, -1).join("/");
  return folder && `${folder}/${chat}`;
}

/** Returns the name of the open chat's lorebook if it does not exist, else an empty string. */
export async function missingLorebook() {
  const book = SillyTavern.getContext().chatMetadata?.world_info;
  const { world_names } = await import(WORLD_INFO);
  return book && !world_names.includes(book) ? String(book) : "";
}

/** Returns the timeline of the open chat, or an empty string if no chat is open. */
export function openTimeline() {
  try {
    return timeline();
  } catch {
    return "";
  }
}

const isGenerating = () => Boolean(document.body.dataset.generating);
/** Returns whether the user is editing a message. Reloading the chat would discard the edit. */
const isEditing = () =>
  Boolean(document.querySelector("#curEditTextarea, .reasoning_edit_textarea"));

/** The page is busy, so that an action has to be tried again later. */
export class NotIdle extends Refused {}

/** Timelines that the extension opened after it wrote them. @type {Set<string>} */
export const openedHere = new Set();

/**
 * Throws if a reply is being generated, or if leaving the chat would discard the edit of a message.
 * @param {boolean} leavesChat whether the page will reload the chat or open another
 */
export function requireIdle(leavesChat) {
  if (isGenerating()) throw new NotIdle(t("generating"));
  if (leavesChat && isEditing()) throw new NotIdle(t("editing"));
}

/**
 * Returns the git object id of the chat file that SillyTavern would write now, or undefined if it
 * cannot be computed.
 *
 * Saving is the slowest part of a snapshot, and usually the chat is saved already. The program
 * compares this id with the file, so that the chat is saved only if it has unsaved changes.
 */
export async function chatFileId() {
  const { chat, chatMetadata, getCurrentChatId, groupId } = SillyTavern.getContext();
  // Browsers provide hashing only on secure connections. SillyTavern 1.12 writes group chats in
  // another format.
  if (isGenerating() || groupId || !globalThis.crypto?.subtle || !getCurrentChatId())
    return undefined;
  const header = { chat_metadata: chatMetadata, user_name: "unused", character_name: "unused" };
  const bytes = new TextEncoder().encode(
    [header, ...chat].map((line) => JSON.stringify(line)).join("\n"),
  );
  const prefix = new TextEncoder().encode(`blob ${bytes.length}\0`);
  const object = new Uint8Array(prefix.length + bytes.length);
  object.set(prefix);
  object.set(bytes, prefix.length);
  if (chatMetadata?.world_info) await waitForLorebookSave(chatMetadata.world_info);
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-1", object)));
}

/**
 * Saves the open chat and its lorebook.
 * @param {boolean} [leavesChat] whether the page will reload the chat or open another
 */
export async function saveOpenChat(leavesChat = false) {
  requireIdle(leavesChat);
  const { chatMetadata, groupId, saveChat } = SillyTavern.getContext();
  await saveChat();
  if (chatMetadata?.world_info) await waitForLorebookSave(chatMetadata.world_info);
  // If SillyTavern saved the group later, it would overwrite the list of chats that stvc writes.
  if (groupId && leavesChat) await new Promise((resolve) => setTimeout(resolve, GROUP_SAVE_DELAY));
}

/**
 * Reloads the list of lorebooks, and each group's list of chats. SillyTavern's page writes the list
 * of chats with every save of the group, so an old list would remove new chats. The group objects
 * are updated in place, because a pending save refers to them.
 * @param {boolean} [isChatReplaced] whether the open chat was replaced; if so, its metadata is
 *   reloaded too, which SillyTavern 1.12 stores in the group's file
 */
export async function reloadLists(isChatReplaced = false) {
  const { getRequestHeaders, groups, updateWorldInfoList } = SillyTavern.getContext();
  await updateWorldInfoList();
  if (!groups.length) return;
  const headers = getRequestHeaders();
  const response = await fetch("/api/groups/all", { method: "POST", headers, body: "{}" });
  if (!response.ok) return;
  const stored = await response.json();
  for (const group of groups) {
    const found = stored.find((/** @type {any} */ other) => String(other.id) === String(group.id));
    if (!found) continue;
    group.chats = (found.chats ?? group.chats).map(String);
    if (found.past_metadata) group.past_metadata = found.past_metadata;
    if (isChatReplaced && found.chat_metadata) group.chat_metadata = found.chat_metadata;
  }
}

/**
 * Waits until the lorebook on disk equals the lorebook in memory. SillyTavern writes a lorebook a
 * second after its last change.
 * @param {string} name
 */
async function waitForLorebookSave(name) {
  const { worldInfoCache } = await import(WORLD_INFO);
  for (let attempt = 0; attempt < 30; attempt++) {
    const inMemory = worldInfoCache.get(name);
    if (!inMemory) return;
    const headers = SillyTavern.getContext().getRequestHeaders();
    const onDisk = await fetch("/api/worldinfo/get", {
      method: "POST",
      headers,
      body: JSON.stringify({ name }),
    });
    if (onDisk.ok && JSON.stringify(await onDisk.json()) === JSON.stringify(inMemory)) return;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

/**
 * Opens a chat of the open character or group.
 * @param {string} chat
 * @param {number} [operation] number of the operation that created the chat
 */
export async function openChat(chat, operation = 0) {
  loadedOperation = Math.max(loadedOperation ?? 0, operation);
  const { groupId, openCharacterChat, openGroupChat } = SillyTavern.getContext();
  openedHere.add(timelineOfChat(chat));
  // The group's list of chats in memory must contain the new chat.
  await reloadLists();
  await (groupId ? openGroupChat(groupId, chat) : openCharacterChat(chat));
}

/**
 * Opens a chat of any character or group, and shows one of its messages.
 * @param {string} name of the timeline
 * @param {number} [message]
 */
export async function openAnyChat(name, message) {
  requireIdle(true);
  const [folder, chat] = [name.slice(0, name.lastIndexOf("/")), name.split("/").pop() ?? ""];
  const { characterId, characters, getCurrentChatId, groupId, groups, selectCharacterById } =
    SillyTavern.getContext();
  if (name !== openTimeline()) {
    if (folder === "group chats") {
      const group = groups.find((/** @type {any} */ one) => one.chats.includes(chat));
      if (!group) throw new Refused(t("chatNotListed"));
      const { openGroupById } = await import(GROUPS);
      if (String(group.id) !== String(groupId)) await openGroupById(group.id);
    } else {
      const index = characters.findIndex(
        (/** @type {any} */ one) => `chats/${one.avatar.replace(/\.[^.]*$/, "")}` === folder,
      );
      // SillyTavern would create an empty chat if a deleted chat were opened.
      if (index < 0 || !(await hasChat(characters[index].avatar, chat)))
        throw new Refused(t("chatNotListed"));
      if (groupId || String(index) !== String(characterId)) await selectCharacterById(index);
    }
    if (getCurrentChatId() !== chat) await openChat(chat);
  }
  if (message !== undefined) await showMessage(message);
}

/** Returns whether a character has a chat. @param {string} avatar @param {string} chat */
async function hasChat(avatar, chat) {
  const headers = SillyTavern.getContext().getRequestHeaders();
  const body = JSON.stringify({ avatar_url: avatar, simple: true });
  const response = await fetch("/api/characters/chats", { method: "POST", headers, body });
  const chats = response.ok ? Object.values(await response.json()) : [];
  return chats.some((/** @type {any} */ one) => one.file_name === `${chat}.jsonl`);
}

/** Scrolls to a message of the open chat. @param {number} message */
async function showMessage(message) {
  const find = () => document.querySelector(`#chat .mes[mesid="${message}"]`);
  if (!find()) {
    const first = Number(document.querySelector("#chat .mes")?.getAttribute("mesid") ?? 0);
    const { showMoreMessages } = await import(SCRIPT);
    if (message < first) await showMoreMessages(first - message);
  }
  find()?.scrollIntoView({ block: "center" });
}

/**
 * Reloads the open chat, the lorebooks and the lists from disk.
 * @param {object} change
 * @param {number} [change.operation] number of the operation that wrote the files
 * @param {string[]} [change.deleted] paths of the files that the operation deleted
 */
export async function reloadFromDisk({ operation = 0, deleted = [] }) {
  loadedOperation = Math.max(loadedOperation ?? 0, operation);
  const { worldInfoCache } = await import(WORLD_INFO);
  worldInfoCache.clear();
  const { chatMetadata, reloadCurrentChat, reloadWorldInfoEditor } = SillyTavern.getContext();
  await reloadLists(true);
  const name = openTimeline();
  // SillyTavern would create an empty chat if a deleted chat were reloaded.
  if (deleted.includes(`${name}.jsonl`))
    await (chatMetadata.main_chat
      ? openChat(chatMetadata.main_chat)
      : document.getElementById("option_close_chat")?.click());
  else if (name) await reloadCurrentChat();
  if (chatMetadata?.world_info) reloadWorldInfoEditor?.(chatMetadata.world_info, false);
}

/**
 * Reloads files that another window, another device or the command line wrote, so that
 * SillyTavern's page does not overwrite them with old data from memory.
 * @param {{ operation: number, paths: string[] | null, removed?: string[] }[]} written operations
 *   in the status; `paths` is null if there are too many paths to list
 */
export async function reloadWrittenFiles(written) {
  const newest = Math.max(0, ...written.map((one) => one.operation));
  const unseen = written.filter(
    (one) => loadedOperation !== null && one.operation > loadedOperation,
  );
  loadedOperation = Math.max(loadedOperation ?? 0, newest);
  if (!unseen.length) return;
  const isWritten = (/** @type {string} */ path) =>
    unseen.some((one) => !one.paths || one.paths.includes(path));
  const { worldInfoCache } = await import(WORLD_INFO);
  for (const name of [...worldInfoCache.keys()]) {
    if (!isWritten(`worlds/${name}.json`)) continue;
    worldInfoCache.delete(name);
    SillyTavern.getContext().reloadWorldInfoEditor?.(name, false);
  }
  const isGroup = (/** @type {string} */ path) => path.startsWith("groups/");
  if (unseen.some((one) => !one.paths || one.paths.some(isGroup))) await reloadLists();
  const name = openTimeline();
  if (!name || !isWritten(`${name}.jsonl`)) return;
  const deleted = unseen.flatMap((one) => one.removed ?? []);
  const reload = () => reloadFromDisk({ operation: newest, deleted });
  if (isGenerating() || isEditing()) {
    toastr.warning(t("clickToLoad"), t("replacedElsewhere"), {
      timeOut: 0,
      extendedTimeOut: 0,
      onclick: reload,
    });
    return;
  }
  await reload();
  toastr.info(t("newVersionLoaded"), t("replacedElsewhere"));
}
