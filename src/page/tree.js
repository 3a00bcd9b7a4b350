// The map of the stories: a lane for each timeline, messages downwards. Only what is on the screen is in the document.

import { ask, mayWrite, of, pages } from "./ask.js";
import { Axis } from "./axis.js";
import { askName, plan } from "./changes.js";
import { messageAt } from "./chat.js";
import { LANES, holds, isFile } from "./file.js";
import { address, el, link, show, svg } from "./nodes.js";
import { date, parts, t } from "./words.js";

/** @typedef {import("./ask.js").Line} Line */

// A lane is so wide at least, and at most.
const [NARROW, WIDE] = [28, 190];
const READABLE = 70;
const EDGE = 44;
// So much beyond the screen is drawn.
const AROUND = 600;
const TOP = 28;
// Who asks for one story gets its scenes, too, unless it has more forks than anybody writes.
const STORY = 200;

/** The snapshot that the next one is compared with. @type {string | null} */
let held = null;

/** @type {import("./main.js").Place} */
export async function tree(place, [timeline], query) {
  /** @type {Line[]} */
  let lanes = [];
  /** By their numbers, their places in the list. @type {Map<number, number>} */
  let numbers = new Map();
  let size = { columns: 0, messages: 0 };
  let step = Number(query.get("z")) || 0;
  /** The lane and the snapshot on it that are looked at. */
  let [chosen, dot] = [-1, -1];
  /** @type {Set<number>} */
  const opened = new Set();
  let axis = new Axis(0, [], 1, opened);
  /** Where the reader was, or the end of the story that was named. */
  let here = { lane: -1, dot: -1 };

  const load = async () => {
    /** @type {Line[]} */
    const all = [];
    // Of all stories together, snapshots come with the lanes that are looked at.
    const named = timeline ? { timeline } : {};
    await pages("graph", timeline ? named : { lanes_only: true }, (answer) => {
      const [line] = of(answer, "graph");
      size = { columns: line.columns, messages: line.messages };
      all.push(...of(answer, "lane"));
    });
    lanes = all;
    numbers = new Map(lanes.map((lane, n) => [lane.number, n]));
    asked.clear();
    here =
      (await find(query.get("at"))) ?? end(lanes.findIndex((lane) => lane.timeline === timeline));
    fold();
    if (timeline && lanes.length <= STORY && !isFile) scenes(named).catch(() => {});
  };

  /** They are read from the messages, so they come later. @param {Record<string, unknown>} named */
  async function scenes(named) {
    await pages("graph", { ...named, scenes: true }, (answer) =>
      of(answer, "lane").forEach((line) => {
        const lane = lanes[numbers.get(line.number) ?? -1];
        if (lane?.timeline === line.timeline) lane.scenes = line.scenes;
      }),
    );
    fold();
    paint();
  }

  /** The pages of lanes whose snapshots were asked for. @type {Map<number, Promise<void>>} */
  const asked = new Map();
  /** The snapshots of a lane, with those around it. @param {number} n */
  function dots(n) {
    if (lanes[n]?.dots) return Promise.resolve();
    const first = Math.floor(n / LANES) * LANES;
    const coming =
      asked.get(first) ??
      ask("graph", { first, count: LANES }).then((answer) => {
        for (const line of of(answer, "lane")) {
          const lane = lanes[numbers.get(line.number) ?? -1];
          if (lane?.timeline === line.timeline) lane.dots = line.dots;
        }
      });
    asked.set(first, coming);
    return coming;
  }

  /** @param {string | null} snapshot */
  async function find(snapshot) {
    if (!snapshot) return;
    if (!timeline) {
      const [line] = of(
        await ask("show", { snapshot }).catch(() => ({ lines: [], exit: 1, next: null })),
        "snapshot",
      );
      await dots(lanes.findIndex((lane) => lane.timeline === line?.timeline));
    }
    for (const [lane, { dots }] of lanes.entries()) {
      const dot = (dots ?? []).findIndex((/** @type {Line} */ one) =>
        one.snapshot.startsWith(snapshot),
      );
      if (dot >= 0) return { lane, dot };
    }
  }

  /** @param {number} lane */
  function end(lane) {
    return { lane, dot: lane < 0 ? -1 : lanes[lane].dots.length - 1 };
  }

  function fold() {
    /** @type {number[]} */
    const marks = [];
    for (const lane of lanes) {
      marks.push(
        lane.messages - 1,
        ...(lane.fork_at === null ? [] : [lane.fork_at - 1, lane.fork_at]),
      );
      for (const one of lane.dots ?? []) if (one.tags.length) marks.push(one.index ?? 0);
      for (const scene of lane.scenes ?? []) marks.push(scene.index);
    }
    if (here.lane >= 0) marks.push(lanes[here.lane].dots[here.dot]?.index ?? 0);
    if (!step) {
      // What is not folded fits the screen, if it can be read then.
      const tight = new Axis(size.messages, marks, 12, opened);
      step = Math.max(
        4,
        Math.min(
          24,
          Math.floor((24 * (sheet.clientHeight - 4 * TOP)) / Math.max(1, tight.height)) / 2,
        ),
      );
    }
    axis = new Axis(size.messages, marks, step, opened);
    zoom.value = String(step);
  }

  const about = el("aside", { class: "about", "aria-live": "polite" });
  const drawing = svg("svg", { role: "tree", "aria-label": t("tree"), tabindex: 0 });
  const margin = el("div", { class: "margin" });
  const said = el("div", { class: "said", hidden: true });
  const sheet = el("div", { class: "sheet" }, margin, drawing, said);
  const zoom = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "range",
      min: "0.5",
      max: "32",
      step: "0.5",
      "aria-label": t("zoom"),
      oninput: () => ((step = Number(zoom.value)), fold(), paint()),
    })
  );
  show(
    place,
    el("h1", {}, timeline ? parts(timeline).join(" / ") : t("tree")),
    el(
      "div",
      { class: "tools" },
      el("label", {}, t("zoom"), zoom),
      el("span", { class: "facts keys" }, t("keys")),
    ),
    sheet,
    about,
  );

  const across = () =>
    Math.max(
      NARROW,
      Math.min(WIDE, (sheet.clientWidth - EDGE - WIDE) / Math.max(1, size.columns - 1)),
    );
  const x = (/** @type {number} */ column) => EDGE + 20 + column * wide;
  const y = (/** @type {number} */ message) => TOP + axis.y(message);

  let wide = NARROW;
  /** From where it was drawn. */
  let drawn = { left: 0, top: 0 };
  function paint() {
    wide = across();
    const [width, height] = [x(size.columns - 1) + WIDE, TOP + axis.height + TOP];
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("height", String(height));
    // Somewhat more than is on the screen, so that not every step of scrolling draws.
    const [left, right] = [
      sheet.scrollLeft - WIDE - AROUND,
      sheet.scrollLeft + sheet.clientWidth + AROUND,
    ];
    const [top, bottom] = [sheet.scrollTop - AROUND, sheet.scrollTop + sheet.clientHeight + AROUND];
    drawn = { left: sheet.scrollLeft, top: sheet.scrollTop };
    /** @type {SVGElement[]} */
    const nodes = [];
    /** Above the lines: a fork's line begins at its parent's dot, and must not cover it. @type {SVGElement[]} */
    const points = [];
    /** @type {Set<number>} */
    const wanted = new Set();
    // Above all lines.
    /** @type {SVGElement[]} */
    const labels = [];
    /** @type {HTMLElement[]} */
    const aside = [];
    const every = niceStep(60 / step);
    const [from, to] = [
      axis.message(top - TOP),
      Math.min(size.messages, axis.message(bottom - TOP) + 1),
    ];
    for (let n = Math.floor(from / every) * every; n <= to; n += every) {
      if (!axis.isFolded(n)) aside.push(down(el("span", { class: "number" }, `#${n}`), y(n)));
    }
    lanes.forEach((lane, n) => {
      const [at, begin, end] = [
        x(lane.column),
        y(lane.fork_at === null ? 0 : lane.fork_at - 1),
        y(Math.max(0, lane.messages - 1)),
      ];
      const parent = lane.leaves === null ? null : lanes[numbers.get(lane.leaves) ?? -1];
      const from = parent ? x(parent.column) : at;
      if (Math.max(at, from) < left || Math.min(at, from) > right || end < top || begin > bottom)
        return;
      const path = parent
        ? `M${from} ${begin} H${at - 6} Q${at} ${begin} ${at} ${begin + 6} V${Math.max(end, begin + 6)}`
        : `M${at} ${begin} V${end}`;
      const group = svg("g", {
        class: `lane ${lane.state} hue${lane.column % 6}${n === chosen ? " chosen" : ""}`,
        id: `lane-${n}`,
        role: "treeitem",
        "aria-label": lane.timeline,
        "aria-selected": n === chosen ? "true" : "false",
        "data-lane": n,
      });
      // What can be clicked begins beside the parent's lane.
      const reach = parent ? path.replace(/^M\S+/, `M${from + 12}`) : path;
      group.append(svg("path", { d: path }), svg("path", { class: "reach", d: reach }));
      for (const scene of lane.scenes ?? []) {
        const place = y(scene.index);
        if (place < top || place > bottom) continue;
        group.append(
          svg(
            "path",
            { class: "scene", d: `M${at - 6} ${place} h12` },
            svg("title", {}, scene.name ?? t("scene")),
          ),
        );
      }
      const own = svg("g", { class: `dots ${lane.state} hue${lane.column % 6}`, "data-lane": n });
      points.push(own);
      let last = -99;
      if (!lane.dots) wanted.add(Math.floor(n / LANES) * LANES);
      for (let k = (lane.dots?.length ?? 0) - 1; k >= 0; k--) {
        const one = lane.dots[k];
        const place = y(one.index ?? 0);
        const special =
          one.tags.length > 0 ||
          k === lane.dots.length - 1 ||
          (n === chosen && k === dot) ||
          (n === here.lane && k === here.dot);
        if (place < top || place > bottom || (!special && Math.abs(place - last) < 7)) continue;
        last = place;
        own.append(
          svg("circle", {
            cx: at,
            cy: place,
            r: n === chosen && k === dot ? 7 : k === lane.dots.length - 1 ? 6 : 4.5,
            "data-dot": k,
          }),
        );
        if (n === here.lane && k === here.dot) {
          own.append(svg("circle", { class: "here", cx: at, cy: place, r: 10 }));
          labels.push(svg("text", { class: "here", x: at + 14, y: place - 6 }, t("here")));
        }
        if (one.tags.length)
          labels.push(
            svg(
              "text",
              { class: "flag", x: at + 8, y: place + 4, "data-lane": n, "data-dot": k },
              `⚑ ${one.tags.join(", ")}`,
            ),
          );
      }
      // Where lanes are close, names would lie on each other: those of the stories, and the one that is looked at.
      const named = wide >= READABLE || lane.leaves === null || n === chosen;
      if (named && end >= top && end <= bottom)
        labels.push(
          svg(
            "text",
            { class: "name", x: at + 8, y: end + 16, "data-lane": n },
            short(parts(lane.timeline)[1]),
          ),
        );
      nodes.push(group);
    });
    drawing.replaceChildren(...nodes, ...points, ...labels);
    if (chosen >= 0 && drawing.querySelector(`#lane-${chosen}`))
      drawing.setAttribute("aria-activedescendant", `lane-${chosen}`);
    else drawing.removeAttribute("aria-activedescendant");
    const shown = axis.folds.filter((one) => TOP + one.y > top && TOP + one.y < bottom);
    margin.replaceChildren(
      ...aside,
      ...shown.map(({ first, last, y }) => {
        const words = t("folded", { n: last - first + 1 });
        return down(
          el(
            "button",
            {
              type: "button",
              class: "fold",
              title: words,
              "aria-label": words,
              onclick: () => (opened.add(first - 1), fold(), paint()),
            },
            `⋯ ${last - first + 1}`,
          ),
          TOP + y,
        );
      }),
    );
    if (wanted.size)
      Promise.all([...wanted].filter((first) => !asked.has(first)).map(dots)).then(
        (all) => all.length && later(),
        () => {},
      );
  }

  /** @param {HTMLElement} node @param {number} y */
  function down(node, y) {
    node.style.top = `${y}px`;
    return node;
  }

  /** A snapshot of a lane, the newest if it is not said which. @param {number} lane @param {number} [k] */
  async function choose(lane, k = Infinity) {
    if (!lanes[lane]) return;
    await dots(lane);
    chosen = lane;
    dot = Math.max(0, Math.min(lanes[lane].dots.length - 1, k));
    const one = lanes[lane].dots[dot];
    const [folder, name] = parts(lanes[lane].timeline);
    show(
      about,
      el("h2", {}, `${folder} / ${name}`),
      one
        ? el(
            "p",
            {},
            [date(one.time), t("messages", { n: (one.index ?? -1) + 1 }), ...one.tags].join(" · "),
          )
        : null,
      one ? el("p", { class: "words", dir: "auto" }) : null,
      one ? ways(lane, one, name) : null,
    );
    if (one) {
      if (one.index !== null)
        tell(
          one.snapshot,
          one.index,
          /** @type {HTMLElement} */ (about.querySelector(".words")),
        ).catch(() => {});
      const place = y(one.index ?? 0);
      if (place < sheet.scrollTop || place > sheet.scrollTop + sheet.clientHeight - 20)
        sheet.scrollTop = place - sheet.clientHeight / 2;
      const right = x(lanes[lane].column);
      if (right < sheet.scrollLeft || right > sheet.scrollLeft + sheet.clientWidth - 20)
        sheet.scrollLeft = right - sheet.clientWidth / 2;
      history.replaceState(
        history.state,
        "",
        `${address("tree", ...(timeline ? [timeline] : []))}?at=${one.snapshot}&z=${step}`,
      );
    }
    paint();
  }

  /** @param {number} lane @param {Line} one @param {string} name */
  function ways(lane, one, name) {
    const hold = () => ((held = held === one.snapshot ? null : one.snapshot), choose(lane, dot));
    const other = before(lane);
    return el(
      "p",
      { class: "buttons" },
      link(address("read", one.snapshot), t("read"), { class: "button" }),
      other && holds("diff", { before: other, after: one.snapshot })
        ? link(
            address("compare", other, one.snapshot),
            t(held && other === held ? "compareHeld" : "compareNow"),
            { class: "button" },
          )
        : null,
      isFile
        ? null
        : el(
            "button",
            {
              type: "button",
              "aria-pressed": held === one.snapshot ? "true" : "false",
              onclick: hold,
            },
            t("hold"),
          ),
      mayWrite()
        ? el("button", { type: "button", onclick: () => fork(one, name) }, t("fork"))
        : null,
    );
  }

  /** What the chosen snapshot is compared with: the one that is held, or the one before. @param {number} lane @returns {string | undefined} */
  function before(lane) {
    const own = lanes[lane].dots;
    if (held && held !== own[dot].snapshot) return held;
    const parent = lanes[numbers.get(lanes[lane].leaves) ?? -1];
    const shared = () =>
      parent?.dots.findLast((/** @type {Line} */ one) => (one.index ?? 0) < lanes[lane].fork_at) ??
      parent?.dots[0];
    return (own[dot - 1] ?? shared())?.snapshot;
  }

  /** @param {Line} one @param {string} name */
  function fork(one, name) {
    askName(t("fork"), `${name} - ${one.index ?? 0}`, (as) =>
      plan("restore", { snapshot: one.snapshot, name: as }),
    );
  }

  /** What was said there. @param {string} snapshot @param {number} index @param {HTMLElement} into */
  async function tell(snapshot, index, into) {
    const line = await messageAt(snapshot, index);
    if (line && into.isConnected)
      show(into, el("b", {}, `#${index} ${line.name}: `), cut(line.text));
  }

  /** The lane beside this one. @param {number} by */
  function beside(by) {
    const order = lanes
      .map((lane, n) => [lane.column, n])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map(([, n]) => n);
    const next = order[order.indexOf(chosen) + by];
    if (next !== undefined) choose(next);
  }

  /** The dot that is pointed at, also where a name lies over it; or whatever else is there. @param {Event} event @returns {Element} */
  function pointed(event) {
    const { clientX, clientY, target } = /** @type {MouseEvent} */ (event);
    return (
      document
        .elementsFromPoint(clientX, clientY)
        .find((node) => node.matches("circle[data-dot]")) ?? /** @type {Element} */ (target)
    );
  }

  drawing.addEventListener("click", (event) => {
    const target = pointed(event);
    const lane = Number(target.closest("[data-lane]")?.getAttribute("data-lane") ?? -1);
    const at = target.getAttribute("data-dot");
    if (lane >= 0)
      dots(lane).then(() =>
        choose(lane, at === null ? nearest(lane, /** @type {MouseEvent} */ (event)) : Number(at)),
      );
  });

  /** The snapshot of a lane that is nearest to where somebody points. @param {number} lane @param {MouseEvent} event */
  function nearest(lane, event) {
    const { dots } = lanes[lane];
    const down = event.clientY - drawing.getBoundingClientRect().top;
    let best = dots.length - 1;
    dots.forEach((/** @type {Line} */ one, /** @type {number} */ k) => {
      if (Math.abs(y(one.index ?? 0) - down) < Math.abs(y(dots[best].index ?? 0) - down)) best = k;
    });
    return best;
  }

  let hovers = 0;
  drawing.addEventListener("pointermove", (event) => {
    const mine = ++hovers;
    const { clientX, clientY } = /** @type {PointerEvent} */ (event);
    const lane =
      lanes[Number(pointed(event).closest("[data-lane]")?.getAttribute("data-lane") ?? -1)];
    if (!lane?.dots?.length) return void (said.hidden = true);
    const box = drawing.getBoundingClientRect();
    const index = Math.max(0, Math.min(lane.messages - 1, axis.message(clientY - box.top - TOP)));
    setTimeout(() => {
      if (mine !== hovers) return;
      said.hidden = false;
      said.style.left = `${Math.min(clientX - box.left + 14, sheet.scrollLeft + sheet.clientWidth - 290)}px`;
      said.style.top = `${clientY - box.top + 14}px`;
      tell(lane.dots[lane.dots.length - 1].snapshot, index, said).catch(() => (said.hidden = true));
    }, 120);
  });
  drawing.addEventListener("pointerleave", () => (hovers++, (said.hidden = true)));
  drawing.addEventListener("keydown", (event) => {
    const key = /** @type {KeyboardEvent} */ (event).key;
    const one = lanes[chosen]?.dots?.[dot];
    if (key === "j" || key === "ArrowDown") choose(Math.max(0, chosen), dot + 1);
    else if (key === "k" || key === "ArrowUp") choose(Math.max(0, chosen), dot - 1);
    else if (key === "l" || key === "ArrowRight") beside(1);
    else if (key === "h" || key === "ArrowLeft") beside(-1);
    else if (key === "Enter" && one) location.hash = address("read", one.snapshot);
    else if (key === "d" && one && before(chosen))
      location.hash = address("compare", String(before(chosen)), one.snapshot);
    else if (key === "m" && one) ((held = one.snapshot), choose(chosen, dot));
    else if (key === "f" && one && mayWrite()) fork(one, parts(lanes[chosen].timeline)[1]);
    else return;
    event.preventDefault();
  });
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => ((waiting = false), paint()));
  };
  const scrolled = () => {
    if (
      Math.abs(sheet.scrollLeft - drawn.left) > 0.8 * AROUND ||
      Math.abs(sheet.scrollTop - drawn.top) > 0.8 * AROUND
    )
      later();
  };
  sheet.addEventListener("scroll", scrolled, { passive: true });
  addEventListener("resize", later);

  await load();
  if (!lanes.length) show(about, t("nothing"));
  paint();
  if (here.lane >= 0) await choose(here.lane, here.dot);
  return {
    changed: async () => (await load(), paint()),
    left: () => removeEventListener("resize", later),
  };
}

/** @param {number} least */
function niceStep(least) {
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
    if (step >= least) return step;
  return 10_000;
}

/** @param {string} name */
function short(name) {
  return name.length > 28 ? `${name.slice(0, 12)}…${name.slice(-14)}` : name;
}

/** @param {string} text */
function cut(text) {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
