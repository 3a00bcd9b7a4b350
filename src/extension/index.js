// stvc inside SillyTavern: menus, buttons, a badge and slash commands.
//
// The extension sends requests only to SillyTavern's own server, and does not change prompts.

import { el } from "../page/dom.js";
import { t, translateError, translateFinding } from "../page/words.js";
import * as actions from "./actions.js";
import { badge, followStatus, refresh, runAction } from "./badge.js";
import { addCommands, loadTags } from "./commands.js";
import { Refused, STATUS_FILE, ask, removeFile } from "./mailbox.js";
import { followChats, forkFacts, runWhenReady } from "./offers.js";
import { SETTINGS_FILE, loadSettings } from "./settings.js";
import { addSettingsPanel } from "./settings_panel.js";
import { openTimeline, timeline } from "./sillytavern.js";
import { openViewer } from "./viewer.js";

/** @typedef {import("./mailbox.js").Line} Line */

/**
 * Asks for a name. Returns the name, or a falsy value if the user cancelled.
 * @param {import("../page/words.js").Key} title
 * @param {string} value
 * @param {Line[]} [findings] reasons why the message is not ready
 */
async function askName(title, value, findings = []) {
  const warnings = findings.map(translateFinding);
  const isBusy = findings.some(actions.isBusy);
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const list = el("ul", { class: "stvc-warnings" }, ...warnings.map((one) => el("li", {}, one)));
  const content = el(
    "div",
    {},
    el("h3", {}, t(title)),
    ...(warnings.length ? [el("p", {}, t("notReady")), list] : []),
    ...(isBusy ? [el("p", {}, t("recapIsWorking"))] : []),
    el("p", {}, t("name")),
  );
  const buttons = isBusy ? { okButton: t("createWhenReady") } : {};
  return new Popup(content, POPUP_TYPE.INPUT, value, buttons).show();
}

const FORK = "forkHere";
/** The popup's result for the button "onlyChat". */
const CHAT_ONLY = 2;

/**
 * Shows a plan and carries it out if the user agrees. If the plan replaces a lorebook, the user can
 * choose to restore only the chat. Returns whether anything was restored.
 * @param {import("./actions.js").Plan} plan
 */
async function confirmRestore(plan) {
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const list = el(
    "ul",
    { class: "stvc-plan" },
    ...plan.files.map((line) =>
      el("li", {}, el("b", {}, t(line.replaces ? "replace" : line.action)), ` ${line.path}`),
    ),
  );
  const canKeepLorebook =
    plan.files.some(actions.replacesLorebook) &&
    plan.files.some((line) => line.path.endsWith(".jsonl") && line.action === "write");
  const now = SillyTavern.getContext().chat.length;
  const isOfOpenChat = plan.files.some(({ path }) => path === `${openTimeline()}.jsonl`);
  const sentence =
    isOfOpenChat && plan.messages !== undefined && plan.messages !== now
      ? [el("p", {}, t("messagesInstead", { n: plan.messages, now }))]
      : [];
  const note = canKeepLorebook ? [el("p", {}, t("lorebookDiffers"))] : [];
  const buttons = canKeepLorebook
    ? {
        okButton: t("chatAndLorebook"),
        cancelButton: t("cancel"),
        customButtons: [{ text: t("onlyChat"), result: CHAT_ONLY }],
      }
    : {};
  const chosen = await new Popup(
    el("div", {}, el("h3", {}, t("plannedChanges")), ...sentence, list, ...note),
    POPUP_TYPE.CONFIRM,
    "",
    buttons,
  ).show();
  if (chosen !== 1 && chosen !== CHAT_ONLY) return false;
  await restore(plan, chosen === CHAT_ONLY ? "chat" : undefined);
  return true;
}

/**
 * Carries out a plan, and shows what was restored.
 * @param {import("./actions.js").Plan} plan
 * @param {"chat"} [only]
 */
async function restore(plan, only) {
  const facts = forkFacts(await actions.restore(plan, only));
  toastr.success([t("restored"), ...facts].join(" "), "", { escapeHtml: true });
}

