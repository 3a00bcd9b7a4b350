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

/** Elements that can have the focus. */
const FOCUSABLE = "a, button, summary, input";

/**
 * Returns a name of an element, which identifies it after it was drawn again.
 * @param {Element} one
 */
export function focusName(one) {
  const label = one.getAttribute("aria-label") ?? one.textContent;
  return [one.tagName, one.closest("[data-key]")?.getAttribute("data-key"), label].join("\n");
}

/**
 * Gives the focus to the element with a name. Returns whether there is one.
 * @param {Element} node
 * @param {string} name of {@link focusName}
 * @param {FocusOptions} [options]
 */
export function focusNamed(node, name, options) {
  const same = [...node.querySelectorAll(FOCUSABLE)].find((one) => focusName(one) === name);
  /** @type {HTMLElement | undefined} */ (same)?.focus(options);
  return same !== undefined;
}

/**
 * Replaces the children of a node without moving what the user looks at: the focus stays on the
 * same element, and the first visible element that has a `data-key` stays in its place.
 * @param {Element} node
 * @param {...(Child | Child[])} children
 */
export function redraw(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && focusName(focused);
  const restore = keepInPlace(node);
  setChildren(node, ...children);
  restore();
  if (name) focusNamed(node, name, { preventScroll: true });
}

/**
 * Returns a function that scrolls the viewer so that the first visible element with a `data-key`
 * is where it was.
 * @param {Element} node
 */
export function keepInPlace(node) {
  const scroller = node.closest("main");
  const top = scroller?.getBoundingClientRect().top ?? 0;
  const keyed = () => [...node.querySelectorAll("[data-key]")];
  const isLookedAt = scroller?.scrollTop || node.matches(":hover, :focus-within");
  const first = isLookedAt
    ? keyed().find((one) => one.getBoundingClientRect().bottom > top)
    : undefined;
  const key = first?.getAttribute("data-key");
  const before = first?.getBoundingClientRect().top ?? 0;
  return () => {
    const same = key ? keyed().find((one) => one.getAttribute("data-key") === key) : undefined;
    if (scroller && same) scroller.scrollTop += same.getBoundingClientRect().top - before;
  };
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
