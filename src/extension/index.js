// stvc inside SillyTavern: a badge, entries in its menus, and commands. It sends nothing anywhere but to SillyTavern's own file API, and touches no prompt.

import { badge, careful, refresh, watchTheWatch } from "./badge.js";
import { addCommands, learn } from "./commands.js";
import * as deeds from "./deeds.js";
import { Refused, ask } from "./mailbox.js";
import { openTimeline, timeline } from "./memory.js";
import { settingsPanel } from "./settings.js";
import { view } from "./viewer.js";
import { node, reason, speak, t } from "./words.js";

/** @typedef {import("./mailbox.js").Line} Line */

/** @param {string} words @param {string} value @param {string[]} [reasons] what to know before */
async function askName(words, value, reasons = []) {
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const list = node("ul", { class: "stvc-reasons" }, ...reasons.map((one) => node("li", {}, one)));
  const content = node(
    "div",
    {},
    node("h3", {}, t(words)),
    ...(reasons.length ? [node("p", {}, t("Not all is ready here:")), list] : []),
    node("p", {}, t("Name")),
  );
  return new Popup(content, POPUP_TYPE.INPUT, value).show();
}

const CHAT_ONLY = 2;

/**
 * Shows a plan and restores it if the user agrees: with its lorebook, or the chat only where the lorebook on disk is another one.
 * @param {import("./deeds.js").Plan} plan
 */
async function restoreAfterAsking(plan) {
  const { POPUP_TYPE, Popup } = SillyTavern.getContext();
  const list = node(
    "ul",
    { class: "stvc-plan" },
    ...plan.files.map((line) =>
      node("li", {}, node("b", {}, t(line.replaces ? "replace" : line.action)), ` ${line.path}`),
    ),
  );
  const isChoice =
    plan.files.some(deeds.replacesBook) &&
    plan.files.some((line) => line.path.endsWith(".jsonl") && line.action === "write");
  const words = isChoice
    ? [node("p", {}, t("The lorebook on disk differs from the one of that snapshot."))]
    : [];
  const choice = isChoice
    ? {
        okButton: t("Chat and lorebook"),
        cancelButton: t("Cancel"),
        customButtons: [{ text: t("Chat only"), result: CHAT_ONLY }],
      }
    : {};
  const chosen = await new Popup(
    node("div", {}, node("h3", {}, t("This would be done")), list, ...words),
    POPUP_TYPE.CONFIRM,
    "",
    choice,
  ).show();
  if (chosen !== 1 && chosen !== CHAT_ONLY) return false;
  await deeds.restore(plan, chosen === CHAT_ONLY ? "chat" : undefined);
  return true;
}

/** What was created, as far as it has it: entries of the lorebook and the recaps. @param {Line | undefined} restored */
function facts(restored) {
  /** @type {[string, any][]} */
  const all = [
    ["Lorebook entries: {n}.", restored?.entries],
    ["Running recap: v{n}.", restored?.running_recap_version],
    ["Messages in the combined recap: {n}.", restored?.combined_recap_message_count],
  ];
  return all.filter(([, n]) => Number.isInteger(n)).map(([words, n]) => t(words, { n }));
}

const snapshotNow = () =>
  careful(async () => {
    const { id, unchanged } = await deeds.snapshot();
    toastr.success(
      t(unchanged ? "Nothing changed since the last snapshot." : "Snapshot taken."),
      id.slice(0, 10),
    );
    return id;
  });

/** @param {number} message */
const forkHere = (message) =>
  careful(async () => {
    const reasons = (await deeds.unready(message)).map(reason);
    const chat = SillyTavern.getContext().getCurrentChatId();
    const name = await askName("Fork here with its own lorebook", `${chat} - ${message}`, reasons);
    if (!name) return "";
    const made = await deeds.fork(message, String(name));
    const book = t(
      made.then
        ? "The lorebook is the one of that message."
        : "What the lorebook was then is not known: it is the one of now.",
    );
    toastr.success(
      [book, ...facts(made.restored)].join(" "),
      t("Forked: {name}", { name: made.name }),
      { escapeHtml: true },
    );
    return made.name;
  });

/** @param {number} message */
const mark = (message) =>
  careful(async () => {
    const name = await askName("Mark this moment", "");
    if (!name) return "";
    await deeds.tag(String(name), message);
    toastr.success(t("Named: {name}", { name: String(name) }), "", { escapeHtml: true });
    return String(name);
  });

const undoLast = () =>
  careful(async () => {
    const number = await deeds.undo().catch((error) => {
      const [offer] = error instanceof Refused ? error.offers : [];
      if (!offer) throw error;
      const onclick = () =>
        careful(async () => {
          const name = await deeds.restoreBefore(offer);
          toastr.success(t("Restored: {name}", { name }), "", { escapeHtml: true });
          return name;
        });
      toastr.warning(
        t("Click here to restore the state before as a chat of its own."),
        error.message,
        { escapeHtml: true, timeOut: 30_000, onclick },
      );
      return null;
    });
    if (number === 0) toastr.info(t("There is nothing to undo."));
    if (!number) return "";
    toastr.success(t("Undone."));
    return String(number);
  });

