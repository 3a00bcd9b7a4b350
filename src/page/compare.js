// Comparison of two snapshots, or of a snapshot with the current files, side by side. Only the
// changes near the visible part are loaded.

import { ask, linesOf, mayWrite } from "./api.js";
import { colourOf, kindChip, kinds, renderChange } from "./change_rows.js";
import { confirmPlan } from "./dialogs.js";
import { address, el, link, redraw, setChildren } from "./dom.js";
import { PAGE, canAnswer, isStandalone, momentOf } from "./standalone.js";
import { shorten } from "./text.js";
import { renderGap, unchangedBetween } from "./unchanged_messages.js";
import { virtualList } from "./virtual_list.js";
import { formatDate, isChat, noteOf, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/**
 * The parts of a comparison: the name in answers, the name in requests, and the title.
 * @type {[string, string, import("./words.js").Key][]}
 */
const PARTS = [
  ["message", "chat", "chatMessages"],
  ["lorebook", "lorebook", "lorebook"],
  ["card", "card", "character"],
  ["metadata", "metadata", "metadata"],
];
/** Estimated height of a change, in pixels. */
const HEIGHT = 140;
/** Distance of the current change from what is above it, in pixels. */
const GAP = 8;
/** Number of pages of changes that are cached. */
const MAX_PAGES = 8;

/**
 * A part of a comparison. In the list, each part begins with a new page, because a page is one
 * answer, which is about one part.
 * @typedef {object} Part
 * @property {string} name
 * @property {string} only
 * @property {string} title
 * @property {Record<string, number>} counts
 * @property {number} total
 */

/** @type {import("./main.js").Place} */
export async function compare(place, [older, newer]) {
  const requested = { before: older, ...(newer ? { after: newer } : {}) };
  // The messages are requested before it is known whether they changed, because they are on top.
  const firstMessages = { ...requested, only: "chat", first: 0, count: PAGE };
  const early = canAnswer("diff", firstMessages) ? ask("diff", firstMessages) : null;
  early?.catch(() => {});
  const show = (/** @type {string | undefined} */ moment) =>
    moment
      ? ask("show", { snapshot: moment, brief: true }).then(
          (answer) => linesOf(answer, "snapshot")[0],
          () => undefined,
        )
      : undefined;
  const [answer, ...shown] = await Promise.all([
    ask("diff", { ...requested, stat: true }),
    show(older),
    show(newer),
  ]);
  const [comparison] = linesOf(answer, "comparison");
  // Names such as "Tide Office" mean another snapshot later, so the answer names the moments.
  const moments = isStandalone ? requested : momentsOf(comparison);
  const left = shown[0] ?? (await show(moments.before));
  const right = shown[1] ?? (await show(moments.after));

  /** @type {Part[]} */
  const parts = PARTS.flatMap(([name, only, title]) => {
    const counts = comparison.counts[name];
    const total = sum(counts ?? {});
    return total ? [{ name, only, title: t(title), counts, total }] : [];
  });
  let filtered = parts;
  const load = changeLoader(moments, comparison, early);

  const heading = el("h1", {}, titleOf(left, right));
  const heads = el("div", { class: "heads" });
  const position = el("span", { class: "facts position" });
  const counts = el("p", { class: "counts" });
  const shares = el("div", { class: "shares", "aria-hidden": "true" });
  const list = virtualList("changes-list");
  const step = (/** @type {number} */ by, /** @type {import("./words.js").Key} */ label) => {
    const [key, arrow] = by < 0 ? ["p", "‹"] : ["n", "›"];
    const parts = [
      el("span", { "aria-hidden": "true" }, arrow),
      el("span", { class: "long" }, t(label)),
      el("kbd", { class: "keys", "aria-hidden": "true" }, key),
    ];
    const properties = { type: "button", "aria-keyshortcuts": key };
    return el("button", { ...properties, onclick: () => move(by) }, parts);
  };
  const filters = el("div", { class: "filters", role: "group", "aria-label": t("partsToShow") });
  const findings = linesOf(answer, "finding").map((line) => {
    const text = line.code === "lorebook-then-unknown" ? t("lorebookUnknown") : line.message;
    return el("p", { class: "warning" }, text);
  });
  const summary = el("div", { class: "summary" }, filters, counts);
  /** What stays on top of the list on a large screen. */
  const overview = el("div", { class: "overview" }, summary, shares, findings, heads);
  const scroller = el(
    "section",
    { class: "changes", "aria-label": t("changes", { n: comparison.changes }), tabindex: 0 },
    overview,
    comparison.changes ? list : el("p", { class: "empty" }, t("noDifference")),
  );
  const isNamed = !isSameTimeline(left, right);
  const drawHeads = () =>
    redraw(
      heads,
      renderHead("before", left, { isNamed, mayRestore: !isNamed && mayWrite() }),
      moments.after ? renderHead("after", right, { isNamed }) : renderCurrent(),
    );
  setChildren(
    place,
    el(
      "div",
      { class: "bar" },
      heading,
      el("div", { class: "steps" }, position, step(-1, "previousChange"), step(1, "nextChange")),
    ),
    scroller,
  );
  drawHeads();

  const total = () => filtered.reduce((all, part) => all + part.total, 0);
  /** Returns the part of a row of the list, and the row's number in the part. */
  const partAt = (/** @type {number} */ row) => {
    for (const part of filtered) {
      const rows = Math.ceil(part.total / PAGE) * PAGE;
      if (row < rows) return { part, first: row };
      row -= rows;
    }
    throw new RangeError();
  };
  /** Returns the row of the list that shows a change. */
  const rowOf = (/** @type {number} */ change) => {
    let start = 0;
    for (const part of filtered) {
      if (change < part.total) break;
      change -= part.total;
      start += Math.ceil(part.total / PAGE) * PAGE;
    }
    return start + change;
  };
  const make = async (/** @type {number} */ start) => {
    const { part, first } = partAt(start);
    const lines = await load(part.only, first);
    const offset = before(part) + first;
    const gaps = part.name === "message" ? unchangedBetween(lines, first) : [];
    return lines.map((line, n) =>
      el(
        "li",
        { tabindex: -1, "data-change": offset + n },
        first + n ? null : el("h2", {}, part.title, " ", el("small", {}, part.total)),
        gaps[n] && renderGap(moments.before, gaps[n].start, gaps[n].count),
        renderChange(line, addressOf),
      ),
    );
  };
  /** Returns the address of a message in the reader. @param {Line} line */
  function addressOf(line) {
    const [moment, index] =
      line.after !== null && moments.after
        ? [moments.after, line.index]
        : [moments.before, line.from];
    return index === undefined ? null : `${address("read", moment)}?m=${index}`;
  }
  const fill = (at = 0) => {
    const pages = filtered.reduce((all, part) => all + Math.ceil(part.total / PAGE), 0);
    const last = filtered[filtered.length - 1]?.total ?? 0;
    const rows = pages * PAGE - ((PAGE - (last % PAGE)) % PAGE);
    return list.fill({ total: rows, size: PAGE, height: HEIGHT, make }, at);
  };

  /** Number of the change that has the focus, or had it last. */
  let current = -1;
  /** The change that is loaded to move to it. @type {number | null} */
  let goal = null;
  const drawPosition = () => {
    const [at, of] = [goal ?? current, total()];
    setChildren(position, at < 0 ? t("changes", { n: of }) : t("position", { n: at + 1, of }));
  };
  list.addEventListener("focusin", ({ target }) => {
    const row = target instanceof Element ? target.closest("li[data-change]") : null;
    if (!row) return;
    current = Number(row.getAttribute("data-change"));
    drawPosition();
  });
  /** Moves to the next or the previous change. @param {number} by */
  async function go(by) {
    const isLoading = goal !== null;
    const to = goal === null ? neighbour(by) : goal + by;
    goal = Math.max(0, Math.min(total() - 1, to));
    drawPosition();
    if (isLoading) return;
    try {
      // The user may ask for another change while one is loaded.
      while (goal !== null) {
        const loaded = /** @type {number} */ (goal);
        const row = await loadRow(rowOf(loaded));
        if (loaded !== goal) continue;
        goal = null;
        if (row) list.hold(row, 0, topOfList() + GAP);
        row?.focus({ preventScroll: true });
      }
    } finally {
      goal = null;
    }
  }
  /** @param {number} by */
  function move(by) {
    // If the program does not answer, the viewer says so.
    go(by).catch(() => {});
  }
  /** @param {number} index */
  async function loadRow(index) {
    if (!list.rowAt(index)) await fill(index);
    return list.rowAt(index);
  }
  /** Returns the height of what covers the top of the list. */
  function topOfList() {
    return getComputedStyle(overview).position === "sticky" ? overview.offsetHeight : 0;
  }
  /**
   * Returns the change after or before the current one. If the user scrolled away from it, the
   * first visible change counts as the current one.
   * @param {number} by
   */
  function neighbour(by) {
    const row = current < 0 ? undefined : list.rowAt(rowOf(current));
    const box = row?.getBoundingClientRect();
    const view = scroller.getBoundingClientRect();
    if (box && box.bottom > view.top && box.top < view.bottom) return current + by;
    const first = list.firstVisible();
    if (!first) return firstVisiblePage();
    const number = Number(first.row.getAttribute("data-change"));
    // The beginning of a change that is partly above the visible part was seen already.
    return first.offset >= 0 === by > 0 ? number : number + by;
  }
  /** Returns the first change of the visible page, which is not loaded yet. */
  function firstVisiblePage() {
    const { top } = scroller.getBoundingClientRect();
    const pages = /** @type {HTMLOListElement[]} */ ([...list.children]);
    const page = pages.find((one) => one.getBoundingClientRect().bottom > top);
    const { part, first } = partAt(page?.start ?? 0);
    return before(part) + first;
  }
  /** Returns the number of changes in earlier parts. @param {Part} part */
  function before(part) {
    const earlier = filtered.slice(0, filtered.indexOf(part));
    return earlier.reduce((all, one) => all + one.total, 0);
  }

  const filter = (/** @type {Part[]} */ to) => {
    filtered = to;
    current = -1;
    goal = null;
    drawFilters();
    scroller.scrollTop = 0;
    return fill();
  };
  const drawFilters = () => {
    const choice = (/** @type {string} */ label, /** @type {Part[]} */ to) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": String(to.length === filtered.length && to[0] === filtered[0]),
          onclick: () => filter(to),
        },
        `${label} `,
        el(
          "b",
          {},
          to.reduce((all, part) => all + part.total, 0),
        ),
      );
    const choices = parts.map((part) => choice(part.title, [part]));
    redraw(filters, parts.length > 1 ? [choice(t("allParts"), parts), ...choices] : []);
    const counted = countKinds(filtered);
    setChildren(counts, ...counted.map(({ kind, count }) => kindChip(kind, count)));
    setChildren(shares, ...counted.map(renderShare));
    drawPosition();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    const isTyping = target instanceof Element && target.closest("input, textarea, dialog");
    if ((key !== "n" && key !== "p") || isTyping || ctrlKey || metaKey || altKey) return;
    event.preventDefault();
    move(key === "n" ? 1 : -1);
  };
  if (comparison.changes) {
    await filter(parts);
    document.addEventListener("keydown", onKey);
  }
  return {
    onLeave: () => document.removeEventListener("keydown", onKey),
    onPrint: () => list.loadAll(),
    // Snapshots do not change, but the viewer may write now, or no longer.
    onChange: async () => drawHeads(),
  };
}

