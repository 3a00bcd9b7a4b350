// The viewer: its header, its places, and the navigation between them.

import { ask, connect, exchangeCode, followStore, linesOf } from "./api.js";
import { compare } from "./compare.js";
import { address, el, focusName, focusNamed, link, setChildren } from "./dom.js";
import { library } from "./library.js";
import { map } from "./map.js";
import { operations } from "./operations.js";
import { reader } from "./reader.js";
import { search } from "./search.js";
import { groupLines, isStandalone, isStory, onlyStory } from "./standalone.js";
import {
  currentLanguage,
  nameGroups,
  switchLanguage,
  t,
  translateError,
  withoutCommands,
} from "./words.js";

/**
 * A place is a function that draws one view into an element. `parts` and `query` come from the
 * address.
 * @typedef {object} Visit
 * @property {() => Promise<void>} [onChange] called when the store changed. It must not move what
 *   the user looks at
 * @property {() => void} [onLeave] called when another place is opened
 * @property {() => Promise<void>} [onPrint] loads everything before the place is printed
 *
 * @typedef {(
 *   place: HTMLElement, parts: string[], query: URLSearchParams
 * ) => Promise<Visit | void>} Place
 */

/** The places by their names in the address. @type {Record<string, Place>} */
const PLACES = { "": library, tree: map, read: reader, compare, search, operations };

const main = /** @type {HTMLElement} */ (document.getElementById("place"));
/** @type {Visit} */
let visit = {};
let visits = 0;

function drawHeader() {
  const current = parseAddress().name;
  const item = (/** @type {string} */ name, /** @type {string} */ label) =>
    link(name ? address(name) : "#/", label, {
      "aria-current": current === name ? "page" : undefined,
    });
  const languageButton = el(
    "button",
    { type: "button", class: "language", onclick: () => (switchLanguage(), navigate()) },
    t("language"),
  );
  document.documentElement.lang = currentLanguage();
  const story = onlyStory();
  const items = [
    story
      ? link(address("read", story), t("read"), {
          "aria-current": current === "read" ? "page" : undefined,
        })
      : item("", t("library")),
  ];
  if (!isStory) items.push(item("tree", t("map")));
  items.push(item("search", t("search")));
  if (!isStandalone) items.push(item("operations", t("history")));
  setChildren(
    /** @type {HTMLElement} */ (document.getElementById("top")),
    el("b", { class: "brand" }, "stvc"),
    el("nav", { "aria-label": "stvc" }, items),
    languageButton,
  );
}

function parseAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name = "", ...parts] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return {
    name: Object.hasOwn(PLACES, name) ? name : "",
    parts,
    query: new URLSearchParams(query ?? ""),
  };
}

/** Shows the place that the address names. */
async function navigate() {
  const number = ++visits;
  const followed = history.state?.followed;
  const wasLanguage = document.activeElement?.className === "language";
  visit.onLeave?.();
  visit = {};
  // The user may paste an address with a new code into a tab in which the viewer is open.
  await exchangeCode().catch(() => {});
  drawHeader();
  const { name, parts, query } = parseAddress();
  const place = el("div", { class: `place ${name || "library"}` }, t("loading"));
  setChildren(main, place);
  try {
    const opened = (await PLACES[name](place, parts, query)) ?? {};
    if (number === visits) visit = opened;
    else opened.onLeave?.();
  } catch (error) {
    setChildren(place, renderError(error));
  }
  if (number !== visits) return;
  const heading = place.querySelector("h1");
  document.title = `${heading?.textContent ?? "stvc"} · stvc`;
  if (wasLanguage) /** @type {HTMLElement | null} */ (document.querySelector(".language"))?.focus();
  else if (number > 1) moveFocus(place, followed);
}

/**
 * Moves the focus into a new place: to the link that the user followed before, or else to the
 * heading.
 * @param {HTMLElement} place
 * @param {unknown} followed name of the link
 */
function moveFocus(place, followed) {
  if (typeof followed === "string" && focusNamed(place, followed)) return;
  if (place.contains(document.activeElement)) return;
  const heading = place.querySelector("h1") ?? place;
  heading.setAttribute("tabindex", "-1");
  /** @type {HTMLElement} */ (heading).focus({ preventScroll: true });
}

// The history stores which link was followed, so that Back returns to it.
main.addEventListener("click", (event) => {
  const followed = event.target instanceof Element ? event.target.closest("a") : null;
  if (followed) history.replaceState({ followed: focusName(followed) }, "");
});

/** Prints the place with the parts that are not in the document yet. */
async function printAll() {
  await visit.onPrint?.();
  print();
}
addEventListener("stvc-print", printAll);

/** @param {unknown} error */
function renderError(error) {
  // The browser reports only that the program does not answer.
  if (error instanceof TypeError) error = new Error(t("disconnected"));
  const { hint } = /** @type {{ hint?: string }} */ (error);
  const message = error instanceof Error ? translateError(error) : String(error);
  const advice = withoutCommands(hint);
  return el(
    "p",
    { class: "error", role: "alert" },
    t("error", { message }),
    advice && el("br"),
    advice,
  );
}

/** Loads the names of groups, whose files have numbers as names. */
async function loadGroups() {
  const answer = isStandalone ? null : await ask("groups").catch(() => null);
  nameGroups(answer ? linesOf(answer, "group") : groupLines());
}

addEventListener("hashchange", navigate);
addEventListener("keydown", (event) => {
  if (event.key === "p" && (event.ctrlKey || event.metaKey) && visit.onPrint) {
    event.preventDefault();
    printAll();
  }
  const isTyping =
    event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog");
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    location.hash = address("search");
  }
});

await connect().catch(() => {});
await loadGroups();
const story = onlyStory();
if (story && !location.hash) history.replaceState(null, "", address("read", story));
await navigate();
followStore({
  onChange: async () => {
    await loadGroups();
    await visit.onChange?.().catch(() => {});
  },
  onConnection: (isConnected) => {
    const banner = /** @type {HTMLElement} */ (document.getElementById("disconnected"));
    banner.textContent = isConnected ? "" : t("disconnected");
    // A place that could not be loaded meanwhile is opened again.
    if (isConnected && main.querySelector("[role=alert]")) navigate();
  },
});
