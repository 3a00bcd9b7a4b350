// The details of the selected snapshot beside the map: what was said last, what changed, and what
// the user can do with it. On a phone they are a sheet below the map.

import { ask, linesOf, mayWrite } from "./api.js";
import { timelineAvatar } from "./avatar.js";
import { askName, confirmPlan } from "./dialogs.js";
import { address, el, link, redraw, setChildren } from "./dom.js";
import { messageAt } from "./messages.js";
import { notify } from "./notice.js";
import { openButton } from "./open_button.js";
import { canAnswer, isStandalone } from "./standalone.js";
import { shorten } from "./text.js";
import { formatAge, formatDate, noteOf, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Milliseconds for which a selection must stay before its changes are loaded. */
const DEBOUNCE = 250;
/** Maximum number of characters of a message. */
const MAX_QUOTE = 300;

/**
 * @typedef {object} Selected
 * @property {Line} lane with `owner`, the name of the character or group, and `name`
 * @property {number} hue of the lane
 * @property {Line} dot
 * @property {boolean} isLatest
 * @property {string | null} compared the snapshot that the user chose for a comparison
 * @property {string | undefined} other the snapshot to compare with
 * @property {string | undefined} previous the snapshot before this one
 */

export class MapDetails {
  #shown = el("div", { "aria-live": "polite" });
  #actions = el("div", { class: "actions" });
  #keys = renderKeys();
  #number = 0;
  element = el("aside", { class: "selection", "aria-label": t("snapshot") }, this.#keys);

  /**
   * @param {object} listeners
   * @param {() => void} listeners.onClose called when the user closes the sheet
   * @param {() => void} listeners.onCompare called when the user chooses the snapshot for a
   *   comparison, or no longer
   */
  constructor({ onClose, onCompare }) {
    this.onClose = onClose;
    this.onCompare = onCompare;
  }

  /** Shows a text instead of details. @param {string} text */
  showText(text) {
    this.#number++;
    this.element.classList.remove("open");
    setChildren(this.element, el("p", { class: "facts" }, text), this.#keys);
  }

  /** @param {Selected} selected */
  show(selected) {
    const { lane, hue, dot, isLatest } = selected;
    const { owner, name } = lane;
    const number = ++this.#number;
    const quote = el("blockquote", { class: `hue${hue}`, dir: "auto" });
    const note = el("p", { class: "changes" });
    const facts = [
      t("messages", { n: (dot.index ?? -1) + 1 }),
      `${formatDate(dot.time)} (${formatAge(dot.time)})`,
      isLatest ? t("latestSnapshot") : "",
    ];
    const close = el(
      "button",
      { type: "button", class: "close", "aria-label": t("close"), onclick: this.onClose },
      "✕",
    );
    setChildren(
      this.#shown,
      el(
        "div",
        { class: "owner" },
        timelineAvatar(lane.timeline),
        el("div", {}, el("small", {}, owner), el("h2", {}, name)),
      ),
      el(
        "p",
        { class: "labels" },
        dot.tags.map((/** @type {string} */ tag) => el("span", { class: "tag" }, `⚑ ${tag}`)),
        lane.state === "deleted" ? el("span", { class: "label" }, t("deleted")) : null,
      ),
      el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      quote,
      note,
    );
    redraw(this.#actions, this.#renderActions(selected));
    if (!this.#shown.isConnected)
      setChildren(this.element, close, this.#shown, this.#actions, this.#keys);
    this.element.classList.add("open");
    const isCurrent = () => number === this.#number;
    if (dot.index !== null)
      messageAt(dot.snapshot, dot.index).then(
        (line) => line && isCurrent() && setChildren(quote, renderQuote(line)),
        () => {},
      );
    setTimeout(() => {
      if (isCurrent()) showChanges(selected, note, isCurrent).catch(() => {});
    }, DEBOUNCE);
  }

  /** @param {Selected} selected */
  #renderActions({ lane, dot, compared, other }) {
    const { snapshot } = dot;
    const isCompared = compared === snapshot;
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
      el("button", { type: "button", onclick }, label);
    const open = lane.state === "deleted" ? null : openButton(lane.timeline, () => dot.index);
    open?.classList.add("primary");
    const canCompare = other && canAnswer("diff", { before: other, after: snapshot, stat: true });
    return [
      open,
      link(address("read", snapshot), t("read"), {
        class: `button${open ? "" : " primary"}`,
      }),
      mayWrite() ? button(t("fork"), () => fork(dot, lane.name)) : null,
      mayWrite() ? button(t("restore"), () => confirmPlan("restore", { snapshot })) : null,
      mayWrite() ? button(t("tag"), () => tag(snapshot)) : null,
      canCompare
        ? link(
            address("compare", other, snapshot),
            t(other === compared ? "compareWithSelected" : "compareWithPrevious"),
            { class: "button" },
          )
        : null,
      isStandalone
        ? null
        : el(
            "button",
            { type: "button", "aria-pressed": String(isCompared), onclick: this.onCompare },
            t("selectToCompare"),
          ),
    ];
  }
}

/** @param {Line} dot @param {string} name */
export function fork(dot, name) {
  askName(t("fork"), `${name} - ${dot.index ?? 0}`, (as) =>
    confirmPlan("restore", { snapshot: dot.snapshot, name: as }),
  );
}

/** @param {string} snapshot */
function tag(snapshot) {
  askName(t("tag"), "", (name) =>
    ask("tag", { name, snapshot }).then(() => notify(t("tagged")), notify),
  );
}

/** Renders a message as a line of text. @param {Line} line */
export function renderQuote(line) {
  const { text } = line;
  const quoted = text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE)}…` : text;
  return [el("b", {}, `#${line.index} ${shorten(line.name)}`), " ", quoted];
}

/**
 * Says what changed since the previous snapshot, and the user's note.
 * @param {Selected} selected
 * @param {HTMLElement} target
 * @param {() => boolean} isCurrent
 */
async function showChanges({ dot, previous }, target, isCurrent) {
  const { snapshot } = dot;
  /** @type {import("./dom.js").Child[]} */
  const parts = [];
  if (canAnswer("show", { snapshot, brief: true })) {
    const [line] = linesOf(await ask("show", { snapshot, brief: true }), "snapshot");
    const note = line ? shorten(noteOf(line)) : "";
    if (note) parts.push(el("q", { class: "note" }, note), " ");
  }
  const args = { before: previous, after: snapshot, stat: true };
  if (previous && isCurrent() && canAnswer("diff", args)) {
    const [line] = linesOf(await ask("diff", args), "comparison");
    const changes = line ? countChanges(line.counts ?? {}) : "";
    if (changes) parts.push(t("sincePrevious", { changes }));
  }
  if (isCurrent()) setChildren(target, parts);
}

/** @param {Record<string, Record<string, number>>} counts by part and kind of change */
function countChanges(counts) {
  const sum = (/** @type {string} */ part) =>
    Object.values(counts[part] ?? {}).reduce((a, b) => a + b, 0);
  const [messages, entries] = [sum("message"), sum("lorebook")];
  return [
    messages ? t("messages", { n: messages }) : "",
    entries ? t("entries", { n: entries }) : "",
  ]
    .filter(Boolean)
    .join(t("listComma"));
}

/** Lists the keys of the map. */
function renderKeys() {
  const parts = t("keys").split(" · ");
  return el(
    "dl",
    { class: "keys" },
    parts.map((part) => {
      const [, keys, meaning] = part.match(/^(.+?)[:：]\s*(.+)$/) ?? ["", "", part];
      return el(
        "div",
        {},
        el(
          "dt",
          {},
          keys.split(" ").map((key) => el("kbd", {}, key)),
        ),
        el("dd", {}, meaning),
      );
    }),
  );
}
