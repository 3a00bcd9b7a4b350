// The extension's settings. They are a file of their own, so that nothing is left
// in SillyTavern's settings when the extension is removed.

import { useLanguage } from "../page/words.js";
import { readFile, writeFile } from "./mailbox.js";

/** Name of the file, which `stvc extension remove` deletes. */
export const SETTINGS_FILE = "stvc-settings.json";

/**
 * @typedef {object} Settings
 * @property {boolean} badge
 * @property {boolean} alarms
 * @property {boolean} offers
 * @property {boolean} scenes
 * @property {"" | "en" | "zh"} language if empty, SillyTavern's language is used
 */

/** @type {Settings} */
const chosen = { badge: true, alarms: true, offers: true, scenes: false, language: "" };

/** @returns {Settings} */
export const settings = () => chosen;

/** Loads the stored settings. */
export async function loadSettings() {
  Object.assign(chosen, await readFile(SETTINGS_FILE));
  applyLanguage();
}

/** Uses the language in the settings, or else SillyTavern's language. */
function applyLanguage() {
  const locale = String(SillyTavern.getContext().getCurrentLocale?.() ?? "en").toLowerCase();
  useLanguage(chosen.language || (locale.startsWith("zh") ? "zh" : "en"));
}

/** Stores the settings. */
export function saveSettings() {
  applyLanguage();
  return writeFile(SETTINGS_FILE, chosen);
}
