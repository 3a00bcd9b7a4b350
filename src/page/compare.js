// Two states side by side, words marked.

import { ask, of } from "./ask.js";
import { momentOf } from "./file.js";
import { address, el, link, show } from "./nodes.js";
import { changed, told } from "./text.js";
import { date, parts, t } from "./words.js";

/** @typedef {import("./ask.js").Line} Line */

/** @type {import("./main.js").Place} */
export async function compare(place, [before, after]) {
  const [answer, old, now] = await Promise.all([
    ask("diff", { before, ...(after ? { after } : {}) }),
    side(before),
    after ? side(after) : null,
  ]);
  const lines = of(answer, "change");
  const of_part = (/** @type {string} */ part) => lines.filter((line) => line.part === part);
  const section = (
    /** @type {string} */ words,
    /** @type {Line[]} */ list,
    /** @type {(line: Line) => Node} */ row,
    open = true,
  ) =>
    list.length
      ? el("details", { open }, el("summary", {}, `${words} (${list.length})`), list.map(row))
      : null;
  show(
    place,
    el("h1", {}, `${t("before")} ↔ ${t("after")}`),
    el("div", { class: "two heads" }, old, now ?? el("p", {}, t("now"))),
    lines.length ? null : el("p", {}, t("noDifference")),
    section(t("chat"), of_part("message"), message),
    section(t("lorebook"), of_part("lorebook"), entry),
    section(t("card"), of_part("card"), value),
    section(t("metadata"), of_part("metadata"), value, false),
  );
}

/** @param {string} moment */
async function side(moment) {
  try {
    const [line] = of(await ask("show", { snapshot: moment }), "snapshot");
    const [folder, name] = parts(line.timeline);
    return el(
      "p",
      {},
      link(address("read", momentOf(line)), `${folder} / ${name}`),
      el("span", { class: "facts" }, ` ${date(line.time)}`),
    );
  } catch {
    return el("p", {}, moment);
  }
}

/** @param {string} kind */
function word(kind) {
  const known = /** @type {const} */ ({
    added: "added",
    removed: "removed",
    edited: "edited",
    moved: "moved",
    swipe: "swiped",
    hidden: "hidden",
    renamed: "renamed",
  });
  return kind in known ? t(known[/** @type {keyof typeof known} */ (kind)]) : kind;
}

/** @param {Line} line @param {string} label @param {string | undefined} was @param {string | undefined} is */
function pair(line, label, was, is) {
  const both = was !== undefined && is !== undefined && was !== is;
  return el(
    "article",
    { class: `change ${line.kind}` },
    el(
      "header",
      {},
      el("b", {}, label),
      " ",
      el("span", { class: "mark" }, [line.kind, ...line.also].map(word).join(", ")),
    ),
    both
      ? el("p", { dir: "auto" }, changed(was, is))
      : el(
          "div",
          { class: was === undefined ? "come" : is === undefined ? "went" : "" },
          told(is ?? was ?? ""),
        ),
  );
}

/** @param {Line} line */
function message(line) {
  const said = line.after ?? line.before ?? {};
  return pair(
    line,
    `#${line.index} ${said.name ?? ""}`,
    text(line.before, "mes"),
    text(line.after, "mes"),
  );
}

/** @param {Line} line */
function entry(line) {
  const said = line.after ?? line.before ?? {};
  const label = said.comment ?? line.path ?? `UID ${line.uid}`;
  return pair(line, label, text(line.before, "content"), text(line.after, "content"));
}

/** @param {Line} line */
function value(line) {
  const plain = (/** @type {unknown} */ it) =>
    it === null ? undefined : typeof it === "string" ? it : JSON.stringify(it, null, 1);
  return pair(line, line.path ?? "", plain(line.before), plain(line.after));
}

/** @param {any} value @param {string} field @returns {string | undefined} */
function text(value, field) {
  if (value === null || value === undefined) return undefined;
  return typeof value === "string" ? value : String(value[field] ?? JSON.stringify(value));
}
