// What is said, through SillyTavern's own translation: English is the key.

/** @type {Record<string, string>} */
const CHINESE = {
  "Snapshot now": "立即存快照",
  Timelines: "时间线",
  "Search all history": "搜索全部历史",
  "Undo the last change": "撤销上一次改动",
  "Fork here with its own lorebook": "从这里分叉，带独立的世界书",
  "Mark this moment": "给这一刻起名",
  "History of this message": "这条消息的历史",
  "Deleted chats ({n})": "已删除的聊天（{n}）",
  Restore: "恢复",
  "snapshot {ago}": "快照：{ago}",
  "no snapshot yet": "还没有快照",
  "watch is not running": "stvc watch 没有在运行",
  "Run `stvc watch` beside SillyTavern's data (`stvc watch --install` starts it at every login).":
    "请在酒馆数据所在的电脑上运行 `stvc watch`（`stvc watch --install` 让它随登录启动）。",
  "another version of stvc": "stvc 版本不一致",
  "`stvc extension update`, then reload this page.":
    "请运行 `stvc extension update`，然后刷新页面。",
  "Snapshot taken.": "已存快照。",
  "Nothing changed since the last snapshot.": "和上一个快照相比没有变化。",
  Name: "名字",
  "Named: {name}": "已命名：{name}",
  "Forked: {name}": "已分叉：{name}",
  "The lorebook is the one of that message.": "世界书是那条消息当时的样子。",
  "What the lorebook was then is not known: it is the one of now.":
    "当时的世界书已无从得知，用的是现在的。",
  "Lorebook entries: {n}.": "世界书条目：{n}。",
  "Running recap: v{n}.": "连续回顾：第 {n} 版。",
  "Messages in the combined recap: {n}.": "合并回顾涵盖的消息：{n}。",
  "Undone.": "已撤销。",
  "There is nothing to undo.": "没有可以撤销的操作。",
  "Restored.": "已恢复。",
  "Restored: {name}": "已恢复：{name}",
  "Click here to restore the state before as a chat of its own.":
    "点这里把之前的状态恢复成独立的聊天。",
  "This would be done": "将会这样做",
  "A reply is being generated; wait until it is done.": "正在生成回复，请等它结束。",
  "A message is being edited; finish that first.": "有一条消息正在编辑，请先完成或取消。",
  "No chat is open.": "没有打开的聊天。",
  "Show the badge": "显示状态标记",
  "Tell when a chat shrank or was overwritten": "聊天变短或被覆盖时提醒",
  "Mark the end of every scene by itself (ST-Auto-Recap)":
    "自动标记每个场景的结尾（ST-Auto-Recap）",
  Language: "语言",
  "as SillyTavern": "跟随酒馆",
  "Reload the page to see it everywhere.": "刷新页面后全部生效。",
  "Not all is ready here:": "这里还没有全部就绪：",
  "Click here to restore it.": "点这里恢复。",
  "This is a snapshot of {name}, which is not open. Nothing was changed.":
    "这是 {name} 的快照，该聊天没有打开。没有改动任何内容。",
  "Open that chat first.": "请先打开那个聊天。",
  "The lorebook on disk differs from the one of that snapshot.": "磁盘上的世界书与该快照中的不同。",
  "Chat and lorebook": "聊天和世界书",
  "Chat only": "仅聊天",
  Cancel: "取消",
  "This chat was replaced elsewhere.": "这个聊天在别处被替换了。",
  "It was read again.": "已重新读取。",
  "Click here to read it again. SillyTavern asks before it saves over it.":
    "点这里重新读取。酒馆在覆盖它之前会先询问。",
  write: "写入",
  replace: "替换",
  delete: "删除",
  keep: "不变",
};

/** Why something is not ready, or refused, by the code of the finding. @type {Record<string, string>} */
const REASONS = {
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

export function speak() {
  const { addLocaleData } = SillyTavern.getContext();
  for (const locale of ["zh-cn", "zh-tw"]) addLocaleData(locale, CHINESE);
}

/** The language that is spoken: the one that was chosen, or SillyTavern's. @returns {"en" | "zh"} */
export function spoken() {
  const { extensionSettings, getCurrentLocale } = SillyTavern.getContext();
  const chosen = extensionSettings.stvc?.language;
  return (
    chosen ||
    (String(getCurrentLocale?.() ?? "en")
      .toLowerCase()
      .startsWith("zh")
      ? "zh"
      : "en")
  );
}

/**
 * @param {string} text
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const { extensionSettings, translate } = SillyTavern.getContext();
  const chosen = extensionSettings.stvc?.language;
  const said = chosen ? (chosen === "zh" && CHINESE[text]) || text : translate(text);
  return String(said).replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/** A finding in words. @param {Record<string, any>} finding its `code` and `message` @returns {string} */
export function reason(finding) {
  return (spoken() === "zh" && REASONS[finding.code]) || finding.message;
}

/** @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children */
export function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** How long ago. @param {number} seconds since 1970 */
export function ago(seconds) {
  const locale =
    spoken() === "zh" ? "zh-CN" : (SillyTavern.getContext().getCurrentLocale?.() ?? "en");
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  let value = Math.min(0, seconds - Date.now() / 1000);
  for (const [unit, many] of /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
    ["second", 60],
    ["minute", 60],
    ["hour", 24],
    ["day", 30],
    ["month", 12],
  ])) {
    if (Math.abs(value) < many) return format.format(Math.round(value), unit);
    value /= many;
  }
  return format.format(Math.round(value), "year");
}
