// The reader: shows a snapshot of a chat, with the lorebook of that moment next to it. A slider
// selects the snapshot.

import { ask, linesOf, mayWrite, pages } from "./api.js";
import { avatar } from "./avatar.js";
import { askName, confirmPlan } from "./dialogs.js";
import { address, el, link, redraw, setChildren } from "./dom.js";
import { renderDiff } from "./diff_text.js";
import { messagesFrom } from "./messages.js";
import { notify } from "./notice.js";
import { openButton } from "./open_button.js";
import { renderAttachment } from "./pictures.js";
import { renderText } from "./rich_text.js";
import { PAGE, canAnswer, isStandalone, isStory, momentOf } from "./standalone.js";
import { shorten } from "./text.js";
import { virtualList } from "./virtual_list.js";
import {
  formatAge,
  formatDate,
  formatDay,
  formatSize,
  isChat,
  noteOf,
  splitTimeline,
  t,
} from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Milliseconds that the slider must not move before a snapshot is loaded. */
const SLIDER_DEBOUNCE = 60;

/** @type {import("./main.js").Place} */
export async function reader(place, [requested], query) {
  const first = linesOf(await ask("show", { snapshot: requested, brief: true }), "snapshot")[0];
  if (first.at !== undefined) first.messages = first.at + 1;
  const timeline = first.timeline_now ?? first.timeline;
  const showsChat = isChat(timeline);
  /** Whether the timeline has text to read. Characters and other files have none. */
  const hasText = showsChat || timeline.startsWith("worlds/");
  /** Snapshots of the timeline, oldest first. @type {Line[]} */
  let snapshots = [];
  /** Index of the snapshot that is shown. */
  let position = 0;
  const [owner, name] = splitTimeline(timeline);

  const slider = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "range",
      min: "0",
      "aria-label": t("snapshot"),
      oninput: () => moveTo(Number(slider.value)),
    })
  );
  /** Marks above and below the slider; their facts are also in the text beside it. */
  const ticks = el("div", { class: "ticks", "aria-hidden": "true" });
  const facts = el("output", { class: "facts" });
  const chat = el("section", { class: "chat", "aria-label": t("chat"), tabindex: 0 });
  const lorebook = el("aside", { class: "lorebook", "aria-label": t("lorebookAtMoment") });
  const actions = el("div", { class: "buttons" });
  const files = el("div", { class: "files" });
  const toggle = (
    /** @type {string} */ part,
    /** @type {string} */ label,
    /** @type {boolean} */ checked,
  ) => {
    const input = /** @type {HTMLInputElement} */ (
      el("input", {
        type: "checkbox",
        checked,
        onchange: () => chat.classList.toggle(`no-${part}`, !input.checked),
      })
    );
    chat.classList.toggle(`no-${part}`, !checked);
    return el("label", {}, input, label);
  };
  const toggles = el(
    "div",
    { class: "tools" },
    toggle("hidden", t("showHidden"), true),
    toggle("swipes", t("showSwipes"), false),
    toggle("reasoning", t("showReasoning"), false),
    el("span", { class: "facts keys" }, t("messageKeys")),
    showsChat ? files : null,
  );
  const step = (
    /** @type {number} */ by,
    /** @type {string} */ sign,
    /** @type {string} */ label,
  ) =>
    el(
      "button",
      { type: "button", "aria-label": label, onclick: () => moveTo(position + by) },
      sign,
    );
  const lorebookButton = el(
    "button",
    { type: "button", class: "compact", "aria-pressed": "false", onclick: () => showLorebook() },
    t("lorebook"),
  );
  const menuButton = el(
    "button",
    { type: "button", class: "compact", "aria-expanded": "false", onclick: () => toggleMenu() },
    t("menu"),
  );
  const toggleMenu = () =>
    menuButton.setAttribute("aria-expanded", String(place.classList.toggle("menu-open")));
  /** On a small screen, the lorebook takes the place of the chat. */
  const showLorebook = () =>
    lorebookButton.setAttribute("aria-pressed", String(place.classList.toggle("lorebook-open")));
  const hasLorebook = !isStory || !showsChat || first.entries;
  setChildren(
    place,
    el(
      "div",
      { class: "bar" },
      el("h1", {}, el("span", { class: "owner" }, owner, " / "), name),
      hasLorebook && showsChat ? lorebookButton : null,
      isStory ? null : menuButton,
    ),
    isStory
      ? null
      : el(
          "div",
          { class: "slider" },
          step(-1, "‹", t("previous")),
          el("div", { class: "strip" }, ticks, slider),
          step(1, "›", t("next")),
          facts,
        ),
    isStory ? null : actions,
    showsChat && !isStory ? toggles : null,
    showsChat || isStory ? null : files,
    !hasText
      ? null
      : hasLorebook
        ? el("div", { class: "columns" }, showsChat ? chat : null, lorebook)
        : chat,
    el("p", { class: "print-note" }, t("printNote")),
  );

  /** Loads the list of snapshots. The shown snapshot stays, even if its position has changed. */
  const loadSnapshots = async () => {
    /** @type {Line[]} */
    const all = [];
    await pages("log", { timeline }, (answer) => all.push(...linesOf(answer, "snapshot")));
    const shown = snapshots[position] ?? first;
    snapshots = all.reverse();
    position = snapshots.findIndex((line) => momentOf(line) === momentOf(shown));
    if (position < 0) {
      // The log lists a snapshot with a later lorebook, but no moment between snapshots.
      const listed = snapshots.findIndex((line) => line.id === shown.id);
      position = listed < 0 ? snapshots.length : listed;
      if (listed < 0 || shown.at !== undefined) snapshots.splice(position, 0, shown);
    }
    slider.max = String(snapshots.length - 1);
    slider.value = String(position);
    drawTicks();
  };

  function drawTicks() {
    setChildren(ticks, renderTicks(snapshots, ticks.clientWidth, moveTo));
  }
  new ResizeObserver(drawTicks).observe(ticks);

  /** Counts moves of the slider, so that only the last move loads a snapshot. */
  let moves = 0;
  /** Shows the snapshot at index `to`. @param {number} to */
  async function moveTo(to) {
    position = Math.max(0, Math.min(snapshots.length - 1, to));
    slider.value = String(position);
    const snapshot = snapshots[position];
    if (!isStory) drawHeader(snapshot);
    history.replaceState(
      history.state,
      "",
      address("read", momentOf(snapshot)) +
        (query.size && isRequested(snapshot) ? `?${query}` : ""),
    );
    const move = ++moves;
    await new Promise((resolve) => setTimeout(resolve, SLIDER_DEBOUNCE));
    if (move !== moves) return;
    await Promise.all([
      showsChat ? drawMessages(snapshot) : null,
      hasText ? drawLorebook(snapshot, move) : null,
    ]);
  }

  /** Returns whether the address names this snapshot. @param {Line} snapshot */
  function isRequested(snapshot) {
    return momentOf(snapshot) === requestedMoment;
  }

  /** Shows the time, tags and actions of a snapshot. @param {Line} snapshot */
  function drawHeader(snapshot) {
    const isLorebook = showsChat && snapshot.timeline.startsWith("worlds/");
    const lorebookNote = isLorebook ? ` · ${t("lorebookChanged")}` : "";
    const date = formatDate(snapshot.time);
    const note = shorten(noteOf(snapshot));
    setChildren(
      facts,
      [
        `${date} (${formatAge(snapshot.time)})`,
        t("position", { n: position + 1, of: snapshots.length }),
        showsChat ? t("messages", { n: snapshot.messages }) : "",
        snapshot.entries === undefined ? "" : t("entries", { n: snapshot.entries }),
      ]
        .filter(Boolean)
        .join(" · ") + lorebookNote,
      " ",
      note && el("q", { class: "note" }, note),
      " ",
      snapshot.tags.map((/** @type {string} */ tag) => el("span", { class: "tag" }, tag)),
    );
    slider.setAttribute("aria-valuetext", `${date}${lorebookNote} ${note}`);
    drawActions(snapshot);
    drawFiles(snapshot).catch(() => setChildren(files));
  }

  /** Shows the attachments of a chat, or the files of a timeline without text. */
  async function drawFiles(/** @type {Line} */ snapshot) {
    const moment = momentOf(snapshot);
    if (!canAnswer("show", { snapshot: moment, brief: true })) return;
    const [line] = linesOf(await ask("show", { snapshot: moment, brief: true }), "snapshot");
    if (momentOf(snapshots[position]) !== moment) return;
    const size = (/** @type {Line} */ of) => formatSize(Number(of.bytes) || 0);
    const row = (/** @type {Line} */ file) =>
      el("li", {}, shorten(file.path), el("span", { class: "facts" }, ` ${size(file)}`));
    const { attachments } = line;
    redraw(
      files,
      hasText ? null : el("ul", {}, (line.files ?? []).map(row)),
      attachments
        ? el(
            "p",
            { class: "facts" },
            t("attachments", { n: attachments.files, size: size(attachments) }),
          )
        : null,
    );
  }

  /** @param {Line} line */
  function drawActions(line) {
    const snapshot = momentOf(line);
    const previous = snapshots[position - 1] && momentOf(snapshots[position - 1]);
    const latest = momentOf(snapshots[snapshots.length - 1]);
    const isLatest = position === snapshots.length - 1;
    // The map has no dots for snapshots of only the lorebook, so the link to the map names the last
    // snapshot of the chat before it.
    const dot = showsChat
      ? snapshots.slice(0, position + 1).findLast((one) => !one.timeline.startsWith("worlds/"))
      : null;
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
      el("button", { type: "button", onclick }, label);
    const restoreAs = () =>
      askName(t("restoreAs"), `${name} (${line.id.slice(0, 6)})`, (as) =>
        confirmPlan("restore", { snapshot, name: as }),
      );
    const tag = () =>
      askName(t("tag"), "", (tagName) =>
        ask("tag", { name: tagName, snapshot }).then(() => notify(t("tagged")), notify),
      );
    redraw(
      actions,
      previous && canAnswer("diff", { before: previous, after: snapshot, stat: true })
        ? link(address("compare", previous, snapshot), t("compareWithPrevious"), {
            class: "button",
          })
        : null,
      isStandalone
        ? null
        : link(
            address("compare", snapshot, ...(isLatest ? [] : [latest])),
            t("compareWithCurrent"),
            { class: "button" },
          ),
      showsChat
        ? link(`${address("tree", timeline)}?at=${dot?.id ?? ""}`, t("map"), { class: "button" })
        : null,
      isLatest ? openButton(timeline, visibleMessage) : null,
      mayWrite() ? button(t("restore"), () => confirmPlan("restore", { snapshot })) : null,
      mayWrite() && showsChat ? button(t("restoreAs"), restoreAs) : null,
      mayWrite() ? button(t("tag"), tag) : null,
      button(t("print"), () => dispatchEvent(new Event("stvc-print"))),
    );
  }

  /** Returns the number of the first visible message. */
  function visibleMessage() {
    const number = messages.firstVisible()?.row.dataset.message;
    return number === undefined ? undefined : Number(number);
  }

  const messages = virtualList("messages");
  chat.append(messages);
  // Only the controls of the current message can be reached with Tab, and "j" and "k" make another
  // message the current one. Otherwise the lorebook would be hundreds of keys away.
  /** @type {HTMLElement | null} */
  let current = null;
  const controlsOf = (/** @type {HTMLElement} */ row) =>
    /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("a, button, summary"));
  /** @param {HTMLElement} row */
  const makeCurrent = (row) => {
    if (current === row) return;
    if (current) for (const control of controlsOf(current)) control.tabIndex = -1;
    current = row;
    for (const control of controlsOf(row)) control.tabIndex = 0;
  };
  chat.addEventListener("focusin", ({ target }) => {
    const row = target instanceof Element ? target.closest(".message") : null;
    if (row) makeCurrent(/** @type {HTMLElement} */ (row));
  });
  chat.addEventListener("keydown", ({ key, ctrlKey, metaKey, altKey }) => {
    if ((key !== "j" && key !== "k") || ctrlKey || metaKey || altKey) return;
    const rows = /** @type {HTMLElement[]} */ ([...messages.querySelectorAll(".message")]);
    const isShown = (/** @type {HTMLElement} */ row) => row.offsetHeight > 0;
    const shown = rows.filter(isShown);
    const at = current ? shown.indexOf(current) : -1;
    const visible = messages.firstVisible()?.row;
    const next = at < 0 ? visible : shown[at + (key === "j" ? 1 : -1)];
    next?.focus();
  });
  /**
   * Draws the messages. The first time, scrolls to the message in the address. Later the user stays
   * at the same message.
   * @param {Line} snapshot
   */
  async function drawMessages(snapshot) {
    const wanted = Number(query.get("m") ?? NaN);
    // A story is read from its beginning, and a chat continues at its end.
    const start = isStory ? 0 : snapshot.messages - 1;
    const view = messages.view();
    const isKept = view !== null && !view.isAtEnd;
    const isWanted = view === null && !Number.isNaN(wanted);
    const target = isWanted ? wanted : isKept ? Math.min(view.index, snapshot.messages - 1) : start;
    const make = async (/** @type {number} */ start) =>
      (await messagesFrom(momentOf(snapshot), start)).map((line) => renderMessage(line, snapshot));
    await messages.fill({ total: snapshot.messages, size: PAGE, height: 110, make }, target);
    const rows = /** @type {HTMLElement[]} */ ([...messages.querySelectorAll(".message")]);
    // A line that is not a message has no row, so the next row is used.
    const row = rows.find((row) => Number(row.dataset.message) >= target) ?? rows.at(-1);
    if (!row) return;
    if (isWanted) {
      row.setAttribute("aria-current", "true");
      messages.hold(row, 0.5);
      row.focus({ preventScroll: true });
    } else if (isKept) messages.hold(row, 0, view.offset);
    else messages.hold(row, isStory ? 0 : 1);
  }

  /** @param {Line} line @param {Line} snapshot */
  function renderMessage(line, snapshot) {
    const moment = momentOf(snapshot);
    const versions = el(
      "details",
      {
        class: "versions",
        ontoggle: () => versions.childElementCount < 2 && loadVersions(line, versions),
      },
      el("summary", {}, t("messageVersions")),
    );
    const fork = () =>
      askName(t("fork"), `${name} - ${line.index}`, (as) =>
        confirmPlan("restore", { snapshot: moment, at: line.index, name: as }),
      );
    const quote = (/** @type {string} */ label, /** @type {string} */ text, className = "") =>
      el("blockquote", { class: className }, el("small", {}, label), renderText(text));
    const swipes = line.swipes.flatMap((/** @type {string} */ text, /** @type {number} */ n) =>
      n === line.swipe ? [] : [quote(t("swipe", { n: n + 1, of: line.swipes.length }), text)],
    );
    const attached = (line.attachments ?? []).map((/** @type {Line} */ file) =>
      renderAttachment(file, moment),
    );
    const row = el(
      "li",
      {
        tabindex: -1,
        class: `message${line.hidden ? " hidden" : ""}${line.user ? " user" : ""}`,
        "data-message": line.index,
        value: line.index,
      },
      avatar(line.name, line.character),
      el(
        "header",
        {},
        el("b", {}, shorten(line.name)),
        " ",
        link(`${address("read", moment)}?m=${line.index}`, `#${line.index}`, { class: "facts" }),
        el(
          "span",
          { class: "facts" },
          line.said ? ` ${formatDate(line.said)}` : "",
          line.hidden ? ` · ${t("hidden")}` : "",
        ),
        isStandalone ? null : versions,
        mayWrite()
          ? el("button", { type: "button", class: "fork-button", onclick: fork }, t("fork"))
          : null,
      ),
      line.reasoning ? quote(t("reasoning"), line.reasoning, "reasoning") : null,
      renderText(line.text),
      attached.length ? el("div", { class: "attachments" }, attached) : null,
      swipes.length ? el("div", { class: "swipes" }, swipes) : null,
    );
    for (const control of controlsOf(row)) control.tabIndex = -1;
    return row;
  }

  /** Appends the earlier versions of a message. @param {Line} line @param {Element} to */
  async function loadVersions(line, to) {
    const answer = await ask("log", { timeline, message: line.index });
    const row = (/** @type {Line} */ version) => {
      const { change } = version;
      return el(
        "li",
        {},
        link(`${address("read", version.snapshot)}?m=${version.index}`, formatDate(version.time)),
        el(
          "p",
          { dir: "auto" },
          change ? renderDiff(change.before?.mes ?? "", change.after?.mes ?? "") : "?",
        ),
      );
    };
    to.append(el("ol", {}, linesOf(answer, "message_version").map(row)));
  }

  const entries = virtualList("entries");
  /** UIDs of the entries that the user opened. @type {Set<string>} */
  const openEntries = new Set();
  /** @param {Line} snapshot @param {number} move */
  async function drawLorebook(snapshot, move) {
    const title = t(isStory ? "lorebook" : "lorebookAtMoment");
    const moment = momentOf(snapshot);
    if (!snapshot.lorebook && !snapshot.entries && !snapshot.timeline.startsWith("worlds/"))
      return setChildren(lorebook, el("h2", {}, title), el("p", {}, t("noLorebook")));
    const loadPage = (/** @type {number} */ start) =>
      ask("lore", { snapshot: moment, first: start, count: PAGE });
    const firstPage = await loadPage(0).catch(() => null);
    if (move !== moves) return;
    if (!firstPage)
      return setChildren(lorebook, el("h2", {}, title), el("p", {}, t("lorebookUnknown")));
    const total = linesOf(firstPage, "summary")[0].entries;
    const book = linesOf(firstPage, "lore_entry")[0]?.lorebook ?? snapshot.lorebook ?? "";
    const wanted = isRequested(snapshot) ? query.get("e") : null;
    const [wantedEntry] = wanted
      ? await ask("lore", { snapshot: moment, entry: wanted }).then(
          (answer) => linesOf(answer, "lore_entry"),
          () => [],
        )
      : [];
    const make = async (/** @type {number} */ start) =>
      linesOf(start ? await loadPage(start) : firstPage, "lore_entry").map((line) =>
        renderEntry(line, book, { open: openEntries.has(line.uid) }),
      );
    if (!lorebook.contains(entries)) setChildren(lorebook, el("h2"), el("ul"), entries);
    const [heading, pinned] = lorebook.children;
    const parts = [book, t("entries", { n: total })].filter(Boolean);
    const size = el("small", {}, parts.join(" · "));
    setChildren(heading, title, " ", size);
    if (wantedEntry && !place.classList.contains("lorebook-open") && query.get("m") === null)
      showLorebook();
    setChildren(pinned, wantedEntry ? renderEntry(wantedEntry, book, { open: true }) : null);
    const view = entries.view();
    await entries.fill({ total, size: PAGE, height: 34, make }, view?.index ?? 0);
    const row = view && entries.rowAt(view.index);
    if (row) entries.hold(row, 0, view.offset);
  }

  /** @param {Line} line @param {string} book @param {{ open?: boolean }} [options] */
  function renderEntry(line, book, { open = false } = {}) {
    const value = line.value ?? {};
    const label = line.live === false ? t("deletedLater") : line.newer ? t("changedLater") : "";
    const past = el("div", { class: "entry-history" });
    const onToggle = () => {
      if (details.open) openEntries.add(line.uid);
      else openEntries.delete(line.uid);
      loadHistory().catch(() => {});
    };
    const loadHistory = async () => {
      if (isStory || past.childElementCount || !details.open) return;
      const answer = await ask("lore", { book, entry: line.uid });
      const row = (/** @type {Line} */ version) => {
        const { before, after } = version.change ?? {};
        return el(
          "li",
          {},
          link(address("read", version.story ?? version.snapshot), formatDate(version.time)),
          el("span", { class: "facts" }, version.index === null ? "" : ` #${version.index}`),
          el("p", { dir: "auto" }, renderDiff(before?.content ?? "", after?.content ?? "")),
        );
      };
      setChildren(
        past,
        el("h3", {}, t("entryHistory")),
        el("ol", {}, linesOf(answer, "lore_change").map(row)),
      );
    };
    const keys = Array.isArray(value.key) ? shorten(value.key.join(", ")) : "";
    const title = value.comment || keys || `UID ${line.uid}`;
    const details = /** @type {HTMLDetailsElement} */ (
      el(
        "details",
        { "data-uid": line.uid, open, ontoggle: onToggle },
        el(
          "summary",
          {},
          el("b", {}, shorten(title)),
          label ? el("span", { class: "label" }, label) : null,
        ),
        keys ? el("p", { class: "facts" }, t("keywords", { keys })) : null,
        renderText(String(value.content ?? "")),
        past,
      )
    );
    return el("li", { class: value.disable ? "disabled" : "" }, details);
  }

  await loadSnapshots();
  const requestedMoment = momentOf(snapshots[position]);
  await moveTo(position);
  // When a snapshot is created, the slider gets longer, and the shown snapshot stays.
  const onPrint = async () => {
    await Promise.all([messages.loadAll(), entries.loadAll()]);
    place.classList.add("complete");
  };
  return { onPrint, onChange: () => loadSnapshots().then(() => drawHeader(snapshots[position])) };
}

