// Marks the text that was searched for.

import { el } from "./dom.js";

/** How words must match: all of them, as a phrase, or as a regular expression. */
export const MATCHES = ["words", "phrase", "regex"];

/**
 * Returns the pattern that finds the text in an excerpt, or null if the browser has none.
 * @param {string} text
 * @param {string} match of {@link MATCHES}
 */
export function patternOf(text, match) {
  const escape = (/** @type {string} */ word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  const words = text.split(/\s+/).filter(Boolean).map(escape);
  if (!words.length) return null;
  // The longest word first, because it may begin with another word.
  const longest = [...words].sort((a, b) => b.length - a.length);
  const source = { words: longest.join("|"), phrase: words.join("\\s+") }[match] ?? text;
  try {
    return new RegExp(source, "giu");
  } catch {
    // The program's regular expressions have a different syntax.
    return null;
  }
}

/**
 * Marks the matches in a text node. Other nodes stay as they are.
 * @param {Node} node
 * @param {RegExp | null} pattern
 * @returns {Node[]}
 */
export function mark(node, pattern) {
  if (!(node instanceof Text) || !pattern) return [node];
  /** @type {Node[]} */
  const nodes = [];
  let end = 0;
  for (const { 0: found, index } of node.data.matchAll(pattern)) {
    if (!found) continue;
    nodes.push(new Text(node.data.slice(end, index)), el("mark", {}, found));
    end = index + found.length;
  }
  nodes.push(new Text(node.data.slice(end)));
  return nodes;
}
