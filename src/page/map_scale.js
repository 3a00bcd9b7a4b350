// The scale of the map: where columns and messages are drawn at a zoom. At zoom 1 the map is
// readable. At the least zoom all of it fits into the window.

import { Axis, sortMarks } from "./axis.js";
import { extent, placeColumns } from "./map_columns.js";

/** Space to the left of the first lane, for message numbers, in pixels. */
export const GUTTER = 72;
/** Space above the first message, and there for the names of characters, in pixels. */
const [TOP, TOP_WITH_OWNERS] = [32, 60];
/** Space below the last message, for the buttons, in pixels. */
const BOTTOM = 72;
/** Pixels per message at zoom 1, and at the greatest zoom. */
const [MIN_STEP, MAX_STEP, LARGEST_STEP] = [4, 24, 48];
/** Least width of the columns at zoom 1, relative to their full size. */
const MIN_SCALE = 0.85;
/** Scale from which on the labels right of the last column have room. */
const TAIL_FROM = 0.4;

export class MapScale {
  /** Stretches that the user expanded, by the message before each. @type {Set<number>} */
  expanded = new Set();
  zoom = 1;
  #top = TOP;
  /** Width of the labels right of the last column, in pixels. */
  #tail = 0;
  axis = new Axis([0], 1, this.expanded);
  /** The axis at zoom 1, which the minimap shows. */
  #baseAxis = this.axis;
  /** X of each column at full size. @type {number[]} */
  #places = [];
  /** @type {number[]} */
  #marks = [0];
  /** Pixels per message at zoom 1, and where the whole map fits. */
  #step = { base: 0, fit: 0 };
  /** Size of the columns at zoom 1, and where the whole map fits. */
  #columns = { base: 1, fit: 1 };
  /** Size of the columns, relative to their full size. */
  size = 1;

  /** @param {boolean} hasOwners whether the names of characters are above the lanes */
  constructor(hasOwners) {
    this.#top = hasOwners ? TOP_WITH_OWNERS : TOP;
  }

