// A list that may be long: only what is near the screen is in the document.

import { el } from "./nodes.js";

/**
 * @typedef {object} Source
 * @property {number} total how many rows there are
 * @property {number} size how many come at a time
 * @property {number} height how high a row is, about
 * @property {(first: number) => Promise<Node[]>} make the rows from there on, `size` of them
 */

/** The list; what holds it scrolls. */
export class Rows extends HTMLElement {
  /** @type {HTMLElement[]} */
  #pages = [];
  /** @type {Source | null} */
  #source = null;
  /** @type {IntersectionObserver | null} */
  #near = null;

  disconnectedCallback() {
    this.#near?.disconnect();
  }

  /**
   * Show these, from the row that is looked at; what was shown stays until that is there.
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
    if (wanted) await this.#come(wanted, source);
    if (this.#source !== source) return;
    this.#near?.disconnect();
    this.#pages = pages;
    this.replaceChildren(...pages);
    const seen = (/** @type {IntersectionObserverEntry[]} */ entries) =>
      entries.forEach(({ target, isIntersecting }) => {
        const page = /** @type {HTMLElement} */ (target);
        if (isIntersecting) this.#come(page, source).catch(() => {});
        else this.#go(page);
      });
    this.#near = new IntersectionObserver(seen, { root: this.parentElement, rootMargin: "900px" });
    pages.forEach((page) => this.#near?.observe(page));
  }

  /** @param {HTMLElement} page @param {Source} source */
  async #come(page, source) {
    if (page.childElementCount) return;
    const nodes = await source.make(/** @type {HTMLOListElement} */ (page).start);
    if (this.#source !== source || page.childElementCount) return;
    page.style.height = "";
    page.replaceChildren(...nodes);
  }

  /** @param {HTMLElement} page */
  #go(page) {
    if (!page.childElementCount || page.contains(document.activeElement)) return;
    page.style.height = `${page.offsetHeight}px`;
    page.replaceChildren();
  }
}

customElements.define("stvc-rows", Rows);

/** @param {string} name */
export function rows(name) {
  return /** @type {Rows} */ (el("stvc-rows", { class: name }));
}
