// Searches the messages and lorebook entries of all snapshots. The filters are in the address.

import { ask, linesOf } from "./api.js";
import { address, el, setChildren } from "./dom.js";
import { notify } from "./notice.js";
import { collect, forgetOther, renderFilters } from "./search_filters.js";
import { MATCHES, patternOf } from "./search_marks.js";
import { SearchResults } from "./search_results.js";
import { isStory } from "./standalone.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Number of matches per request. */
const PAGE = 100;
/** Maximum number of requests for one page, if a filter of the viewer drops their matches. */
const MAX_REQUESTS = 3;
/** Values of the API's argument `only`. */
const PARTS = ["chat", "lorebook", "card"];

/** @type {import("./main.js").Place} */
export async function search(place, _parts, query) {
  const text = query.get("q") ?? "";
  const [who, where, state] = ["who", "where", "state"].map((name) => query.get(name) ?? "");
  const match = query.get("match") || MATCHES[0];
  forgetOther(text);

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
  const drawFilters = () => renderFilters(filters, { who, where, state, match }, open);
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
  const hasFocus = drawFilters();
  // On a phone, the focus would open the keyboard above the matches.
  if (!hasFocus && (!text || matchMedia("(hover: hover)").matches)) field.focus();
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
    ...(state ? { state } : {}),
    count: PAGE,
  };
  const isWanted = (/** @type {Line} */ line) =>
    (!who || (line.part === "message" && line.name === who)) &&
    (!part || line.part === (part === "chat" ? "message" : part)) &&
    (!where.includes("/") || line.timeline === where);

  /** @param {number | null} first */
  const addPage = async (first) => {
    more.hidden = true;
    summary.textContent = t("searching");
    const before = results.count;
    for (let n = 0; n < MAX_REQUESTS && first !== null && results.count === before; n++) {
      const answer = await ask("search", { ...args, first });
      const lines = linesOf(answer, "match");
      results.add(lines.filter(isWanted));
      first = answer.next;
      collect(lines);
    }
    const facts = [
      t(first === null ? "matchCount" : "matchesOrMore", { n: results.count }),
      t("placeCount", { n: results.groups }),
    ];
    setChildren(
      summary,
      results.count ? facts.join(" ") : t(first === null ? "nothingFound" : "nothingYet"),
      " ",
      results.count || !(who || where || state) ? null : renderReset(open),
    );
    more.hidden = first === null;
    more.onclick = () => addPage(first).catch(notify);
    drawFilters();
  };
  await addPage(0);
}

/** @param {(values: Record<string, string>) => void} open */
function renderReset(open) {
  const onclick = () => open({ who: "", where: "", state: "" });
  return el("button", { type: "button", onclick }, t("removeFilters"));
}
