// Characters and groups with their timelines, the latest first; what is wrong comes on top.

import { ask, of } from "./ask.js";
import { isFile } from "./file.js";
import { address, el, link, show } from "./nodes.js";
import { ago, parts, t } from "./words.js";

/** @type {import("./main.js").Place} */
export async function library(place) {
  const draw = async () => {
    const answer = await ask("library");
    const timelines = of(answer, "timeline");
    const backup = of(answer, "copy")[0];
    const times = timelines
      .map((line) => line.time)
      .filter(Boolean)
      .sort();
    const wrong = el(
      "section",
      { class: "wrong", "aria-label": t("doctor") },
      findings(of(answer, "finding")),
    );
    const list = el("div", { class: "list" });
    const filter = /** @type {HTMLInputElement} */ (
      el("input", {
        type: "search",
        placeholder: t("filter"),
        "aria-label": t("filter"),
        oninput: () => fill(),
      })
    );
    const fill = () =>
      show(
        list,
        groups(
          timelines.filter((line) =>
            line.timeline.toLowerCase().includes(filter.value.toLowerCase()),
          ),
        ),
      );
    show(
      place,
      el("h1", {}, t("library")),
      el(
        "p",
        { class: "facts" },
        times.length ? t("lastSnapshot", { when: ago(times[times.length - 1]) }) : "",
        " · ",
        backup ? t("lastBackup", { when: ago(backup.taken) }) : t("noBackup"),
      ),
      wrong,
      filter,
      list,
    );
    fill();
    // It reads every file, so it is asked only by who stays a moment.
    clearTimeout(waits);
    const look = () =>
      ask("doctor")
        .then((found) => show(wrong, findings(of(found, "finding"))))
        .catch(() => {});
    if (!isFile) waits = setTimeout(look, 1500);
  };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waits;
  await draw();
  return { changed: draw, left: () => clearTimeout(waits) };
}

/** @param {import("./ask.js").Line[]} lines */
function findings(lines) {
  const bad = lines.filter((line) => line.level !== "info");
  if (!bad.length) return null;
  const row = (/** @type {import("./ask.js").Line} */ line) =>
    el(
      "li",
      { class: line.level },
      el("b", {}, line.subject),
      ` ${line.message}`,
      line.remedy ? el("small", {}, line.remedy) : null,
    );
  return el(
    "details",
    { open: bad.length < 6 },
    el("summary", {}, `${t("doctor")} (${bad.length})`),
    el("ul", {}, bad.map(row)),
  );
}

/** @param {import("./ask.js").Line[]} timelines */
function groups(timelines) {
  /** @type {Map<string, import("./ask.js").Line[]>} */
  const folders = new Map();
  const recent = [...timelines].sort((a, b) => (b.time ?? "").localeCompare(a.time ?? ""));
  for (const line of recent) {
    const isChat = line.timeline.startsWith("chats/") || line.timeline.startsWith("group chats/");
    const folder = isChat ? parts(line.timeline)[0] : t("other");
    folders.set(folder, [...(folders.get(folder) ?? []), line]);
  }
  if (!timelines.length) return [el("p", {}, t("nothing"))];
  const last = [...folders].sort(([a], [b]) => Number(a === t("other")) - Number(b === t("other")));
  return last.map(([folder, lines]) =>
    el(
      "section",
      { "aria-label": folder },
      el("h2", {}, folder, " ", el("small", {}, String(lines.length))),
      el("ul", { class: "timelines" }, lines.map(row)),
    ),
  );
}

/** @param {import("./ask.js").Line} line */
function row(line) {
  const [, name] = parts(line.timeline);
  const facts = [
    line.entries === undefined
      ? t("messages", { n: line.messages })
      : t("entries", { n: line.entries ?? 0 }),
    t("snapshots", { n: line.snapshots }),
    line.time ? ago(line.time) : "",
    line.parent
      ? t("forkOf", { parent: parts(line.parent)[1], at: Math.max(0, (line.fork_at ?? 1) - 1) })
      : "",
  ]
    .filter(Boolean)
    .join(" · ");
  const state = t(/** @type {"deleted"} */ (line.state));
  const chat = line.timeline.startsWith("chats/") || line.timeline.startsWith("group chats/");
  return el(
    "li",
    { class: `row ${line.state}` },
    line.head
      ? link(address("read", line.timeline), name, { class: "name" })
      : el("span", { class: "name" }, name),
    el("span", { class: "facts" }, facts),
    state ? el("span", { class: "mark" }, state) : null,
    (line.tags ?? []).map((/** @type {string} */ tag) =>
      link(address("read", tag), tag, { class: "tag" }),
    ),
    chat && line.head ? link(address("tree", line.timeline), t("map"), { class: "way" }) : null,
  );
}
