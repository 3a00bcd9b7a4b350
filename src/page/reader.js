// A chat at any of its snapshots, with the lorebook of that moment beside it, and a slider through time that moves both.

import { ask, mayWrite, of } from "./ask.js";
import { askName, plan } from "./changes.js";
import { address, el, link, show } from "./nodes.js";
import { changed, told } from "./text.js";
import { ago, date, parts, t } from "./words.js";

/** @typedef {import("./ask.js").Line} Line */

const PAGE = 60;

/** @type {import("./main.js").Place} */
export async function reader(place, [moment], query) {
  const shown = of(await ask("show", { snapshot: moment }), "snapshot")[0];
  const timeline = shown.timeline;
  const isChat = timeline.startsWith("chats/") || timeline.startsWith("group chats/");
  /** @type {Line[]} */
  let snapshots = [];
  let at = 0;
  const [folder, name] = parts(timeline);
  const looks = { hidden: true, swipes: false, reasoning: false };

  const slider = /** @type {HTMLInputElement} */ (
    el("input", { type: "range", min: "0", "aria-label": t("moment"), oninput: () => turn(Number(slider.value)) })
  );
  const when = el("output", { class: "facts" });
  const story = el("section", { class: "story", "aria-label": t("chat"), tabindex: 0 });
  const book = el("aside", { class: "book", "aria-label": t("knew") });
  const actions = el("div", { class: "buttons" });
  const looksBar = el("div", { class: "tools" }, ...[["hidden", t("showHidden")], ["swipes", t("showSwipes")], ["reasoning", t("showReasoning")]].map(([key, words]) =>
    el("label", {}, el("input", { type: "checkbox", checked: looks[/** @type {"hidden"} */ (key)], onchange: (/** @type {Event} */ event) => {
      looks[/** @type {"hidden"} */ (key)] = /** @type {HTMLInputElement} */ (event.target).checked;
      story.classList.toggle(`no-${key}`, !looks[/** @type {"hidden"} */ (key)]);
    } }), words)));
  story.classList.add("no-swipes", "no-reasoning");
  show(place, el("h1", {}, folder, " / ", name),
    el("div", { class: "time" }, el("button", { type: "button", "aria-label": "−1", onclick: () => turn(at - 1) }, "‹"), slider,
      el("button", { type: "button", "aria-label": "+1", onclick: () => turn(at + 1) }, "›"), when),
    actions, isChat ? looksBar : null, el("div", { class: "two" }, story, book));

  const load = async () => {
    const all = [];
    let next = /** @type {number | null} */ (0);
    while (next !== null && all.length < 20_000) {
      const answer = await ask("log", { timeline, first: next, count: 1000 });
      all.push(...of(answer, "snapshot"));
      next = answer.next;
    }
    snapshots = all.reverse();
    at = snapshots.findIndex((line) => line.id === shown.id);
    if (at < 0) at = (snapshots.push(shown), snapshots.length - 1);
    slider.max = String(snapshots.length - 1);
  };

  let turns = 0;
  /** @param {number} to */
  async function turn(to) {
    at = Math.max(0, Math.min(snapshots.length - 1, to));
    slider.value = String(at);
    const now = snapshots[at];
    show(when, `${date(now.time)} (${ago(now.time)}) · ${t("position", { n: at + 1, of: snapshots.length })} · ${t("messages", { n: now.messages })}`, " ",
      now.tags.map((/** @type {string} */ tag) => el("span", { class: "tag" }, tag)));
    slider.setAttribute("aria-valuetext", date(now.time));
    history.replaceState(null, "", address("read", now.id) + (query.size && to === start ? `?${query}` : ""));
    ways(now);
    const mine = ++turns;
    await new Promise((done) => setTimeout(done, 60));
    if (mine !== turns) return;
    await Promise.all([isChat ? messages(now, mine) : null, lore(now, mine)]);
  }

  /** @param {Line} now */
  function ways(now) {
    const before = snapshots[at - 1];
    show(actions,
      before ? link(address("compare", before.id, now.id), t("compareNow"), { class: "button" }) : null,
      link(address("compare", now.id, timeline), `${t("compareWith")} ${t("now")}`, { class: "button" }),
      isChat ? link(address("tree", timeline), t("map"), { class: "button" }) : null,
      mayWrite ? el("button", { type: "button", onclick: () => plan("restore", { snapshot: now.id, overwrite: true }) }, t("restore")) : null,
      mayWrite && isChat ? el("button", { type: "button", onclick: () => askName(t("restoreAs"), `${name} (${now.id.slice(0, 6)})`, (as) => plan("restore", { snapshot: now.id, name: as })) }, t("restoreAs")) : null,
      mayWrite ? el("button", { type: "button", onclick: () => askName(t("tag"), "", (tag) => ask("tag", { name: tag, snapshot: now.id }).then(() => say(t("tagged")), say)) }, t("tag")) : null);
  }

  /** Messages come as they are scrolled to. @param {Line} now @param {number} mine */
  async function messages(now, mine) {
    const wanted = Number(query.get("m") ?? NaN);
    const total = now.messages;
    let first = Math.max(0, Math.min(Number.isNaN(wanted) ? total - PAGE : wanted - 10, total - PAGE));
    let last = first;
    const top = el("div", { class: "edge" });
    const bottom = el("div", { class: "edge" });
    const list = el("ol", { class: "messages" });
    show(story, top, list, bottom);
    /** @param {boolean} below */
    const more = async (below) => {
      const from = below ? last : Math.max(0, first - PAGE);
      const count = below ? PAGE : first - from;
      if (count <= 0 || from >= total || mine !== turns) return;
      if (below) last = Math.min(total, from + count);
      else first = from;
      const lines = of(await ask("messages", { snapshot: now.id, first: from, count }), "message");
      if (mine !== turns) return;
      const height = story.scrollHeight;
      list[below ? "append" : "prepend"](...lines.map((line) => message(line, now)));
      if (!below) story.scrollTop += story.scrollHeight - height;
    };
    await more(true);
    if (Number.isNaN(wanted)) story.scrollTop = story.scrollHeight;
    else list.querySelector(`[data-message="${wanted}"]`)?.scrollIntoView({ block: "center" });
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(false), { root: story, rootMargin: "600px" }).observe(top);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(true), { root: story, rootMargin: "600px" }).observe(bottom);
  }

  /** @param {Line} line @param {Line} now */
  function message(line, now) {
    const others = line.swipes.map((/** @type {string} */ text, /** @type {number} */ n) => [n, text]).filter((/** @type {[number, string]} */ [n]) => n !== line.swipe);
    const versions = el("details", { class: "versions", ontoggle: () => versions.childElementCount < 2 && history_of(line, versions) }, el("summary", {}, t("versions")));
    return el("li", { class: `message${line.hidden ? " hidden" : ""}${line.user ? " user" : ""}`, "data-message": line.index, value: line.index },
      el("header", {}, el("b", {}, line.name), " ", link(`${address("read", now.id)}?m=${line.index}`, `#${line.index}`, { class: "facts" }),
        el("span", { class: "facts" }, line.said ? ` ${date(line.said)}` : "", line.hidden ? ` · ${t("hidden")}` : ""),
        mayWrite ? el("button", { type: "button", class: "way", onclick: () => askName(t("fork"), `${name} - ${line.index}`, (as) => plan("restore", { snapshot: now.id, at: line.index, name: as })) }, t("fork")) : null),
      line.reasoning ? el("blockquote", { class: "reasoning" }, el("small", {}, t("reasoning")), told(line.reasoning)) : null,
      told(line.text),
      others.length ? el("div", { class: "swipes" }, others.map((/** @type {[number, string]} */ [n, text]) => el("blockquote", {}, el("small", {}, t("swipe", { n: n + 1, of: line.swipes.length })), told(text)))) : null,
      versions);
  }

  /** @param {Line} line @param {HTMLElement} into */
  async function history_of(line, into) {
    const versions = of(await ask("log", { timeline, message: line.index }), "message_version");
    into.append(el("ol", {}, versions.map((one) => el("li", {},
      link(`${address("read", one.snapshot)}?m=${one.index}`, date(one.time)),
      el("p", { dir: "auto" }, one.change ? changed(one.change.before?.mes ?? "", one.change.after?.mes ?? "") : "?")))));
  }

  /** @param {Line} now @param {number} mine */
  async function lore(now, mine) {
    if (!now.lorebook && !timeline.startsWith("worlds/")) return show(book, el("h2", {}, t("knew")), el("p", {}, t("noBook")));
    const newest = snapshots[snapshots.length - 1];
    const [then, latest] = await Promise.all([now, newest].map((one) => ask("lore", { snapshot: one.id }).then((answer) => of(answer, "lore_entry"), () => null)));
    if (mine !== turns) return;
    if (!then) return show(book, el("h2", {}, t("knew")), el("p", {}, t("bookUnknown")));
    const later = new Map((latest ?? []).map((line) => [line.uid, line.value?.content]));
    const name = then[0]?.lorebook ?? now.lorebook ?? "";
    show(book, el("h2", {}, t("knew"), " ", el("small", {}, `${name} · ${t("entries", { n: then.length })}`)),
      el("ul", {}, then.map((line) => entry(line, name, later))));
    const wanted = query.get("e");
    if (wanted) {
      const node = /** @type {HTMLDetailsElement | null} */ (book.querySelector(`[data-uid="${CSS.escape(wanted)}"]`));
      if (node) (node.open = true), node.scrollIntoView({ block: "center" });
    }
  }

  /** @param {Line} line @param {string} name @param {Map<string, string>} later */
  function entry(line, name, later) {
    const value = line.value ?? {};
    const mark = !later.has(line.uid) ? t("gone") : later.get(line.uid) !== value.content ? t("newer") : "";
    const past = el("div", { class: "past" });
    const ask_past = async () => {
      if (past.childElementCount || !details.open) return;
      const lines = of(await ask("lore", { book: name, entry: line.uid }), "lore_change");
      show(past, el("h3", {}, t("history")), el("ol", {}, lines.map((one) => el("li", {},
        link(address("read", one.story ?? one.snapshot), date(one.time)), el("span", { class: "facts" }, one.index === null ? "" : ` #${one.index}`),
        el("p", { dir: "auto" }, changed(one.change?.before?.content ?? "", one.change?.after?.content ?? ""))))));
    };
    const details = /** @type {HTMLDetailsElement} */ (
      el("details", { "data-uid": line.uid, ontoggle: ask_past },
        el("summary", {}, el("b", {}, value.comment || (value.key ?? []).join(", ") || `UID ${line.uid}`), mark ? el("span", { class: "mark" }, mark) : null),
        told(String(value.content ?? "")), past)
    );
    return el("li", { class: value.disable ? "off" : "" }, details);
  }

  await load();
  const start = at;
  await turn(at);
  return {
    changed: async () => {
      const isLast = at === snapshots.length - 1;
      await load();
      if (isLast) turn(snapshots.length - 1);
    },
  };
}

/** @param {unknown} words */
function say(words) {
  const node = document.getElementById("said");
  if (node) node.textContent = words instanceof Error ? words.message : String(words);
}
