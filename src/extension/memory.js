// What the page has in memory and what is on the disk: the one is saved before anything is done, and forgotten after files were replaced, by whomever.

import { Refused, hex } from "./mailbox.js";
import { t } from "./words.js";

const WORLDS = "/scripts/world-info.js";
/** SillyTavern writes a group's file a second after the group's chat was saved, in milliseconds. */
const GROUP_SAVE = 1200;

/** The newest operation whose files this page has read; null before anything was heard. @type {number | null} */
let known = null;

/** The open chat as the program calls it. */
export function timeline() {
  const { characterId, characters, getCurrentChatId, groupId } = SillyTavern.getContext();
  const chat = getCurrentChatId();
  if (!chat) throw new Refused(t("No chat is open."));
  if (groupId) return `group chats/${chat}`;
  return `chats/${characters[characterId].avatar.replace(/\.[^.]*$/, "")}/${chat}`;
}

/** The same, or nothing. */
export function openTimeline() {
  try {
    return timeline();
  } catch {
    return "";
  }
}

const isGenerating = () => Boolean(document.body.dataset.generating);
/** What is typed there is nowhere else, and would go with the page. */
const isEditing = () =>
  Boolean(document.querySelector("#curEditTextarea, .reasoning_edit_textarea"));

/** Whether anything may be done now. @param {boolean} leaves */
export function may(leaves) {
  if (isGenerating()) throw new Refused(t("A reply is being generated; wait until it is done."));
  if (leaves && isEditing()) throw new Refused(t("A message is being edited; finish that first."));
}

/**
 * The open chat as SillyTavern would write it, as the id of a git object; nothing where it does not let us know.
 * Saving is what takes longest, and mostly it was done: who knows what the file must be can ask whether it is so.
 */
export async function held() {
  const { chat, chatMetadata, getCurrentChatId, groupId } = SillyTavern.getContext();
  // Browsers only hash where the connection is safe, and groups are written otherwise in the older version.
  if (isGenerating() || groupId || !globalThis.crypto?.subtle || !getCurrentChatId())
    return undefined;
  const header = { chat_metadata: chatMetadata, user_name: "unused", character_name: "unused" };
  const bytes = new TextEncoder().encode(
    [header, ...chat].map((line) => JSON.stringify(line)).join("\n"),
  );
  const prefix = new TextEncoder().encode(`blob ${bytes.length}\0`);
  const all = new Uint8Array(prefix.length + bytes.length);
  all.set(prefix);
  all.set(bytes, prefix.length);
  if (chatMetadata?.world_info) await bookIsSaved(chatMetadata.world_info);
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-1", all)));
}

/** What the page has in memory goes to the disk. @param {boolean} [leaves] whether the page will then show something else */
export async function save(leaves = false) {
  may(leaves);
  const { chatMetadata, groupId, saveChat } = SillyTavern.getContext();
  await saveChat();
  if (chatMetadata?.world_info) await bookIsSaved(chatMetadata.world_info);
  // Else the list of chats that this page has would be written over the one that the program writes.
  if (groupId && leaves) await new Promise((done) => setTimeout(done, GROUP_SAVE));
}

/**
 * Reads the lists of lorebooks and of the groups' chats again, because the page writes the whole list with every save. The groups stay the objects that they are: a save
 * that is pending holds one of them.
 * @param {boolean} [replaced] whether the open chat was replaced: the older SillyTavern has its metadata in the group's file
 */
export async function readLists(replaced = false) {
  const { getRequestHeaders, groups, updateWorldInfoList } = SillyTavern.getContext();
  await updateWorldInfoList();
  if (!groups.length) return;
  const headers = getRequestHeaders();
  const answer = await fetch("/api/groups/all", { method: "POST", headers, body: "{}" });
  if (!answer.ok) return;
  const there = await answer.json();
  for (const group of groups) {
    const found = there.find((/** @type {any} */ one) => String(one.id) === String(group.id));
    if (!found) continue;
    group.chats = (found.chats ?? group.chats).map(String);
    if (found.past_metadata) group.past_metadata = found.past_metadata;
    if (replaced && found.chat_metadata) group.chat_metadata = found.chat_metadata;
  }
}

