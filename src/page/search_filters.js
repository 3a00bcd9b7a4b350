// The filters of the search. Their choices are the speakers and chats that were found.

import { el, setChildren } from "./dom.js";
import { MATCHES } from "./search_marks.js";
import { isStandalone, isStory } from "./standalone.js";
import { shorten } from "./text.js";
import { isChat, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {[value: string, label: string][]} Options */
/** @typedef {{ who: string, where: string, state: string, match: string }} Values */

/** Maximum number of speakers, and of chats, in a filter. */
const MAX_OPTIONS = 30;

/**
 * Speakers and timelines in the matches of the last text, with all filters. They are the choices of
 * the filters.
 */
const found = {
  text: "",
  /** Whether each speaker is the user. @type {Map<string, boolean>} */
  speakers: new Map(),
  /** @type {Set<string>} */
  timelines: new Set(),
};
/** Name of the filter that the user changed; it gets the focus again. */
let changedFilter = "";

/** Forgets the choices that another text had. @param {string} text */
export function forgetOther(text) {
  if (found.text === text) return;
  found.text = text;
  found.speakers.clear();
  found.timelines.clear();
}

/**
 * Draws the filters. Returns whether one of them has the focus.
 * @param {HTMLElement} target
 * @param {Values} values
 * @param {(values: Record<string, string>) => void} open opens the search with other values
 */
export function renderFilters(target, { who, where, state, match }, open) {
  const focused = target.querySelector(":focus")?.getAttribute("name");
  const filter = (
    /** @type {import("./words.js").Key} */ key,
    /** @type {string} */ name,
    /** @type {string} */ value,
    /** @type {Options} */ options,
  ) => renderFilter(t(key), name, value, options, open);
  setChildren(
    target,
    filter("filterWho", "who", who, speakerOptions(who)),
    filter("filterWhere", "where", where, placeOptions(where)),
    isStandalone ? null : filter("filterState", "state", state, stateOptions()),
    isStandalone ? null : filter("filterMatch", "match", match, matchOptions()),
  );
  const name = changedFilter || focused;
  changedFilter = "";
  /** @type {HTMLElement | null} */ (name && target.querySelector(`[name="${name}"]`))?.focus();
  return Boolean(name);
}

/**
 * Remembers speakers and timelines as choices of the filters.
 * @param {Line[]} lines
 */
export function collect(lines) {
  for (const line of lines) {
    const { part, name, timeline } = line;
    if (part === "message" && name && !found.speakers.has(name))
      found.speakers.set(name, line.user === true);
    if (isChat(timeline)) found.timelines.add(timeline);
  }
}

/** @param {string} chosen @returns {Options} */
function speakerOptions(chosen) {
  const speakers = [...found.speakers].slice(0, MAX_OPTIONS);
  if (chosen && !speakers.some(([name]) => name === chosen)) speakers.unshift([chosen, false]);
  speakers.sort(([, a], [, b]) => Number(b) - Number(a));
  return [
    ["", t("everybody")],
    ...speakers.map(([name, isUser]) => {
      const short = shorten(name);
      return /** @type {[string, string]} */ ([name, isUser ? t("you", { name: short }) : short]);
    }),
  ];
}

/** @param {string} chosen @returns {Options} */
function placeOptions(chosen) {
  const timelines = [...found.timelines].slice(0, MAX_OPTIONS);
  if (chosen.includes("/") && !timelines.includes(chosen)) timelines.unshift(chosen);
  return [
    ["", t("everywhere")],
    ["chat", t("inMessages")],
    ["lorebook", t("inLorebooks")],
    ...(isStory ? [] : /** @type {Options} */ ([["card", t("inCharacters")]])),
    ...timelines.map(
      (name) => /** @type {[string, string]} */ ([name, splitTimeline(name).join(": ")]),
    ),
  ];
}

/** @returns {Options} */
function stateOptions() {
  return [
    ["", t("currentAndDeleted")],
    ["current", t("onlyCurrent")],
    ["deleted", t("onlyDeleted")],
  ];
}

/** @returns {Options} */
function matchOptions() {
  return [
    [MATCHES[0], t("matchWords")],
    [MATCHES[1], t("matchPhrase")],
    [MATCHES[2], t("matchRegex")],
  ];
}

/**
 * @param {string} label
 * @param {string} name
 * @param {string} value
 * @param {Options} options
 * @param {(values: Record<string, string>) => void} open
 */
function renderFilter(label, name, value, options, open) {
  const onchange = () => {
    changedFilter = name;
    open({ [name]: select.value });
  };
  const select = /** @type {HTMLSelectElement} */ (
    el(
      "select",
      { name, onchange },
      options.map(([value, label]) => el("option", { value }, label)),
    )
  );
  select.value = value;
  const isActive = value !== "" && value !== MATCHES[0];
  return el("label", { class: isActive ? "active" : "" }, el("span", {}, label), select);
}
