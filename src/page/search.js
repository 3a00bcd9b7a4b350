// Searches the messages and lorebook entries of all snapshots. The filters are in the address.

import { ask, linesOf } from "./api.js";
import { address, el, setChildren } from "./dom.js";
import { messageAt } from "./messages.js";
import { MATCHES, patternOf } from "./search_marks.js";
import { SearchResults } from "./search_results.js";
import { isStandalone, isStory } from "./standalone.js";
import { shorten } from "./text.js";
import { isChat, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {[value: string, label: string][]} Options */

/** Number of matches per request, and if a filter of the viewer drops most of them. */
const [PAGE, LONG_PAGE] = [100, 1000];
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

/** @type {import("./main.js").Place} */
export async function search(place, _parts, query) {
  const text = query.get("q") ?? "";
  const [who, where, state] = ["who", "where", "state"].map((name) => query.get(name) ?? "");
  const match = query.get("match") || MATCHES[0];
  if (found.text !== text) {
    found.text = text;
    found.speakers.clear();
    found.timelines.clear();
  }

  /** Opens the search with other values. @param {Record<string, string>} values */
  const open = (values) => {
    const parts = new URLSearchParams({ q: text, who, where, state, match, ...values });
    for (const [name, value] of [...parts])
      if (!value || (name === "match" && value === MATCHES[0])) parts.delete(name);
    location.hash = `${address("search")}${parts.size ? `?${parts}` : ""}`;
  };
  const label = t(isStory ? "searchStory" : "searchAll");
  const field = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "search",
      name: "q",
      value: text,
      placeholder: label,
      "aria-label": label,
    })
  );
  const filters = el("div", { class: "filters" });
  const drawFilters = () => {
    const focused = document.activeElement?.getAttribute("name");
    const filter = (
      /** @type {import("./words.js").Key} */ key,
      /** @type {string} */ name,
      /** @type {string} */ value,
      /** @type {Options} */ options,
    ) => renderFilter(t(key), name, value, options, open);
    setChildren(
      filters,
      filter("filterWho", "who", who, speakerOptions(who)),
      filter("filterWhere", "where", where, placeOptions(where)),
      isStandalone ? null : filter("filterState", "state", state, stateOptions()),
      isStandalone ? null : filter("filterMatch", "match", match, matchOptions()),
    );
    /** @type {HTMLElement | null} */ (
      filters.querySelector(`[name="${CSS.escape(changedFilter || focused || "-")}"]`)
    )?.focus();
    changedFilter = "";
  };
  /** @param {Event} event */
  const onsubmit = (event) => {
    event.preventDefault();
    const isOther = field.value !== text;
    open({ q: field.value, ...(isOther ? { who: "" } : {}) });
  };
  const onOnly = (/** @type {string} */ timeline) => open({ where: timeline });
  const pattern = patternOf(text, match);
  const results = new SearchResults(pattern, where.includes("/") ? null : onOnly);
  const summary = el("p", { class: "facts", role: "status" });
  const more = el("button", { type: "button", class: "more", hidden: true }, t("more"));
  const isFiltered = Boolean(who || where || state || match !== MATCHES[0]);
  place.classList.toggle("filters-open", isFiltered);
  const filtersButton = el(
    "button",
    {
      type: "button",
      class: "compact",
      "aria-expanded": String(isFiltered),
      onclick: () => {
        const isOpen = place.classList.toggle("filters-open");
        filtersButton.setAttribute("aria-expanded", String(isOpen));
      },
    },
    t("filters"),
  );
  setChildren(
    place,
    el("h1", {}, t("search")),
    el(
      "form",
      { role: "search", onsubmit },
      field,
      el("button", { class: "primary" }, t("search")),
    ),
    filters,
    el("div", { class: "bar" }, summary, filtersButton),
    results.element,
    more,
  );
  const wasChanged = changedFilter !== "";
  drawFilters();
  // On a phone, the focus would open the keyboard above the matches.
  if (!wasChanged && (!text || matchMedia("(hover: hover)").matches)) field.focus();
  if (!text.trim()) {
    summary.textContent = isStory ? "" : t("searchHint");
    return;
  }

  const part = PARTS.includes(where) ? where : who ? PARTS[0] : null;
  const args = {
    text,
    ...(match === "phrase" ? { phrase: true } : {}),
    ...(match === "regex" ? { regex: true } : {}),
    ...(who ? { who } : {}),
    ...(where.includes("/") ? { timeline: where } : {}),
    ...(part ? { only: part } : {}),
    count: state === "deleted" ? LONG_PAGE : PAGE,
  };
  const isWanted = (/** @type {Line} */ line) =>
    (!who || (line.part === "message" && line.name === who)) &&
    (!part || line.part === (part === "chat" ? "message" : part)) &&
    (!where.includes("/") || line.timeline === where) &&
    (!state || line.live === (state === "current"));

  /** @param {number | null} first */
  const addPage = async (first) => {
    more.hidden = true;
    summary.textContent = t("loading");
    const wanted = results.count + 1;
    while (first !== null && results.count < wanted) {
      const answer = await ask("search", { ...args, first });
      const lines = linesOf(answer, "match");
      results.add(lines.filter(isWanted));
      first = answer.next;
      // Matches in current chats come first.
      if (state === "current" && lines.some((line) => !line.live)) first = null;
      collect(lines);
    }
    const facts = [
      t(first === null ? "matchCount" : "matchesOrMore", { n: results.count }),
      t("placeCount", { n: results.groups }),
    ];
    setChildren(
      summary,
      results.count ? facts.join(" ") : t("nothingFound"),
      " ",
      results.count || !(who || where || state) ? null : renderReset(open),
    );
    more.hidden = first === null;
    more.onclick = () => addPage(first);
    if (!isStory) await findUsers();
    drawFilters();
  };
  await addPage(0);
}

/** Values of the API's argument `only`. */
const PARTS = ["chat", "lorebook", "card"];

/**
 * Remembers speakers and timelines as choices of the filters.
 * @param {Line[]} lines
 */
function collect(lines) {
  for (const line of lines) {
    const { part, name, timeline } = line;
    if (part === "message" && name && !found.speakers.has(name)) {
      found.speakers.set(name, false);
      unknown.set(name, line);
    }
    if (isChat(timeline)) found.timelines.add(timeline);
  }
}

/** A message of each speaker who may be the user. @type {Map<string, Line>} */
const unknown = new Map();

/** Finds out which speakers are the user, because matches do not say so. */
async function findUsers() {
  const asked = [...unknown].slice(0, MAX_OPTIONS);
  unknown.clear();
  await Promise.all(
    asked.map(async ([name, { snapshot, index }]) => {
      const message = await messageAt(snapshot, index).catch(() => undefined);
      if (message?.user && found.speakers.has(name)) found.speakers.set(name, true);
    }),
  );
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

/** @param {(values: Record<string, string>) => void} open */
function renderReset(open) {
  const onclick = () => open({ who: "", where: "", state: "" });
  return el("button", { type: "button", onclick }, t("removeFilters"));
}
