// Nodes of the page. Text is always text: nothing here or elsewhere makes HTML of a string.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, unknown>} Properties
 */

/**
 * An element. Properties that begin with `on` are listeners, `class` and what has a dash are attributes.
 * @param {string} tag
 * @param {Properties} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function el(tag, properties = {}, ...children) {
  return /** @type {HTMLElement} */ (fill(document.createElement(tag), properties, children));
}

/**
 * The same for drawings.
 * @param {string} tag
 * @param {Properties} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, properties = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return /** @type {SVGElement} */ (fill(node, properties, children));
}

/**
 * @param {Element} node
 * @param {Properties} properties
 * @param {(Child | Child[])[]} children
 */
function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") {
      node.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name in node && !name.includes("-") && node instanceof HTMLElement) {
      /** @type {any} */ (node)[name] = value;
    } else {
      node.setAttribute(name, String(value));
    }
  }
  node.append(
    ...children
      .flat()
      .filter(isShown)
      .map((child) => (child instanceof Node ? child : String(child))),
  );
  return node;
}

/** @param {Child} child @returns {child is Node | string | number} */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * Put these in place of what a node holds.
 * @param {Element} node
 * @param {...(Child | Child[])} children
 */
export function show(node, ...children) {
  node.replaceChildren();
  fill(node, {}, children);
}

/**
 * A link to a place of this page.
 * @param {string} to
 * @param {Child | Child[]} words
 * @param {Properties} [properties]
 */
export function link(to, words, properties = {}) {
  return el("a", { href: to, ...properties }, words);
}

/**
 * The address of a place.
 * @param {string} place
 * @param {...string} parts
 */
export function address(place, ...parts) {
  return `#/${[place, ...parts].map(encodeURIComponent).join("/")}`;
}
