// Messages downwards: where each stands on the map, with stretches folded in which nothing happens.

/** A stretch is folded if it has so many messages, and saves so much. */
const LEAST = 10;
/** How high a folded stretch is. */
const FOLDED = 34;

export class Axis {
  /** Where the way down bends: message and place. @type {[number, number][]} */
  #knots = [[0, 0]];
  /** The folded stretches. @type {{ first: number, last: number, y: number }[]} */
  folds = [];

  /**
   * @param {number} messages how many there are
   * @param {Iterable<number>} marks the messages at which something happens
   * @param {number} step how high a message is
   * @param {Set<number>} opened the stretches that were unfolded, by what stands before them
   */
  constructor(messages, marks, step, opened) {
    const points = [...new Set([...marks, 0, Math.max(0, messages - 1)])]
      .filter((mark) => mark >= 0 && mark < Math.max(1, messages))
      .sort((a, b) => a - b);
    let [last, y] = [0, 0];
    for (const point of points.slice(1)) {
      const between = point - last - 1;
      if (between >= LEAST && between * step > 1.5 * FOLDED && !opened.has(last)) {
        this.#knots.push([last + 1, y + step], [point - 1, y + step + FOLDED]);
        this.folds.push({ first: last + 1, last: point - 1, y: y + step + FOLDED / 2 });
        y += 2 * step + FOLDED;
      } else {
        y += (point - last) * step;
      }
      this.#knots.push([point, y]);
      last = point;
    }
  }

  /** How far down all of it goes. */
  get height() {
    return this.#knots[this.#knots.length - 1][1];
  }

  /** Whether a message is in a folded stretch. @param {number} message */
  isFolded(message) {
    return this.folds.some(({ first, last }) => message > first && message < last);
  }

  /** Where a message stands. @param {number} message */
  y(message) {
    return this.#between(message, 0, 1);
  }

  /** Which message stands there. @param {number} y */
  message(y) {
    return Math.round(this.#between(y, 1, 0));
  }

  /** @param {number} value @param {0 | 1} from @param {0 | 1} to */
  #between(value, from, to) {
    const knots = this.#knots;
    let [low, high] = [0, knots.length - 1];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (knots[middle][from] <= value) low = middle;
      else high = middle;
    }
    const [a, b] = [knots[low], knots[high]];
    if (a[from] === b[from]) return a[to];
    const part = Math.max(0, Math.min(1, (value - a[from]) / (b[from] - a[from])));
    return a[to] + part * (b[to] - a[to]);
  }
}
