// stvc inside SillyTavern: a badge, entries in its menus, and commands. It sends nothing anywhere but to SillyTavern's own file API, and touches no prompt.

import { addCommands, learn } from "./commands.js";
import * as deeds from "./deeds.js";
import { Away, PROTOCOL, ask, send, status } from "./mailbox.js";
import { view } from "./viewer.js";
import { ago, speak, t } from "./words.js";

const KEY = "stvc";
const { eventSource, eventTypes, extensionSettings, saveSettingsDebounced } = SillyTavern.getContext();
const settings = Object.assign({ badge: true, alarms: true }, extensionSettings[KEY]);
extensionSettings[KEY] = settings;

/** @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children */
function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Say what went wrong, in words. @param {unknown} error */
function complain(error) {
  const { message, hint } = /** @type {{ message: string, hint?: string }} */ (error);
  if (error instanceof Away) toastr.warning(t("Run `stvc watch` beside SillyTavern's data (`stvc watch --install` starts it at every login)."), t("watch is not running"));
  else toastr.error(hint ?? "", message, { escapeHtml: true, timeOut: 15_000 });
}

/** Do it; whatever goes wrong is told, and a script gets nothing. @param {() => Promise<string>} deed */
async function careful(deed) {
  try {
    return await deed();
  } catch (error) {
    complain(error);
    return "";
  } finally {
    void refresh();
  }
}

// --- what people click

/** @param {string} words @param {string} value */
async function askName(words, value) {
  const { Popup } = SillyTavern.getContext();
  return Popup.show.input(words, t("Name"), value);
}

/** @param {import("./mailbox.js").Line[]} plan */
async function agree(plan) {
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const list = node("ul", { class: "stvc-plan" }, ...plan.map((line) => node("li", {}, node("b", {}, t(line.replaces ? "replace" : line.action)), ` ${line.path}`)));
  return (await new Popup(node("div", {}, node("h3", {}, t("This would be done")), list), POPUP_TYPE.CONFIRM).show()) === 1;
}

const snapshotNow = () => careful(async () => {
  const { id, unchanged } = await deeds.snapshot();
  toastr.success(t(unchanged ? "Nothing changed since the last snapshot." : "Snapshot taken."), id.slice(0, 10));
  return id;
});

/** @param {number} message */
const forkHere = (message) => careful(async () => {
  const chat = SillyTavern.getContext().getCurrentChatId();
  const name = await askName(t("Fork here with its own lorebook"), `${chat} - ${message}`);
  if (!name) return "";
  const { then } = await deeds.fork(message, String(name));
  toastr.success(t(then ? "The lorebook is the one of that message." : "What the lorebook was then is not known: it is the one of now."), t("Forked: {name}", { name: String(name) }), { escapeHtml: true });
  return String(name);
});

/** @param {number} message */
const mark = (message) => careful(async () => {
  const name = await askName(t("Mark this moment"), "");
  if (!name) return "";
  await deeds.tag(String(name), message);
  toastr.success(t("Named: {name}", { name: String(name) }), "", { escapeHtml: true });
  return String(name);
});

const undoLast = () => careful(async () => {
  const number = await deeds.undo();
  toastr.success(t("Undone."));
  return String(number);
});

/** @param {string} snapshot */
const bringBack = (snapshot) => careful(async () => {
  const plan = await deeds.planned(snapshot);
  if (!(await agree(plan))) return "";
  await deeds.restore(snapshot, plan);
  toastr.success(t("Restored."));
  return snapshot;
});

const here = (/** @type {string} */ place) => careful(async () => (await view(`${place}${encodeURIComponent(deeds.timeline())}`), ""));

function wandMenu() {
  const entry = (/** @type {string} */ icon, /** @type {string} */ words, /** @type {() => unknown} */ act) => {
    const made = node("div", { class: "list-group-item flex-container flexGap5 interactable stvc-entry", tabindex: "0", role: "button" },
      node("div", { class: `fa-solid ${icon} extensionsMenuExtensionButton` }), node("span", {}, t(words)));
    made.addEventListener("click", act);
    return made;
  };
  document.getElementById("extensionsMenu")?.append(node("div", { class: "extension_container", id: "stvc_wand" },
    entry("fa-camera", "Snapshot now", snapshotNow),
    entry("fa-code-branch", "Timelines", () => here("#/tree/")),
    entry("fa-magnifying-glass", "Search all history", () => careful(async () => (await view("#/search"), ""))),
    entry("fa-rotate-left", "Undo the last change", undoLast)));
}

/** On every message, those of the template and those that are there. */
function messageMenu() {
  const deedsOf = /** @type {const} */ ([
    ["stvc_fork", "fa-code-fork", "Fork here with its own lorebook"],
    ["stvc_history", "fa-clock-rotate-left", "History of this message"],
    ["stvc_mark", "fa-flag", "Mark this moment"],
  ]);
  const add = (/** @type {Element} */ place) => {
    if (place.querySelector(".stvc_fork")) return;
    for (const [name, icon, words] of deedsOf) place.append(node("div", { class: `mes_button ${name} fa-solid ${icon}`, title: t(words), "data-i18n": `[title]${words}` }));
  };
  document.querySelectorAll("#message_template .extraMesButtons, #chat .extraMesButtons").forEach(add);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const message = Number(target.closest(".mes")?.getAttribute("mesid") ?? NaN);
    if (Number.isNaN(message)) return;
    if (target.closest(".stvc_fork")) void forkHere(message);
    else if (target.closest(".stvc_mark")) void mark(message);
    else if (target.closest(".stvc_history")) void careful(async () => (await view(`#/read/${encodeURIComponent(deeds.timeline())}?m=${message}`), ""));
  });
}

