// The extension's texts in English and Chinese. As in SillyTavern's own translations, the English
// text is the key of its translation.

import { settings } from "./settings.js";

/** @type {Record<string, string>} */
const CHINESE = {
  "Snapshot now": "立即存快照",
  Timelines: "时间线",
  "Search all history": "搜索全部历史",
  "Undo the last change": "撤销上一次改动",
  "Fork here with its own lorebook": "从这里分叉，带独立的世界书",
  "Tag this moment": "给这一刻加标签",
  "History of this message": "这条消息的历史",
  "Deleted chats ({n})": "已删除的聊天（{n}）",
  Restore: "恢复",
  "snapshot {ago}": "快照：{ago}",
  "no snapshot yet": "还没有快照",
  "stvc watch is not running": "stvc watch 没有在运行",
  "Run `stvc watch` on the computer that SillyTavern runs on.":
    "请在运行酒馆的电脑上运行 `stvc watch`。",
  "`stvc watch --install` sets up its start at every login.":
    "用 `stvc watch --install` 可以设置为每次登录时自动启动。",
  "stvc versions differ": "stvc 版本不一致",
  "Run `stvc extension update`, then reload this page.":
    "请运行 `stvc extension update`，然后刷新页面。",
  "Snapshot created.": "已存快照。",
  "Nothing changed since the last snapshot.": "上次快照之后没有改动。",
  Name: "名字",
  "Tagged: {name}": "已加标签：{name}",
  "Forked: {name}": "已分叉：{name}",
  "The lorebook is as it was at that message.": "世界书是那条消息当时的内容。",
  "The lorebook of that time is not known; the fork uses the current one.":
    "那时的世界书无从得知，新聊天用的是当前的世界书。",
  "Lorebook entries: {n}.": "世界书条目：{n}。",
  "Running recap: version {n}.": "连续回顾：第 {n} 版。",
  "Messages in the combined recap: {n}.": "合并回顾包含的消息：{n}。",
  "Undone.": "已撤销。",
  "Nothing to undo.": "没有可以撤销的操作。",
  "Restored.": "已恢复。",
  "Restored: {name}": "已恢复：{name}",
  "Click here to restore the earlier version as a new chat.": "点这里把之前的版本恢复成新的聊天。",
  "Planned changes": "将要进行的改动",
  "{after} messages instead of {now}.": "消息数：{now} → {after}。",
  "A reply is being generated. Wait until it is finished.": "正在生成回复，请等它结束。",
  "A message is being edited. Finish or cancel the edit first.":
    "有一条消息正在编辑，请先完成或取消。",
  "SillyTavern does not list this chat.": "酒馆里没有列出这个聊天。",
  "No chat is open.": "没有打开的聊天。",
  "Show the status badge": "显示状态标记",
  "Notify me when a chat shrinks or is overwritten": "聊天变短或被覆盖时提醒我",
  "Create a snapshot at every scene end automatically (ST-Auto-Recap)":
    "在每个场景结束时自动存快照（ST-Auto-Recap）",
  Language: "语言",
  "Same as SillyTavern": "跟随酒馆",
  "Reload the page to apply the language everywhere.": "刷新页面后，语言全部生效。",
  "Not ready at this message:": "在这条消息处还没有就绪：",
  "ST-Auto-Recap is still working. The fork is created when it has finished.":
    "ST-Auto-Recap 还在处理，处理完以后再创建新聊天。",
  "Create when ready": "就绪后创建",
  "Waiting until ST-Auto-Recap has finished…": "正在等 ST-Auto-Recap 处理完……",
  "Click here to cancel.": "点这里取消。",
  "It shares its lorebook with another chat. Click here to give it its own lorebook.":
    "它和另一个聊天共用一本世界书。点这里给它一本独立的世界书。",
  "{name} now has its own lorebook.": "{name} 现在有了独立的世界书。",
  "The lorebook {book} of this chat is missing.": "这个聊天的世界书 {book} 不见了。",
  "SillyTavern shows it as empty. What should be done?": "酒馆会把它显示为空。要怎么办？",
  "Nothing now": "暂时不管",
  "Repaired.": "已修复。",
  "Restore the stored version": "恢复存过的版本",
  "Create an empty lorebook": "新建一本空的世界书",
  "Copy the lorebook of the parent chat": "复制原聊天的世界书",
  "Use no lorebook in this chat": "这个聊天不用世界书",
  "Offer each new checkpoint or branch its own lorebook": "新建检查点或分支时，提供独立的世界书",
  "Click here to restore the chat.": "点这里恢复这个聊天。",
  "This is a snapshot of {name}, which is not open. Nothing was changed.":
    "这是 {name} 的快照，该聊天没有打开。没有改动任何内容。",
  "Open that chat first.": "请先打开那个聊天。",
  "The lorebook on disk differs from the one in the snapshot.": "磁盘上的世界书和快照里的不同。",
  "Chat and lorebook": "聊天和世界书",
  "Chat only": "仅聊天",
  Cancel: "取消",
  "This chat was replaced elsewhere.": "这个聊天在别处被替换了。",
  "The new version is loaded.": "已载入新的版本。",
  "Click here to load the new version. Until then, SillyTavern asks before each overwrite.":
    "点这里载入新的版本。在此之前，酒馆每次覆盖都会先询问。",
  write: "写入",
  replace: "替换",
  delete: "删除",
  keep: "不变",
};

