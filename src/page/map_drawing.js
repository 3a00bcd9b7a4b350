// Draws the lanes, snapshots and labels of the visible part of the map, and finds what is at a
// position.

import { svg } from "./dom.js";
import { MIN_LENGTH, flagText } from "./map_columns.js";
import { placeLabels } from "./map_labels.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {import("./map_labels.js").Box} Box */
/** @typedef {{ lane: number, dot: number }} Choice indexes of a lane and of its snapshot, or -1 */
/** @typedef {{ lane: number, dot: number | null }} Hit a lane, or a snapshot on it */

/** Number of colours of lanes. */
export const HUES = 6;
/** Radius of the corner where a fork leaves its parent, in pixels. */
const CORNER = 14;
/** Least space between two snapshots that are both drawn, in pixels. */
const DOT_SPACE = 4;
/** Least distance of columns at which snapshots, and at which labels are drawn. */
const [DOTS_FROM, LABELS_FROM] = [7, 16];

/**
 * @typedef {object} View
 * @property {Line[]} lanes
 * @property {Map<number, number>} indexes index into `lanes` of each lane number
 * @property {import("./map_scale.js").MapScale} scale
 * @property {Choice} selected
 * @property {Choice} here the place that the user came from
 * @property {string | null} compared snapshot that was chosen for a comparison
 * @property {Box} box the part to draw
 * @property {(text: string) => number} measure
 */

/** Returns the y of a snapshot. @param {View} view @param {Line} lane @param {Line} dot */
export function dotY({ scale }, lane, dot) {
  const y = scale.y(dot.index ?? 0);
  // Below the corner, so that it is on the line.
  return lane.fork_at === null ? y : Math.max(y, scale.extent(lane)[0] + MIN_LENGTH);
}

export class MapDrawing {
  svg = svg("svg", { role: "tree", "aria-label": t("map"), tabindex: 0 });
  /** @type {{ lane: number, dot: number, x: number, y: number }[]} */
  #dots = [];
  /** @type {{ lane: number, x: number, parentX: number, top: number, bottom: number }[]} */
  #lines = [];
  /** @type {{ box: Box, lane: number, dot: number | null }[]} */
  #labels = [];

  /**
   * Draws the lanes in a part of the map. Returns the lanes whose snapshots are not loaded.
   * @param {View} view
   */
  draw(view) {
    const { lanes, indexes, scale, box } = view;
    [this.#dots, this.#lines, this.#labels] = [[], [], []];
    this.svg.setAttribute("width", String(Math.ceil(scale.width)));
    this.svg.setAttribute("height", String(Math.ceil(scale.height)));
    const { distance } = scale;
    this.svg.style.setProperty("--lane-width", `${Math.max(1, Math.min(4, distance / 5))}px`);
    const dotSize = Math.max(2.5, Math.min(5, distance / 6));
    /** @type {SVGElement[]} */
    const groups = [];
    /** Drawn above all lines, because the line of a fork starts at a dot. @type {SVGElement[]} */
    const dotGroups = [];
    /** @type {import("./map_labels.js").Label[]} */
    const labels = [];
    /** @type {Box[]} */
    const obstacles = [];
    /** @type {number[]} */
    const missing = [];
    lanes.forEach((lane, n) => {
      const x = scale.x(lane.column);
      const parent = lane.parent === null ? null : lanes[indexes.get(lane.parent) ?? -1];
      const parentX = parent ? scale.x(parent.column) : x;
      const [top, bottom] = scale.extent(lane);
      const [left, right] = [Math.min(x, parentX), Math.max(x, parentX)];
      if (right < box.left || left > box.right || bottom < box.top || top > box.bottom) return;
      groups.push(this.#line(view, lane, n, { x, parentX, top, bottom }));
      this.#lines.push({ lane: n, x, parentX, top, bottom });
      obstacles.push({ left: x - 4, right: x + 4, top, bottom });
      if (parent) obstacles.push({ left: parentX, right: x, top: top - 2, bottom: top + 2 });
      if (distance < DOTS_FROM) return;
      if (!lane.dots) missing.push(n);
      const group = svg("g", {
        class: `dots ${lane.state} hue${n % HUES}`,
        "data-lane": n,
      });
      dotGroups.push(group);
      this.#drawDots(view, lane, n, { x, dotSize, group, labels });
      if (distance >= LABELS_FROM || n === view.selected.lane)
        labels.push(...nameLabel(view, lane, n, { x, top, bottom }));
    });
    labels.sort((a, b) => importance(b) - importance(a));
    const texts = placeLabels(labels, obstacles, view.measure).map((label) => {
      const { box, properties } = label;
      this.#labels.push({
        box,
        lane: Number(properties["data-lane"]),
        dot: properties["data-dot"] === undefined ? null : Number(properties["data-dot"]),
      });
      const at = { x: box.left, y: (box.top + box.bottom) / 2 + 4.5 };
      const title = label.shown === label.text ? null : svg("title", {}, label.text);
      return svg("text", { ...properties, ...at }, label.shown, title);
    });
    this.svg.replaceChildren(...groups, ...dotGroups, ...texts);
    const active = `lane-${view.selected.lane}`;
    if (this.svg.querySelector(`#${active}`))
      this.svg.setAttribute("aria-activedescendant", active);
    else this.svg.removeAttribute("aria-activedescendant");
    return missing;
  }

