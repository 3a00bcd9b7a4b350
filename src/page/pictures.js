// Pictures from the store: portraits of characters, and pictures in messages. They are loaded when
// they become visible, one after the other, because each may have several megabytes.

import { ask, linesOf } from "./api.js";
import { el } from "./dom.js";
import { canAnswer } from "./standalone.js";
import { shorten } from "./text.js";
import { formatSize, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/** Width and height of a portrait, in pixels of the screen. */
const PORTRAIT = 128;
/** Number of pictures of messages that stay in memory. */
const MAX_PICTURES = 12;
/** Length of the longest picture that the program sends, in bytes. */
const MAX_BYTES = 6_000_000;
/** Names of files that the program may send as pictures. */
const PICTURE = /\.(?:png|apng|jpe?g|jfif|gif|webp|avif)$/i;

/** @type {Promise<unknown>} */
let lastRequest = Promise.resolve();

/**
 * Loads a picture, one at a time. Returns null if the store does not have it.
 * @param {"picture" | "portrait"} verb
 * @param {Record<string, unknown>} args
 * @returns {Promise<string | null>} its address
 */
function load(verb, args) {
  const request = lastRequest.then(async () => {
    const [line] = linesOf(await ask(verb, args), "picture");
    return `data:${line.kind};base64,${line.data}`;
  });
  const found = request.catch(() => null);
  lastRequest = found;
  return found;
}

/** What to do with an element as soon as it is visible. @type {WeakMap<Element, () => void>} */
const waiting = new WeakMap();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    waiting.get(target)?.();
  }
});

/** @param {Element} element @param {() => void} action */
function whenVisible(element, action) {
  waiting.set(element, action);
  observer.observe(element);
}

/** Portraits by the names of the cards. @type {Map<string, Promise<string | null>>} */
const portraits = new Map();

/**
 * Shows the portrait of a character in an element, as soon as it is visible.
 * @param {HTMLElement} element
 * @param {string} character name of the card
 */
export function showPortrait(element, character) {
  if (!canAnswer("portrait", { character })) return;
  whenVisible(element, async () => {
    const known = portraits.get(character) ?? load("portrait", { character }).then(scaleDown);
    portraits.set(character, known);
    const address = await known;
    if (address) element.replaceChildren(el("img", { src: address, alt: "" }));
  });
}

/** Returns the upper part of a picture as a small square. @param {string | null} address */
async function scaleDown(address) {
  if (!address) return null;
  const picture = new Image();
  picture.src = address;
  try {
    await picture.decode();
  } catch {
    return null;
  }
  const side = Math.min(picture.naturalWidth, picture.naturalHeight);
  const left = (picture.naturalWidth - side) / 2;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [PORTRAIT, PORTRAIT];
  canvas.getContext("2d")?.drawImage(picture, left, 0, side, side, 0, 0, PORTRAIT, PORTRAIT);
  return canvas.toDataURL("image/webp", 0.85);
}

/** Pictures by their hashes, least recently used first. @type {Map<string, Promise<string | null>>} */
const pictures = new Map();

/** @param {string} snapshot @param {string} blake3 */
function picture(snapshot, blake3) {
  const known = pictures.get(blake3) ?? load("picture", { snapshot, blake3 });
  pictures.delete(blake3);
  pictures.set(blake3, known);
  for (const oldest of pictures.keys()) if (pictures.size > MAX_PICTURES) pictures.delete(oldest);
  return known;
}

/**
 * Renders a file that is attached to a message: as a picture, or as its name and size.
 * @param {Line} file
 * @param {string} snapshot
 */
export function renderAttachment(file, snapshot) {
  const name = file.path.split("/").pop() ?? file.path;
  const size = file.blake3 ? formatSize(file.bytes) : t("notStored");
  const label = el("span", { class: "data" }, shorten(name), el("small", {}, ` ${size}`));
  const { blake3 } = file;
  const isShown = blake3 && PICTURE.test(name) && file.bytes <= MAX_BYTES;
  if (!isShown || !canAnswer("picture", { snapshot, blake3 })) return label;
  // The size does not depend on the picture, so that messages do not move when it is loaded.
  const button = el("button", {
    type: "button",
    class: "attached",
    "aria-expanded": "false",
    onclick: () =>
      button.setAttribute("aria-expanded", String(button.classList.toggle("enlarged"))),
  });
  button.append(label);
  whenVisible(button, async () => {
    const address = await picture(snapshot, blake3);
    if (address) button.replaceChildren(el("img", { src: address, alt: name, decoding: "async" }));
  });
  return button;
}
