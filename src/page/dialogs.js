// Dialogs: one shows a plan that the user confirms, one asks for the name of a new chat or tag.

import { Refused, ask, isInSillyTavern, linesOf } from "./api.js";
import { address, el, focusName, focusNamed, setChildren } from "./dom.js";
import { renderPreview, replacesBoth } from "./preview.js";
import { repairText, t, translateError, translateFinding, withoutCommands } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/**
 * Shows the plan of a change, and carries it out if the user agrees.
 * @param {"restore" | "undo"} verb
 * @param {Record<string, unknown>} args
 */
export async function confirmPlan(verb, args) {
  const chatIsClosed = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox" }));
  const body = el("div", {}, t("loading"));
  const apply = /** @type {HTMLButtonElement} */ (
    el(
      "button",
      { type: "button", class: "primary", disabled: true, onclick: () => carryOut() },
      t("apply"),
    )
  );
  const cancel = el("button", { type: "button", onclick: () => dialog.close() }, t("cancel"));
  const replacesFiles = verb === "undo" || args.name === undefined;
  const heading = el("h2", { tabindex: -1 }, t("plannedChanges"));
  const question =
    replacesFiles && !isInSillyTavern
      ? el("label", { class: "closed" }, chatIsClosed, t("chatIsClosed"))
      : null;
  const dialog = openDialog(
    t("plannedChanges"),
    heading,
    body,
    question,
    el("div", { class: "buttons" }, apply, cancel),
  );

  let planned = args;
  /**
   * The snapshot in the plan, and the hashes of the files that the plan replaces. The program
   * refuses to replace files that have changed since the plan.
   * @type {Record<string, unknown>}
   */
  let pinned = {};
  /** Whether the restore leaves the lorebook as it is. */
  let isChatOnly = false;
  const makePlan = async () => {
    const only = isChatOnly ? { only: "chat" } : {};
    const answer = await ask(verb, { ...planned, ...only, dry_run: true });
    const expect = linesOf(answer, "file")
      .filter((line) => line.blake3_before)
      .map((line) => line.blake3_before);
    const moment = linesOf(answer, "restored")[0]?.moment;
    if (verb === "restore") pinned = { expect, ...only, ...(moment ? { snapshot: moment } : {}) };
    const choice =
      isChatOnly || (verb === "restore" && replacesBoth(linesOf(answer, "file")))
        ? chatOnlyChoice(isChatOnly, (now) => {
            isChatOnly = now;
            apply.disabled = true;
            makePlan().catch(showError);
          })
        : null;
    const note =
      planned === args
        ? null
        : el("p", { class: "warning" }, t("lorebookUnknown"), " ", t("lorebookOfSnapshot"));
    const hadFocus = body.contains(document.activeElement);
    setChildren(body, note, renderPreview(answer), choice, renderPlan(answer));
    if (hadFocus) /** @type {HTMLElement | null} */ (body.querySelector(".chat-only"))?.focus();
    apply.disabled = false;
  };
  try {
    await makePlan().catch((error) => {
      if (
        !(error instanceof Refused) ||
        args.at === undefined ||
        !error.hasCode("lorebook-then-unknown")
      )
        throw error;
      // The lorebook at that message is unknown, so the fork gets the lorebook of the snapshot.
      const { at, ...rest } = args;
      planned = { ...rest, cut: at };
      return makePlan();
    });
  } catch (error) {
    showError(error);
  }

  /** @param {unknown} error */
  function showError(error) {
    setChildren(body, renderError(error));
  }

  async function carryOut() {
    apply.disabled = true;
    try {
      const answer = await ask(verb, {
        ...planned,
        ...pinned,
        ...(chatIsClosed.checked ? { chat_closed: true } : {}),
      });
      const openHistory = () => (dialog.close(), (location.hash = address("operations")));
      const undo = el("button", { type: "button", onclick: openHistory }, t("undo"));
      setChildren(body, renderChanges(answer));
      // Nothing is left to decide.
      setChildren(heading, t("done"));
      question?.remove();
      setChildren(cancel, t("close"));
      if (verb === "undo") apply.remove();
      else apply.replaceWith(undo);
      heading.focus();
    } catch (error) {
      showError(error);
    }
  }
}

/** The element that gets the focus when the dialog is closed. @type {HTMLElement | null} */
let opener = null;
/** Name of `opener`, which may be drawn again meanwhile. */
let openerName = "";

/** Returns the focus to the place. A dialog that another dialog opened returns it there, too. */
function returnFocus() {
  if (document.querySelector("dialog")) return;
  if (opener?.isConnected) opener.focus();
  else focusNamed(document.body, openerName);
}

/**
 * Shows a repair, and carries it out if the user agrees.
 * @param {Line} repair as the program planned it
 */
