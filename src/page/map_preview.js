// Shows the message under the pointer.

import { el, setChildren } from "./dom.js";
import { renderQuote } from "./map_details.js";
import { messageAt } from "./messages.js";
import { formatDate } from "./words.js";

/** Milliseconds that the pointer must rest before a message is shown. */
const DELAY = 120;
/** Distance of the preview from the pointer, and from the edge of the map, in pixels. */
const [DISTANCE, EDGE] = [18, 8];

export class MapPreview {
  element = el("div", { class: "preview", hidden: true });
  /** Counts moves of the pointer, so that only the last one shows a message. */
  #moves = 0;

  /** @param {HTMLElement} canvas the map */
  constructor(canvas) {
    this.canvas = canvas;
  }

  hide() {
    this.#moves++;
    this.element.hidden = true;
  }

  /**
   * Shows the last message of a snapshot, or else a message of the lane.
   * @param {PointerEvent} pointer
   * @param {import("./api.js").Line} lane with snapshots
   * @param {number | null} dot index of the snapshot
   * @param {number} reached the message at the pointer
   */
  showSoon({ clientX, clientY }, lane, dot, reached) {
    const move = ++this.#moves;
    const isCurrent = () => move === this.#moves;
    const snapshot = lane.dots[dot ?? lane.dots.length - 1];
    const inLane = Math.max(0, Math.min(lane.messages - 1, reached));
    const index = dot === null ? inLane : (snapshot.index ?? 0);
    setTimeout(async () => {
      if (!isCurrent()) return;
      const line = await messageAt(snapshot.snapshot, index).catch(() => undefined);
      if (!isCurrent()) return;
      this.element.hidden = !line;
      if (!line) return;
      const facts = [lane.name, dot === null ? "" : formatDate(snapshot.time)];
      setChildren(
        this.element,
        el("small", {}, facts.filter(Boolean).join(" · ")),
        el("p", { dir: "auto" }, renderQuote(line)),
      );
      this.#place(clientX, clientY);
    }, DELAY);
  }

  /** Places the preview beside the pointer, inside the map. @param {number} x @param {number} y */
  #place(x, y) {
    const { offsetWidth: width, offsetHeight: height, style } = this.element;
    const box = this.canvas.getBoundingClientRect();
    const [left, top] = [x - box.left, y - box.top];
    const isLow = top + DISTANCE + height + EDGE > box.height;
    const inside = Math.min(left + DISTANCE, box.width - width - EDGE);
    style.left = `${Math.max(EDGE, inside)}px`;
    style.top = `${Math.max(EDGE, isLow ? top - height - DISTANCE : top + DISTANCE)}px`;
  }
}
