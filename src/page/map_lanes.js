// Loads the lanes of the map and their snapshots.

import { ask, linesOf, pages } from "./api.js";
import { groupByOwner } from "./map_columns.js";
import { LANES } from "./standalone.js";
import { splitTimeline } from "./words.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {import("./map_drawing.js").Choice} Choice */

/** Maximum number of snapshots that are never folded. */
const MAX_MARKED_DOTS = 60;

export class MapLanes {
  /** Lanes with `owner`, the name of the character or group, and `name`. @type {Line[]} */
  all = [];
  /** Index into `all` of each lane number. @type {Map<number, number>} */
  indexes = new Map();
  counts = { columns: 0, messages: 0 };
  /** Columns of each character or group. @type {import("./map_columns.js").Owner[]} */
  owners = [];
  /** Requests for dots, by the first requested lane. @type {Map<number, Promise<void>>} */
  #requests = new Map();

  /** @param {string | undefined} requested timeline whose family is loaded, or none for all */
  constructor(requested) {
    this.requested = requested;
    /** Full name of the requested timeline. @type {string | undefined} */
    this.timeline = requested;
  }

  /** Loads the lanes. On the map of all timelines, dots are loaded when lanes become visible. */
  async load() {
    const { requested, timeline } = this;
    /** @type {Line[]} */
    const all = [];
    await pages("graph", timeline ? { timeline } : { lanes_only: true }, (answer) => {
      const [line] = linesOf(answer, "graph");
      this.counts = { columns: line.columns, messages: line.messages };
      all.push(...linesOf(answer, "lane"));
    });
    for (const lane of all) [lane.owner, lane.name] = splitTimeline(lane.timeline);
    // The address may have a part of the name.
    const isRequested = (/** @type {Line} */ { timeline: name }) =>
      name === timeline || name.endsWith(`/${requested}`);
    if (requested) this.timeline = (all.find(isRequested) ?? all[0])?.timeline;
    this.all = all;
    this.owners = groupByOwner(all);
    this.indexes = new Map(all.map((lane, n) => [lane.number, n]));
    this.#requests.clear();
  }

  /** Copies a field of new lines into their lanes. @param {Line[]} lines @param {string} field */
  #take(lines, field) {
    for (const line of lines) {
      const lane = this.all[this.indexes.get(line.number) ?? -1];
      if (lane?.timeline === line.timeline) lane[field] = line[field];
    }
  }

  /**
   * Loads the scene ends, for which the program reads all messages. Returns whether there are any.
   */
  async loadScenes() {
    await pages("graph", { timeline: this.timeline, scenes: true }, (answer) =>
      this.#take(linesOf(answer, "lane"), "scenes"),
    );
    return this.all.some((lane) => lane.scenes?.length);
  }

  /** Loads the dots of lane `n`, and of the other lanes in the same page. @param {number} n */
  loadDots(n) {
    if (!this.all[n] || this.all[n].dots) return Promise.resolve();
    const first = Math.floor(n / LANES) * LANES;
    const request =
      this.#requests.get(first) ??
      ask("graph", { first, count: LANES }).then((answer) =>
        this.#take(linesOf(answer, "lane"), "dots"),
      );
    this.#requests.set(first, request);
    return request;
  }

  /** Loads the dots of lanes that were not requested yet. @param {number[]} missing */
  async loadMissing(missing) {
    const firsts = new Set(missing.map((n) => Math.floor(n / LANES) * LANES));
    const asked = [...firsts].filter((first) => !this.#requests.has(first));
    await Promise.all(asked.map((first) => this.loadDots(first)));
    return asked.length > 0;
  }

  /**
   * Returns the lane and the dot of a snapshot.
   * @param {string | null} snapshot
   * @returns {Promise<Choice | null>}
   */
  async findDot(snapshot) {
    if (!snapshot) return null;
    if (!this.timeline) {
      const [line] = await ask("show", { snapshot, brief: true }).then(
        (answer) => linesOf(answer, "snapshot"),
        () => [],
      );
      await this.loadDots(this.all.findIndex((lane) => lane.timeline === line?.timeline));
    }
    for (const [lane, { dots }] of this.all.entries()) {
      const isSame = (/** @type {Line} */ dot) => dot.snapshot.startsWith(snapshot);
      const dot = (dots ?? []).findIndex(isSame);
      if (dot >= 0) return { lane, dot };
    }
    return null;
  }

  /** Returns the latest dot of the requested timeline. @returns {Choice} */
  latestDot() {
    const lane = this.all.findIndex((one) => one.timeline === this.timeline);
    return { lane, dot: (this.all[lane]?.dots?.length ?? 0) - 1 };
  }

  /** Returns the messages that must not be folded. */
  marks() {
    const dotCount = this.all.reduce((sum, lane) => sum + (lane.dots?.length ?? 0), 0);
    const isMarked = (/** @type {Line} */ dot) =>
      dot.tags.length > 0 || dotCount <= MAX_MARKED_DOTS;
    return this.all.flatMap((lane) => [
      lane.messages - 1,
      ...(lane.fork_at === null ? [] : [lane.fork_at - 1, lane.fork_at]),
      ...((this.timeline && lane.dots) || [])
        .filter(isMarked)
        .map((/** @type {Line} */ dot) => dot.index ?? 0),
      ...(lane.scenes ?? []).map((/** @type {Line} */ scene) => scene.index),
    ]);
  }

  /**
   * Returns the snapshot before a dot of its lane, or else the parent's last snapshot before the
   * fork point.
   * @param {Choice} choice
   * @returns {string | undefined}
   */
  previousSnapshot({ lane, dot }) {
    const { dots, fork_at, parent: number } = this.all[lane];
    const parent = this.all[this.indexes.get(number) ?? -1];
    const isShared = (/** @type {Line} */ one) => (one.index ?? 0) < fork_at;
    const lastShared = () => parent?.dots?.findLast(isShared) ?? parent?.dots?.[0];
    return (dots[dot - 1] ?? lastShared())?.snapshot;
  }
}
