// Creates DOM elements. Strings become text nodes, and the viewer never parses a string as HTML.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, unknown>} Properties
 */

/**
 * Creates an HTML element. Functions become event listeners (`onclick`). Other values become
 * properties if the element has a property of that name, else attributes.
 * @param {string} tag
 * @param {Properties} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function el(tag, properties = {}, ...children) {
  return /** @type {HTMLElement} */ (fill(document.createElement(tag), properties, children));
}

/**
 * Creates an SVG element.
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
      .filter(isPresent)
      .map((child) => (child instanceof Node ? child : String(child))),
  );
  return node;
}

/** @param {Child} child @returns {child is Node | string | number} */
function isPresent(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * Replaces the children of a node.
 * @param {Element} node
 * @param {...(Child | Child[])} children
 */
export function setChildren(node, ...children) {
  node.replaceChildren();
  fill(node, {}, children);
}

/**
 * Creates a link to a place in the viewer.
 * @param {string} href
 * @param {Child | Child[]} label
 * @param {Properties} [properties]
 */
export function link(href, label, properties = {}) {
  return el("a", { href, ...properties }, label);
}

/**
 * Returns the address of a place in the viewer.
 * @param {string} place
 * @param {...string} parts
 */
export function address(place, ...parts) {
  return `#/${[place, ...parts].map(encodeURIComponent).join("/")}`;
}