/** SillyTavern writes a lorebook a second after its last change: wait until the disk has what the page has. @param {string} name */
async function bookIsSaved(name) {
  const { worldInfoCache } = await import(WORLDS);
  for (let tries = 0; tries < 30; tries++) {
    const mine = worldInfoCache.get(name);
    if (!mine) return;
    const headers = SillyTavern.getContext().getRequestHeaders();
    const there = await fetch("/api/worldinfo/get", {
      method: "POST",
      headers,
      body: JSON.stringify({ name }),
    });
    if (there.ok && JSON.stringify(await there.json()) === JSON.stringify(mine)) return;
    await new Promise((done) => setTimeout(done, 150));
  }
}

/** @param {string} chat @param {number} [operation] what this page itself made it by */
export async function open(chat, operation = 0) {
  known = Math.max(known ?? 0, operation);
  const { groupId, openCharacterChat, openGroupChat } = SillyTavern.getContext();
  // The new chat is listed in its group.
  await readLists();
  await (groupId ? openGroupChat(groupId, chat) : openCharacterChat(chat));
}

/**
 * Forget what was in memory, and read the files.
 * @param {{ operation?: number, gone?: string[] }} after what wrote them, and which went
 */
export async function reread({ operation = 0, gone = [] }) {
  known = Math.max(known ?? 0, operation);
  const { worldInfoCache } = await import(WORLDS);
  worldInfoCache.clear();
  const { chatMetadata, reloadCurrentChat, reloadWorldInfoEditor } = SillyTavern.getContext();
  await readLists(true);
  const name = openTimeline();
  // Of a chat that is gone SillyTavern would make an empty one.
  if (gone.includes(`${name}.jsonl`))
    await (chatMetadata.main_chat
      ? open(chatMetadata.main_chat)
      : document.getElementById("option_close_chat")?.click());
  else if (name) await reloadCurrentChat();
  if (chatMetadata?.world_info) reloadWorldInfoEditor?.(chatMetadata.world_info, false);
}

/**
 * Somebody wrote files: another window, a phone, the command line. What this page has of them in memory is not written back.
 * @param {{ operation: number, paths: string[] | null, gone?: string[] }[]} written
 */
export async function hear(written) {
  const newest = Math.max(0, ...written.map((one) => one.operation));
  const news = written.filter((one) => known !== null && one.operation > known);
  known = Math.max(known ?? 0, newest);
  if (!news.length) return;
  // Of too many none is named.
  const isMeant = (/** @type {string} */ path) =>
    news.some((one) => !one.paths || one.paths.includes(path));
  const { worldInfoCache } = await import(WORLDS);
  for (const name of [...worldInfoCache.keys()]) {
    if (!isMeant(`worlds/${name}.json`)) continue;
    worldInfoCache.delete(name);
    SillyTavern.getContext().reloadWorldInfoEditor?.(name, false);
  }
  const isOfGroup = (/** @type {string} */ path) => path.startsWith("groups/");
  if (news.some((one) => !one.paths || one.paths.some(isOfGroup))) await readLists();
  const name = openTimeline();
  if (!name || !isMeant(`${name}.jsonl`)) return;
  const gone = news.flatMap((one) => one.gone ?? []);
  const again = () => reread({ operation: newest, gone });
  if (isGenerating() || isEditing()) {
    toastr.warning(
      t("Click here to read it again. SillyTavern asks before it saves over it."),
      t("This chat was replaced elsewhere."),
      { timeOut: 0, extendedTimeOut: 0, onclick: again },
    );
    return;
  }
  await again();
  toastr.info(t("It was read again."), t("This chat was replaced elsewhere."));
}
