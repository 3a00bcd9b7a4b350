// Places labels beside the lanes where no line and no other label is. A label without enough room
// is shortened or left out.

import { AFTER_LABEL, BEFORE_LABEL, LABEL_HEIGHT } from "./map_columns.js";

/**
 * @typedef {object} Label
 * @property {string} text
 * @property {number} x of the lane
 * @property {number} y of the point that is labelled
 * @property {boolean} isNeeded whether it is drawn even where no room is
 * @property {boolean} [isAbove] whether its place is above the point
 * @property {Record<string, unknown>} properties of the text element
 *
 * @typedef {{ left: number, right: number, top: number, bottom: number }} Box
 * @typedef {Label & { box: Box, shown: string }} Placed
 */

/** Least width of a shortened label, in pixels. */
const MIN_LABEL = 44;

/**
 * @param {Label[]} labels the most important first
 * @param {Box[]} obstacles lines, as boxes without width or height
 * @param {(text: string) => number} measure
 * @returns {Placed[]}
 */
export function placeLabels(labels, obstacles, measure) {
  const index = new Obstacles(obstacles);
  /** @type {Placed[]} */
  const placed = [];
  for (const label of labels) {
    const width = Math.ceil(measure(label.text)) + (label.isNeeded ? 6 : 0);
    const beside = label.x + BEFORE_LABEL;
    /** Places to try, best first. */
    const places = label.isAbove
      ? [{ left: label.x - 6, y: label.y - 18 }]
      : [0, 1, -1, 2].map((row) => ({ left: beside, y: label.y + row * LABEL_HEIGHT }));
    const rooms = places.map((place) => ({
      ...place,
      room: index.room(place.left, place.y, width),
    }));
    const best =
      rooms.find(({ room }) => room >= width) ?? rooms.reduce((a, b) => (b.room > a.room ? b : a));
    if (best.room < Math.min(width, MIN_LABEL) && !label.isNeeded) continue;
    const shown = label.isNeeded ? label.text : shortenTo(label.text, best.room, measure);
    const box = {
      left: best.left,
      right: best.left + Math.min(width, label.isNeeded ? width : best.room),
      top: best.y - LABEL_HEIGHT / 2,
      bottom: best.y + LABEL_HEIGHT / 2,
    };
    index.add(box);
    placed.push({ ...label, box, shown });
  }
  return placed;
}

/** Height of the rows by which obstacles are found, in pixels. */
const ROW = 64;

/** Boxes, found by rows of the map. */
class Obstacles {
  /** @type {Map<number, Box[]>} */
  #rows = new Map();

  /** @param {Box[]} boxes */
  constructor(boxes) {
    for (const box of boxes) this.add(box);
  }

  /** @param {Box} box */
  add(box) {
    for (let row = Math.floor(box.top / ROW); row <= Math.floor(box.bottom / ROW); row++) {
      const inRow = this.#rows.get(row);
      if (inRow) inRow.push(box);
      else this.#rows.set(row, [box]);
    }
  }

  /**
   * Returns the free width to the right of a point, at most `width`.
   * @param {number} left
   * @param {number} y centre of the label
   * @param {number} width
   */
  room(left, y, width) {
    const [top, bottom] = [y - LABEL_HEIGHT / 2, y + LABEL_HEIGHT / 2];
    let right = left + width + AFTER_LABEL;
    for (let row = Math.floor(top / ROW); row <= Math.floor(bottom / ROW); row++)
      for (const box of this.#rows.get(row) ?? [])
        if (box.right > left - 4 && box.left < right && box.bottom > top && box.top < bottom)
          right = Math.max(left, box.left);
    return Math.max(0, right - left - AFTER_LABEL);
  }
}

/**
 * @param {string} text
 * @param {number} room
 * @param {(text: string) => number} measure
 */
function shortenTo(text, room, measure) {
  if (measure(text) <= room) return text;
  const characters = [...text];
  let [low, high] = [0, characters.length];
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (measure(`${characters.slice(0, middle).join("")}…`) <= room) low = middle;
    else high = middle;
  }
  return `${characters.slice(0, low).join("").trimEnd()}…`;
}
