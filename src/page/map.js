// The map: a vertical lane for each timeline, on which messages go downwards and each snapshot is a
// dot. Only lanes and dots near the visible part are in the document.

import { ask, linesOf, mayWrite, pages } from "./api.js";
import { Axis } from "./axis.js";
import { askName, confirmPlan } from "./dialogs.js";
import { address, el, link, setChildren, svg } from "./dom.js";
import { messageAt } from "./messages.js";
import { openButton } from "./open_button.js";
import { LANES, canAnswer, isStandalone } from "./standalone.js";
import { shorten } from "./text.js";
import { formatDate, splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Least and greatest width of a lane, in pixels. */
const [MIN_LANE, MAX_LANE] = [28, 190];
/** Minimum width of lanes, in pixels, at which every lane shows its name. */
const NAMED_LANE = 70;
/** Space to the left of the first lane for message numbers, in pixels. */
const GUTTER = 44;
/** Space above the first message, in pixels. */
const TOP = 28;
/** Pixels that are drawn beyond the visible part, so that not every scroll event has to draw. */
const OVERSCAN = 600;
/** Maximum number of lanes for which scene ends are loaded. */
const MAX_SCENE_LANES = 200;

/** The snapshot that the user selected for a comparison. @type {string | null} */
let comparedSnapshot = null;

/** @type {import("./main.js").Place} */
export async function map(place, [timeline], query) {
  /** @type {Line[]} */
  let lanes = [];
  /** Index into `lanes` of each lane number. @type {Map<number, number>} */
  let indexes = new Map();
  let size = { columns: 0, messages: 0 };
  /** Pixels per message, or 0 until a value is chosen that fits the map to the screen. */
  let step = Number(query.get("z")) || 0;
  let selected = { lane: -1, dot: -1 };
  /** Stretches that the user expanded, by the message before each. @type {Set<number>} */
  const expanded = new Set();
  let axis = new Axis(0, [], 1, expanded);
  /** The dot of the snapshot in the address, or the latest dot of the timeline in the address. */
  let here = { lane: -1, dot: -1 };

  const load = async () => {
    /** @type {Line[]} */
    const all = [];
    // On the map of all timelines, the dots of a lane are loaded when the lane becomes visible.
    await pages("graph", timeline ? { timeline } : { lanes_only: true }, (answer) => {
      const [line] = linesOf(answer, "graph");
      size = { columns: line.columns, messages: line.messages };
      all.push(...linesOf(answer, "lane"));
    });
    lanes = all;
    indexes = new Map(lanes.map((lane, n) => [lane.number, n]));
    dotRequests.clear();
    here =
      (await findDot(query.get("at"))) ??
      lastDot(lanes.findIndex((lane) => lane.timeline === timeline));
    updateAxis();
    if (timeline && lanes.length <= MAX_SCENE_LANES && !isStandalone)
      loadScenes(timeline).catch(() => {});
  };

  /** Loads the scene ends, for which the program reads all messages. @param {string} timeline */
  async function loadScenes(timeline) {
    await pages("graph", { timeline, scenes: true }, (answer) =>
      linesOf(answer, "lane").forEach((line) => {
        const lane = lanes[indexes.get(line.number) ?? -1];
        if (lane?.timeline === line.timeline) lane.scenes = line.scenes;
      }),
    );
    updateAxis();
    draw();
  }

  /** Requests for dots, by the first requested lane. @type {Map<number, Promise<void>>} */
  const dotRequests = new Map();
  /** Loads the dots of lane `n`, and of the other lanes in the same page. @param {number} n */
  function loadDots(n) {
    if (lanes[n]?.dots) return Promise.resolve();
    const first = Math.floor(n / LANES) * LANES;
    const request =
      dotRequests.get(first) ??
      ask("graph", { first, count: LANES }).then((answer) => {
        for (const line of linesOf(answer, "lane")) {
          const lane = lanes[indexes.get(line.number) ?? -1];
          if (lane?.timeline === line.timeline) lane.dots = line.dots;
        }
      });
    dotRequests.set(first, request);
    return request;
  }

  /** @param {string | null} snapshot */
  async function findDot(snapshot) {
    if (!snapshot) return;
    if (!timeline) {
      const [line] = await ask("show", { snapshot }).then(
        (answer) => linesOf(answer, "snapshot"),
        () => [],
      );
      await loadDots(lanes.findIndex((lane) => lane.timeline === line?.timeline));
    }
    for (const [lane, { dots }] of lanes.entries()) {
      const dot = (dots ?? []).findIndex((/** @type {Line} */ dot) =>
        dot.snapshot.startsWith(snapshot),
      );
      if (dot >= 0) return { lane, dot };
    }
  }

  /** @param {number} lane */
  function lastDot(lane) {
    return { lane, dot: lane < 0 ? -1 : lanes[lane].dots.length - 1 };
  }

  /** Computes the axis, and chooses the zoom if none is chosen yet. */
  function updateAxis() {
    /** Messages that must not be folded. @type {number[]} */
    const marks = [];
    for (const lane of lanes) {
      marks.push(
        lane.messages - 1,
        ...(lane.fork_at === null ? [] : [lane.fork_at - 1, lane.fork_at]),
      );
      for (const dot of lane.dots ?? []) if (dot.tags.length) marks.push(dot.index ?? 0);
      for (const scene of lane.scenes ?? []) marks.push(scene.index);
    }
    if (here.lane >= 0) marks.push(lanes[here.lane].dots[here.dot]?.index ?? 0);
    if (!step) {
      // Chooses a zoom that fits the map into the screen, within readable limits.
      const height = Math.max(1, new Axis(size.messages, marks, 12, expanded).height);
      const fitting = Math.floor((24 * (canvas.clientHeight - 4 * TOP)) / height) / 2;
      step = Math.max(4, Math.min(24, fitting));
    }
    axis = new Axis(size.messages, marks, step, expanded);
    zoom.value = String(step);
  }

  const selection = el("aside", { class: "selection", "aria-live": "polite" });
  const drawing = svg("svg", { role: "tree", "aria-label": t("map"), tabindex: 0 });
  const gutter = el("div", { class: "gutter" });
  const preview = el("div", { class: "preview", hidden: true });
  const canvas = el("div", { class: "canvas" }, gutter, drawing, preview);
  const zoom = /** @type {HTMLInputElement} */ (
    el("input", {
      type: "range",
      min: "0.5",
      max: "32",
      step: "0.5",
      "aria-label": t("zoom"),
      oninput: () => ((step = Number(zoom.value)), updateAxis(), draw()),
    })
  );
  setChildren(
    place,
    el("h1", {}, timeline ? splitTimeline(timeline).join(" / ") : t("map")),
    el(
      "div",
      { class: "tools" },
      el("label", {}, t("zoom"), zoom),
      el("span", { class: "facts keys" }, t("keys")),
    ),
    canvas,
    selection,
  );

  const fittingLaneWidth = () =>
    Math.max(
      MIN_LANE,
      Math.min(MAX_LANE, (canvas.clientWidth - GUTTER - MAX_LANE) / Math.max(1, size.columns - 1)),
    );
  const x = (/** @type {number} */ column) => GUTTER + 20 + column * laneWidth;
  const y = (/** @type {number} */ message) => TOP + axis.y(message);

  let laneWidth = MIN_LANE;
  /** Scroll position of the last drawing. */
  let drawnAt = { left: 0, top: 0 };
  function draw() {
    laneWidth = fittingLaneWidth();
    const [width, height] = [x(size.columns - 1) + MAX_LANE, TOP + axis.height + TOP];
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("height", String(height));
    const left = canvas.scrollLeft - MAX_LANE - OVERSCAN;
    const right = canvas.scrollLeft + canvas.clientWidth + OVERSCAN;
    const top = canvas.scrollTop - OVERSCAN;
    const bottom = canvas.scrollTop + canvas.clientHeight + OVERSCAN;
    drawnAt = { left: canvas.scrollLeft, top: canvas.scrollTop };
    const isVisible = (/** @type {number} */ y) => y >= top && y <= bottom;
    /** @type {SVGElement[]} */
    const lines = [];
    /** Drawn above the lines, because a fork's line starts at a dot. @type {SVGElement[]} */
    const dotGroups = [];
    /** Drawn above the lines and dots. @type {SVGElement[]} */
    const labels = [];
    /** First lane of each page whose dots are not loaded yet. @type {Set<number>} */
    const missing = new Set();

    lanes.forEach((lane, n) => {
      const isSelected = n === selected.lane;
      const laneX = x(lane.column);
      const start = y(lane.fork_at === null ? 0 : lane.fork_at - 1);
      const end = y(Math.max(0, lane.messages - 1));
      const parent = lane.parent === null ? null : lanes[indexes.get(lane.parent) ?? -1];
      const parentX = parent ? x(parent.column) : laneX;
      const isBeside = Math.max(laneX, parentX) < left || Math.min(laneX, parentX) > right;
      if (isBeside || end < top || start > bottom) return;
      const path = parent
        ? [
            `M${parentX} ${start} H${laneX - 6}`,
            `Q${laneX} ${start} ${laneX} ${start + 6}`,
            `V${Math.max(end, start + 6)}`,
          ].join(" ")
        : `M${laneX} ${start} V${end}`;
      const line = svg("g", {
        class: `lane ${lane.state} hue${lane.column % 6}${isSelected ? " selected" : ""}`,
        id: `lane-${n}`,
        role: "treeitem",
        "aria-label": lane.timeline,
        "aria-selected": isSelected ? "true" : "false",
        "data-lane": n,
      });
      // The clickable area starts right of the parent's lane, so that it does not cover its dots.
      const hitArea = parent ? path.replace(/^M\S+/, `M${parentX + 12}`) : path;
      line.append(svg("path", { d: path }), svg("path", { class: "hit-area", d: hitArea }));
      for (const scene of lane.scenes ?? []) {
        const sceneY = y(scene.index);
        if (!isVisible(sceneY)) continue;
        const title = svg("title", {}, scene.name ?? t("sceneEnd"));
        line.append(svg("path", { class: "scene", d: `M${laneX - 6} ${sceneY} h12` }, title));
      }
      lines.push(line);

      const hue = `hue${lane.column % 6}`;
      const group = svg("g", { class: `dots ${lane.state} ${hue}`, "data-lane": n });
      dotGroups.push(group);
      if (!lane.dots) missing.add(Math.floor(n / LANES) * LANES);
      let lastY = -99;
      for (let k = (lane.dots?.length ?? 0) - 1; k >= 0; k--) {
        const dot = lane.dots[k];
        const dotY = y(dot.index ?? 0);
        const isLatest = k === lane.dots.length - 1;
        const isSelectedDot = isSelected && k === selected.dot;
        const isHere = n === here.lane && k === here.dot;
        // If dots would overlap, only the important ones are drawn.
        const isImportant = dot.tags.length > 0 || isLatest || isSelectedDot || isHere;
        if (!isVisible(dotY) || (!isImportant && Math.abs(dotY - lastY) < 7)) continue;
        lastY = dotY;
        group.append(
          svg("circle", {
            cx: laneX,
            cy: dotY,
            r: isSelectedDot ? 7 : isLatest ? 6 : 4.5,
            "data-dot": k,
          }),
        );
        if (isHere) {
          group.append(svg("circle", { class: "here", cx: laneX, cy: dotY, r: 10 }));
          const label = svg("text", { class: "here", x: laneX + 14, y: dotY - 6 }, t("youAreHere"));
          labels.push(label);
        }
        if (dot.tags.length)
          labels.push(
            svg(
              "text",
              { class: "flag", x: laneX + 8, y: dotY + 4, "data-lane": n, "data-dot": k },
              `⚑ ${dot.tags.join(", ")}`,
            ),
          );
      }
      // Names of narrow lanes would overlap, so only lanes without a parent and the selected lane
      // show their names.
      const hasName = laneWidth >= NAMED_LANE || lane.parent === null || isSelected;
      if (hasName && isVisible(end))
        labels.push(
          svg(
            "text",
            { class: "name", x: laneX + 8, y: end + 16, "data-lane": n },
            shortenLabel(splitTimeline(lane.timeline)[1]),
          ),
        );
    });
    drawing.replaceChildren(...lines, ...dotGroups, ...labels);
    if (selected.lane >= 0 && drawing.querySelector(`#lane-${selected.lane}`))
      drawing.setAttribute("aria-activedescendant", `lane-${selected.lane}`);
    else drawing.removeAttribute("aria-activedescendant");
    drawGutter(top, bottom);
    if (missing.size)
      Promise.all([...missing].filter((first) => !dotRequests.has(first)).map(loadDots)).then(
        (loaded) => loaded.length && drawSoon(),
        () => {},
      );
  }

  /**
   * Draws the message numbers, and the buttons that expand folded stretches.
   * @param {number} top
   * @param {number} bottom
   */
  function drawGutter(top, bottom) {
    const interval = roundInterval(60 / step);
    const first = Math.floor(axis.message(top - TOP) / interval) * interval;
    const last = Math.min(size.messages, axis.message(bottom - TOP) + 1);
    /** @type {HTMLElement[]} */
    const nodes = [];
    for (let n = first; n <= last; n += interval) {
      if (axis.isFolded(n)) continue;
      nodes.push(placeAt(y(n), el("span", { class: "message-number" }, `#${n}`)));
    }
    for (const fold of axis.folds) {
      const foldY = TOP + fold.y;
      if (foldY <= top || foldY >= bottom) continue;
      const count = fold.last - fold.first + 1;
      const label = t("expand", { n: count });
      const button = el(
        "button",
        {
          type: "button",
          class: "fold",
          title: label,
          "aria-label": label,
          onclick: () => (expanded.add(fold.first - 1), updateAxis(), draw()),
        },
        `⋯ ${count}`,
      );
      nodes.push(placeAt(foldY, button));
    }
    gutter.replaceChildren(...nodes);
  }

  /** @param {number} y @param {HTMLElement} node */
  function placeAt(y, node) {
    node.style.top = `${y}px`;
    return node;
  }

  /** Selects dot `k` of lane `n`, by default the latest. @param {number} n @param {number} [k] */
  async function select(n, k = Infinity) {
    const lane = lanes[n];
    if (!lane) return;
    await loadDots(n);
    selected = { lane: n, dot: Math.max(0, Math.min(lane.dots.length - 1, k)) };
    const dot = lane.dots[selected.dot];
    const [folder, name] = splitTimeline(lane.timeline);
    setChildren(selection, el("h2", {}, `${folder} / ${name}`));
    if (dot) {
      const facts = [
        formatDate(dot.time),
        t("messages", { n: (dot.index ?? -1) + 1 }),
        ...dot.tags,
      ];
      const text = el("p", { dir: "auto" });
      selection.append(el("p", {}, facts.join(" · ")), text, renderActions(dot, name));
      if (dot.index !== null) showMessage(dot.snapshot, dot.index, text).catch(() => {});
      scrollTo(x(lane.column), y(dot.index ?? 0));
      history.replaceState(
        history.state,
        "",
        `${address("tree", ...(timeline ? [timeline] : []))}?at=${dot.snapshot}&z=${step}`,
      );
    }
    draw();
  }

  /** Scrolls a point to the centre if it is not visible. @param {number} x @param {number} y */
  function scrollTo(x, y) {
    if (y < canvas.scrollTop || y > canvas.scrollTop + canvas.clientHeight - 20)
      canvas.scrollTop = y - canvas.clientHeight / 2;
    if (x < canvas.scrollLeft || x > canvas.scrollLeft + canvas.clientWidth - 20)
      canvas.scrollLeft = x - canvas.clientWidth / 2;
  }

  /** @param {Line} dot @param {string} name */
  function renderActions(dot, name) {
    const isCompared = comparedSnapshot === dot.snapshot;
    const toggleCompared = () => {
      comparedSnapshot = isCompared ? null : dot.snapshot;
      select(selected.lane, selected.dot);
    };
    const other = snapshotToCompare();
    return el(
      "p",
      { class: "buttons" },
      link(address("read", dot.snapshot), t("read"), { class: "button" }),
      other && canAnswer("diff", { before: other, after: dot.snapshot, stat: true })
        ? link(
            address("compare", other, dot.snapshot),
            t(other === comparedSnapshot ? "compareWithSelected" : "compareWithPrevious"),
            { class: "button" },
          )
        : null,
      isStandalone
        ? null
        : el(
            "button",
            { type: "button", "aria-pressed": String(isCompared), onclick: toggleCompared },
            t("selectToCompare"),
          ),
      mayWrite()
        ? el("button", { type: "button", onclick: () => fork(dot, name) }, t("fork"))
        : null,
      openButton(lanes[selected.lane].timeline, () => dot.index),
    );
  }

  /**
   * Returns the snapshot to compare the selected dot with: the snapshot that the user selected for
   * a comparison, else the previous snapshot of the lane, else the parent's last snapshot before
   * the fork point.
   * @returns {string | undefined}
   */
  function snapshotToCompare() {
    const { dots, fork_at, parent: parentNumber } = lanes[selected.lane];
    if (comparedSnapshot && comparedSnapshot !== dots[selected.dot].snapshot)
      return comparedSnapshot;
    const parent = lanes[indexes.get(parentNumber) ?? -1];
    const lastShared = () =>
      parent?.dots.findLast((/** @type {Line} */ dot) => (dot.index ?? 0) < fork_at) ??
      parent?.dots[0];
    return (dots[selected.dot - 1] ?? lastShared())?.snapshot;
  }

  /** @param {Line} dot @param {string} name */
  function fork(dot, name) {
    askName(t("fork"), `${name} - ${dot.index ?? 0}`, (as) =>
      confirmPlan("restore", { snapshot: dot.snapshot, name: as }),
    );
  }

  /** @param {string} snapshot @param {number} index @param {HTMLElement} target */
  async function showMessage(snapshot, index, target) {
    const line = await messageAt(snapshot, index);
    if (line && target.isConnected)
      setChildren(target, el("b", {}, `#${index} ${shorten(line.name)}: `), truncate(line.text));
  }

  /** Selects the lane to the left (-1) or right (1). @param {-1 | 1} direction */
  function selectBeside(direction) {
    const order = lanes
      .map((lane, n) => [lane.column, n])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map(([, n]) => n);
    const next = order[order.indexOf(selected.lane) + direction];
    if (next !== undefined) select(next);
  }

  /**
   * Returns the dot under the pointer, even if a label covers it, or else the event's target.
   * @param {MouseEvent} event
   * @returns {Element}
   */
  function elementAt({ clientX, clientY, target }) {
    return (
      document
        .elementsFromPoint(clientX, clientY)
        .find((node) => node.matches("circle[data-dot]")) ?? /** @type {Element} */ (target)
    );
  }

  /** Returns the index of the lane of an element, or -1. @param {Element} element */
  function laneOf(element) {
    return Number(element.closest("[data-lane]")?.getAttribute("data-lane") ?? -1);
  }

  drawing.addEventListener("click", (event) => {
    const element = elementAt(event);
    const lane = laneOf(element);
    const dot = element.getAttribute("data-dot");
    if (lane >= 0)
      loadDots(lane).then(() =>
        select(lane, dot === null ? nearestDot(lane, event.clientY) : Number(dot)),
      );
  });

  /** @param {number} lane @param {number} clientY */
  function nearestDot(lane, clientY) {
    const { dots } = lanes[lane];
    const pointerY = clientY - drawing.getBoundingClientRect().top;
    const distance = (/** @type {number} */ k) => Math.abs(y(dots[k].index ?? 0) - pointerY);
    let nearest = dots.length - 1;
    for (let k = 0; k < dots.length; k++) if (distance(k) < distance(nearest)) nearest = k;
    return nearest;
  }

  /** Counts pointer moves, so that only the last move shows a preview. */
  let pointerMoves = 0;
  drawing.addEventListener("pointermove", (event) => {
    const move = ++pointerMoves;
    const { clientX, clientY } = event;
    const lane = lanes[laneOf(elementAt(event))];
    if (!lane?.dots?.length) return void (preview.hidden = true);
    const box = drawing.getBoundingClientRect();
    const index = Math.max(0, Math.min(lane.messages - 1, axis.message(clientY - box.top - TOP)));
    setTimeout(() => {
      if (move !== pointerMoves) return;
      preview.hidden = false;
      const rightmost = canvas.scrollLeft + canvas.clientWidth - 290;
      preview.style.left = `${Math.min(clientX - box.left + 14, rightmost)}px`;
      preview.style.top = `${clientY - box.top + 14}px`;
      const latest = lane.dots[lane.dots.length - 1];
      showMessage(latest.snapshot, index, preview).catch(() => (preview.hidden = true));
    }, 120);
  });
  drawing.addEventListener("pointerleave", () => (pointerMoves++, (preview.hidden = true)));
  drawing.addEventListener("keydown", (event) => {
    const { key } = event;
    const dot = lanes[selected.lane]?.dots?.[selected.dot];
    const selectAlong = (/** @type {number} */ by) =>
      select(Math.max(0, selected.lane), selected.dot + by);
    if (key === "j" || key === "ArrowDown") selectAlong(1);
    else if (key === "k" || key === "ArrowUp") selectAlong(-1);
    else if (key === "l" || key === "ArrowRight") selectBeside(1);
    else if (key === "h" || key === "ArrowLeft") selectBeside(-1);
    else if (key === "Enter" && dot) location.hash = address("read", dot.snapshot);
    else if (key === "d" && dot && snapshotToCompare())
      location.hash = address("compare", String(snapshotToCompare()), dot.snapshot);
    else if (key === "m" && dot) ((comparedSnapshot = dot.snapshot), selectAlong(0));
    else if (key === "f" && dot && mayWrite())
      fork(dot, splitTimeline(lanes[selected.lane].timeline)[1]);
    else return;
    event.preventDefault();
  });
  let isDrawPending = false;
  const drawSoon = () => {
    if (isDrawPending) return;
    isDrawPending = true;
    requestAnimationFrame(() => ((isDrawPending = false), draw()));
  };
  const onScroll = () => {
    const [left, top] = [canvas.scrollLeft - drawnAt.left, canvas.scrollTop - drawnAt.top];
    if (Math.max(Math.abs(left), Math.abs(top)) > 0.8 * OVERSCAN) drawSoon();
  };
  canvas.addEventListener("scroll", onScroll, { passive: true });
  addEventListener("resize", drawSoon);

  /** Loads the map again. The selected lane, or else the lane in the centre, stays in its place. */
  async function update() {
    const centre = canvas.scrollLeft + canvas.clientWidth / 2;
    const distance = (/** @type {Line} */ lane) => Math.abs(x(lane.column) - centre);
    const [nearest] = [...lanes].sort((a, b) => distance(a) - distance(b));
    const kept = lanes[selected.lane] ?? nearest;
    const dot = kept?.dots?.[selected.dot];
    const message = dot?.index ?? axis.message(canvas.scrollTop - TOP);
    const before = { x: kept ? x(kept.column) : 0, y: y(message) };
    const wasSelected = selected.lane >= 0;
    await load();
    laneWidth = fittingLaneWidth();
    const n = lanes.findIndex((lane) => lane.timeline === kept?.timeline);
    if (wasSelected && n >= 0) await loadDots(n);
    const isSame = (/** @type {Line} */ one) => one.snapshot === dot?.snapshot;
    selected = { lane: wasSelected ? n : -1, dot: lanes[n]?.dots?.findIndex(isSame) ?? -1 };
    draw();
    if (n < 0) return;
    canvas.scrollLeft += x(lanes[n].column) - before.x;
    canvas.scrollTop += y(message) - before.y;
  }

  await load();
  if (!lanes.length) setChildren(selection, t("empty"));
  draw();
  if (here.lane >= 0) await select(here.lane, here.dot);
  return {
    onChange: update,
    onLeave: () => removeEventListener("resize", drawSoon),
  };
}

/** Rounds an interval up to 1, 2 or 5 times a power of ten. @param {number} min */
function roundInterval(min) {
  for (const interval of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
    if (interval >= min) return interval;
  return 10_000;
}

/** Shortens a long name in its middle. @param {string} name */
function shortenLabel(name) {
  return name.length > 28 ? `${name.slice(0, 12)}…${name.slice(-14)}` : name;
}

/** @param {string} text */
function truncate(text) {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