/** @param {Line} comparison @returns {{ before: string, after?: string }} */
function momentsOf({ before_moment: before, after_moment: after }) {
  return { before, ...(after ? { after } : {}) };
}

/** @param {Record<string, number>} counts */
function sum(counts) {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

/**
 * Returns a function that loads a page of changes. The most recently used pages are cached.
 * @param {{ before: string, after?: string }} moments
 * @param {Line} comparison
 * @param {Promise<import("./api.js").Answer> | null} early the first page of messages
 */
function changeLoader(moments, comparison, early) {
  /** @type {Map<string, Promise<Line[]>>} */
  const cache = new Map();
  const changes = (/** @type {import("./api.js").Answer} */ answer) => linesOf(answer, "change");
  const loadPage = async (/** @type {string} */ only, /** @type {number} */ first) => {
    if (only === "chat" && !first && early) {
      const answer = await early.catch(() => null);
      const [found] = answer ? linesOf(answer, "comparison") : [];
      const isSame = (/** @type {string} */ name) => found?.[name] === comparison[name];
      if (answer && ["before_moment", "after_moment"].every(isSame)) return changes(answer);
    }
    return changes(await ask("diff", { ...moments, only, first, count: PAGE }));
  };
  return (/** @type {string} */ only, /** @type {number} */ first) => {
    const key = `${only} ${first}`;
    const page = cache.get(key) ?? loadPage(only, first);
    cache.delete(key);
    cache.set(key, page);
    page.catch(() => cache.delete(key));
    for (const oldest of cache.keys()) if (cache.size > MAX_PAGES) cache.delete(oldest);
    return page;
  };
}

/** @param {Line | undefined} left @param {Line | undefined} right */
function isSameTimeline(left, right) {
  return !right || left?.timeline === right.timeline;
}

/**
 * Renders the names of what is compared.
 * @param {Line | undefined} left
 * @param {Line | undefined} right
 */
function titleOf(left, right) {
  const [line = right] = [left];
  if (!line) return [`${t("before")} ↔ ${t("after")}`];
  const [folder, name] = splitTimeline(line.timeline);
  const owner = el("span", { class: "folder" }, folder, " / ");
  if (!right || isSameTimeline(left, right)) return [owner, name];
  const [otherFolder, otherName] = splitTimeline(right.timeline);
  return [owner, name, " ↔ ", otherFolder === folder ? otherName : `${otherFolder} / ${otherName}`];
}

/**
 * Renders the heading of a side.
 * @param {"before" | "after"} side
 * @param {Line | undefined} line
 * @param {{ isNamed: boolean, mayRestore?: boolean }} options
 */
function renderHead(side, line, { isNamed, mayRestore }) {
  if (!line) return el("div", { class: "head" }, el("b", {}, t(side)));
  const moment = momentOf(line);
  const messages = line.at === undefined ? line.messages : line.at + 1;
  const note = shorten(noteOf(line));
  const restore = () => confirmPlan("restore", { snapshot: moment });
  return el(
    "div",
    { class: `head ${side}` },
    isNamed
      ? el("span", { class: "name" }, splitTimeline(line.timeline)[1])
      : el("small", { class: "side-name" }, t(side)),
    link(address("read", moment), formatDate(line.time), { class: "date" }),
    isChat(line.timeline) && messages !== undefined
      ? el("span", { class: "chip" }, t("messages", { n: messages }))
      : null,
    line.tags.map((/** @type {string} */ tag) => el("span", { class: "tag" }, shorten(tag))),
    mayRestore ? el("button", { type: "button", onclick: restore }, t("restoreThis")) : null,
    note && el("q", { class: "note" }, note),
  );
}

/** Renders the heading of the current files. */
function renderCurrent() {
  return el(
    "div",
    { class: "head after" },
    el("small", { class: "side-name" }, t("after")),
    el("b", {}, t("currentFiles")),
  );
}

/** Counts the changes of each kind. @param {Part[]} parts */
function countKinds(parts) {
  return kinds().flatMap((kind) => {
    const count = parts.reduce((all, part) => all + (part.counts[kind] ?? 0), 0);
    return count ? [{ kind, count }] : [];
  });
}

/**
 * Renders the part of the bar that stands for one kind.
 * @param {{ kind: string, count: number }} counted
 */
function renderShare({ kind, count }) {
  const share = el("i", { class: colourOf(kind) });
  share.style.flexGrow = String(count);
  return share;
}
