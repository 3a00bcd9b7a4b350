// What the user chose, kept with SillyTavern's own settings, and where it is chosen.

import { node, t } from "./words.js";

const KEY = "stvc";

/** @typedef {{ badge: boolean, alarms: boolean, scenes: boolean, language: "" | "en" | "zh" }} Settings */

/** @returns {Settings} */
export function settings() {
  const { extensionSettings } = SillyTavern.getContext();
  const chosen = (extensionSettings[KEY] ??= {});
  // In its place: whoever holds it sees what becomes of it.
  return Object.assign(chosen, {
    badge: true,
    alarms: true,
    scenes: false,
    language: "",
    ...chosen,
  });
}

/** @param {() => void} changed */
export function settingsPanel(changed) {
  const chosen = settings();
  const keep = () => {
    SillyTavern.getContext().saveSettingsDebounced();
    changed();
  };
  const box = (/** @type {"badge" | "alarms" | "scenes"} */ key, /** @type {string} */ words) => {
    const input = /** @type {HTMLInputElement} */ (
      node("input", { type: "checkbox", "data-stvc": key })
    );
    input.checked = chosen[key];
    input.addEventListener("change", () => {
      chosen[key] = input.checked;
      keep();
    });
    return node("label", { class: "checkbox_label" }, input, node("span", {}, t(words)));
  };
  const languages = [
    ["", t("as SillyTavern")],
    ["en", "English"],
    ["zh", "中文"],
  ];
  const select = /** @type {HTMLSelectElement} */ (
    node(
      "select",
      { class: "text_pole", "data-stvc": "language" },
      ...languages.map(([value, words]) => node("option", { value }, words)),
    )
  );
  select.value = chosen.language;
  select.addEventListener("change", () => {
    chosen.language = /** @type {Settings["language"]} */ (select.value);
    keep();
    toastr.info(t("Reload the page to see it everywhere."));
  });
  const drawer = node(
    "div",
    { class: "inline-drawer", id: "stvc_settings" },
    node(
      "div",
      { class: "inline-drawer-toggle inline-drawer-header" },
      node("b", {}, "stvc"),
      node("div", { class: "inline-drawer-icon fa-solid fa-circle-chevron-down down" }),
    ),
    node(
      "div",
      { class: "inline-drawer-content" },
      box("badge", "Show the badge"),
      box("alarms", "Tell when a chat shrank or was overwritten"),
      box("scenes", "Mark the end of every scene by itself (ST-Auto-Recap)"),
      node("label", {}, node("span", {}, t("Language")), select),
    ),
  );
  document.getElementById("extensions_settings2")?.append(drawer);
}
