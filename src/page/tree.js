// The map of the stories: a lane for each timeline, messages downwards. Only what is on the screen is in the document.

import { ask, of } from "./ask.js";
import { address, el, link, show, svg } from "./nodes.js";
import { date, parts, t } from "./words.js";

const LANE = 28;
const EDGE = 40;
const TOP = 28;

/** @type {import("./main.js").Place} */
export async function tree(place, [timeline], query) {
  /** @type {import("./ask.js").Line[]} */
  let lanes = [];
  let size = { columns: 0, messages: 0 };
  let step = Number(query.get("z")) || 0;
  let chosen = Number(query.get("l") ?? -1);
  let dot = -1;

  const load = async () => {
    const all = [];
    let next = /** @type {number | null} */ (0);
    while (next !== null) {
      const answer = await ask("graph", { ...(timeline ? { timeline } : {}), first: next, count: 1000 });
      const [line] = of(answer, "graph");
      size = { columns: line.columns, messages: line.messages };
      all.push(...of(answer, "lane"));
      next = answer.next;
    }
    lanes = all;
    numbers = new Map(lanes.map((lane, n) => [lane.number, n]));
    if (!step) step = Math.min(24, Math.max(2, 900 / Math.max(1, size.messages)));
  };
  /** @type {Map<number, number>} */
  let numbers = new Map();

  const about = el("aside", { class: "about", "aria-live": "polite" });
  const drawing = svg("svg", { role: "tree", "aria-label": t("tree"), tabindex: 0 });
  const sheet = el("div", { class: "sheet" }, drawing);
  const zoom = /** @type {HTMLInputElement} */ (
    el("input", { type: "range", min: "0.5", max: "32", step: "0.5", "aria-label": t("zoom"), oninput: () => ((step = Number(zoom.value)), paint()) })
  );
  show(place, el("h1", {}, timeline ? parts(timeline).join(" / ") : t("tree")), el("div", { class: "tools" }, el("label", {}, t("zoom"), zoom)), sheet, about);

  const x = (/** @type {number} */ column) => EDGE + column * LANE;
  const y = (/** @type {number} */ message) => TOP + message * step;

  function paint() {
    const [width, height] = [x(size.columns) + EDGE * 4, y(size.messages) + TOP];
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("height", String(height));
    const [left, right] = [sheet.scrollLeft - LANE * 4, sheet.scrollLeft + sheet.clientWidth + LANE];
    const [top, bottom] = [sheet.scrollTop - 40, sheet.scrollTop + sheet.clientHeight + 40];
    /** @type {SVGElement[]} */
    const nodes = [];
    // Above all lines.
    /** @type {SVGElement[]} */
    const labels = [];
    const every = niceStep(60 / step);
    for (let n = Math.max(0, Math.floor((top - TOP) / step / every) * every); n <= size.messages && y(n) < bottom; n += every) {
      nodes.push(svg("text", { class: "number", x: sheet.scrollLeft + 4, y: y(n) + 4 }, `#${n}`));
    }
    lanes.forEach((lane, n) => {
      const [at, begin, end] = [x(lane.column), y(lane.fork_at === null ? 0 : lane.fork_at - 1), y(Math.max(0, lane.messages - 1))];
      const parent = lane.leaves === null ? null : lanes[numbers.get(lane.leaves) ?? -1];
      const from = parent ? x(parent.column) : at;
      if (Math.max(at, from) < left || Math.min(at, from) > right || end < top || begin > bottom) return;
      const path = parent ? `M${from} ${begin} H${at - 6} Q${at} ${begin} ${at} ${begin + 6} V${Math.max(end, begin + 6)}` : `M${at} ${begin} V${end}`;
      const group = svg("g", { class: `lane ${lane.state} hue${lane.column % 6}${n === chosen ? " chosen" : ""}`, role: "treeitem", "aria-label": lane.timeline, "data-lane": n });
      group.append(svg("path", { d: path }));
      let last = -99;
      for (let k = lane.dots.length - 1; k >= 0; k--) {
        const one = lane.dots[k];
        const place = y(one.index ?? 0);
        const special = one.tags.length > 0 || k === lane.dots.length - 1 || (n === chosen && k === dot);
        if (place < top || place > bottom || (!special && Math.abs(place - last) < 7)) continue;
        last = place;
        group.append(svg("circle", { cx: at, cy: place, r: n === chosen && k === dot ? 7 : k === lane.dots.length - 1 ? 5 : 3.5, "data-dot": k }));
        if (one.tags.length) labels.push(svg("text", { class: "flag", x: at + 8, y: place + 4, "data-lane": n, "data-dot": k }, one.tags.join(", ")));
      }
      if (end >= top && end <= bottom) labels.push(svg("text", { class: "name", x: at + 8, y: end + 14, "data-lane": n }, short(parts(lane.timeline)[1])));
      nodes.push(group);
    });
    drawing.replaceChildren(...nodes, ...labels);
  }

  /** @param {number} lane @param {number} k */
  function choose(lane, k) {
    if (!lanes[lane]) return;
    chosen = lane;
    dot = Math.max(0, Math.min(lanes[lane].dots.length - 1, k));
    const one = lanes[lane].dots[dot];
    const [folder, name] = parts(lanes[lane].timeline);
    show(about, el("h2", {}, `${folder} / ${name}`),
      one ? el("p", {}, `${date(one.time)} · ${t("messages", { n: (one.index ?? -1) + 1 })} · ${one.tags.join(", ")}`) : null,
      one ? el("p", { class: "words" }) : null,
      one ? el("p", { class: "ways" }, link(address("read", one.snapshot), t("read")), " ",
        link(address("compare", `${one.snapshot}~1`, one.snapshot), t("compareNow"))) : null);
    if (one) {
      ask("show", { snapshot: one.snapshot }).then((answer) => {
        const words = about.querySelector(".words");
        if (words && lanes[chosen]?.dots[dot] === one) show(words, of(answer, "snapshot")[0]?.last_words ?? "");
      }).catch(() => {});
      const place = y(one.index ?? 0);
      if (place < sheet.scrollTop || place > sheet.scrollTop + sheet.clientHeight - 20) sheet.scrollTop = place - sheet.clientHeight / 2;
      const across = x(lanes[lane].column);
      if (across < sheet.scrollLeft || across > sheet.scrollLeft + sheet.clientWidth - 20) sheet.scrollLeft = across - sheet.clientWidth / 2;
    }
    history.replaceState(null, "", `${address("tree", ...(timeline ? [timeline] : []))}?l=${lane}&z=${step}`);
    paint();
  }

  /** The lane beside this one. @param {number} by */
  function beside(by) {
    const order = lanes.map((lane, n) => [lane.column, n]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, n]) => n);
    const next = order[order.indexOf(chosen) + by];
    if (next !== undefined) choose(next, lanes[next].dots.length - 1);
  }

  drawing.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const lane = Number(target.closest("[data-lane]")?.getAttribute("data-lane") ?? -1);
    const at = target.getAttribute("data-dot");
    if (lane >= 0) choose(lane, at === null ? lanes[lane].dots.length - 1 : Number(at));
  });
  drawing.addEventListener("keydown", (event) => {
    const key = /** @type {KeyboardEvent} */ (event).key;
    const one = lanes[chosen]?.dots[dot];
    if (key === "j" || key === "ArrowDown") choose(Math.max(0, chosen), dot + 1);
    else if (key === "k" || key === "ArrowUp") choose(Math.max(0, chosen), dot - 1);
    else if (key === "l" || key === "ArrowRight") beside(1);
    else if (key === "h" || key === "ArrowLeft") beside(-1);
    else if (key === "Enter" && one) location.hash = address("read", one.snapshot);
    else if (key === "d" && one) location.hash = address("compare", `${one.snapshot}~1`, one.snapshot);
    else return;
    event.preventDefault();
  });
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => ((waiting = false), paint()));
  };
  sheet.addEventListener("scroll", later, { passive: true });
  addEventListener("resize", later);

  await load();
  zoom.value = String(step);
  if (!lanes.length) show(about, t("nothing"));
  const own = lanes.findIndex((lane) => lane.timeline === timeline);
  if (chosen < 0 && own >= 0) choose(own, lanes[own].dots.length - 1);
  else if (chosen >= 0) choose(chosen, lanes[chosen]?.dots.length - 1);
  paint();
  return { changed: async () => (await load(), paint()), left: () => removeEventListener("resize", later) };
}

/** @param {number} least */
function niceStep(least) {
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]) if (step >= least) return step;
  return 10_000;
}

/** @param {string} name */
function short(name) {
  return name.length > 28 ? `${name.slice(0, 12)}…${name.slice(-14)}` : name;
}
