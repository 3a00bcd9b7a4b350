// The panel of the extension among SillyTavern's settings.

import { el } from "../page/dom.js";
import { t } from "../page/words.js";
import { saveSettings, settings } from "./settings.js";

/** Adds the panel to SillyTavern's extension settings. @param {() => void} onChange */
export function addSettingsPanel(onChange) {
  const chosen = settings();
  const save = () => {
    void saveSettings();
    onChange();
  };
  const checkbox = (
    /** @type {"badge" | "alarms" | "offers" | "scenes"} */ key,
    /** @type {import("../page/words.js").Key} */ label,
  ) => {
    const input = /** @type {HTMLInputElement} */ (
      el("input", { type: "checkbox", "data-stvc": key })
    );
    input.checked = chosen[key];
    input.addEventListener("change", () => {
      chosen[key] = input.checked;
      save();
    });
    return el("label", { class: "checkbox_label" }, input, el("span", {}, t(label)));
  };
  const languages = [
    ["", t("sameAsSillyTavern")],
    ["en", "English"],
    ["zh", "中文"],
  ];
  const select = /** @type {HTMLSelectElement} */ (
    el(
      "select",
      { class: "text_pole", "data-stvc": "language" },
      ...languages.map(([value, label]) => el("option", { value }, label)),
    )
  );
  select.value = chosen.language;
  select.addEventListener("change", () => {
    chosen.language = /** @type {import("./settings.js").Settings["language"]} */ (select.value);
    save();
    toastr.info(t("reloadForLanguage"));
  });
  const drawer = el(
    "div",
    { class: "inline-drawer", id: "stvc_settings" },
    el(
      "div",
      { class: "inline-drawer-toggle inline-drawer-header" },
      el("b", {}, "stvc"),
      el("div", { class: "inline-drawer-icon fa-solid fa-circle-chevron-down down" }),
    ),
    el(
      "div",
      { class: "inline-drawer-content" },
      checkbox("badge", "settingBadge"),
      checkbox("alarms", "settingAlarms"),
      checkbox("offers", "settingOffers"),
      checkbox("scenes", "settingScenes"),
      el("label", {}, el("span", {}, t("settingLanguage")), select),
    ),
  );
  document.getElementById("extensions_settings2")?.append(drawer);
}
