// Functions that select texts in the user's language, and format times and names. The viewer and
// the extension share them.

import { chineseError, chineseFinding } from "./codes.js";
import { CHINESE, ENGLISH, FIELDS } from "./texts.js";

/** Returns the label of a field, or its path in the file. @param {string} path */
export function fieldLabel(path) {
  const [, swipe, variable] = path.match(/^(?:swipes\[(\d{1,9})\]|variables\.(.+))$/s) ?? [];
  if (swipe) return t("swipeNumber", { n: Number(swipe) + 1 });
  if (variable) return t("variable", { name: variable });
  return FIELDS.get(path)?.[language === "zh" ? 1 : 0] ?? path;
}

/** @typedef {keyof typeof ENGLISH} Key */

/** @type {"en" | "zh"} */
let language = initialLanguage();

export function currentLanguage() {
  return language;
}

function initialLanguage() {
  const chosen = readStorage("stvc-language");
  if (chosen === "en" || chosen === "zh") return chosen;
  // SillyTavern's page passes its language in the address of the viewer's frame.
  const passed = new URLSearchParams(location.search).get("lang");
  if (passed === "en" || passed === "zh") return passed;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** @param {string} key */
function readStorage(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Uses a language for this visit. @param {"en" | "zh"} chosen */
export function useLanguage(chosen) {
  language = chosen;
}

/** Switches to the other language. */
export function switchLanguage() {
  language = language === "en" ? "zh" : "en";
  try {
    localStorage.setItem("stvc-language", language);
  } catch {
    // Some browsers have no storage for a page that was opened from a file.
  }
}

/**
 * Returns a text in the current language. If the text has the two forms "singular|plural", the
 * value `n` selects the form.
 * @param {Key} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const [one, many = one] = (language === "zh" ? CHINESE : ENGLISH)[key].split("|");
  const form = Number(values.n) === 1 ? one : many;
  return form.replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/** Formats a number of bytes, such as "1.4 MB". @param {number} bytes */
export function formatSize(bytes) {
  const units = ["byte", "kilobyte", "megabyte"];
  const power = Math.min(2, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const options = { style: "unit", unit: units[power], maximumSignificantDigits: 2 };
  return new Intl.NumberFormat(language, /** @type {Intl.NumberFormatOptions} */ (options)).format(
    bytes / 1000 ** power,
  );
}

/** Formats a time as an age, such as "2 minutes ago". @param {string} time */
export function formatAge(time) {
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const units = /** @type {const} */ ([
    ["second", 60],
    ["minute", 60],
    ["hour", 24],
    ["day", 30],
    ["month", 12],
    ["year", 1e9],
  ]);
  let value = (Date.parse(time) - Date.now()) / 1000;
  for (const [unit, limit] of units) {
    if (Math.abs(value) < limit) return format.format(Math.round(value), unit);
    value /= limit;
  }
  return time;
}

/** @param {string | number} time */
export function formatDate(time) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(
    new Date(time),
  );
}

/** Formats a day without its year, such as "Nov 14". @param {string} time */
export function formatDay(time) {
  return new Intl.DateTimeFormat(language, { month: "short", day: "numeric" }).format(
    new Date(time),
  );
}

/**
 * Returns the note that the user gave to a snapshot, or "" if stvc wrote the description.
 * @param {import("./api.js").Line} snapshot
 */
export function noteOf({ subject = "", timeline }) {
  const name = splitTimeline(timeline)[1];
  const isOwn = isChat(timeline)
    ? !subject.startsWith(`${name}: `) || !subject.includes("message")
    : !subject.startsWith(name);
  return isOwn ? subject : "";
}

/**
 * Returns the message of a finding in the current language.
 * @param {Record<string, any>} finding with `code` and `message`
 * @returns {string}
 */
export function translateFinding({ code = "", message }) {
  return (language === "zh" && chineseFinding(code)) || message;
}

/**
 * Returns the message of an error in the current language.
 * @param {{ code?: string, message: string }} error
 */
export function translateError({ code = "", message }) {
  return (language === "zh" && chineseError(code)) || message;
}

/**
 * Tells when the last sync succeeded, or why it failed.
 * @param {Record<string, any>} sync
 */
export function describeSync({ succeeded, failure }) {
  if (failure) return t("syncFailed", { why: translateError(failure) });
  return t("syncAge", { ago: formatAge(succeeded ?? "") });
}

/**
 * Returns the parts of a hint that name no command, because the page cannot run one.
 * @param {string | null} [hint]
 */
export function withoutCommands(hint) {
  if (language === "zh") return "";
  const parts = (hint ?? "").split(/; |\. /).filter((part) => !/`|--/.test(part));
  return parts.join(". ");
}

/**
 * The texts of repairs, by the code of the problem and the user's choice.
 * @type {Record<string, Key>}
 */
const REPAIRS = {
  "lorebook-shared": "repairShared",
  "lorebook-missing": "repairRestore",
  "lorebook-missing empty": "repairEmpty",
  "lorebook-missing clone": "repairClone",
  "lorebook-missing detach": "repairDetach",
  "lorebook-broken": "repairRestore",
  "file-damaged": "repairRestore",
  "lorebook-orphaned": "repairRemove",
  "group-chat-unlisted": "repairList",
  "recap-foreign": "repairRecap",
};

/** Describes a repair. @param {import("./api.js").Line} repair */
export function repairText({ code, choice, subject, what }) {
  const key = REPAIRS[choice ? `${code} ${choice}` : code];
  return key ? t(key, { name: splitTimeline(subject)[1] }) : what;
}

/** @param {string} timeline */
export function isChat(timeline) {
  return timeline.startsWith("chats/") || timeline.startsWith("group chats/");
}

/** Names of groups, by the groups and their chats. @type {Map<string, string>} */
let groups = new Map();

/** @param {import("./api.js").Line[]} lines with the names of groups */
export function nameGroups(lines) {
  groups = new Map(lines.map(({ timeline, group }) => [timeline, group]));
}

/**
 * Returns the names of a timeline's owner and of the timeline itself, as a person knows them.
 * @param {string} timeline
 * @returns {[string, string]}
 */
export function splitTimeline(timeline) {
  const parts = timeline.split("/");
  if (parts[0] === "chats" && parts.length > 2) return [parts[1], parts.slice(2).join("/")];
  const name = parts.slice(1).join("/") || parts[0];
  const group = groups.get(timeline);
  const [isGroup, isLorebook] = [parts[0] === "groups", parts[0] === "worlds"];
  return [isLorebook ? t("lorebook") : (!isGroup && group) || parts[0], (isGroup && group) || name];
}
