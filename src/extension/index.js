// stvc inside SillyTavern: menus, buttons, a badge and slash commands.
//
// The extension sends requests only to SillyTavern's own server, and does not change prompts.

import * as actions from "./actions.js";
import { badge, followStatus, refresh, runAction } from "./badge.js";
import { addCommands, loadTags } from "./commands.js";
import { Refused, ask } from "./mailbox.js";
import { addSettingsPanel } from "./settings.js";
import { openTimeline, timeline } from "./sillytavern.js";
import { openViewer } from "./viewer.js";
import { el, registerTranslations, t, translateFinding } from "./words.js";

/** @typedef {import("./mailbox.js").Line} Line */

/**
 * Asks for a name. Returns the name, or a falsy value if the user cancelled.
 * @param {string} title
 * @param {string} value
 * @param {string[]} [warnings] shown above the field
 */
async function askName(title, value, warnings = []) {
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const list = el("ul", { class: "stvc-warnings" }, ...warnings.map((one) => el("li", {}, one)));
  const content = el(
    "div",
    {},
    el("h3", {}, t(title)),
    ...(warnings.length ? [el("p", {}, t("Not ready at this message:")), list] : []),
    el("p", {}, t("Name")),
  );
  return new Popup(content, POPUP_TYPE.INPUT, value).show();
}

const FORK = "Fork here with its own lorebook";
/** The popup's result for the button "Chat only". */
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
  const note = canKeepLorebook
    ? [el("p", {}, t("The lorebook on disk differs from the one in the snapshot."))]
    : [];
  const buttons = canKeepLorebook
    ? {
        okButton: t("Chat and lorebook"),
        cancelButton: t("Cancel"),
        customButtons: [{ text: t("Chat only"), result: CHAT_ONLY }],
      }
    : {};
  const chosen = await new Popup(
    el("div", {}, el("h3", {}, t("Planned changes")), list, ...note),
    POPUP_TYPE.CONFIRM,
    "",
    buttons,
  ).show();
  if (chosen !== 1 && chosen !== CHAT_ONLY) return false;
  await actions.restore(plan, chosen === CHAT_ONLY ? "chat" : undefined);
  return true;
}

/** Lists the sizes of a fork's lorebook and recaps. @param {Line | undefined} restored */
function forkFacts(restored) {
  /** @type {[string, any][]} */
  const facts = [
    ["Lorebook entries: {n}.", restored?.entries],
    ["Running recap: version {n}.", restored?.running_recap_version],
    ["Messages in the combined recap: {n}.", restored?.combined_recap_message_count],
  ];
  return facts.filter(([, n]) => Number.isInteger(n)).map(([text, n]) => t(text, { n }));
}

const snapshotNow = () =>
  runAction(async () => {
    const { id, unchanged } = await actions.createSnapshot();
    toastr.success(
      t(unchanged ? "Nothing changed since the last snapshot." : "Snapshot created."),
      id.slice(0, 10),
    );
    return id;
  });

/** @param {number} message */
const forkHere = (message) =>
  runAction(async () => {
    const warnings = (await actions.checkReadiness(message)).map(translateFinding);
    const chat = SillyTavern.getContext().getCurrentChatId();
    const wanted = await askName(FORK, `${chat} - ${message}`, warnings);
    if (!wanted) return "";
    const { name, hasOldLorebook, restored } = await actions.fork(message, String(wanted));
    const lorebook = t(
      hasOldLorebook
        ? "The lorebook is as it was at that message."
        : "The lorebook of that time is not known; the fork uses the current one.",
    );
    toastr.success([lorebook, ...forkFacts(restored)].join(" "), t("Forked: {name}", { name }), {
      escapeHtml: true,
    });
    return name;
  });

/** @param {number} message */
const tagMoment = (message) =>
  runAction(async () => {
    const name = await askName("Tag this moment", "");
    if (!name) return "";
    await actions.tag(String(name), message);
    toastr.success(t("Tagged: {name}", { name: String(name) }), "", { escapeHtml: true });
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
          toastr.success(t("Restored: {name}", { name }), "", { escapeHtml: true });
          return name;
        });
      toastr.warning(t("Click here to restore the earlier version as a new chat."), error.message, {
        escapeHtml: true,
        timeOut: 30_000,
        onclick,
      });
      return null;
    });
    if (number === 0) toastr.info(t("Nothing to undo."));
    if (!number) return "";
    toastr.success(t("Undone."));
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
    if (!(await confirmRestore(plan))) return "";
    toastr.success(t("Restored."));
    return snapshot;
  });

const openMap = () =>
  runAction(async () => (await openViewer(`#/tree/${encodeURIComponent(timeline())}`), ""));

function addWandMenu() {
  const item = (
    /** @type {string} */ icon,
    /** @type {string} */ label,
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
      item("fa-camera", "Snapshot now", snapshotNow),
      item("fa-code-branch", "Timelines", openMap),
      item("fa-magnifying-glass", "Search all history", () =>
        runAction(async () => (await openViewer("#/search"), "")),
      ),
      item("fa-rotate-left", "Undo the last change", undoLast),
    ),
  );
}

/** Adds buttons to SillyTavern's message template and to the messages that are already shown. */
function addMessageButtons() {
  const buttons = /** @type {const} */ ([
    ["stvc_fork", "fa-code-fork", FORK],
    ["stvc_history", "fa-clock-rotate-left", "History of this message"],
    ["stvc_tag", "fa-flag", "Tag this moment"],
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

/** Lists deleted chats, with a button to restore each, in "Manage chat files". */
function addDeletedChats() {
  const popup = document.getElementById("select_chat_popup");
  document.getElementById("option_select_chat")?.addEventListener(
    "click",
    () =>
      void runAction(async () => {
        popup?.querySelector(".stvc-deleted")?.remove();
        const folder = timeline().split("/").slice(0, -1).join("/");
        const { lines } = await ask("library");
        const deleted = lines.filter(
          (line) =>
            line.type === "timeline" &&
            line.state === "deleted" &&
            line.timeline.startsWith(`${folder}/`),
        );
        if (!deleted.length || !popup) return "";
        const row = (/** @type {Line} */ line) => {
          const button = el("button", { class: "menu_button", type: "button" }, t("Restore"));
          button.addEventListener("click", () =>
            runAction(async () => {
              const plan = await actions.planRestore(line.moment ?? line.head);
              if (!plan.files.some((file) => file.replaces)) await actions.restore(plan);
              else if (!(await confirmRestore(plan))) return "";
              button.closest("li")?.remove();
              toastr.success(t("Restored."));
              return line.timeline;
            }),
          );
          return el("li", {}, line.timeline.split("/").pop() ?? "", " ", button);
        };
        popup.prepend(
          el(
            "details",
            { class: "stvc-deleted" },
            el("summary", {}, t("Deleted chats ({n})", { n: deleted.length })),
            el("ul", {}, ...deleted.map(row)),
          ),
        );
        return "";
      }),
  );
}

registerTranslations();
addWandMenu();
addMessageButtons();
addDeletedChats();
addSettingsPanel(() => void refresh());
void addCommands(runAction);
followStatus(handleAlarm);
badge.addEventListener("click", openMap);
void refresh()
  .then(loadTags, () => {})
  .catch(() => {});
