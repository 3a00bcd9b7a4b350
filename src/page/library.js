// The library: first the problems, then characters and groups with their timelines, latest first.

import { ask, linesOf } from "./api.js";
import { address, el, keepInPlace, link, redraw, setChildren } from "./dom.js";
import { openButton } from "./open_button.js";
import { isStandalone, isStory } from "./standalone.js";
import { formatAge, isChat, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Milliseconds to wait before all files are checked for problems, because the check is slow. */
const CHECK_DELAY = 1500;

/** @type {import("./main.js").Place} */
export async function library(place) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let checkTimer;
  /** @type {Line[]} */
  let timelines = [];
  /** The findings of the last check of all files. @type {Line[] | null} */
  let checked = null;
  const facts = el("p", { class: "facts" });
  const problems = el("section", { class: "problems", "aria-label": t("problems") });
  const list = el("div", { class: "list" });
  const filter = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "search",
      placeholder: t("filter"),
      "aria-label": t("filter"),
      oninput: () => setChildren(list, renderShown()),
    })
  );
  const renderShown = () => {
    const words = filter.value.toLowerCase();
    const names = (/** @type {Line} */ line) =>
      `${line.group ?? ""}\n${line.timeline}`.toLowerCase();
    return renderTimelines(timelines.filter((line) => names(line).includes(words)));
  };
  /** @param {Line[]} findings */
  const drawProblems = (findings) => {
    const restore = keepInPlace(list);
    const isOpen = problems.querySelector("details")?.open;
    redraw(problems, renderProblems(findings, isOpen));
    restore();
  };
  const check = async () => {
    checked = linesOf(await ask("doctor"), "finding");
    drawProblems(checked);
  };
  let draws = 0;
  const draw = async () => {
    const number = ++draws;
    const answer = await ask("library");
    if (number !== draws) return;
    timelines = linesOf(answer, "timeline");
    const backup = linesOf(answer, "copy")[0];
    const [latest] = [...timelines].sort(latestFirst);
    setChildren(
      facts,
      latest?.time ? t("lastSnapshot", { when: formatAge(latest.time) }) : "",
      " · ",
      backup ? t("lastBackup", { when: formatAge(backup.taken) }) : t("noBackup"),
    );
    redraw(list, renderShown());
    if (!checked) drawProblems(linesOf(answer, "finding"));
    clearTimeout(checkTimer);
    if (!isStandalone) checkTimer = setTimeout(() => check().catch(() => {}), CHECK_DELAY);
  };
  await draw();
  setChildren(place, el("h1", {}, t("library")), isStory ? null : facts, problems, filter, list);
  return { onChange: draw, onLeave: () => clearTimeout(checkTimer) };
}

/**
 * Compares the times of two timelines, whose offsets may differ.
 * @param {Line} a
 * @param {Line} b
 */
function latestFirst(a, b) {
  return (Date.parse(b.time) || 0) - (Date.parse(a.time) || 0);
}

/** @param {Line[]} findings @param {boolean} [open] */
function renderProblems(findings, open) {
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
    { open: open ?? problems.length < 6 },
    el("summary", {}, `${t("problems")} (${problems.length})`),
    el("ul", {}, problems.map(row)),
  );
}

/** Lists chats by character or group, and other timelines last. @param {Line[]} timelines */
function renderTimelines(timelines) {
  /** @type {Map<string, Line[]>} */
  const folders = new Map();
  for (const line of [...timelines].sort(latestFirst)) {
    const owner = line.group ?? splitTimeline(line.timeline)[0];
    const folder = isChat(line.timeline) ? owner : t("otherTimelines");
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
  const isGroup = line.timeline.startsWith("groups/");
  const name = (isGroup && line.group) || splitTimeline(line.timeline)[1];
  const facts = [
    isChat(line.timeline) ? t("messages", { n: line.messages }) : "",
    line.entries === undefined ? "" : t("entries", { n: line.entries ?? 0 }),
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
    { class: `row ${line.state}`, "data-key": line.timeline },
    line.head
      ? link(address("read", line.timeline), name, { class: "name" })
      : el("span", { class: "name" }, name),
    el("span", { class: "facts" }, facts),
    label ? el("span", { class: "label" }, t(label)) : null,
    (line.tags ?? []).map((/** @type {string} */ tag) =>
      link(address("read", tag), tag, { class: "tag" }),
    ),
    line.state === "deleted" ? null : openButton(line.timeline),
    isChat(line.timeline) && line.head && !isStory
      ? link(address("tree", line.timeline), t("map"))
      : null,
  );
}
