// The horizontal places of the lanes: families of the same owner side by side, and columns so far
// apart that labels fit between them.

/** @typedef {import("./api.js").Line} Line */
/**
 * Columns of the owner's lanes, and the name of one of them.
 * @typedef {{ owner: string, timeline: string, first: number, last: number }} Owner
 */
/** @typedef {{ owner: string, first: number, last: number, lanes: Line[] }} Family */

/** Width of a label that makes room for itself, in pixels. */
export const MAX_LABEL = 190;
/** Distance of a label from its lane, and of the next lane from the label, in pixels. */
export const BEFORE_LABEL = 14;
export const AFTER_LABEL = 10;
/** Least distance of two columns, in pixels. */
const MIN_DISTANCE = 56;
/** Least height of a fork, in pixels. */
export const MIN_LENGTH = 18;
/** Height of a label, in pixels. */
export const LABEL_HEIGHT = 17;
/** Families with more lanes are squeezed instead of computed lane by lane. */
const MAX_COMPUTED = 600;

/**
 * Moves families so that those of one owner are neighbours. Sets `column` of the lanes.
 * @param {Line[]} lanes
 * @returns {Owner[]} from left to right
 */
export function groupByOwner(lanes) {
  /** @type {Map<number, Family>} */
  const families = new Map();
  for (const lane of lanes) {
    /** @type {Family} */
    const family = families.get(lane.story) ?? {
      first: lane.column,
      last: lane.column,
      owner: lane.owner,
      lanes: [],
    };
    family.first = Math.min(family.first, lane.column);
    family.last = Math.max(family.last, lane.column);
    family.lanes.push(lane);
    families.set(lane.story, family);
  }
  /** @type {Map<string, Family[]>} */
  const byOwner = new Map();
  for (const family of families.values())
    byOwner.set(family.owner, [...(byOwner.get(family.owner) ?? []), family]);
  let next = 0;
  return [...byOwner].map(([owner, families]) => {
    const first = next;
    for (const family of families) {
      for (const lane of family.lanes) lane.column += next - family.first;
      next += family.last - family.first + 1;
    }
    return { owner, timeline: families[0].lanes[0].timeline, first, last: next - 1 };
  });
}

/**
 * Returns the x of each column at full size, and the width of the labels right of the last one.
 * @param {Line[]} lanes
 * @param {number} columns
 * @param {(message: number) => number} y
 * @param {(text: string) => number} measure
 */
export function placeColumns(lanes, columns, y, measure) {
  /** @type {Line[][]} */
  const byColumn = Array.from({ length: columns }, () => []);
  for (const lane of lanes) byColumn[lane.column]?.push(lane);
  /** @type {number[]} */
  const places = [];
  let story = -1;
  /** Labels of the family to the left. @type {{ right: number, y: number }[]} */
  let labels = [];
  let end = 0;
  for (const inColumn of byColumn) {
    const previous = places[places.length - 1];
    let x = previous === undefined ? 0 : previous + MIN_DISTANCE;
    const isNewFamily = inColumn[0] && inColumn[0].story !== story;
    if (isNewFamily) {
      x = Math.max(x, end);
      [story, labels] = [inColumn[0].story, []];
    }
    for (const lane of inColumn) {
      const [top, bottom] = extent(lane, y);
      for (const label of labels)
        if (label.y + LABEL_HEIGHT > top && label.y - LABEL_HEIGHT < bottom)
          x = Math.max(x, label.right);
    }
    places.push(x);
    for (const lane of inColumn) {
      const right = x + BEFORE_LABEL + Math.min(MAX_LABEL, measure(lane.name)) + 2 * AFTER_LABEL;
      if (labels.length < MAX_COMPUTED) labels.push({ right, y: extent(lane, y)[1] });
      for (const dot of lane.dots ?? []) {
        if (!dot.tags.length) continue;
        const flag = Math.min(MAX_LABEL, measure(flagText(dot)));
        labels.push({ right: x + BEFORE_LABEL + flag + 2 * AFTER_LABEL, y: y(dot.index ?? 0) });
      }
      end = Math.max(end, right);
    }
  }
  return { places, tail: end - (places[places.length - 1] ?? 0) };
}

/** @param {Line} dot */
export function flagText(dot) {
  return `⚑ ${dot.tags.join(", ")}`;
}

/**
 * Returns the y of the first and of the last point of a lane.
 * @param {Line} lane
 * @param {(message: number) => number} y
 * @returns {[number, number]}
 */
export function extent(lane, y) {
  const top = y(lane.fork_at === null ? 0 : Math.max(0, lane.fork_at - 1));
  const bottom = y(Math.max(0, lane.messages - 1));
  // A fork without own messages is still visible.
  return [top, lane.fork_at === null ? bottom : Math.max(bottom, top + MIN_LENGTH)];
}

/** @type {CanvasRenderingContext2D | null} */
const context = document.createElement("canvas").getContext("2d");
/** @type {Map<string, number>} */
const widths = new Map();

/** Returns a function that measures texts in the font of an element. @param {Element} element */
export function measurer(element) {
  const font = `13px ${getComputedStyle(element).fontFamily}`;
  return (/** @type {string} */ text) => {
    const key = `${font}\n${text}`;
    let width = widths.get(key);
    if (width === undefined) {
      if (context) context.font = font;
      width = context?.measureText(text).width ?? text.length * 7;
      if (widths.size > 20_000) widths.clear();
      widths.set(key, width);
    }
    return width;
  };
}
