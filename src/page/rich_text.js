// Renders texts of chats and lorebooks with the pictures that are inside them as data.

import { el } from "./dom.js";
import { renderMarkdown } from "./markdown.js";
import { MAX_SHOWN, unfoldButton } from "./text.js";
import { formatSize, t } from "./words.js";

/** Maximum length of a picture inside a text, in characters. */
const MAX_PICTURE = 8_000_000;

/**
 * Matches data inside a text. Every part excludes the character that ends it, so that each
 * character is read once.
 */
const DATA =
  /data:([\w.+-]{1,80}\/[\w.+-]{1,80})?((?:;[\w.+=-]{1,80}){0,5}),([\w+/=%.~!*-]{100,})/g;
/** Match the Markdown or HTML around a picture. */
const BEFORE_PICTURE = /(?:!\[[^\]]{0,200}\]\(|<img [^<>]{0,200})$/;
const AFTER_PICTURE = /^(?:["'][^<>]{0,200}>|\))/;
/** Number of pictures that are shown before the rest of a text is folded. */
const MAX_PICTURES = 20;
/** Kinds of pictures that contain only pixels. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif)$/;

/** Renders a text with its marks and pictures. @param {string} text @returns {Node[]} */
export function renderText(text) {
  /** @type {Node[]} */
  const nodes = [];
  let [end, shown, pictures] = [0, 0, 0];
  for (const match of text.matchAll(DATA)) {
    const start = match.index ?? 0;
    // The Markdown or HTML around a picture is not shown.
    const around = text.slice(Math.max(end, start - 300), start).match(BEFORE_PICTURE)?.[0] ?? "";
    nodes.push(...renderMarkdown(text.slice(end, start - around.length)), renderData(match));
    shown += start - end;
    end = start + match[0].length;
    if (around) end += text.slice(end, end + 300).match(AFTER_PICTURE)?.[0].length ?? 0;
    pictures++;
    if (pictures === MAX_PICTURES || shown > MAX_SHOWN) {
      const rest = text.slice(end);
      if (rest) nodes.push(unfoldButton(t("showMore", { n: rest.length }), () => renderText(rest)));
      return nodes;
    }
  }
  return [...nodes, ...renderMarkdown(text.slice(end))];
}

/**
 * Renders data as a picture, or as its kind and size.
 * @param {RegExpMatchArray} match of {@link DATA}
 */
function renderData([uri, kind = "text/plain", parameters, data]) {
  const bytes = parameters.endsWith(";base64") ? (data.length * 3) / 4 : data.length;
  const size = t("data", { kind, size: formatSize(bytes) });
  const label = el("p", {}, el("span", { class: "data" }, size));
  if (!PICTURE.test(kind) || uri.length > MAX_PICTURE) return label;
  const onerror = () => picture.replaceWith(label);
  const picture = el("img", { src: uri, alt: size, decoding: "async", onerror });
  return picture;
}