/** Maximum number of snapshots that have a tick each. */
const MAX_TICKS = 150;
/** Least distance of two labels, in pixels. */
const LABEL_DISTANCE = 72;

/**
 * Renders a tick for each snapshot, a flag for each tag, and the days.
 * @param {Line[]} snapshots oldest first
 * @param {number} width of the slider
 * @param {(to: number) => void} moveTo
 */
function renderTicks(snapshots, width, moveTo) {
  const last = snapshots.length - 1;
  if (last < 1) return [];
  const percent = (/** @type {number} */ n) => (100 * n) / last;
  const style = (/** @type {number} */ n) => `left: ${percent(n)}%`;
  const title = (/** @type {Line} */ line) =>
    [formatDate(line.time), shorten(noteOf(line))].filter(Boolean).join(" · ");
  const marks = [];
  const distance = (100 * LABEL_DISTANCE) / Math.max(1, width);
  let [labelled, day] = [-distance, ""];
  let flagged = -distance;
  for (const [n, line] of snapshots.entries()) {
    if (snapshots.length <= MAX_TICKS)
      marks.push(
        el("i", { class: noteOf(line) ? "noted" : "", style: style(n), title: title(line) }),
      );
    const today = formatDay(line.time);
    if (today !== day && percent(n) - labelled >= distance && percent(n) < 92) {
      marks.push(el("small", { style: style(n) }, today));
      labelled = percent(n);
    }
    day = today;
    if (line.tags.length && percent(n) - flagged >= distance) {
      const [tag] = line.tags;
      const flag = { class: "tag", style: style(n), title: line.tags.join(", ") };
      marks.push(el("span", { ...flag, onclick: () => moveTo(n) }, shorten(tag)));
      flagged = percent(n);
    }
  }
  return marks;
}