export function confirmRepair(repair) {
  const chatIsClosed = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox" }));
  const files = repair.files.map((/** @type {string} */ path) => el("li", {}, path));
  const body = el("div", {}, el("p", {}, repairText(repair)), el("ul", {}, files));
  const carryOut = async () => {
    apply.disabled = true;
    try {
      const closed = chatIsClosed.checked ? { chat_closed: true } : {};
      const answer = await ask("repair", { what: repair.what, ...closed });
      const isDone = linesOf(answer, "repair").every((line) => line.done);
      setChildren(body, isDone ? el("p", {}, t("done")) : null, renderChanges(answer));
      apply.remove();
      cancel.textContent = t("close");
    } catch (error) {
      setChildren(body, renderError(error));
    }
  };
  const apply = /** @type {HTMLButtonElement} */ (
    el("button", { type: "button", class: "primary", onclick: carryOut }, t("apply"))
  );
  const cancel = el("button", { type: "button", onclick: () => dialog.close() }, t("cancel"));
  const dialog = openDialog(
    t("plannedChanges"),
    el("h2", {}, t("plannedChanges")),
    body,
    isInSillyTavern ? null : el("label", { class: "closed" }, chatIsClosed, t("chatIsClosed")),
    el("div", { class: "buttons" }, apply, cancel),
  );
}

/**
 * Opens a modal dialog, which is removed when it is closed.
 * @param {string} label
 * @param {...import("./dom.js").Child} children
 */
function openDialog(label, ...children) {
  const { activeElement } = document;
  if (activeElement instanceof HTMLElement && !activeElement.closest("dialog"))
    [opener, openerName] = [activeElement, focusName(activeElement)];
  const onclose = () => (dialog.remove(), returnFocus());
  const dialog = /** @type {HTMLDialogElement} */ (
    el("dialog", { "aria-label": label, onclose }, ...children)
  );
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** @param {unknown} error */
function renderError(error) {
  const { hint } = /** @type {{ hint?: string }} */ (error);
  const message = translateError(/** @type {Error} */ (error));
  if (error instanceof Refused && error.offers.length) {
    return [el("p", { class: "error", role: "alert" }, message), ...error.offers.map(renderOffer)];
  }
  const advice = withoutCommands(hint);
  return el("p", { class: "error", role: "alert" }, message, advice && el("br"), advice);
}

/**
 * Renders a button that restores a version as a new chat. It is offered if an operation cannot be
 * undone, and the version is the one before that operation.
 * @param {{ moment: string, name: string }} offer
 */
function renderOffer({ moment, name }) {
  const offer = el("div", { class: "offer" });
  const restore = async () => {
    setChildren(offer, t("loading"));
    try {
      const answer = await ask("restore", { snapshot: moment, name });
      setChildren(offer, t("done"), renderChanges(answer));
    } catch (error) {
      setChildren(offer, renderError(error));
    }
  };
  const label = t("restorePrevious", { name });
  setChildren(offer, el("button", { type: "button", onclick: restore }, label));
  return offer;
}

/**
 * Renders a choice between the chat with its lorebook and the chat alone.
 * @param {boolean} checked
 * @param {(checked: boolean) => void} onChoice
 */
function chatOnlyChoice(checked, onChoice) {
  const input = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "checkbox",
      checked,
      class: "chat-only",
      onchange: () => onChoice(input.checked),
    })
  );
  return el("label", {}, input, t("chatOnly"));
}

/** Lists the findings of a plan, and its files below a fold. @param {import("./api.js").Answer} answer */
function renderPlan(answer) {
  const [files, findings] = renderChanges(answer);
  const n = linesOf(answer, "file").filter((line) => line.action !== "keep").length;
  if (!n) return [findings, el("p", {}, t("nothingChanges")), files];
  const isPreviewed = linesOf(answer, "file").some((line) => line.preview);
  return [
    findings,
    el("details", { open: !isPreviewed }, el("summary", {}, t("files", { n })), files),
  ];
}

/** Lists the files and findings of a plan or a change. @param {import("./api.js").Answer} answer */
function renderChanges(answer) {
  const action = (/** @type {Line} */ line) =>
    line.action === "write"
      ? t(line.replaces ? "replace" : "write")
      : t(line.action === "keep" ? "keep" : "delete");
  const file = (/** @type {Line} */ line) =>
    el("li", {}, el("b", {}, action(line)), ` ${line.path}`);
  const finding = (/** @type {Line} */ line) =>
    el("li", { class: line.level }, translateFinding(line));
  return [
    el("ul", {}, linesOf(answer, "file").map(file)),
    el("ul", {}, linesOf(answer, "finding").map(finding)),
  ];
}

/**
 * Asks for a name.
 * @param {string} title
 * @param {string} value
 * @param {(name: string) => void} onName
 */
export function askName(title, value, onName) {
  const field = /** @type {HTMLInputElement} */ (
    el("input", { value, "aria-label": t("name"), required: true })
  );
  const form = el(
    "form",
    { method: "dialog", onsubmit: () => onName(field.value) },
    el("h2", {}, title),
    field,
    el(
      "div",
      { class: "buttons" },
      el("button", { class: "primary" }, t("apply")),
      el("button", { type: "button", onclick: () => dialog.close() }, t("cancel")),
    ),
  );
  const dialog = openDialog(title, form);
  field.select();
}
