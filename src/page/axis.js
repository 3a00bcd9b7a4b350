// The vertical axis of the map, which maps message numbers to pixels. Long stretches of messages
// without forks, tags or scene ends are folded: they get a small fixed height.

/** Minimum number of messages in a folded stretch. */
const MIN_FOLDED = 10;
/** Height of a folded stretch, in pixels. */
const FOLD_HEIGHT = 34;

/**
 * Sorts the messages that must stay visible, with the first and the last message.
 * @param {number} messages number of messages
 * @param {Iterable<number>} marks
 */
export function sortMarks(messages, marks) {
  return [...new Set([...marks, 0, Math.max(0, messages - 1)])]
    .filter((mark) => mark >= 0 && mark < Math.max(1, messages))
    .sort((a, b) => a - b);
}

export class Axis {
  /** Message number and y of each point where the scale changes. @type {[number, number][]} */
  #knots = [[0, 0]];
  /** The folded stretches. @type {{ first: number, last: number, y: number }[]} */
  folds = [];

  /**
   * @param {number[]} marks of {@link sortMarks}
   * @param {number} step pixels per message
   * @param {Set<number>} expanded stretches not to fold, each named by the message before it
   */
  constructor(marks, step, expanded) {
    let [last, y] = [0, 0];
    for (const point of marks.slice(1)) {
      const between = point - last - 1;
      const savesSpace = between * step > 1.5 * FOLD_HEIGHT;
      if (between >= MIN_FOLDED && savesSpace && !expanded.has(last)) {
        this.#knots.push([last + 1, y + step], [point - 1, y + step + FOLD_HEIGHT]);
        this.folds.push({ first: last + 1, last: point - 1, y: y + step + FOLD_HEIGHT / 2 });
        y += 2 * step + FOLD_HEIGHT;
      } else {
        y += (point - last) * step;
      }
      this.#knots.push([point, y]);
      last = point;
    }
  }

  get height() {
    return this.#knots[this.#knots.length - 1][1];
  }

  /** @param {number} message */
  isFolded(message) {
    return this.folds.some(({ first, last }) => message > first && message < last);
  }

  /** @param {number} message */
  y(message) {
    return this.#interpolate(message, 0, 1);
  }

  /** Returns the message at a position, with a fraction. @param {number} y in pixels */
  messageAt(y) {
    return this.#interpolate(y, 1, 0);
  }

  /** @param {number} value @param {0 | 1} from @param {0 | 1} to indexes into a knot */
  #interpolate(value, from, to) {
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
