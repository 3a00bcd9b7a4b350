// The library: first the problems, then characters and groups with their timelines, latest first.

import { ask, linesOf, mayWrite } from "./api.js";
import { timelineAvatar } from "./avatar.js";
import { confirmPlan, confirmRepair } from "./dialogs.js";
import { address, el, keepInPlace, link, redraw, setChildren } from "./dom.js";
import { notify } from "./notice.js";
import { openButton } from "./open_button.js";
import { isStandalone, isStory } from "./standalone.js";
import {
  describeSync,
  formatAge,
  isChat,
  repairText,
  splitTimeline,
  t,
  translateFinding,
  withoutCommands,
} from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Milliseconds to wait before all files are checked for problems, because the check is slow. */
const CHECK_DELAY = 1500;

/** @type {import("./main.js").Place} */
export async function library(place) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let checkTimer;
  /** @type {Line[]} */
  let timelines = [];
  /** The findings and repairs of the last check of all files. @type {Line[] | null} */
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
    const names = (/** @type {Line} */ { timeline }) =>
      [timeline, ...splitTimeline(timeline)].join("\n").toLowerCase();
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
    checked = (await ask("doctor")).lines;
    drawProblems(checked);
  };
  let draws = 0;
  const draw = async () => {
    const number = ++draws;
    const answer = await ask("library");
    if (number !== draws) return;
    timelines = linesOf(answer, "timeline");
    const backup = linesOf(answer, "copy")[0];
    const sync = linesOf(answer, "last_sync")[0];
    const [latest] = [...timelines].sort(latestFirst);
    redraw(
      facts,
      latest?.time ? t("lastSnapshot", { when: formatAge(latest.time) }) : "",
      " · ",
      backup ? t("lastBackup", { when: formatAge(backup.taken) }) : t("noBackup"),
      " ",
      backup && mayWrite() ? jobButton("backup", draw) : null,
      ...(sync ? [" · ", describeSync(sync), " "] : []),
      sync && mayWrite() ? jobButton("sync", draw) : null,
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

/** Texts of the buttons that start a job of the server, which may take minutes. */
const JOBS = /** @type {const} */ ({
  backup: { start: "backUp", running: "backingUp", done: "backedUp" },
  sync: { start: "syncNow", running: "syncing", done: "synced" },
});

/**
 * Renders a button that backs up to the last destination, or syncs with the last remote.
 * @param {keyof typeof JOBS} verb
 * @param {() => Promise<void>} onDone
 */
function jobButton(verb, onDone) {
  const texts = JOBS[verb];
  const run = async () => {
    button.disabled = true;
    setChildren(button, t(texts.running));
    try {
      for (let running = false; ; running = true) {
        const [summary] = linesOf(await ask(verb, { running }), "summary");
        if (!summary.running) break;
      }
      notify(t(texts.done));
    } catch (error) {
      notify(error);
    }
    await onDone();
  };
  const button = /** @type {HTMLButtonElement} */ (
    el("button", { type: "button", onclick: run }, t(texts.start))
  );
  return button;
}

/**
 * Compares the times of two timelines, whose offsets may differ.
 * @param {Line} a
 * @param {Line} b
 */
function latestFirst(a, b) {
  return (Date.parse(b.time) || 0) - (Date.parse(a.time) || 0);
}

/**
 * Lists problems, and the repairs that the user can start here.
 * @param {Line[]} lines findings and repairs
 * @param {boolean} [open]
 */
function renderProblems(lines, open) {
  const problems = lines.filter((line) => line.type === "finding" && line.level !== "info");
  if (!problems.length) return null;
  const repairs = mayWrite() ? lines.filter((line) => line.type === "repair") : [];
  const row = (/** @type {Line} */ line) => {
    const remedy = withoutCommands(line.remedy);
    return el(
      "li",
      { class: line.level },
      el("b", {}, line.subject),
      ` ${translateFinding(line)}`,
      remedy ? el("small", {}, remedy) : null,
    );
  };
  const repair = (/** @type {Line} */ line) =>
    el(
      "li",
      { class: "repair" },
      el("span", {}, repairText(line)),
      el("button", { type: "button", onclick: () => confirmRepair(line) }, t("repair")),
    );
  return el(
    "details",
    { class: "card", open: open ?? problems.length < 6 },
    el("summary", {}, `${t("problems")} (${problems.length})`),
    el("ul", {}, problems.map(row), repairs.map(repair)),
  );
}

/** Lists chats by character or group, and other timelines last. @param {Line[]} timelines */
function renderTimelines(timelines) {
  /** @type {Map<string, Line[]>} */
  const folders = new Map();
  for (const line of [...timelines].sort(latestFirst)) {
    const [owner] = splitTimeline(line.timeline);
    const folder = isChat(line.timeline) ? owner : t("otherTimelines");
    folders.set(folder, [...(folders.get(folder) ?? []), line]);
  }
  if (!timelines.length) return [el("p", {}, t("empty"))];
  const isOther = (/** @type {string} */ folder) => Number(folder === t("otherTimelines"));
  const sorted = [...folders].sort(([a], [b]) => isOther(a) - isOther(b));
  return sorted.map(([folder, lines]) => renderFolder(folder, lines));
}

/** @param {string} folder @param {Line[]} lines latest first */
function renderFolder(folder, lines) {
  const [latest] = lines;
  const isOfChats = isChat(latest.timeline);
  const facts = [
    isOfChats ? t("chats", { n: lines.length }) : String(lines.length),
    latest.time && !isStory ? formatAge(latest.time) : "",
  ];
  return el(
    "section",
    { class: "card story", "aria-label": folder },
    el(
      "header",
      {},
      isOfChats ? timelineAvatar(latest.timeline) : null,
      el("h2", {}, folder),
      el("small", {}, facts.filter(Boolean).join(" · ")),
      isOfChats && latest.head && !isStory
        ? link(address("tree", latest.timeline), t("map"), { class: "button" })
        : null,
    ),
    el(
      "ul",
      { class: "timelines" },
      nested(lines).map(([line, depth]) => timelineRow(line, depth)),
    ),
  );
}

/** Maximum depth that is shown by indentation. */
const MAX_DEPTH = 4;

/**
 * Orders forks below their parents, with their depths.
 * @param {Line[]} lines
 * @returns {[Line, number][]}
 */
function nested(lines) {
  const names = new Set(lines.map((line) => line.timeline));
  /** @type {Map<string | null, Line[]>} */
  const forks = new Map();
  for (const line of lines) {
    const parent = names.has(line.parent) && line.parent !== line.timeline ? line.parent : null;
    forks.set(parent, [...(forks.get(parent) ?? []), line]);
  }
  /** @type {[Line, number][]} */
  const rows = [];
  const waiting = (forks.get(null) ?? []).map((line) => /** @type {[Line, number]} */ ([line, 0]));
  while (waiting.length) {
    const [line, depth] = /** @type {[Line, number]} */ (waiting.shift());
    rows.push([line, depth]);
    const below = forks.get(line.timeline) ?? [];
    forks.delete(line.timeline);
    waiting.unshift(...below.map((fork) => /** @type {[Line, number]} */ ([fork, depth + 1])));
  }
  return rows;
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

/** @param {Line} line @param {number} depth */
function timelineRow(line, depth) {
  const name = splitTimeline(line.timeline)[1];
  const facts = [
    [
      isChat(line.timeline) ? t("messages", { n: line.messages }) : "",
      line.entries === undefined ? "" : t("entries", { n: line.entries ?? 0 }),
    ]
      .filter(Boolean)
      .join(" · "),
    isStory ? "" : t("snapshots", { n: line.snapshots }),
    line.time ? formatAge(line.time) : "",
  ];
  const label = STATE_LABELS[line.state];
  const forkAt = Math.max(0, (line.fork_at ?? 1) - 1);
  const restore = () => confirmPlan("restore", { snapshot: line.moment ?? line.head });
  return el(
    "li",
    {
      class: `row ${line.state} depth${Math.min(depth, MAX_DEPTH)}`,
      "data-key": line.timeline,
    },
    el(
      "span",
      { class: "title" },
      line.head
        ? link(address("read", line.timeline), name, { class: "name" })
        : el("span", { class: "name" }, name),
      line.parent && isChat(line.timeline)
        ? el(
            "span",
            { class: "chip" },
            depth
              ? t("afterMessage", { at: forkAt })
              : t("forkOf", { parent: splitTimeline(line.parent)[1], at: forkAt }),
          )
        : null,
      (line.tags ?? []).map((/** @type {string} */ tag) =>
        link(address("read", tag), tag, { class: "tag" }),
      ),
      label ? el("span", { class: "label" }, t(label)) : null,
    ),
    facts.map((fact) => el("span", { class: "facts" }, fact)),
    el(
      "span",
      { class: "actions" },
      line.state === "deleted" ? null : openButton(line.timeline),
      line.state === "deleted" && line.head && mayWrite()
        ? el("button", { type: "button", onclick: restore }, t("restore"))
        : null,
    ),
  );
}
