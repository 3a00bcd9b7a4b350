// The map: a vertical lane for each timeline, on which messages go downwards and each snapshot is a
// dot. Only lanes and dots near the visible part are in the document.

import { mayWrite } from "./api.js";
import { timelineAvatar } from "./avatar.js";
import { address, el, setChildren } from "./dom.js";
import { measurer } from "./map_columns.js";
import { MapDetails, fork } from "./map_details.js";
import { HUES, MapDrawing, dotY } from "./map_drawing.js";
import { followGestures } from "./map_gestures.js";
import { MapLanes } from "./map_lanes.js";
import { MapMargins } from "./map_margins.js";
import { MapPreview } from "./map_preview.js";
import { GUTTER, MapScale } from "./map_scale.js";
import { storyChooser } from "./map_stories.js";
import { Minimap } from "./minimap.js";
import { isStandalone } from "./standalone.js";
import { splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Pixels that are drawn beyond the visible part, so that not every scroll event has to draw. */
const OVERSCAN = 500;
/** Maximum number of lanes for which scene ends are loaded. */
const MAX_SCENE_LANES = 200;
/** Factor of a press of a zoom button. */
const ZOOM_STEP = 1.5;
/** Distance from a snapshot at which a press selects it, in pixels: with a mouse, with a finger. */
const [MOUSE_REACH, FINGER_REACH] = [14, 24];
/** The snapshot that the user selected for a comparison. @type {string | null} */
let comparedSnapshot = null;

/** @type {import("./main.js").Place} */
export async function map(place, [requested], query) {
  const loaded = new MapLanes(requested);
  let selected = { lane: -1, dot: -1 };
  /** The dot of the snapshot in the address, or the latest dot of the timeline in the address. */
  let here = { lane: -1, dot: -1 };
  const scale = new MapScale(!requested);

  const load = async () => {
    await loaded.load();
    here = (await loaded.findDot(query.get("at"))) ?? loaded.latestDot();
    updateScale();
    if (!requested || loaded.all.length > MAX_SCENE_LANES || isStandalone) return;
    const drawScenes = async () => {
      if (!(await loaded.loadScenes())) return;
      const centre = centreOfWindow();
      updateScale();
      keepPoint(centre);
      minimap.draw(loaded.all);
    };
    drawScenes().catch(() => {});
  };

  function updateScale() {
    const index = loaded.all[here.lane]?.dots?.[here.dot]?.index ?? 0;
    const window = { width: canvas.clientWidth, height: canvas.clientHeight };
    scale.setLanes(loaded.all, loaded.counts, [...loaded.marks(), index], window, measure);
  }

  const drawing = new MapDrawing();
  const margins = new MapMargins((before) => {
    const { scrollTop } = canvas;
    scale.expand(before);
    drawAll();
    canvas.scrollTop = scrollTop;
  });
  const canvas = el("div", { class: "canvas" }, drawing.svg, margins.numbers, margins.owners);
  const preview = new MapPreview(canvas);
  const minimap = new Minimap(canvas, scale);
  const zoomButton = (
    /** @type {string} */ sign,
    /** @type {string} */ label,
    /** @type {() => void} */ onclick,
  ) => el("button", { type: "button", "aria-label": label, title: label, onclick }, sign);
  const zoomButtons = el(
    "div",
    { class: "zoom", role: "group", "aria-label": t("zoom") },
    zoomButton("+", t("zoomIn"), () => zoomBy(ZOOM_STEP)),
    zoomButton("−", t("zoomOut"), () => zoomBy(1 / ZOOM_STEP)),
    zoomButton("⤢", t("fitToView"), () => fit()),
  );
  const details = new MapDetails({
    onClose: () => {
      deselect();
      drawing.svg.focus({ preventScroll: true });
    },
    onCompare: () => toggleCompared(),
  });
  const bar = el("div", { class: "bar" }, el("h1", {}, t("map")));
  setChildren(
    place,
    bar,
    el(
      "div",
      { class: "map-body" },
      el("div", { class: "map-window" }, canvas, zoomButtons, minimap.svg, preview.element),
      details.element,
    ),
  );
  details.showText(t("selectSnapshot"));
  const measure = measurer(canvas);

  function visiblePart() {
    const { scrollLeft: left, scrollTop: top, clientWidth, clientHeight } = canvas;
    return { left, top, right: left + clientWidth, bottom: top + clientHeight };
  }

  /** Position of the last drawing. */
  let drawnAt = { left: 0, top: 0 };
  function draw() {
    // Read before anything is drawn, because the browser would have to lay out the drawing.
    const visible = visiblePart();
    drawnAt = visible;
    const box = {
      left: visible.left - OVERSCAN,
      right: visible.right + OVERSCAN,
      top: visible.top - OVERSCAN,
      bottom: visible.bottom + OVERSCAN,
    };
    const missing = drawing.draw(view(box));
    margins.draw(box, {
      scale,
      owners: requested ? [] : loaded.owners,
      isStory: Boolean(requested),
    });
    minimap.follow(visible);
    loaded.loadMissing(missing).then(
      (isChanged) => isChanged && drawSoon(),
      () => {},
    );
  }

  /** @param {import("./map_labels.js").Box} box */
  function view(box) {
    const compared = comparedSnapshot;
    const { all: lanes, indexes } = loaded;
    return { lanes, indexes, scale, selected, here, compared, box, measure };
  }

  /** Draws after the lanes changed. */
  function drawAll() {
    minimap.draw(loaded.all);
    draw();
  }

  /** The point of the map in the centre of the window. */
  function centreOfWindow() {
    const [x, y] = [canvas.clientWidth / 2, canvas.clientHeight / 2];
    return { x, y, point: scale.pointAt(canvas.scrollLeft + x, canvas.scrollTop + y) };
  }

  /** Draws, and keeps a point where it was. @param {ReturnType<typeof centreOfWindow>} kept */
  function keepPoint({ x, y, point }) {
    // The size of the drawing limits the scroll position. An empty drawing has a fast layout.
    drawing.svg.replaceChildren();
    drawing.svg.setAttribute("width", String(Math.ceil(scale.width)));
    drawing.svg.setAttribute("height", String(Math.ceil(scale.height)));
    const to = scale.positionOf(point);
    canvas.scrollTo(to.x - x, to.y - y);
    draw();
  }

  /** Zoom steps that are not drawn yet, and their pointer. */
  let pendingZoom = { factor: 1, x: 0, y: 0 };
  /**
   * Zooms around the pointer before the next frame.
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  function zoomSoon(factor, x, y) {
    const isNew = pendingZoom.factor === 1;
    pendingZoom = { factor: pendingZoom.factor * factor, x, y };
    if (!isNew) return;
    requestAnimationFrame(() => {
      const { factor, x, y } = pendingZoom;
      pendingZoom = { factor: 1, x: 0, y: 0 };
      zoomBy(factor, x, y);
    });
  }

  /**
   * Zooms around a position of the window, by default around the selected snapshot if it is
   * visible, or else around the centre.
   * @param {number} factor
   * @param {number} [clientX]
   * @param {number} [clientY]
   */
  function zoomBy(factor, clientX, clientY) {
    const box = canvas.getBoundingClientRect();
    let [x, y] = [canvas.clientWidth / 2, canvas.clientHeight / 2];
    if (clientX !== undefined && clientY !== undefined)
      [x, y] = [clientX - box.left, clientY - box.top];
    else {
      const at = positionOf(selected);
      const [left, top] = [(at?.x ?? -1) - canvas.scrollLeft, (at?.y ?? -1) - canvas.scrollTop];
      const isVisible =
        left > 0 && top > 0 && left < canvas.clientWidth && top < canvas.clientHeight;
      if (isVisible) [x, y] = [left, top];
    }
    const point = scale.pointAt(canvas.scrollLeft + x, canvas.scrollTop + y);
    scale.setZoom(scale.zoom * factor);
    keepPoint({ x, y, point });
    writeAddress();
  }

  /** Shows all of the map. */
  function fit() {
    scale.setZoom(scale.fittingZoom);
    keepPoint({ x: 0, y: 0, point: { across: 0, message: 0 } });
    writeAddress();
  }

  /** @param {import("./map_drawing.js").Choice} choice */
  function positionOf(choice) {
    const lane = loaded.all[choice.lane];
    const dot = lane?.dots?.[choice.dot];
    if (!dot) return null;
    const box = { left: 0, right: 0, top: 0, bottom: 0 };
    return { x: scale.x(lane.column), y: dotY(view(box), lane, dot) };
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let addressTimer;
  /** Writes the selection and the zoom into the address. */
  function writeAddress() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
      const dot = loaded.all[selected.lane]?.dots?.[selected.dot];
      const parts = new URLSearchParams();
      if (dot) parts.set("at", dot.snapshot);
      if (Math.abs(scale.zoom - 1) > 0.01) parts.set("z", String(+scale.zoom.toPrecision(3)));
      const place = address("tree", ...(loaded.timeline ? [loaded.timeline] : []));
      history.replaceState(history.state, "", parts.size ? `${place}?${parts}` : place);
    }, 100);
  }

  /** Selects dot `k` of lane `n`, by default the latest. @param {number} n @param {number} [k] */
  async function select(n, k = Infinity) {
    const lane = loaded.all[n];
    if (!lane) return;
    await loaded.loadDots(n);
    if (!lane.dots?.length) {
      selected = { lane: n, dot: -1 };
      details.showText(`${lane.name}: ${t("noSnapshot")}`);
      return draw();
    }
    selected = { lane: n, dot: Math.max(0, Math.min(lane.dots.length - 1, k)) };
    showDetails();
    draw();
    const at = positionOf(selected);
    if (at) scrollTo(at.x, at.y);
    writeAddress();
  }

  function deselect() {
    selected = { lane: -1, dot: -1 };
    details.showText(t("selectSnapshot"));
    draw();
    writeAddress();
  }

  function showDetails() {
    const lane = loaded.all[selected.lane];
    const dot = lane.dots[selected.dot];
    details.show({
      lane,
      hue: selected.lane % HUES,
      dot,
      isLatest: selected.dot === lane.dots.length - 1,
      compared: comparedSnapshot,
      other: snapshotToCompare(),
      previous: loaded.previousSnapshot(selected),
    });
  }

  /** Scrolls a point into the window if it is not visible. @param {number} x @param {number} y */
  function scrollTo(x, y) {
    // The buttons cover the lower edge.
    const [margin, lower] = [40, 64];
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = canvas;
    if (y < scrollTop + margin || y > scrollTop + clientHeight - lower)
      canvas.scrollTop = y - clientHeight / 2;
    if (x < scrollLeft + GUTTER || x > scrollLeft + clientWidth - margin)
      canvas.scrollLeft = x - clientWidth / 2;
  }

  /** The snapshot that the user selected for a comparison, or else the previous snapshot. */
  function snapshotToCompare() {
    const { dots } = loaded.all[selected.lane];
    return comparedSnapshot && comparedSnapshot !== dots[selected.dot].snapshot
      ? comparedSnapshot
      : loaded.previousSnapshot(selected);
  }

  function toggleCompared() {
    const { snapshot } = loaded.all[selected.lane].dots[selected.dot];
    comparedSnapshot = comparedSnapshot === snapshot ? null : snapshot;
    showDetails();
    draw();
  }

  /** Selects the lane to the left (-1) or right (1). @param {-1 | 1} direction */
  function selectBeside(direction) {
    const order = loaded.all
      .map((lane, n) => [lane.column, n])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map(([, n]) => n);
    const next = order[order.indexOf(selected.lane) + direction];
    if (next !== undefined) select(next);
  }

  /** Returns what is at the pointer, and its position on the map. @param {PointerEvent} event */
  function atPointer(event) {
    const box = drawing.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const reach = event.pointerType === "mouse" ? MOUSE_REACH : FINGER_REACH;
    return { x, y, hit: drawing.at(x, y, reach) };
  }

  /** @param {number} lane @param {number} y */
  function nearestDot(lane, y) {
    const { dots } = loaded.all[lane];
    const distance = (/** @type {number} */ k) => Math.abs(scale.y(dots[k].index ?? 0) - y);
    let nearest = dots.length - 1;
    for (let k = 0; k < dots.length; k++) if (distance(k) < distance(nearest)) nearest = k;
    return nearest;
  }

  /** @param {PointerEvent | null} event */
  function hover(event) {
    if (!event || event.pointerType !== "mouse") return preview.hide();
    const { hit, y } = atPointer(event);
    canvas.classList.toggle("on-lane", hit !== null);
    const lane = loaded.all[hit?.lane ?? -1];
    if (!hit || !lane?.dots?.length) return preview.hide();
    preview.showSoon(event, lane, hit.dot, Math.round(scale.messageAt(y)));
  }

  followGestures(canvas, {
    zoomBy: zoomSoon,
    hover,
    press: (event) => {
      const { hit, y } = atPointer(event);
      drawing.svg.focus({ preventScroll: true });
      preview.hide();
      if (hit)
        loaded.loadDots(hit.lane).then(() => select(hit.lane, hit.dot ?? nearestDot(hit.lane, y)));
    },
  });

  drawing.svg.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey } = /** @type {KeyboardEvent} */ (event);
    if (ctrlKey || metaKey || altKey) return;
    const dot = loaded.all[selected.lane]?.dots?.[selected.dot];
    const selectAlong = (/** @type {number} */ by) =>
      select(Math.max(0, selected.lane), selected.dot + by);
    if (key === "j" || key === "ArrowDown") selectAlong(1);
    else if (key === "k" || key === "ArrowUp") selectAlong(-1);
    else if (key === "l" || key === "ArrowRight") selectBeside(1);
    else if (key === "h" || key === "ArrowLeft") selectBeside(-1);
    else if (key === "+" || key === "=") zoomBy(ZOOM_STEP);
    else if (key === "-") zoomBy(1 / ZOOM_STEP);
    else if (key === "0") fit();
    else if (key === "Escape" && selected.lane >= 0) deselect();
    else if (key === "Enter" && dot) location.hash = address("read", dot.snapshot);
    else if (key === "d" && dot && snapshotToCompare())
      location.hash = address("compare", String(snapshotToCompare()), dot.snapshot);
    else if (key === "m" && dot) toggleCompared();
    else if (key === "f" && dot && mayWrite()) fork(dot, loaded.all[selected.lane].name);
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
    if (Math.max(Math.abs(left), Math.abs(top)) > 0.7 * OVERSCAN) drawSoon();
    else minimap.follow(visiblePart());
  };
  canvas.addEventListener("scroll", onScroll, { passive: true });
  let width = canvas.clientWidth;
  // The sheet on a phone changes the height of the window, which must not change the scale.
  const resized = new ResizeObserver(() => {
    if (canvas.clientWidth !== width) {
      width = canvas.clientWidth;
      const centre = centreOfWindow();
      scale.fitColumns(width);
      scale.setZoom(scale.zoom);
      keepPoint(centre);
    } else drawSoon();
    const at = positionOf(selected);
    if (at) scrollTo(at.x, at.y);
  });

  /** Loads the map again. The selected lane, or else the lane in the centre, stays in its place. */
  async function update() {
    const centre = canvas.scrollLeft + canvas.clientWidth / 2;
    const distance = (/** @type {Line} */ lane) => Math.abs(scale.x(lane.column) - centre);
    const [nearest] = [...loaded.all].sort((a, b) => distance(a) - distance(b));
    const kept = loaded.all[selected.lane] ?? nearest;
    const dot = kept?.dots?.[selected.dot];
    const message = dot?.index ?? Math.round(scale.messageAt(canvas.scrollTop));
    const before = { x: kept ? scale.x(kept.column) : 0, y: scale.y(message) };
    const wasSelected = selected.lane >= 0;
    await load();
    const n = loaded.all.findIndex((lane) => lane.timeline === kept?.timeline);
    if (wasSelected && n >= 0) await loaded.loadDots(n);
    const isSame = (/** @type {Line} */ one) => one.snapshot === dot?.snapshot;
    selected = { lane: wasSelected ? n : -1, dot: loaded.all[n]?.dots?.findIndex(isSame) ?? -1 };
    drawAll();
    const chats = bar.querySelector(".facts");
    if (chats) chats.textContent = barFacts();
    if (positionOf(selected)) showDetails();
    if (n < 0) return;
    canvas.scrollLeft += scale.x(loaded.all[n].column) - before.x;
    canvas.scrollTop += scale.y(message) - before.y;
  }

  function barFacts() {
    const chats = t("chats", { n: loaded.all.length });
    return [loaded.timeline ? splitTimeline(loaded.timeline)[0] : "", chats]
      .filter(Boolean)
      .join(" · ");
  }

  function drawBar() {
    setChildren(
      bar,
      loaded.timeline ? timelineAvatar(loaded.timeline) : null,
      el("h1", {}, loaded.timeline ? splitTimeline(loaded.timeline)[1] : t("map")),
      el("span", { class: "facts" }, barFacts()),
      storyChooser(loaded.timeline),
    );
  }

  await load();
  if (!loaded.all.length) details.showText(t("empty"));
  scale.setZoom(Number(query.get("z")) || 1);
  drawBar();
  drawAll();
  if (here.lane >= 0) await select(here.lane, here.dot);
  resized.observe(canvas);
  return {
    onChange: update,
    onLeave: () => {
      resized.disconnect();
      clearTimeout(addressTimer);
    },
  };
}