  /**
   * @param {View} view
   * @param {Line} lane
   * @param {number} n
   * @param {{ x: number, parentX: number, top: number, bottom: number }} place
   */
  #line(view, lane, n, { x, parentX, top, bottom }) {
    const isSelected = n === view.selected.lane;
    const properties = {
      class: `lane ${lane.state} hue${n % HUES}${isSelected ? " selected" : ""}`,
      id: `lane-${n}`,
      role: "treeitem",
      "aria-label": `${lane.owner}: ${lane.name}`,
      "aria-selected": String(isSelected),
      "data-lane": n,
      "data-timeline": lane.timeline,
    };
    const d = lanePath(x, parentX, top, bottom);
    // A thousand lanes may be visible at once.
    if (view.scale.distance < DOTS_FROM) return svg("path", { ...properties, d });
    const group = svg("g", properties, svg("path", { d }));
    for (const scene of lane.scenes ?? []) {
      const y = view.scale.y(scene.index);
      if (y < view.box.top || y > view.box.bottom) continue;
      const title = svg("title", {}, scene.name ?? t("sceneEnd"));
      group.append(svg("path", { class: "scene", d: `M${x - 8} ${y} h16` }, title));
    }
    return group;
  }

  /**
   * @param {View} view
   * @param {Line} lane
   * @param {number} n
   * @param {object} target
   * @param {number} target.x
   * @param {number} target.dotSize
   * @param {SVGElement} target.group
   * @param {import("./map_labels.js").Label[]} target.labels
   */
  #drawDots(view, lane, n, { x, dotSize, group, labels }) {
    const { box, selected, here } = view;
    const dots = lane.dots ?? [];
    let lastY = Infinity;
    for (let k = dots.length - 1; k >= 0; k--) {
      const dot = dots[k];
      const y = dotY(view, lane, dot);
      const isLatest = k === dots.length - 1;
      const isSelected = n === selected.lane && k === selected.dot;
      const isHere = n === here.lane && k === here.dot;
      const isCompared = dot.snapshot === view.compared;
      // If dots would overlap, only the important ones are drawn.
      const isImportant = dot.tags.length > 0 || isLatest || isSelected || isHere || isCompared;
      if (y < box.top || y > box.bottom || (!isImportant && lastY - y < 2 * dotSize + DOT_SPACE))
        continue;
      lastY = y;
      this.#dots.push({ lane: n, dot: k, x, y });
      if (isSelected) group.append(svg("circle", { class: "ring", cx: x, cy: y, r: dotSize + 7 }));
      group.append(
        svg("circle", {
          class: [isLatest && "latest", isSelected && "selected", isCompared && "compared"]
            .filter(Boolean)
            .join(" "),
          cx: x,
          cy: y,
          r: isLatest ? dotSize + 2 : dotSize,
          "data-dot": k,
        }),
      );
      const place = { x: isSelected ? x + 6 : x, y };
      const target = { "data-lane": n, "data-dot": k };
      if (dot.tags.length)
        labels.push({
          ...place,
          text: flagText(dot),
          isNeeded: false,
          properties: { class: "flag", ...target },
        });
      if (isHere)
        labels.push({
          ...place,
          text: t("youAreHere"),
          isNeeded: false,
          properties: { class: "here", ...target },
        });
    }
  }

  /**
   * Returns the snapshot or the lane at a position. A snapshot is found even if the line of a fork
   * or a label covers it.
   * @param {number} x
   * @param {number} y
   * @param {number} reach distance at which something is still found, in pixels
   * @returns {Hit | null}
   */
  at(x, y, reach) {
    let [nearest, distance] = [/** @type {Hit | null} */ (null), reach];
    for (const dot of this.#dots) {
      const from = Math.hypot(dot.x - x, dot.y - y);
      if (from < distance) [nearest, distance] = [dot, from];
    }
    if (nearest) return nearest;
    const isInside = (/** @type {Box} */ box) =>
      x >= box.left - 4 && x <= box.right + 4 && y >= box.top - 2 && y <= box.bottom + 2;
    const label = this.#labels.find(({ box }) => isInside(box));
    if (label) return label;
    for (const line of this.#lines) {
      const isBeside = y >= line.top - reach / 2 && y <= line.bottom + reach / 2;
      const isAcross = line.parentX < line.x && x > line.parentX + reach && x <= line.x;
      const from = Math.min(
        isBeside ? Math.abs(line.x - x) : Infinity,
        isAcross ? Math.abs(line.top - y) + 1 : Infinity,
      );
      if (from < distance) [nearest, distance] = [{ lane: line.lane, dot: null }, from];
    }
    return nearest;
  }
}

/**
 * @param {number} x
 * @param {number} parentX
 * @param {number} top
 * @param {number} bottom
 */
export function lanePath(x, parentX, top, bottom) {
  if (parentX === x) return `M${x} ${top} V${bottom}`;
  const corner = Math.min(CORNER, bottom - top, x - parentX);
  return `M${parentX} ${top} H${x - corner} Q${x} ${top} ${x} ${top + corner} V${bottom}`;
}

/**
 * Returns the label at the end of a lane, or at its start if the end is not visible.
 * @param {View} view
 * @param {Line} lane
 * @param {number} n
 * @param {{ x: number, top: number, bottom: number }} place
 * @returns {import("./map_labels.js").Label[]}
 */
function nameLabel({ box, selected }, lane, n, { x, top, bottom }) {
  const isSelected = n === selected.lane;
  const label = {
    text: lane.name,
    x: isSelected ? x + 5 : x,
    isNeeded: isSelected,
    properties: {
      class: `name ${lane.state}${isSelected ? " chosen" : ""}`,
      "data-lane": n,
    },
  };
  if (bottom <= box.bottom) return [{ ...label, y: bottom }];
  if (lane.parent === null && top >= box.top) return [{ ...label, y: top, isAbove: true }];
  return [];
}

/** @param {import("./map_labels.js").Label} label */
function importance({ isNeeded, properties }) {
  const kind = String(properties.class);
  if (isNeeded) return 3;
  return kind === "here" ? 2 : kind === "flag" ? 0 : 1;
}
