// The whole map at a small size, with a frame around the visible part. A press moves the map there.

import { svg } from "./dom.js";
import { HUES, lanePath } from "./map_drawing.js";

/** @typedef {import("./api.js").Line} Line */

/** Area of a large map, relative to the window. */
const LARGE = 3;
/** Least width of the frame, as a part of the width of the map. */
const MIN_FRAME = 0.03;
/** Space around the lanes, in units of the drawing. */
const MARGIN = 30;

export class Minimap {
  #frame = svg("rect", { class: "frame" });
  #lines = Array.from({ length: HUES }, (_, hue) => svg("g", { class: `hue${hue}` }, svg("path")));
  svg = svg(
    "svg",
    { class: "minimap", "aria-hidden": "true", preserveAspectRatio: "none" },
    this.#lines,
    this.#frame,
  );

  /**
   * @param {HTMLElement} canvas the element that scrolls
   * @param {import("./map_scale.js").MapScale} scale
   */
  constructor(canvas, scale) {
    this.canvas = canvas;
    this.scale = scale;
    const moveTo = (/** @type {PointerEvent} */ event) => {
      const box = this.svg.getBoundingClientRect();
      const { width, height } = scale.overview;
      const x = ((event.clientX - box.left) / box.width) * (width + 2 * MARGIN) - MARGIN;
      const y = ((event.clientY - box.top) / box.height) * (height + 2 * MARGIN) - MARGIN;
      const to = scale.positionOf(scale.pointInOverview(x, y));
      canvas.scrollTo(to.x - canvas.clientWidth / 2, to.y - canvas.clientHeight / 2);
    };
    this.svg.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.svg.setPointerCapture(event.pointerId);
      moveTo(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) moveTo(event);
    });
  }

  /** Draws the lanes. Their places do not depend on the zoom. @param {Line[]} lanes */
  draw(lanes) {
    const { width, height } = this.scale.overview;
    const box = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN];
    this.svg.setAttribute("viewBox", box.join(" "));
    const byNumber = new Map(lanes.map((lane) => [lane.number, lane]));
    /** @type {string[][]} */
    const paths = this.#lines.map(() => []);
    for (const [n, lane] of lanes.entries()) {
      const { x, top, bottom } = this.scale.overviewOfLane(lane);
      const parent = byNumber.get(lane.parent);
      const parentX = parent ? this.scale.overviewOfLane(parent).x : x;
      paths[n % HUES].push(lanePath(x, parentX, top, bottom));
    }
    this.#lines.forEach((group, hue) =>
      group.firstElementChild?.setAttribute("d", paths[hue].join(" ")),
    );
  }

  /**
   * Draws the frame around the visible part. Small maps need no minimap.
   * @param {import("./map_labels.js").Box} visible
   */
  follow({ left, right, top, bottom }) {
    const { width, height } = this.scale;
    const isLarge = width * height > LARGE * (right - left) * (bottom - top);
    this.svg.classList.toggle("needed", isLarge);
    if (!isLarge) return;
    const at = (/** @type {number} */ x, /** @type {number} */ y) =>
      this.scale.overviewOf(this.scale.pointAt(x, y));
    const [start, end] = [at(left, top), at(right, bottom)];
    const { width: whole } = this.scale.overview;
    const frame = {
      x: Math.max(-MARGIN, start.x),
      y: start.y,
      width: Math.max(whole * MIN_FRAME, end.x - start.x),
      height: end.y - start.y,
    };
    for (const [name, value] of Object.entries(frame))
      this.#frame.setAttribute(name, String(value));
  }
}