  /**
   * Takes over the lanes. The zoom stays what it was, except the first time.
   * @param {import("./api.js").Line[]} lanes
   * @param {{ columns: number, messages: number }} counts
   * @param {Iterable<number>} marks messages that must not be folded
   * @param {{ width: number, height: number }} window
   * @param {(text: string) => number} measure
   */
  setLanes(lanes, counts, marks, window, measure) {
    this.#marks = sortMarks(counts.messages, marks);
    const height = window.height - this.#top - BOTTOM;
    const fit = this.#fittingStep(height);
    if (!this.#step.base) this.#step.base = Math.max(MIN_STEP, Math.min(MAX_STEP, fit));
    const { base } = this.#step;
    const axis = new Axis(this.#marks, base, this.expanded);
    this.#baseAxis = axis;
    const { places, tail } = placeColumns(lanes, counts.columns, (n) => axis.y(n), measure);
    [this.#places, this.#tail] = [places, tail];
    this.#step.fit = Math.min(base, fit);
    this.fitColumns(window.width);
    this.setZoom(this.zoom);
  }

  /** @param {number} width of the window */
  fitColumns(width) {
    const last = this.#places[this.#places.length - 1] ?? 0;
    // At a small zoom, labels have no room anyway.
    const fitting = (/** @type {number} */ right) =>
      Math.max(0, width - GUTTER - right) / (last || 1);
    const fit = Math.min(1, fitting(this.#tail + 8));
    this.#columns.base = Math.max(MIN_SCALE, fit);
    this.#columns.fit =
      fit >= MIN_SCALE ? this.#columns.base : Math.min(MIN_SCALE, Math.max(0.001, fitting(40)));
  }

  /** @param {number} height */
  #fittingStep(height) {
    let [low, high] = [0.001, MAX_STEP];
    const fits = (/** @type {number} */ step) =>
      new Axis(this.#marks, step, this.expanded).height <= height;
    if (fits(high)) return high;
    for (let n = 0; n < 14; n++) {
      const middle = Math.sqrt(low * high);
      if (fits(middle)) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The zoom at which all of the map is visible. */
  get fittingZoom() {
    const { base, fit } = this.#step;
    return Math.min(1, fit / base, this.#columns.fit / this.#columns.base);
  }

  /** @param {number} zoom */
  setZoom(zoom) {
    const [base, least] = [this.#step.base, this.fittingZoom];
    const greatest = Math.max(2, LARGEST_STEP / base);
    this.zoom = Math.max(least, Math.min(greatest, zoom || 1));
    if (this.zoom < 1) {
      // Both directions reach the size at which the map fits at the same zoom.
      const part = Math.log(this.zoom) / Math.log(least);
      this.size = this.#columns.base * (this.#columns.fit / this.#columns.base) ** part;
      this.#setStep(base * (this.#step.fit / base) ** part);
    } else {
      this.size = Math.min(1, this.#columns.base * this.zoom);
      this.#setStep(base * this.zoom);
    }
  }

  /** @param {number} step */
  #setStep(step) {
    this.step = step;
    this.axis = new Axis(this.#marks, step, this.expanded);
  }
  /** Pixels per message. */
  step = 1;

  /** Draws a folded stretch in full. @param {number} before the message before it */
  expand(before) {
    this.expanded.add(before);
    this.#baseAxis = new Axis(this.#marks, this.#step.base, this.expanded);
    this.#setStep(this.step);
  }

  /** Messages that are not folded. */
  get marks() {
    return this.#marks;
  }

  get width() {
    const last = this.#places[this.#places.length - 1] ?? 0;
    return GUTTER + last * this.size + (this.size < TAIL_FROM ? 40 : this.#tail + 8);
  }

  get height() {
    return this.#top + this.axis.height + BOTTOM;
  }

  /** Mean distance of two columns, in pixels. */
  get distance() {
    const count = this.#places.length - 1;
    return count > 0 ? (this.#places[count] * this.size) / count : 100;
  }

  /** @param {number} column */
  x(column) {
    return GUTTER + (this.#places[column] ?? 0) * this.size;
  }

  /** @param {number} message */
  y(message) {
    return this.#top + this.axis.y(message);
  }

  /** Returns the message at a position, with a fraction. @param {number} y */
  messageAt(y) {
    return this.axis.messageAt(y - this.#top);
  }

  /**
   * Returns a point of the map that does not depend on the zoom.
   * @param {number} x
   * @param {number} y
   */
  pointAt(x, y) {
    return { across: (x - GUTTER) / this.size, message: this.messageAt(y) };
  }

  /** Returns the position of a point. @param {{ across: number, message: number }} point */
  positionOf({ across, message }) {
    return { x: GUTTER + across * this.size, y: this.y(message) };
  }

  /** Size of the minimap's drawing. */
  get overview() {
    const last = this.#places[this.#places.length - 1] ?? 0;
    return { width: last + this.#tail, height: this.#baseAxis.height };
  }

  /**
   * Returns the place of a point in the minimap.
   * @param {{ across: number, message: number }} point
   */
  overviewOf({ across, message }) {
    return { x: across, y: this.#baseAxis.y(message) };
  }

  /** Returns the point at a place in the minimap. @param {number} x @param {number} y */
  pointInOverview(x, y) {
    return { across: x, message: this.#baseAxis.messageAt(y) };
  }

  /** Returns the place of a lane in the minimap. @param {import("./api.js").Line} lane */
  overviewOfLane(lane) {
    const [top, bottom] = extent(lane, (message) => this.#baseAxis.y(message));
    return { x: this.#places[lane.column] ?? 0, top, bottom };
  }

  /** @param {import("./api.js").Line} lane */
  extent(lane) {
    return extent(lane, (message) => this.y(message));
  }
}
