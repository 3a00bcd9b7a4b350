// What is said, through SillyTavern's own translation: English is the key.

/** @type {Record<string, string>} */
const CHINESE = {
  "Snapshot now": "立即存快照",
  "Timelines": "时间线",
  "Search all history": "搜索全部历史",
  "Undo the last change": "撤销上一次改动",
  "Fork here with its own lorebook": "从这里分叉，带独立的世界书",
  "Mark this moment": "给这一刻起名",
  "History of this message": "这条消息的历史",
  "Deleted chats ({n})": "已删除的聊天（{n}）",
  "Bring back": "恢复",
  "snapshot {ago}": "快照：{ago}",
  "no snapshot yet": "还没有快照",
  "watch is not running": "stvc watch 没有在运行",
  "Run `stvc watch` beside SillyTavern's data (`stvc watch --install` starts it at every login).": "请在酒馆数据所在的电脑上运行 `stvc watch`（`stvc watch --install` 让它随登录启动）。",
  "another version of stvc": "stvc 版本不一致",
  "`stvc extension update`, then reload this page.": "请运行 `stvc extension update`，然后刷新页面。",
  "Snapshot taken.": "已存快照。",
  "Nothing changed since the last snapshot.": "和上一个快照相比没有变化。",
  "Name": "名字",
  "Named: {name}": "已命名：{name}",
  "Forked: {name}": "已分叉：{name}",
  "The lorebook is the one of that message.": "世界书是那条消息当时的样子。",
  "What the lorebook was then is not known: it is the one of now.": "当时的世界书已无从得知，用的是现在的。",
  "Undone.": "已撤销。",
  "Restored.": "已恢复。",
  "This would be done": "将会这样做",
  "A reply is being generated; wait until it is done.": "正在生成回复，请等它结束。",
  "A message is being edited; finish that first.": "有一条消息正在编辑，请先完成或取消。",
  "No chat is open.": "没有打开的聊天。",
  "Show the badge": "显示状态标记",
  "Tell when a chat shrank or was overwritten": "聊天变短或被覆盖时提醒",
  "write": "写入",
  "replace": "替换",
  "delete": "删除",
  "keep": "不变",
};

export function speak() {
  const { addLocaleData } = SillyTavern.getContext();
  for (const locale of ["zh-cn", "zh-tw"]) addLocaleData(locale, CHINESE);
}

/**
 * @param {string} text
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const said = SillyTavern.getContext().translate(text);
  return String(said).replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/** How long ago. @param {number} seconds since 1970 */
export function ago(seconds) {
  const locale = SillyTavern.getContext().getCurrentLocale?.() ?? "en";
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  let value = Math.min(0, seconds - Date.now() / 1000);
  for (const [unit, many] of /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12]])) {
    if (Math.abs(value) < many) return format.format(Math.round(value), unit);
    value /= many;
  }
  return format.format(Math.round(value), "year");
}
