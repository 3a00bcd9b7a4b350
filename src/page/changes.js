// Changing something: first what would be done, then the deed, then the way back.

import { Refused, ask, isInside, of } from "./ask.js";
import { address, el, show } from "./nodes.js";
import { t } from "./words.js";

/**
 * Show what a change would do, and do it if it is wanted.
 * @param {"restore" | "undo"} verb
 * @param {Record<string, unknown>} args
 */
export async function plan(verb, args) {
  const closed = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox" }));
  const body = el("div", {}, t("loading"));
  const yes = el(
    "button",
    { type: "button", class: "yes", disabled: true, onclick: () => act() },
    t("doIt"),
  );
  const no = el("button", { type: "button", onclick: () => dialog.close() }, t("cancel"));
  const needsClosed = !isInside && (verb === "undo" || args.name === undefined);
  const dialog = /** @type {HTMLDialogElement} */ (
    el(
      "dialog",
      { "aria-label": t("plan"), onclose: () => dialog.remove() },
      el("h2", {}, t("plan")),
      body,
      needsClosed ? el("label", {}, closed, t("closedFirst")) : null,
      el("div", { class: "buttons" }, yes, no),
    )
  );
  document.body.append(dialog);
  dialog.showModal();
  let wanted = args;
  /** The state that the plan named, and the files that it found in the way: nothing else is restored or replaced. @type {Record<string, unknown>} */
  let pinned = {};
  const look = async () => {
    const planned = await ask(verb, { ...wanted, dry_run: true });
    const expect = of(planned, "file")
      .filter((line) => line.there)
      .map((line) => line.there);
    const moment = of(planned, "restored")[0]?.moment;
    if (verb === "restore") pinned = { expect, ...(moment ? { snapshot: moment } : {}) };
    show(
      body,
      wanted === args
        ? null
        : el("p", { class: "warning" }, t("bookUnknown"), " ", t("bookOfSnapshot")),
      told(planned),
    );
    /** @type {HTMLButtonElement} */ (yes).disabled = false;
  };
  try {
    await look().catch((error) => {
      // What the lorebook was at that message is not known: then as the snapshot has it.
      if (
        !(error instanceof Refused) ||
        args.at === undefined ||
        !error.is("lorebook-then-unknown")
      )
        throw error;
      const { at, ...rest } = args;
      wanted = { ...rest, cut: at };
      return look();
    });
  } catch (error) {
    show(body, why(error));
  }
  async function act() {
    /** @type {HTMLButtonElement} */ (yes).disabled = true;
    try {
      const done = await ask(verb, {
        ...wanted,
        ...pinned,
        ...(closed.checked ? { chat_closed: true } : {}),
      });
      const back = el(
        "button",
        {
          type: "button",
          onclick: () => (dialog.close(), (location.hash = address("operations"))),
        },
        t("undo"),
      );
      show(body, el("p", {}, t("doneNow")), told(done), verb === "undo" ? null : back);
    } catch (error) {
      show(body, why(error));
    }
  }
}

/** @param {unknown} error */
function why(error) {
  const { message, hint } = /** @type {{ message: string, hint?: string }} */ (error);
  if (error instanceof Refused && error.offers.length) {
    return [el("p", { class: "bad", role: "alert" }, message), ...error.offers.map(offer)];
  }
  return el("p", { class: "bad", role: "alert" }, message, hint ? el("br") : null, hint ?? null);
}

/**
 * The state before an operation that cannot be undone: one click restores it beside what is there.
 * @param {{ moment: string, name: string }} state
 */
function offer({ moment, name }) {
  const place = el("div", { class: "offer" });
  const restore = async () => {
    show(place, t("loading"));
    try {
      show(place, t("doneNow"), told(await ask("restore", { snapshot: moment, name })));
    } catch (error) {
      show(place, why(error));
    }
  };
  show(place, el("button", { type: "button", onclick: restore }, t("stateBefore", { name })));
  return place;
}

/** @param {import("./ask.js").Answer} answer */
function told(answer) {
  const file = (/** @type {import("./ask.js").Line} */ line) => {
    const word =
      line.action === "write"
        ? line.replaces
          ? t("replace")
          : t("write")
        : line.action === "keep"
          ? t("keep")
          : t("remove");
    return el("li", {}, el("b", {}, word), ` ${line.path}`);
  };
  const finding = (/** @type {import("./ask.js").Line} */ line) =>
    el("li", { class: line.level }, line.message);
  return [
    el("ul", {}, of(answer, "file").map(file)),
    el("ul", {}, of(answer, "finding").map(finding)),
  ];
}

/**
 * Ask for a name, then show the plan.
 * @param {string} words
 * @param {string} value
 * @param {(name: string) => void} named
 */
export function askName(words, value, named) {
  const field = /** @type {HTMLInputElement} */ (
    el("input", { value, "aria-label": t("name"), required: true })
  );
  const form = el(
    "form",
    { method: "dialog", onsubmit: () => named(field.value) },
    el("h2", {}, words),
    field,
    el(
      "div",
      { class: "buttons" },
      el("button", { class: "yes" }, t("doIt")),
      el("button", { type: "button", onclick: () => dialog.close() }, t("cancel")),
    ),
  );
  const dialog = /** @type {HTMLDialogElement} */ (
    el("dialog", { "aria-label": words, onclose: () => dialog.remove() }, form)
  );
  document.body.append(dialog);
  dialog.showModal();
  field.select();
}
