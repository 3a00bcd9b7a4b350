// The library: first the problems, then characters and groups with their timelines, latest first.

import { ask, linesOf } from "./api.js";
import { address, el, link, setChildren } from "./dom.js";
import { isStandalone, isStory } from "./standalone.js";
import { formatAge, isChat, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Milliseconds to wait before all files are checked for problems, because the check is slow. */
const CHECK_DELAY = 1500;

/** @type {import("./main.js").Place} */
export async function library(place) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let checkTimer;
  const draw = async () => {
    const answer = await ask("library");
    const timelines = linesOf(answer, "timeline");
    const backup = linesOf(answer, "copy")[0];
    const times = timelines
      .map((line) => line.time)
      .filter(Boolean)
      .sort();
    const problems = el(
      "section",
      { class: "problems", "aria-label": t("problems") },
      renderProblems(linesOf(answer, "finding")),
    );
    const list = el("div", { class: "list" });
    const filter = /** @type {HTMLInputElement} */ (
      el("input", {
        type: "search",
        placeholder: t("filter"),
        "aria-label": t("filter"),
        oninput: () => fillList(),
      })
    );
    const isShown = (/** @type {Line} */ line) =>
      line.timeline.toLowerCase().includes(filter.value.toLowerCase());
    const fillList = () => setChildren(list, renderTimelines(timelines.filter(isShown)));
    setChildren(
      place,
      el("h1", {}, t("library")),
      isStory
        ? null
        : el(
            "p",
            { class: "facts" },
            times.length ? t("lastSnapshot", { when: formatAge(times[times.length - 1]) }) : "",
            " · ",
            backup ? t("lastBackup", { when: formatAge(backup.taken) }) : t("noBackup"),
          ),
      problems,
      filter,
      list,
    );
    fillList();
    clearTimeout(checkTimer);
    const check = () =>
      ask("doctor")
        .then((answer) => setChildren(problems, renderProblems(linesOf(answer, "finding"))))
        .catch(() => {});
    if (!isStandalone) checkTimer = setTimeout(check, CHECK_DELAY);
  };
  await draw();
  return { onChange: draw, onLeave: () => clearTimeout(checkTimer) };
}

/** @param {Line[]} findings */
function renderProblems(findings) {
  const problems = findings.filter((line) => line.level !== "info");
  if (!problems.length) return null;
  const row = (/** @type {Line} */ line) =>
    el(
      "li",
      { class: line.level },
      el("b", {}, line.subject),
      ` ${line.message}`,
      line.remedy ? el("small", {}, line.remedy) : null,
    );
  return el(
    "details",
    { open: problems.length < 6 },
    el("summary", {}, `${t("problems")} (${problems.length})`),
    el("ul", {}, problems.map(row)),
  );
}

/** Lists chats by character or group, and other timelines last. @param {Line[]} timelines */
function renderTimelines(timelines) {
  /** @type {Map<string, Line[]>} */
  const folders = new Map();
  const latestFirst = [...timelines].sort((a, b) => (b.time ?? "").localeCompare(a.time ?? ""));
  for (const line of latestFirst) {
    const folder = isChat(line.timeline) ? splitTimeline(line.timeline)[0] : t("otherTimelines");
    folders.set(folder, [...(folders.get(folder) ?? []), line]);
  }
  if (!timelines.length) return [el("p", {}, t("empty"))];
  const isOther = (/** @type {string} */ folder) => Number(folder === t("otherTimelines"));
  const sorted = [...folders].sort(([a], [b]) => isOther(a) - isOther(b));
  return sorted.map(([folder, lines]) =>
    el(
      "section",
      { "aria-label": folder },
      el("h2", {}, folder, " ", el("small", {}, String(lines.length))),
      el("ul", { class: "timelines" }, lines.map(timelineRow)),
    ),
  );
}

/**
 * Labels of the states of a timeline. Other states have no label.
 * @type {Record<string, import("./words.js").Key>}
 */
const STATE_LABELS = {
  deleted: "deleted",
  changed: "changed",
  new: "noSnapshot",
  unreadable: "unreadable",
};

/** @param {Line} line */
function timelineRow(line) {
  const [, name] = splitTimeline(line.timeline);
  const facts = [
    line.entries === undefined
      ? t("messages", { n: line.messages })
      : t("entries", { n: line.entries ?? 0 }),
    isStory ? "" : t("snapshots", { n: line.snapshots }),
    line.time ? formatAge(line.time) : "",
    line.parent
      ? t("forkOf", {
          parent: splitTimeline(line.parent)[1],
          at: Math.max(0, (line.fork_at ?? 1) - 1),
        })
      : "",
  ]
    .filter(Boolean)
    .join(" · ");
  const label = STATE_LABELS[line.state];
  return el(
    "li",
    { class: `row ${line.state}` },
    line.head
      ? link(address("read", line.timeline), name, { class: "name" })
      : el("span", { class: "name" }, name),
    el("span", { class: "facts" }, facts),
    label ? el("span", { class: "label" }, t(label)) : null,
    (line.tags ?? []).map((/** @type {string} */ tag) =>
      link(address("read", tag), tag, { class: "tag" }),
    ),
    isChat(line.timeline) && line.head && !isStory
      ? link(address("tree", line.timeline), t("map"))
      : null,
  );
}
