// Comparison of two snapshots, or of a snapshot with the current files.

import { ask, linesOf } from "./api.js";
import { address, el, link, setChildren } from "./dom.js";
import { momentOf } from "./standalone.js";
import { renderDiff, renderText, shorten } from "./text.js";
import { formatDate, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** @type {import("./main.js").Place} */
export async function compare(place, [before, after]) {
  const [answer, left, right] = await Promise.all([
    ask("diff", { before, ...(after ? { after } : {}) }),
    snapshotLink(before),
    after ? snapshotLink(after) : null,
  ]);
  const lines = linesOf(answer, "change");
  const section = (
    /** @type {string} */ title,
    /** @type {string} */ part,
    /** @type {(line: Line) => Node} */ render,
    { open = true } = {},
  ) => {
    const changes = lines.filter((line) => line.part === part);
    const summary = el("summary", {}, `${title} (${changes.length})`);
    return changes.length ? el("details", { open }, summary, changes.map(render)) : null;
  };
  setChildren(
    place,
    el("h1", {}, `${t("before")} ↔ ${t("after")}`),
    el("div", { class: "columns sides" }, left, right ?? el("p", {}, t("currentFiles"))),
    lines.length ? null : el("p", {}, t("noDifference")),
    section(t("chat"), "message", renderMessage),
    section(t("lorebook"), "lorebook", renderEntry),
    section(t("character"), "card", renderValue),
    section(t("metadata"), "metadata", renderValue, { open: false }),
  );
}

/** @param {string} moment */
async function snapshotLink(moment) {
  try {
    const [line] = linesOf(await ask("show", { snapshot: moment }), "snapshot");
    const [folder, name] = splitTimeline(line.timeline);
    return el(
      "p",
      {},
      link(address("read", momentOf(line)), `${folder} / ${name}`),
      el("span", { class: "facts" }, ` ${formatDate(line.time)}`),
    );
  } catch {
    return el("p", {}, moment);
  }
}

/** @type {Record<string, import("./words.js").Key>} */
const KIND_LABELS = {
  added: "added",
  removed: "removed",
  edited: "edited",
  moved: "moved",
  swipe: "swiped",
  hidden: "hidden",
  renamed: "renamed",
};

/** @param {string} kind */
function kindLabel(kind) {
  return kind in KIND_LABELS ? t(KIND_LABELS[kind]) : kind;
}

/**
 * @param {Line} line
 * @param {string} title
 * @param {string | undefined} before
 * @param {string | undefined} after
 */
function renderChange(line, title, before, after) {
  const isEdited = before !== undefined && after !== undefined && before !== after;
  const className = before === undefined ? "text-added" : after === undefined ? "text-removed" : "";
  return el(
    "article",
    { class: `change ${line.kind}` },
    el(
      "header",
      {},
      el("b", {}, shorten(title)),
      " ",
      el("span", { class: "label" }, [line.kind, ...line.also].map(kindLabel).join(", ")),
    ),
    isEdited
      ? el("p", { dir: "auto" }, renderDiff(before, after))
      : el("div", { class: className }, renderText(after ?? before ?? "")),
  );
}

/** @param {Line} line */
function renderMessage(line) {
  const { name = "" } = line.after ?? line.before ?? {};
  const [before, after] = [textOf(line.before, "mes"), textOf(line.after, "mes")];
  return renderChange(line, `#${line.index} ${name}`, before, after);
}

/** @param {Line} line */
function renderEntry(line) {
  const entry = line.after ?? line.before ?? {};
  const title = entry.comment ?? line.path ?? `UID ${line.uid}`;
  const [before, after] = [textOf(line.before, "content"), textOf(line.after, "content")];
  return renderChange(line, title, before, after);
}

/** @param {Line} line */
function renderValue(line) {
  const plain = (/** @type {unknown} */ value) =>
    value === null ? undefined : typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return renderChange(line, line.path ?? "", plain(line.before), plain(line.after));
}

/** @param {any} value @param {string} field @returns {string | undefined} */
function textOf(value, field) {
  if (value === null || value === undefined) return undefined;
  return typeof value === "string" ? value : String(value[field] ?? JSON.stringify(value));
}