/** Chinese messages of findings, by their codes. @type {Record<string, string>} */
const CHINESE_FINDINGS = {
  "queue-active": "ST-Auto-Recap 正在处理，请等队列清空",
  "scene-break-missing": "这条消息没有场景分割",
  "scene-recap-missing": "这条消息还没有场景回顾",
  "scene-lorebook-missing": "场景的世界书条目还没有完成",
  "running-recap-missing": "还没有连续回顾",
  "scene-not-in-recap": "这个场景还没有并入连续回顾",
  "chat-shrank": "聊天突然变短了",
  "chat-replaced": "聊天被另一个聊天的内容替换了",
  "restore-undone": "恢复的内容被酒馆内存里的旧内容覆盖了",
  "recap-from-future": "回顾里提到了这条消息之后的事",
};

/** Chinese messages of errors, by their codes. @type {Record<string, string>} */
const CHINESE_ERRORS = {
  ambiguous: "这个名字可以指不止一个，请写得更完整",
  "bad-name": "这个名字不能用",
  "changed-since": "之后又有改动，不能直接撤销",
  "in-the-way": "会替换掉现有的文件，没有执行",
  locked: "stvc 正被另一个程序使用，请稍后再试",
  "name-stored": "这个名字属于一个已删除但还有快照的聊天，请换一个名字",
  "name-taken": "已经有这个名字的聊天，请换一个名字",
  "no-chat": "还没有任何快照",
  "no-such-entry": "没有这个条目",
  "no-such-operation": "没有这次操作",
  "no-such-snapshot": "没有叫这个名字的快照、标签或时间线",
  "no-such-timeline": "没有叫这个名字的时间线",
  "not-expected": "文件在确认之前又被改动，没有执行，请再看一次",
  "not-planned": "文件在确认之前又被改动，没有修复，请再看一次",
  "not-saved": "酒馆里还有没保存的改动，请先保存聊天",
  "not-so-far-back": "没有那么早的快照",
  "not-taken-then": "那条消息处没有快照",
  "not-that-old": "没有那么早的快照",
  "request-read-only": "这里不允许改动",
  "request-too-many": "请求太多，请稍等一分钟",
  "saved-by-other": "另一个程序同时保存了文件，请再试一次",
  "silly-tavern-runs": "酒馆正在运行，会用旧内容覆盖它",
  "store-locked": "stvc 正被另一个程序使用，请稍后再试",
  "tag-bad-name": "这个名字不能用作标签",
  "tag-taken": "已经有这个标签，请换一个名字",
  "undone-below": "要先撤销之后的那次操作",
  unreadable: "看不懂这个时刻的写法",
};

