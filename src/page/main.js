// The page: its head, its places, and the way between them.

import { begin, enter, follow } from "./ask.js";
import { compare } from "./compare.js";
import { isFile } from "./file.js";
import { library } from "./library.js";
import { address, el, link, show } from "./nodes.js";
import { operations } from "./operations.js";
import { reader } from "./reader.js";
import { search } from "./search.js";
import { tree } from "./tree.js";
import { spoken, t, turn } from "./words.js";

/**
 * A place fills the page; what it returns is called when the store changed, or when it is left.
 * @typedef {{ changed?: () => void, left?: () => void }} Visit
 * @typedef {(place: HTMLElement, parts: string[], query: URLSearchParams) => Promise<Visit | void>} Place
 */

/** @type {Record<string, Place>} */
const PLACES = { "": library, tree, read: reader, compare, search, operations };

const place = /** @type {HTMLElement} */ (document.getElementById("place"));
/** @type {Visit} */
let visit = {};
let visits = 0;

function head() {
  const here = parse().name;
  /** @param {string} name @param {string} words */
  const way = (name, words) =>
    link(name ? address(name) : "#/", words, {
      "aria-current": here === name ? "page" : undefined,
    });
  const turned = el(
    "button",
    { type: "button", onclick: () => (turn(), head(), go()) },
    t("language"),
  );
  document.documentElement.lang = spoken();
  const ways = [way("", t("library")), way("tree", t("tree")), way("search", t("search"))];
  if (!isFile) ways.push(way("operations", t("operations")));
  show(
    /** @type {HTMLElement} */ (document.getElementById("top")),
    el("nav", { "aria-label": "stvc" }, ways),
    turned,
  );
}

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name = "", ...parts] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: name in PLACES ? name : "", parts, query: new URLSearchParams(query ?? "") };
}

async function go() {
  const mine = ++visits;
  visit.left?.();
  visit = {};
  // The address of another code may be typed into a page that is open.
  await enter().catch(() => {});
  head();
  const { name, parts, query } = parse();
  const inside = el("div", { class: `place ${name || "library"}` }, t("loading"));
  show(place, inside);
  try {
    const came = (await PLACES[name](inside, parts, query)) ?? {};
    if (mine === visits) visit = came;
    else came.left?.();
  } catch (error) {
    show(inside, failed(error));
  }
  if (mine === visits)
    document.title = `${inside.querySelector("h1")?.textContent ?? "stvc"} · stvc`;
}

/** @param {unknown} error */
export function failed(error) {
  const { message, hint } = /** @type {{ message?: string, hint?: string }} */ (error);
  return el(
    "p",
    { class: "bad", role: "alert" },
    `${t("error")}: ${message ?? error}`,
    hint ? el("br") : null,
    hint ?? null,
  );
}

addEventListener("hashchange", go);
addEventListener("keydown", (event) => {
  const typing =
    event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    location.hash = address("search");
  }
});

await begin().catch(() => {});
await go();
follow(() => (visit.changed ? visit.changed() : undefined));
