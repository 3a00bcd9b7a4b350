// Searches the messages and lorebook entries of all snapshots.

import { ask, linesOf } from "./api.js";
import { address, el, link, setChildren } from "./dom.js";
import { openButton } from "./open_button.js";
import { isStory } from "./standalone.js";
import { renderPlain, shorten } from "./text.js";
import { formatAge, splitTimeline, t } from "./words.js";

/** @type {import("./main.js").Place} */
export async function search(place, _parts, query) {
  const words = query.get("q") ?? "";
  const label = t(isStory ? "searchStory" : "searchAll");
  const field = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "search",
      name: "q",
      value: words,
      placeholder: label,
      "aria-label": label,
    })
  );
  const matches = el("ol", { class: "matches" });
  /** @param {Event} event */
  const onsubmit = (event) => {
    event.preventDefault();
    location.hash = `${address("search")}?q=${encodeURIComponent(field.value)}`;
  };
  setChildren(
    place,
    el("h1", {}, t("search")),
    el("form", { role: "search", onsubmit }, field),
    isStory ? null : el("p", { class: "facts" }, t("searchHint")),
    matches,
  );
  field.focus();
  if (!words.trim()) return;
  /** @param {number} first */
  const addPage = async (first) => {
    const answer = await ask("search", { text: words, first, count: 50 });
    const lines = linesOf(answer, "match");
    matches.append(...lines.map((line) => row(line, words)));
    if (!lines.length && !first) setChildren(matches, el("li", {}, t("nothingFound")));
    const { next } = answer;
    if (next === null) return;
    const button = el(
      "button",
      { type: "button", onclick: () => (button.remove(), addPage(next)) },
      t("more"),
    );
    matches.append(button);
  };
  await addPage(0);
}

/**
 * Marks the words that were searched for.
 * @param {Node} node
 * @param {string} words
 * @returns {Node}
 */
function mark(node, words) {
  const escaped = words
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  if (!(node instanceof Text) || !escaped.length) return node;
  const parts = node.data.split(new RegExp(`(${escaped.join("|")})`, "iu"));
  // `split` returns the matches at the odd positions.
  return el("span", {}, ...parts.map((part, n) => (n % 2 ? el("mark", {}, part) : part)));
}

/** @param {import("./api.js").Line} line @param {string} words */
function row(line, words) {
  const [folder, name] = splitTimeline(line.timeline);
  const href =
    line.part === "message"
      ? `${address("read", line.snapshot)}?m=${line.index}`
      : `${address("read", line.snapshot)}?e=${encodeURIComponent(line.uid ?? "")}`;
  const position =
    line.index === undefined ? shorten(line.name) : `#${line.index} ${shorten(line.name)}`;
  const state = line.live ? t("inCurrentChat") : t("noLongerInChat");
  const facts = isStory ? "" : ` ${formatAge(line.said ?? line.time)} · ${state}`;
  return el(
    "li",
    { "data-key": `${line.snapshot} ${line.index ?? line.uid}` },
    el(
      "div",
      {},
      link(href, `${folder} / ${name}`, { class: "name" }),
      " ",
      el("b", {}, position),
      el(
        "span",
        { class: "facts" },
        facts,
        line.others?.length ? ` · ${t("alsoIn", { n: line.others.length })}` : "",
      ),
      " ",
      line.live && line.part === "message" ? openButton(line.timeline, () => line.index) : null,
    ),
    el(
      "p",
      { dir: "auto" },
      renderPlain(line.text).map((node) => mark(node, words)),
    ),
  );
}