/** Adds the Chinese texts to SillyTavern's translations. */
export function registerTranslations() {
  const { addLocaleData } = SillyTavern.getContext();
  for (const locale of ["zh-cn", "zh-tw"]) addLocaleData(locale, CHINESE);
}

/** Returns the language in the settings, or else SillyTavern's language. @returns {"en" | "zh"} */
export function currentLanguage() {
  const { getCurrentLocale } = SillyTavern.getContext();
  const locale = String(getCurrentLocale?.() ?? "en").toLowerCase();
  return settings().language || (locale.startsWith("zh") ? "zh" : "en");
}

/**
 * Translates a text and fills in its `{placeholders}`.
 * @param {string} text
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const { translate } = SillyTavern.getContext();
  const chosen = settings().language;
  const translated = chosen ? (chosen === "zh" && CHINESE[text]) || text : translate(text);
  return String(translated).replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/** Explains how to start the watch. */
export function howToStartWatch() {
  return [
    t("Run `stvc watch` on the computer that SillyTavern runs on."),
    t("`stvc watch --install` sets up its start at every login."),
  ].join(" ");
}

/** @param {Record<string, any>} finding a line with `code` and `message` @returns {string} */
export function translateFinding(finding) {
  return (currentLanguage() === "zh" && CHINESE_FINDINGS[finding.code]) || finding.message;
}

/**
 * Returns the message of an error in the user's language.
 * @param {{ code?: string, message: string }} error
 */
export function translateError({ code = "", message }) {
  return (
    (currentLanguage() === "zh" && (CHINESE_ERRORS[code] || CHINESE_FINDINGS[code])) || message
  );
}

/**
 * Returns a hint without commands, which cannot be entered in the page.
 * @param {string | null} [hint]
 */
export function hintWithoutCommands(hint) {
  if (currentLanguage() === "zh") return "";
  const parts = (hint ?? "").split(/; |\. /).filter((part) => !/`|--/.test(part));
  return parts.join(". ");
}

/** Names a repair of a missing lorebook. @param {Record<string, any>} repair */
export const describeRepair = ({ choice, what }) =>
  ({
    "": t("Restore the stored version"),
    empty: t("Create an empty lorebook"),
    clone: t("Copy the lorebook of the parent chat"),
    detach: t("Use no lorebook in this chat"),
  })[String(choice ?? "")] ?? what;

/**
 * Lists the sizes of a fork's lorebook and recaps.
 * @param {Record<string, any> | undefined} restored
 */
export function forkFacts(restored) {
  /** @type {[string, any][]} */
  const facts = [
    ["Lorebook entries: {n}.", restored?.entries],
    ["Running recap: version {n}.", restored?.running_recap_version],
    ["Messages in the combined recap: {n}.", restored?.combined_recap_message_count],
  ];
  return facts.filter(([, n]) => Number.isInteger(n)).map(([text, n]) => t(text, { n }));
}

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(Node | string)} children
 */
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Formats a time as an age, such as "2 min. ago". @param {number} seconds since 1970 */
export function formatAge(seconds) {
  const locale =
    currentLanguage() === "zh" ? "zh-CN" : (SillyTavern.getContext().getCurrentLocale?.() ?? "en");
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  let value = Math.min(0, seconds - Date.now() / 1000);
  for (const [unit, limit] of /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
    ["second", 60],
    ["minute", 60],
    ["hour", 24],
    ["day", 30],
    ["month", 12],
  ])) {
    if (Math.abs(value) < limit) return format.format(Math.round(value), unit);
    value /= limit;
  }
  return format.format(Math.round(value), "year");
}
