// The margins of the map: message numbers to the left, with buttons that expand folded stretches,
// and names of characters and groups above their lanes.

import { timelineAvatar } from "./avatar.js";
import { el } from "./dom.js";
import { t } from "./words.js";

/** @typedef {import("./map_labels.js").Box} Box */
/** @typedef {import("./map_scale.js").MapScale} MapScale */

/** Least distances of message numbers, in pixels: of marked messages, and of others. */
const [MARK_DISTANCE, NUMBER_DISTANCE] = [20, 64];
/** Widths from which on an avatar, and a name beside it, have room. */
const [AVATAR_FROM, NAME_FROM] = [34, 90];
/** Space between an owner's lanes and the picture, and between two owners. */
const [BEFORE_OWNER, BETWEEN_OWNERS] = [24, 8];

export class MapMargins {
  numbers = el("div", { class: "gutter" });
  owners = el("div", { class: "owners", "aria-hidden": "true" });

  /** @param {(before: number) => void} onExpand called with the message before a stretch */
  constructor(onExpand) {
    this.onExpand = onExpand;
  }

  /**
   * Draws the margins of a part of the map.
   * @param {Box} box
   * @param {object} map
   * @param {MapScale} map.scale
   * @param {import("./map_columns.js").Owner[]} map.owners none if all lanes have the same owner
   * @param {boolean} map.isStory whether the numbers of forks and snapshots are shown
   */
  draw(box, { scale, owners, isStory }) {
    this.#drawNumbers(box, scale, isStory);
    this.#drawOwners(box, scale, owners);
  }

  /** @param {Box} box @param {MapScale} scale @param {boolean} isStory */
  #drawNumbers({ top, bottom }, scale, isStory) {
    const { marks } = scale;
    const { folds } = scale.axis;
    const begin = scale.y(0);
    const end = marks[marks.length - 1];
    /** @type {HTMLElement[]} */
    const nodes = [];
    /** @type {number[]} */
    const taken = folds.map(({ y }) => begin + y);
    const number = (/** @type {number} */ message, /** @type {number} */ distance) => {
      const y = scale.y(message);
      if (y < top || y > bottom || taken.some((other) => Math.abs(other - y) < distance)) return;
      taken.push(y);
      nodes.push(placeAt(y, el("span", { class: "message-number" }, `#${message}`)));
    };
    number(0, 0);
    number(end, MARK_DISTANCE);
    if (isStory) for (const mark of marks) number(mark, MARK_DISTANCE);
    const interval = roundInterval(NUMBER_DISTANCE / scale.step);
    const first = Math.floor(scale.messageAt(top) / interval) * interval;
    const last = Math.min(end, scale.messageAt(bottom) + 1);
    for (let n = first; n <= last; n += interval)
      if (!scale.axis.isFolded(n)) number(n, NUMBER_DISTANCE / 2);
    for (const fold of folds) {
      const y = begin + fold.y;
      if (y <= top || y >= bottom) continue;
      const count = fold.last - fold.first + 1;
      const label = t("expand", { n: count });
      const onclick = () => this.onExpand(fold.first - 1);
      const button = el(
        "button",
        { type: "button", class: "fold", title: label, "aria-label": label, onclick },
        `⋯ ${count}`,
      );
      nodes.push(placeAt(y, button));
    }
    this.numbers.replaceChildren(...nodes);
  }

  /** @param {Box} box @param {MapScale} scale @param {import("./map_columns.js").Owner[]} owners */
  #drawOwners({ left, right }, scale, owners) {
    const nodes = owners.flatMap(({ owner: name, timeline, first }, n) => {
      const start = scale.x(first) - BEFORE_OWNER;
      const next = owners[n + 1];
      const end = next ? scale.x(next.first) - BEFORE_OWNER - BETWEEN_OWNERS : scale.width;
      if (end < left || start > right || end - start < AVATAR_FROM) return [];
      const node = el(
        "div",
        { class: "owner" },
        el("span", {}, timelineAvatar(timeline), el("b", {}, name)),
      );
      node.style.left = `${start}px`;
      node.style.width = `${end - start}px`;
      node.classList.toggle("narrow", end - start < NAME_FROM);
      return node;
    });
    this.owners.replaceChildren(...nodes);
  }
}

/** @param {number} y @param {HTMLElement} node */
function placeAt(y, node) {
  node.style.top = `${y}px`;
  return node;
}

/** Rounds an interval up to 1, 2 or 5 times a power of ten. @param {number} min */
function roundInterval(min) {
  for (const interval of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
    if (interval >= min) return interval;
  return 10_000;
}