const snapshotNow = () =>
  runAction(async () => {
    const { id, unchanged } = await actions.createSnapshot();
    toastr.success(t(unchanged ? "nothingNew" : "snapshotCreated"), id.slice(0, 10));
    return id;
  });

/** @param {number} message */
const forkHere = (message) =>
  runAction(async () => {
    const findings = await actions.checkReadiness(message);
    const chat = SillyTavern.getContext().getCurrentChatId();
    const wanted = await askName(FORK, `${chat} - ${message}`, findings);
    if (!wanted) return "";
    const forked = await runWhenReady(() => actions.fork(message, String(wanted)));
    if (!forked) return "";
    const { name, hasOldLorebook, restored } = forked;
    const lorebook = t(hasOldLorebook ? "lorebookThen" : "lorebookNow");
    toastr.success([lorebook, ...forkFacts(restored)].join(" "), t("forked", { name }), {
      escapeHtml: true,
    });
    return name;
  });

/** @param {number} message */
const tagMoment = (message) =>
  runAction(async () => {
    const name = await askName("tagHere", "");
    if (!name) return "";
    await actions.tag(String(name), message);
    toastr.success(t("taggedAs", { name: String(name) }), "", { escapeHtml: true });
    return String(name);
  });

const undoLast = () =>
  runAction(async () => {
    const number = await actions.undo().catch((error) => {
      const [offer] = error instanceof Refused ? error.offers : [];
      if (!offer) throw error;
      const onclick = () =>
        runAction(async () => {
          const name = await actions.restoreOffer(offer);
          toastr.success(t("restoredAs", { name }), "", { escapeHtml: true });
          return name;
        });
      toastr.warning(t("clickToRestoreBeside"), translateError(error), {
        escapeHtml: true,
        timeOut: 30_000,
        onclick,
      });
      return null;
    });
    if (number === 0) toastr.info(t("nothingToUndo"));
    if (!number) return "";
    toastr.success(t("undone"));
    return String(number);
  });

/**
 * Handles a click on an alarm. If the alarm is about the open chat, restores the snapshot that the
 * alarm names. Otherwise shows that snapshot in the viewer.
 * @param {import("./badge.js").Alarm} alarm
 */
const handleAlarm = ({ subject, snapshot }) =>
  runAction(async () => {
    if (!snapshot || subject !== openTimeline())
      return (await openViewer(`#/read/${encodeURIComponent(snapshot ?? subject)}`), "");
    const plan = await actions.planRestore(snapshot);
    actions.requireOpenChat(plan);
    return (await confirmRestore(plan)) ? snapshot : "";
  });

const openMap = () =>
  runAction(async () => {
    const name = openTimeline();
    await openViewer(name ? `#/tree/${encodeURIComponent(name)}` : "#/");
    return "";
  });

function addWandMenu() {
  const item = (
    /** @type {string} */ icon,
    /** @type {import("../page/words.js").Key} */ label,
    /** @type {() => unknown} */ act,
  ) => {
    const element = el(
      "div",
      {
        class: "list-group-item flex-container flexGap5 interactable stvc-menu-item",
        tabindex: "0",
        role: "button",
      },
      el("div", { class: `fa-solid ${icon} extensionsMenuExtensionButton` }),
      el("span", {}, t(label)),
    );
    element.addEventListener("click", act);
    return element;
  };
  document.getElementById("extensionsMenu")?.append(
    el(
      "div",
      { class: "extension_container", id: "stvc_wand" },
      item("fa-camera", "snapshotNow", snapshotNow),
      item("fa-code-branch", "timelines", openMap),
      item("fa-magnifying-glass", "searchAll", () =>
        runAction(async () => (await openViewer("#/search"), "")),
      ),
      item("fa-rotate-left", "undoLast", undoLast),
    ),
  );
}

