// A virtual list: only rows near the visible part are in the document.

import { el } from "./dom.js";

/**
 * @typedef {object} Source
 * @property {number} total number of rows
 * @property {number} size rows per page
 * @property {number} height estimated height of a row, in pixels
 * @property {(first: number) => Promise<Node[]>} make creates the page that starts at row `first`
 */

/** A virtual list. Its parent element must scroll. */
export class VirtualList extends HTMLElement {
  /** @type {Source | null} */
  #source = null;
  /** @type {IntersectionObserver | null} */
  #observer = null;

  disconnectedCallback() {
    this.#observer?.disconnect();
  }

  /**
   * Shows the rows of a source. The previous rows stay until the page with row `at` is loaded.
   * @param {Source} source
   * @param {number} at
   */
  async fill(source, at) {
    this.#source = source;
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

  /** @param {HTMLElement} page @param {Source} source */
  async #load(page, source) {
    if (page.childElementCount) return;
    const nodes = await source.make(/** @type {HTMLOListElement} */ (page).start);
    if (this.#source !== source || page.childElementCount) return;
    page.style.height = "";
    page.replaceChildren(...nodes);
  }

  /** Removes the rows of a page but keeps its height. @param {HTMLElement} page */
  #unload(page) {
    if (!page.childElementCount || page.contains(document.activeElement)) return;
    page.style.height = `${page.offsetHeight}px`;
    page.replaceChildren();
  }
}

customElements.define("stvc-list", VirtualList);

/** @param {string} className */
export function virtualList(className) {
  return /** @type {VirtualList} */ (el("stvc-list", { class: className }));
}
