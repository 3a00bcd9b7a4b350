// The list of stories: each character or group with its stories, from which the user chooses the
// map of one.

import { ask, linesOf } from "./api.js";
import { timelineAvatar } from "./avatar.js";
import { address, el, link, setChildren } from "./dom.js";
import { formatAge, isChat, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {{ root: Line, chats: number, time: string | null }} Story */

/** Number of stories from which on the list has a filter. */
const FILTERED_FROM = 9;

/**
 * Returns the button that opens the list.
 * @param {string | undefined} timeline whose map is shown, or none for the map of all stories
 */
export function storyChooser(timeline) {
  const list = el("div", { class: "stories", popover: "auto", "aria-label": t("stories") });
  const toggle = () => {
    list.togglePopover();
    const box = button.getBoundingClientRect();
    list.style.top = `${box.bottom + 6}px`;
    list.style.right = `${Math.max(8, innerWidth - box.right)}px`;
  };
  const button = el(
    "button",
    { type: "button", class: "choose", "aria-expanded": "false", onclick: toggle },
    t("stories"),
    el("span", { "aria-hidden": "true" }, " ▾"),
  );
  list.addEventListener("toggle", (event) => {
    const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) fill(list, timeline).catch(() => list.hidePopover());
  });
  list.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a")) list.hidePopover();
  });
  return [button, list];
}

/** @param {HTMLElement} list @param {string | undefined} timeline */
async function fill(list, timeline) {
  setChildren(list, t("loading"));
  const timelines = linesOf(await ask("library"), "timeline").filter(
    (line) => isChat(line.timeline) && line.head,
  );
  const { owners, rootOf } = storiesOf(timelines);
  const current = timeline === undefined ? undefined : rootOf(timeline);
  const rows = el("div");
  const draw = (/** @type {string} */ words) =>
    setChildren(rows, renderOwners(owners, current, words.toLowerCase()));
  const count = [...owners.values()].reduce((sum, stories) => sum + stories.length, 0);
  const filter = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "search",
      placeholder: t("filter"),
      "aria-label": t("filter"),
      oninput: () => draw(filter.value),
    })
  );
  draw("");
  setChildren(
    list,
    link(address("tree"), t("allStories"), {
      class: "all",
      "aria-current": timeline === undefined ? "page" : undefined,
    }),
    count >= FILTERED_FROM ? filter : null,
    rows,
  );
  list.querySelector("a")?.focus();
}

/**
 * Groups chats into stories, and stories by their character or group.
 * @param {Line[]} timelines
 */
function storiesOf(timelines) {
  const byName = new Map(timelines.map((line) => [line.timeline, line]));
  const rootOf = (/** @type {string} */ timeline) => {
    const seen = new Set();
    let at = timeline;
    // The parents in a forged store may form a cycle.
    for (let parent; (parent = byName.get(at)?.parent) && byName.has(parent) && !seen.has(at);) {
      seen.add(at);
      at = parent;
    }
    return at;
  };
  /** @type {Map<string, Story>} */
  const stories = new Map();
  for (const line of timelines) {
    const name = rootOf(line.timeline);
    const story = stories.get(name) ?? { root: byName.get(name) ?? line, chats: 0, time: null };
    story.chats++;
    if (isLater(line.time, story.time)) story.time = line.time;
    stories.set(name, story);
  }
  /** @type {Map<string, Story[]>} */
  const owners = new Map();
  for (const story of [...stories.values()].sort((a, b) => (isLater(a.time, b.time) ? -1 : 1))) {
    const owner = splitTimeline(story.root.timeline)[0];
    owners.set(owner, [...(owners.get(owner) ?? []), story]);
  }
  return { owners, rootOf };
}

/** @param {string | null} a @param {string | null} b */
function isLater(a, b) {
  return (Date.parse(a ?? "") || 0) > (Date.parse(b ?? "") || 0);
}

/**
 * @param {Map<string, Story[]>} owners
 * @param {string | undefined} current the root of the story that is shown
 * @param {string} words that names must contain
 */
function renderOwners(owners, current, words) {
  const sections = [...owners].flatMap(([owner, stories]) => {
    const shown = stories.filter(({ root }) =>
      `${owner}\n${splitTimeline(root.timeline)[1]}`.toLowerCase().includes(words),
    );
    if (!shown.length) return [];
    return el(
      "section",
      { "aria-label": owner },
      el("h2", {}, timelineAvatar(stories[0].root.timeline), owner),
      el(
        "ul",
        {},
        shown.map((story) => el("li", {}, renderStory(story, current))),
      ),
    );
  });
  return sections.length ? sections : [el("p", { class: "facts" }, t("nothingFound"))];
}

/** @param {Story} story @param {string | undefined} current */
function renderStory({ root, chats, time }, current) {
  const facts = [t("chats", { n: chats }), time ? formatAge(time) : ""].filter(Boolean);
  return link(
    address("tree", root.timeline),
    [
      el("span", { class: "name" }, splitTimeline(root.timeline)[1]),
      el("small", {}, facts.join(" · ")),
    ],
    { "aria-current": root.timeline === current ? "page" : undefined },
  );
}