/** Adds buttons to SillyTavern's message template and to the messages that are already shown. */
function addMessageButtons() {
  const buttons = /** @type {const} */ ([
    ["stvc_fork", "fa-code-fork", FORK],
    ["stvc_history", "fa-clock-rotate-left", "messageHistory"],
    ["stvc_tag", "fa-tag", "tagHere"],
  ]);
  const add = (/** @type {Element} */ menu) => {
    if (menu.querySelector(".stvc_fork")) return;
    for (const [name, icon, label] of buttons)
      menu.append(el("div", { class: `mes_button ${name} fa-solid ${icon}`, title: t(label) }));
  };
  document
    .querySelectorAll("#message_template .extraMesButtons, #chat .extraMesButtons")
    .forEach(add);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const element = target.closest(".mes");
    const message = Number(element?.getAttribute("mesid") ?? NaN);
    if (Number.isNaN(message)) return;
    if (target.closest(".extraMesButtonsHint"))
      void showReadiness(element?.querySelector(".stvc_fork"), message);
    else if (target.closest(".stvc_fork")) void forkHere(message);
    else if (target.closest(".stvc_tag")) void tagMoment(message);
    else if (target.closest(".stvc_history"))
      void runAction(
        async () => (await openViewer(`#/read/${encodeURIComponent(timeline())}?m=${message}`), ""),
      );
  });
}

/**
 * Highlights the fork button if the message is not ready for a fork.
 * @param {Element | null | undefined} button
 * @param {number} message
 */
async function showReadiness(button, message) {
  const warnings = (await actions.checkReadiness(message).catch(() => [])).map(translateFinding);
  button?.classList.toggle("stvc-not-ready", warnings.length > 0);
  button?.setAttribute("title", [t(FORK), ...warnings].join("\n"));
}

/** Number of requests for the deleted chats. Only the answer to the last one is shown. */
let deletedChatsAsked = 0;

/** Lists deleted chats, with a button to restore each, in "Manage chat files". */
async function listDeletedChats(/** @type {Element} */ popup) {
  const folder = openTimeline().split("/").slice(0, -1).join("/");
  if (!folder) return;
  const asked = ++deletedChatsAsked;
  const { lines } = await ask("library");
  if (asked !== deletedChatsAsked) return;
  const deleted = lines.filter(
    (line) =>
      line.type === "timeline" &&
      line.state === "deleted" &&
      line.timeline.startsWith(`${folder}/`),
  );
  // An unchanged list stays, because the user may be using it.
  const shown = /** @type {HTMLElement | null} */ (popup.querySelector(".stvc-deleted"));
  const key = JSON.stringify(deleted.map((line) => line.head));
  if (shown?.dataset.key === key) return;
  shown?.remove();
  if (!deleted.length) return;
  const row = (/** @type {Line} */ line) => {
    const button = el("button", { class: "menu_button", type: "button" }, t("restore"));
    button.addEventListener("click", () =>
      runAction(async () => {
        const plan = await actions.planRestore(line.moment ?? line.head);
        if (!plan.files.some((file) => file.replaces)) await restore(plan);
        else if (!(await confirmRestore(plan))) return "";
        await listDeletedChats(popup);
        return line.timeline;
      }),
    );
    return el("li", {}, line.timeline.split("/").pop() ?? "", " ", button);
  };
  popup.prepend(
    el(
      "details",
      { class: "stvc-deleted", "data-key": key, open: shown?.hasAttribute("open") },
      el("summary", {}, t("deletedChats", { n: deleted.length })),
      el("ul", {}, ...deleted.map(row)),
    ),
  );
}

/** Updates the list of deleted chats whenever SillyTavern fills its list of chats. */
function addDeletedChats() {
  const popup = document.getElementById("select_chat_popup");
  const chats = document.getElementById("select_chat_div");
  if (!popup || !chats) return;
  let timer = 0;
  new MutationObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => void listDeletedChats(popup).catch(() => {}), 200);
  }).observe(chats, { childList: true });
}

/** Removes the extension's files. SillyTavern calls this when it removes the extension's data. */
export async function removeData() {
  await removeFile(SETTINGS_FILE);
  await removeFile(STATUS_FILE);
}

await loadSettings();
addWandMenu();
addMessageButtons();
addDeletedChats();
addSettingsPanel(() => void refresh());
void addCommands(runAction);
followStatus(handleAlarm);
followChats();
badge.addEventListener("click", openMap);
void refresh()
  .then(loadTags, () => {})
  .catch(() => {});