/** Restores the open chat to the snapshot that an alarm names; of another chat that snapshot is shown. @param {import("./badge.js").Alarm} alarm */
const answerAlarm = ({ subject, snapshot }) =>
  careful(async () => {
    if (!snapshot || subject !== openTimeline())
      return (await view(`#/read/${encodeURIComponent(snapshot ?? subject)}`), "");
    const plan = await deeds.planned(snapshot);
    deeds.mustBeOpen(plan);
    if (!(await restoreAfterAsking(plan))) return "";
    toastr.success(t("Restored."));
    return snapshot;
  });

const here = (/** @type {string} */ place) =>
  careful(async () => (await view(`${place}${encodeURIComponent(timeline())}`), ""));

function wandMenu() {
  const entry = (
    /** @type {string} */ icon,
    /** @type {string} */ words,
    /** @type {() => unknown} */ act,
  ) => {
    const made = node(
      "div",
      {
        class: "list-group-item flex-container flexGap5 interactable stvc-entry",
        tabindex: "0",
        role: "button",
      },
      node("div", { class: `fa-solid ${icon} extensionsMenuExtensionButton` }),
      node("span", {}, t(words)),
    );
    made.addEventListener("click", act);
    return made;
  };
  document.getElementById("extensionsMenu")?.append(
    node(
      "div",
      { class: "extension_container", id: "stvc_wand" },
      entry("fa-camera", "Snapshot now", snapshotNow),
      entry("fa-code-branch", "Timelines", () => here("#/tree/")),
      entry("fa-magnifying-glass", "Search all history", () =>
        careful(async () => (await view("#/search"), "")),
      ),
      entry("fa-rotate-left", "Undo the last change", undoLast),
    ),
  );
}

const FORK = "Fork here with its own lorebook";

/** On every message, those of the template and those that are there. */
function messageMenu() {
  const deedsOf = /** @type {const} */ ([
    ["stvc_fork", "fa-code-fork", FORK],
    ["stvc_history", "fa-clock-rotate-left", "History of this message"],
    ["stvc_mark", "fa-flag", "Mark this moment"],
  ]);
  const add = (/** @type {Element} */ place) => {
    if (place.querySelector(".stvc_fork")) return;
    for (const [name, icon, words] of deedsOf)
      place.append(node("div", { class: `mes_button ${name} fa-solid ${icon}`, title: t(words) }));
  };
  document
    .querySelectorAll("#message_template .extraMesButtons, #chat .extraMesButtons")
    .forEach(add);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const place = target.closest(".mes");
    const message = Number(place?.getAttribute("mesid") ?? NaN);
    if (Number.isNaN(message)) return;
    if (target.closest(".extraMesButtonsHint"))
      void judge(place?.querySelector(".stvc_fork"), message);
    else if (target.closest(".stvc_fork")) void forkHere(message);
    else if (target.closest(".stvc_mark")) void mark(message);
    else if (target.closest(".stvc_history"))
      void careful(
        async () => (await view(`#/read/${encodeURIComponent(timeline())}?m=${message}`), ""),
      );
  });
}

/** Whether all is ready for a fork is seen before it is asked for. @param {Element | null | undefined} button @param {number} message */
async function judge(button, message) {
  const reasons = (await deeds.unready(message).catch(() => [])).map(reason);
  button?.classList.toggle("stvc-unready", reasons.length > 0);
  button?.setAttribute("title", [t(FORK), ...reasons].join("\n"));
}

/** In "Manage chat files": what was deleted, and the way back. */
function deletedChats() {
  const popup = document.getElementById("select_chat_popup");
  document.getElementById("option_select_chat")?.addEventListener(
    "click",
    () =>
      void careful(async () => {
        popup?.querySelector(".stvc-deleted")?.remove();
        const folder = timeline().split("/").slice(0, -1).join("/");
        const { lines } = await ask("library");
        const gone = lines.filter(
          (line) =>
            line.type === "timeline" &&
            line.state === "deleted" &&
            line.timeline.startsWith(`${folder}/`),
        );
        if (!gone.length || !popup) return "";
        const row = (/** @type {Line} */ line) => {
          const button = node("button", { class: "menu_button", type: "button" }, t("Restore"));
          button.addEventListener("click", () =>
            careful(async () => {
              const plan = await deeds.planned(line.moment ?? line.head);
              if (!plan.files.some((file) => file.replaces)) await deeds.restore(plan);
              else if (!(await restoreAfterAsking(plan))) return "";
              button.closest("li")?.remove();
              toastr.success(t("Restored."));
              return line.timeline;
            }),
          );
          return node("li", {}, line.timeline.split("/").pop() ?? "", " ", button);
        };
        popup.prepend(
          node(
            "details",
            { class: "stvc-deleted" },
            node("summary", {}, t("Deleted chats ({n})", { n: gone.length })),
            node("ul", {}, ...gone.map(row)),
          ),
        );
        return "";
      }),
  );
}

function begin() {
  speak();
  wandMenu();
  messageMenu();
  deletedChats();
  settingsPanel(() => void refresh());
  void addCommands(careful);
  watchTheWatch(answerAlarm);
  badge.addEventListener("click", () => here("#/tree/"));
  void refresh()
    .then(learn, () => {})
    .catch(() => {});
}

begin();
