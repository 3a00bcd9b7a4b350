// A virtual list: only rows near the visible part are in the document.

import { el } from "./dom.js";

/**
 * @typedef {object} Source
 * @property {number} total number of rows
 * @property {number} size rows per page
 * @property {number} height estimated height of a row, in pixels
 * @property {(first: number) => Promise<HTMLElement[]>} make creates the page that starts at row
 *   `first`
 *
 * @typedef {object} Anchor a row that does not move when other rows change their heights
 * @property {HTMLElement} row
 * @property {number} part the fixed point of the row and of the visible part: 0 for the top edges,
 *   0.5 for the centres, 1 for the bottom edges
 * @property {number} offset distance of the two points, in pixels
 */

/** Distance, in pixels, that is not considered a movement. */
const TOLERANCE = 1.5;

/** A virtual list. Its parent element must scroll. */
export class VirtualList extends HTMLElement {
  /** @type {Source | null} */
  #source = null;
  /** @type {IntersectionObserver | null} */
  #observer = null;
  #isComplete = false;
  /** @type {Anchor | null} */
  #anchor = null;
  /** The scroll position that the list set. Another position was set by the user. */
  #ownTop = -1;
  /** Observes the heights of the rows, which change when pictures and fonts are loaded. */
  #sizes = new ResizeObserver(() => this.#holdAnchor());
  #onScroll = () => {
    const isOwn = Math.abs(this.#scroller.scrollTop - this.#ownTop) < TOLERANCE;
    if (!isOwn) this.#anchor = this.firstVisible();
  };

  /** @type {HTMLElement | null} */
  #parent = null;

  connectedCallback() {
    this.#parent = this.parentElement;
    this.#parent?.addEventListener("scroll", this.#onScroll, { passive: true });
    if (this.#parent) this.#sizes.observe(this.#parent);
    this.#sizes.observe(this);
  }

  disconnectedCallback() {
    this.#observer?.disconnect();
    this.#sizes.disconnect();
    this.#parent?.removeEventListener("scroll", this.#onScroll);
  }

  get #scroller() {
    return /** @type {HTMLElement} */ (this.#parent);
  }

  /**
   * Shows the rows of a source. The previous rows stay until the page with row `at` is loaded.
   * @param {Source} source
   * @param {number} at
   */
  async fill(source, at) {
    this.#source = source;
    this.#isComplete = false;
    const { total, size, height } = source;
    const pages = Array.from({ length: Math.ceil(total / size) }, (_, n) => {
      const page = el("ol", { start: n * size });
      page.style.height = `${Math.min(size, total - n * size) * height}px`;
      return page;
    });
    const wanted = pages[Math.min(pages.length - 1, Math.max(0, Math.floor(at / size)))];
    if (wanted) await this.#load(wanted, source);
    if (this.#source !== source) return;
    this.#observer?.disconnect();
    this.#anchor = null;
    this.replaceChildren(...pages);
    const onIntersection = (/** @type {IntersectionObserverEntry[]} */ entries) =>
      entries.forEach(({ target, isIntersecting }) => {
        const page = /** @type {HTMLElement} */ (target);
        if (isIntersecting) this.#load(page, source).catch(() => {});
        else this.#unload(page);
      });
    this.#observer = new IntersectionObserver(onIntersection, {
      root: this.parentElement,
      rootMargin: "900px",
    });
    pages.forEach((page) => this.#observer?.observe(page));
  }

  /**
   * Scrolls to a row. The row stays there until the user scrolls, even if heights change.
   * @param {HTMLElement} row
   * @param {number} part of {@link Anchor}
   * @param {number} [offset] of {@link Anchor}
   */
  hold(row, part, offset = 0) {
    this.#anchor = { row, part, offset };
    this.#holdAnchor();
  }

  /** Returns the first row that is visible, with its position. @returns {Anchor | null} */
  firstVisible() {
    const top = this.#scroller.getBoundingClientRect().top;
    for (const page of this.children) {
      if (page.getBoundingClientRect().bottom <= top) continue;
      for (const child of page.children) {
        const row = /** @type {HTMLElement} */ (child);
        const box = row.getBoundingClientRect();
        if (box.bottom > top && box.height) return { row, part: 0, offset: box.top - top };
      }
    }
    return null;
  }

  /**
   * Returns what the user sees: the index and the position of the first visible row, and whether
   * the last row is visible.
   */
  view() {
    const anchor = this.firstVisible();
    const page = /** @type {HTMLOListElement | null} */ (anchor?.row.parentElement);
    if (!anchor || !page) return null;
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    return {
      index: page.start + [...page.children].indexOf(anchor.row),
      offset: anchor.offset,
      isAtEnd: scrollHeight - scrollTop - clientHeight < 2,
    };
  }

  /** Returns a loaded row. @param {number} index */
  rowAt(index) {
    const size = this.#source?.size ?? 1;
    const row = this.children[Math.floor(index / size)]?.children[index % size];
    return /** @type {HTMLElement | undefined} */ (row);
  }

  #holdAnchor() {
    if (!this.#anchor?.row.isConnected) return;
    const { row, part, offset } = this.#anchor;
    const [box, visible] = [row.getBoundingClientRect(), this.#scroller.getBoundingClientRect()];
    // A row that is higher than the visible part is read from its top.
    const point = part === 0.5 && box.height > visible.height ? 0 : part;
    const distance = box.top + point * box.height - visible.top - point * visible.height;
    if (Math.abs(distance - offset) < TOLERANCE) return;
    this.#scroller.scrollTop += distance - offset;
    this.#ownTop = this.#scroller.scrollTop;
  }

  /** Loads all rows and keeps them in the document, so that they can be printed. */
  async loadAll() {
    const source = this.#source;
    if (!source) return;
    this.#isComplete = true;
    for (const page of this.children) await this.#load(/** @type {HTMLElement} */ (page), source);
  }

  /** @param {HTMLElement} page @param {Source} source */
  async #load(page, source) {
    if (page.childElementCount) return;
    const nodes = await source.make(/** @type {HTMLOListElement} */ (page).start);
    if (this.#source !== source || page.childElementCount) return;
    page.style.height = "";
    page.replaceChildren(...nodes);
    this.#holdAnchor();
  }

  /** Removes the rows of a page but keeps its height. @param {HTMLElement} page */
  #unload(page) {
    if (this.#isComplete || !page.childElementCount || page.contains(document.activeElement))
      return;
    page.style.height = `${page.offsetHeight}px`;
    page.replaceChildren();
  }
}

customElements.define("stvc-list", VirtualList);

/** @param {string} className */
export function virtualList(className) {
  return /** @type {VirtualList} */ (el("stvc-list", { class: className }));
}
