// A chat at any of its snapshots, with the lorebook of that moment beside it, and a slider through time that moves both.

import { ask, mayWrite, of, pages } from "./ask.js";
import { askName, plan } from "./changes.js";
import { messagesFrom } from "./chat.js";
import { PAGE, holds, isFile, momentOf } from "./file.js";
import { address, el, link, show } from "./nodes.js";
import { rows } from "./rows.js";
import { changed, told } from "./text.js";
import { ago, date, parts, t } from "./words.js";

/** @typedef {import("./ask.js").Line} Line */

/** @type {import("./main.js").Place} */
export async function reader(place, [moment], query) {
  const shown = of(await ask("show", { snapshot: moment }), "snapshot")[0];
  const timeline = shown.timeline_now ?? shown.timeline;
  const isChat = timeline.startsWith("chats/") || timeline.startsWith("group chats/");
  /** @type {Line[]} */
  let snapshots = [];
  let at = 0;
  const [folder, name] = parts(timeline);
  const looks = { hidden: true, swipes: false, reasoning: false };

  const slider = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "range",
      min: "0",
      "aria-label": t("moment"),
      oninput: () => turn(Number(slider.value)),
    })
  );
  const when = el("output", { class: "facts" });
  const story = el("section", { class: "story", "aria-label": t("chat"), tabindex: 0 });
  const book = el("aside", { class: "book", "aria-label": t("knew") });
  const actions = el("div", { class: "buttons" });
  const looksBar = el(
    "div",
    { class: "tools" },
    ...[
      ["hidden", t("showHidden")],
      ["swipes", t("showSwipes")],
      ["reasoning", t("showReasoning")],
    ].map(([key, words]) =>
      el(
        "label",
        {},
        el("input", {
          type: "checkbox",
          checked: looks[/** @type {"hidden"} */ (key)],
          onchange: (/** @type {Event} */ event) => {
            looks[/** @type {"hidden"} */ (key)] = /** @type {HTMLInputElement} */ (
              event.target
            ).checked;
            story.classList.toggle(`no-${key}`, !looks[/** @type {"hidden"} */ (key)]);
          },
        }),
        words,
      ),
    ),
  );
  story.classList.add("no-swipes", "no-reasoning");
  show(
    place,
    el("h1", {}, folder, " / ", name),
    el(
      "div",
      { class: "time" },
      el("button", { type: "button", "aria-label": "−1", onclick: () => turn(at - 1) }, "‹"),
      slider,
      el("button", { type: "button", "aria-label": "+1", onclick: () => turn(at + 1) }, "›"),
      when,
    ),
    actions,
    isChat ? looksBar : null,
    el("div", { class: "two" }, story, book),
  );

  const load = async () => {
    /** @type {Line[]} */
    const all = [];
    await pages("log", { timeline }, (answer) => all.push(...of(answer, "snapshot")));
    const looked = snapshots[at] ?? shown;
    snapshots = all.reverse();
    at = snapshots.findIndex((line) => momentOf(line) === momentOf(looked));
    if (at < 0) at = snapshots.findIndex((line) => line.id === looked.id);
    if (at < 0) at = (snapshots.push(looked), snapshots.length - 1);
    slider.max = String(snapshots.length - 1);
    slider.value = String(at);
  };

  let turns = 0;
  /** @param {number} to */
  async function turn(to) {
    at = Math.max(0, Math.min(snapshots.length - 1, to));
    slider.value = String(at);
    const now = snapshots[at];
    where(now);
    history.replaceState(
      null,
      "",
      address("read", momentOf(now)) + (query.size && isFirst(now) ? `?${query}` : ""),
    );
    const mine = ++turns;
    await new Promise((done) => setTimeout(done, 60));
    if (mine !== turns) return;
    await Promise.all([isChat ? messages(now) : null, lore(now, mine)]);
  }

  /** Whether this is the state that the address named. @param {Line} now */
  function isFirst(now) {
    return momentOf(now) === asked;
  }

  /** Shows which state this is, and what can be done with it. @param {Line} now */
  function where(now) {
    const isBook = isChat && now.timeline.startsWith("worlds/");
    show(
      when,
      `${date(now.time)} (${ago(now.time)}) · ${t("position", { n: at + 1, of: snapshots.length })} · ${t("messages", { n: now.messages })}${isBook ? ` · ${t("bookChanged")}` : ""}`,
      " ",
      now.tags.map((/** @type {string} */ tag) => el("span", { class: "tag" }, tag)),
    );
    slider.setAttribute(
      "aria-valuetext",
      `${date(now.time)}${isBook ? ` · ${t("bookChanged")}` : ""}`,
    );
    ways(now);
  }

  /** @param {Line} now */
  function ways(now) {
    const [snapshot, before, last] = [
      now,
      snapshots[at - 1] ?? null,
      snapshots[snapshots.length - 1],
    ].map((line) => line && momentOf(line));
    // The map has the chat's snapshots, and a change of its lorebook follows one of these.
    const dot = isChat
      ? snapshots.slice(0, at + 1).findLast((line) => !line.timeline.startsWith("worlds/"))
      : null;
    show(
      actions,
      before && holds("diff", { before, after: snapshot })
        ? link(address("compare", before, snapshot), t("compareNow"), { class: "button" })
        : null,
      isFile
        ? null
        : link(
            address("compare", snapshot, ...(snapshots[at + 1] ? [last] : [])),
            `${t("compareWith")} ${t("now")}`,
            { class: "button" },
          ),
      isChat
        ? link(`${address("tree", timeline)}?at=${dot?.id ?? ""}`, t("map"), { class: "button" })
        : null,
      mayWrite()
        ? el(
            "button",
            { type: "button", onclick: () => plan("restore", { snapshot }) },
            t("restore"),
          )
        : null,
      mayWrite() && isChat
        ? el(
            "button",
            {
              type: "button",
              onclick: () =>
                askName(t("restoreAs"), `${name} (${now.id.slice(0, 6)})`, (as) =>
                  plan("restore", { snapshot, name: as }),
                ),
            },
            t("restoreAs"),
          )
        : null,
      mayWrite()
        ? el(
            "button",
            {
              type: "button",
              onclick: () =>
                askName(t("tag"), "", (tag) =>
                  ask("tag", { name: tag, snapshot }).then(() => say(t("tagged")), say),
                ),
            },
            t("tag"),
          )
        : null,
    );
  }

  const list = rows("messages");
  story.append(list);
  /** @param {Line} now */
  async function messages(now) {
    const wanted = Number(query.get("m") ?? NaN);
    const looked = Number.isNaN(wanted) || !isFirst(now) ? now.messages - 1 : wanted;
    const make = async (/** @type {number} */ first) =>
      (await messagesFrom(momentOf(now), first)).map((line) => message(line, now));
    await list.fill({ total: now.messages, size: PAGE, height: 110, make }, looked);
    const node =
      list.querySelector(`[data-message="${looked}"]`) ?? list.querySelector("li:last-child");
    node?.scrollIntoView({ block: looked === wanted ? "center" : "end" });
  }

  /** @param {Line} line @param {Line} now */
  function message(line, now) {
    const others = line.swipes
      .map((/** @type {string} */ text, /** @type {number} */ n) => [n, text])
      .filter((/** @type {[number, string]} */ [n]) => n !== line.swipe);
    const versions = el(
      "details",
      {
        class: "versions",
        ontoggle: () => versions.childElementCount < 2 && history_of(line, versions),
      },
      el("summary", {}, t("versions")),
    );
    return el(
      "li",
      {
        class: `message${line.hidden ? " hidden" : ""}${line.user ? " user" : ""}`,
        "data-message": line.index,
        value: line.index,
      },
      el(
        "header",
        {},
        el("b", {}, line.name),
        " ",
        link(`${address("read", momentOf(now))}?m=${line.index}`, `#${line.index}`, {
          class: "facts",
        }),
        el(
          "span",
          { class: "facts" },
          line.said ? ` ${date(line.said)}` : "",
          line.hidden ? ` · ${t("hidden")}` : "",
        ),
        isFile ? null : versions,
        mayWrite()
          ? el(
              "button",
              {
                type: "button",
                class: "way",
                onclick: () =>
                  askName(t("fork"), `${name} - ${line.index}`, (as) =>
                    plan("restore", { snapshot: momentOf(now), at: line.index, name: as }),
                  ),
              },
              t("fork"),
            )
          : null,
      ),
      line.reasoning
        ? el(
            "blockquote",
            { class: "reasoning" },
            el("small", {}, t("reasoning")),
            told(line.reasoning),
          )
        : null,
      told(line.text),
      others.length
        ? el(
            "div",
            { class: "swipes" },
            others.map((/** @type {[number, string]} */ [n, text]) =>
              el(
                "blockquote",
                {},
                el("small", {}, t("swipe", { n: n + 1, of: line.swipes.length })),
                told(text),
              ),
            ),
          )
        : null,
    );
  }

  /** @param {Line} line @param {HTMLElement} into */
  async function history_of(line, into) {
    const versions = of(await ask("log", { timeline, message: line.index }), "message_version");
    into.append(
      el(
        "ol",
        {},
        versions.map((one) =>
          el(
            "li",
            {},
            link(`${address("read", one.snapshot)}?m=${one.index}`, date(one.time)),
            el(
              "p",
              { dir: "auto" },
              one.change ? changed(one.change.before?.mes ?? "", one.change.after?.mes ?? "") : "?",
            ),
          ),
        ),
      ),
    );
  }

  const entries = rows("entries");
  /** @param {Line} now @param {number} mine */
  async function lore(now, mine) {
    if (!now.lorebook && !now.timeline.startsWith("worlds/"))
      return show(book, el("h2", {}, t("knew")), el("p", {}, t("noBook")));
    const page = (/** @type {number} */ first) =>
      ask("lore", { snapshot: momentOf(now), first, count: PAGE });
    const begin = await page(0).catch(() => null);
    if (mine !== turns) return;
    if (!begin) return show(book, el("h2", {}, t("knew")), el("p", {}, t("bookUnknown")));
    const total = of(begin, "summary")[0].entries;
    const name = of(begin, "lore_entry")[0]?.lorebook ?? now.lorebook ?? "";
    const wanted = isFirst(now) ? query.get("e") : null;
    const [named] = wanted
      ? of(
          await ask("lore", { snapshot: momentOf(now), entry: wanted }).catch(() => ({
            lines: [],
            exit: 0,
            next: null,
          })),
          "lore_entry",
        )
      : [];
    const make = async (/** @type {number} */ first) =>
      of(first ? await page(first) : begin, "lore_entry").map((line) => entry(line, name));
    if (!book.contains(entries)) show(book, el("h2"), el("ul"), entries);
    const [head, pinned] = [book.children[0], book.children[1]];
    show(head, t("knew"), " ", el("small", {}, `${name} · ${t("entries", { n: total })}`));
    show(pinned, named ? entry(named, name, true) : null);
    await entries.fill({ total, size: PAGE, height: 34, make }, 0);
  }

  /** @param {Line} line @param {string} name @param {boolean} [open] */
  function entry(line, name, open = false) {
    const value = line.value ?? {};
    const mark = line.live === false ? t("gone") : line.newer ? t("newer") : "";
    const past = el("div", { class: "past" });
    const ask_past = async () => {
      if (past.childElementCount || !details.open) return;
      const lines = of(await ask("lore", { book: name, entry: line.uid }), "lore_change");
      show(
        past,
        el("h3", {}, t("history")),
        el(
          "ol",
          {},
          lines.map((one) =>
            el(
              "li",
              {},
              link(address("read", one.story ?? one.snapshot), date(one.time)),
              el("span", { class: "facts" }, one.index === null ? "" : ` #${one.index}`),
              el(
                "p",
                { dir: "auto" },
                changed(one.change?.before?.content ?? "", one.change?.after?.content ?? ""),
              ),
            ),
          ),
        ),
      );
    };
    const details = /** @type {HTMLDetailsElement} */ (
      el(
        "details",
        { "data-uid": line.uid, open, ontoggle: ask_past },
        el(
          "summary",
          {},
          el("b", {}, value.comment || (value.key ?? []).join(", ") || `UID ${line.uid}`),
          mark ? el("span", { class: "mark" }, mark) : null,
        ),
        told(String(value.content ?? "")),
        past,
      )
    );
    return el("li", { class: value.disable ? "off" : "" }, details);
  }

  await load();
  const asked = momentOf(snapshots[at]);
  await turn(at);
  // A new snapshot lengthens the slider; the state that is read stays.
  return { changed: () => load().then(() => where(snapshots[at])) };
}

/** @param {unknown} words */
function say(words) {
  const node = document.getElementById("said");
  if (node) node.textContent = words instanceof Error ? words.message : String(words);
}
