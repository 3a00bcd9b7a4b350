// The matches of a search, grouped by chat.

import { timelineAvatar } from "./avatar.js";
import { address, el, keepInPlace, link } from "./dom.js";
import { openButton } from "./open_button.js";
import { mark } from "./search_marks.js";
import { isStory } from "./standalone.js";
import { renderPlain, shorten } from "./text.js";
import { formatDate, isChat, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Matches of a chat that are shown at first, and that each press of its button adds. */
const [FIRST_ROWS, MORE_ROWS] = [5, 50];

/** The matches in one timeline. */
class Group {
  /** Matches that are not shown yet. @type {Line[]} */
  #waiting = [];
  #shown = 0;
  #limit = FIRST_ROWS;
  #count = el("span");
  #rows = el("ol");
  #more = el("button", { type: "button", class: "more", onclick: () => this.#showMore() });

  /**
   * @param {Line} first
   * @param {RegExp | null} pattern
   * @param {((timeline: string) => void) | null} onOnly called to search only this timeline
   */
  constructor(first, pattern, onOnly) {
    this.pattern = pattern;
    const { timeline } = first;
    const name = splitTimeline(timeline)[1];
    const kind = timeline.startsWith("worlds/") ? "lorebook" : "character";
    const owner = isChat(timeline) ? splitTimeline(timeline)[0] : t(kind);
    this.element = el(
      "section",
      { class: "card", "aria-label": `${owner}: ${name}` },
      el(
        "header",
        {},
        timelineAvatar(timeline),
        el(
          "div",
          { class: "names" },
          el("small", {}, owner, " · ", this.#count),
          el("h2", {}, name),
        ),
        first.deleted ? el("span", { class: "label" }, t("deleted")) : null,
        onOnly
          ? el("button", { type: "button", onclick: () => onOnly(timeline) }, t("onlyHere"))
          : null,
      ),
      this.#rows,
      this.#more,
    );
  }

  /** @param {Line} line */
  add(line) {
    this.#waiting.push(line);
    this.draw();
  }

  #showMore() {
    const next = this.#shown;
    this.#limit += MORE_ROWS;
    this.draw();
    const row = this.#rows.children[next];
    row?.querySelector("a")?.focus();
  }

  draw() {
    const added = this.#waiting.splice(0, this.#limit - this.#shown);
    this.#shown += added.length;
    this.#rows.append(...added.map((line) => renderMatch(line, this.pattern)));
    this.#count.textContent = t("matchCount", { n: this.#shown + this.#waiting.length });
    this.#more.textContent = t("moreMatches", { n: this.#waiting.length });
    this.#more.hidden = !this.#waiting.length;
  }
}

export class SearchResults {
  /** @type {Map<string, Group>} */
  #groups = new Map();
  element = el("div", { class: "matches" });
  count = 0;

  /**
   * @param {RegExp | null} pattern
   * @param {((timeline: string) => void) | null} onOnly called to search only one timeline
   */
  constructor(pattern, onOnly) {
    this.pattern = pattern;
    this.onOnly = onOnly;
  }

  /** Number of timelines with a match. */
  get groups() {
    return this.#groups.size;
  }

  /** Adds matches below the others of their timelines. @param {Line[]} lines */
  add(lines) {
    const restore = keepInPlace(this.element);
    for (const line of lines) {
      let group = this.#groups.get(line.timeline);
      if (!group) {
        group = new Group(line, this.pattern, this.onOnly);
        this.#groups.set(line.timeline, group);
        this.element.append(group.element);
      }
      group.add(line);
    }
    this.count += lines.length;
    restore();
  }
}

/** @param {Line} line @param {RegExp | null} pattern */
function renderMatch(line, pattern) {
  const isMessage = line.part === "message";
  const place = isMessage ? `m=${line.index}` : `e=${encodeURIComponent(line.uid ?? "")}`;
  const name = shorten(line.name || (isMessage ? "" : String(line.uid ?? "")));
  const time = line.said ?? (isStory ? null : line.time);
  const label = (/** @type {string} */ text, title = "") =>
    el("span", { class: "chip", title }, text);
  const others = (line.others ?? []).map((/** @type {string} */ other) => splitTimeline(other)[1]);
  const isGone = !line.live && !line.deleted;
  return el(
    "li",
    { "data-key": `${line.snapshot} ${line.part} ${line.index ?? line.uid} ${line.swipe ?? ""}` },
    el(
      "div",
      { class: "place-of-match" },
      link(
        `${address("read", line.snapshot)}?${place}`,
        isMessage ? [el("span", { class: "facts" }, `#${line.index}`), " ", name] : name,
        { class: "name" },
      ),
      time ? el("span", { class: "facts" }, formatDate(time)) : null,
      line.swipe == null ? null : label(t("inSwipe", { n: line.swipe + 1 })),
      line.hidden ? label(t("hidden")) : null,
      isGone
        ? el("span", { class: "label" }, t(isMessage ? "noLongerInChat" : "noLongerIn"))
        : null,
      others.length
        ? label(t("alsoIn", { n: others.length }), others.slice(0, 20).join("\n"))
        : null,
      line.live && isMessage ? openButton(line.timeline, () => line.index) : null,
    ),
    el(
      "p",
      { dir: "auto" },
      renderPlain(line.text).flatMap((node) => mark(node, pattern)),
    ),
  );
}