/** In "Manage chat files": what was deleted, and the way back. */
function deletedChats() {
  const popup = document.getElementById("select_chat_popup");
  document.getElementById("option_select_chat")?.addEventListener("click", () => void careful(async () => {
    popup?.querySelector(".stvc-deleted")?.remove();
    const folder = deeds.timeline().split("/").slice(0, -1).join("/");
    const { lines } = await ask("library");
    const gone = lines.filter((line) => line.type === "timeline" && line.state === "deleted" && line.timeline.startsWith(`${folder}/`));
    if (!gone.length || !popup) return "";
    const row = (/** @type {import("./mailbox.js").Line} */ line) => {
      const button = node("button", { class: "menu_button", type: "button" }, t("Bring back"));
      button.addEventListener("click", () => careful(async () => {
        await ask("restore", { snapshot: line.head, expect: [] });
        button.closest("li")?.remove();
        toastr.success(t("Restored."));
        return line.timeline;
      }));
      return node("li", {}, line.timeline.split("/").pop() ?? "", " ", button);
    };
    popup.prepend(node("details", { class: "stvc-deleted" }, node("summary", {}, t("Deleted chats ({n})", { n: gone.length })), node("ul", {}, ...gone.map(row))));
    return "";
  }));
}

// --- the badge

const badge = node("div", { id: "stvc_badge", role: "status", title: "stvc" });
/** @type {Set<string>} */
let heard = new Set();
let isFirst = true;

/** Tell how it stands; who is silent for long is asked whether he is there. */
async function refresh() {
  badge.hidden = !settings.badge;
  if (document.hidden) return;
  let told = await status();
  if (!told?.alive || Date.now() / 1000 - told.alive > 45) {
    told = await send("hello", {}, 4000).then(() => status(), () => null);
  }
  badge.classList.toggle("away", !told?.alive);
  if (!told?.alive) {
    badge.textContent = t("watch is not running");
    badge.title = t("Run `stvc watch` beside SillyTavern's data (`stvc watch --install` starts it at every login).");
    return;
  }
  if (told.protocol !== PROTOCOL) {
    badge.classList.add("away");
    badge.textContent = t("another version of stvc");
    badge.title = t("`stvc extension update`, then reload this page.");
    return;
  }
  let name = "";
  try {
    name = deeds.timeline();
  } catch {
    // No chat is open.
  }
  const own = told.timelines.find((/** @type {any} */ one) => one.timeline === name);
  badge.textContent = own ? t("snapshot {ago}", { ago: ago(own.taken) }) : name ? t("no snapshot yet") : "";
  badge.title = `stvc ${told.program}`;
  for (const alarm of told.alarms) {
    const key = `${alarm.code} ${alarm.subject} ${alarm.noticed}`;
    if (heard.has(key)) continue;
    heard.add(key);
    // What happened before the page was opened is in the Library.
    if (settings.alarms && !isFirst) {
      toastr.warning(alarm.subject, alarm.message, { escapeHtml: true, timeOut: 30_000, onclick: () => (alarm.subject === name ? bringBack(`${name}~1`) : view(`#/read/${encodeURIComponent(alarm.subject)}`)) });
    }
  }
  isFirst = false;
}

function settingsPanel() {
  const box = (/** @type {"badge" | "alarms"} */ key, /** @type {string} */ words) => {
    const input = /** @type {HTMLInputElement} */ (node("input", { type: "checkbox" }));
    input.checked = settings[key];
    input.addEventListener("change", () => {
      settings[key] = input.checked;
      saveSettingsDebounced();
      void refresh();
    });
    return node("label", { class: "checkbox_label" }, input, node("span", {}, t(words)));
  };
  const drawer = node("div", { class: "inline-drawer", id: "stvc_settings" },
    node("div", { class: "inline-drawer-toggle inline-drawer-header" }, node("b", {}, "stvc"), node("div", { class: "inline-drawer-icon fa-solid fa-circle-chevron-down down" })),
    node("div", { class: "inline-drawer-content" }, box("badge", "Show the badge"), box("alarms", "Tell when a chat shrank or was overwritten")));
  document.getElementById("extensions_settings2")?.append(drawer);
}

function begin() {
  speak();
  wandMenu();
  messageMenu();
  deletedChats();
  settingsPanel();
  void addCommands(careful);
  // A row of its own: over the chat it would lie on the messages' buttons.
  document.getElementById("form_sheld")?.before(badge);
  badge.addEventListener("click", () => here("#/tree/"));
  eventSource.on(eventTypes.CHAT_CHANGED, () => void refresh());
  document.addEventListener("visibilitychange", () => void refresh());
  setInterval(() => void refresh(), 15_000);
  void refresh().then(learn, () => {}).catch(() => {});
}

begin();
