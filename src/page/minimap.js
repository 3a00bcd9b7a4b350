// The whole map at a small size, with a frame around the visible part. A press moves the map there.

import { svg } from "./dom.js";
import { lanePath } from "./map_drawing.js";

/** Number of colours of lanes. */
const HUES = 6;
/** Size of a large map, relative to the window. */
const LARGE = 1.6;

export class Minimap {
  #frame = svg("rect", { class: "frame" });
  #lines = Array.from({ length: HUES }, (_, hue) => svg("g", { class: `hue${hue}` }, svg("path")));
  svg = svg(
    "svg",
    { class: "minimap", "aria-hidden": "true", preserveAspectRatio: "none" },
    this.#lines,
    this.#frame,
  );

  /** @param {HTMLElement} canvas the element that scrolls */
  constructor(canvas) {
    this.canvas = canvas;
    const moveTo = (/** @type {PointerEvent} */ event) => {
      const box = this.svg.getBoundingClientRect();
      const across = (event.clientX - box.left) / box.width;
      const down = (event.clientY - box.top) / box.height;
      canvas.scrollTo(
        across * canvas.scrollWidth - canvas.clientWidth / 2,
        down * canvas.scrollHeight - canvas.clientHeight / 2,
      );
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

  /** Draws the lanes. @param {import("./map_drawing.js").View} view */
  draw({ lanes, indexes, scale }) {
    this.svg.setAttribute("viewBox", `0 0 ${scale.width} ${scale.height}`);
    /** @type {string[][]} */
    const paths = this.#lines.map(() => []);
    for (const lane of lanes) {
      const parent = lane.parent === null ? null : lanes[indexes.get(lane.parent) ?? -1];
      const x = scale.x(lane.column);
      const [top, bottom] = scale.extent(lane);
      paths[lane.column % HUES].push(lanePath(x, parent ? scale.x(parent.column) : x, top, bottom));
    }
    this.#lines.forEach((group, hue) =>
      group.firstElementChild?.setAttribute("d", paths[hue].join(" ")),
    );
    this.follow();
  }

  /** Draws the frame around the visible part. Small maps need no minimap. */
  follow() {
    const { scrollLeft, scrollTop, clientWidth, clientHeight, scrollWidth, scrollHeight } =
      this.canvas;
    const isLarge = Math.max(scrollWidth / clientWidth, scrollHeight / clientHeight) > LARGE;
    this.svg.classList.toggle("needed", isLarge);
    for (const [name, value] of Object.entries({
      x: scrollLeft,
      y: scrollTop,
      width: clientWidth,
      height: clientHeight,
    }))
      this.#frame.setAttribute(name, String(value));
  }
}
