// Functions that select texts in the user's language, and format times and names. The viewer and
// the extension share them.

const ENGLISH = {
  language: "中文",
  library: "Library",
  map: "Map",
  search: "Search",
  history: "History",
  problems: "Problems",
  loading: "…",
  error: "Error: {message}",
  empty: "Nothing here yet.",
  more: "More",
  showMore: "Show {n} more character|Show {n} more characters",
  showUnchanged: "Show {n} unchanged character|Show {n} unchanged characters",
  data: "{kind}, {size}",
  notInFile: "This part of the history is not in the file.",

  messages: "{n} message|{n} messages",
  snapshots: "{n} snapshot|{n} snapshots",
  entries: "{n} entry|{n} entries",

  filter: "Filter by name",
  otherTimelines: "Lorebooks, characters and other files",
  lastBackup: "Last backup {when}",
  noBackup: "No backup yet.",
  lastSnapshot: "Latest snapshot {when}",
  forkOf: "fork of {parent} after #{at}",
  afterMessage: "after #{at}",
  chats: "{n} chat|{n} chats",
  repair: "Repair…",
  repairShared: "Give {name} its own lorebook",
  repairRestore: "Restore the stored version of {name}",
  repairEmpty: "Create {name} without entries",
  repairClone: "Create {name} as a copy of the parent chat's lorebook",
  repairDetach: "Use no lorebook in {name}",
  repairRemove: "Remove {name}, which nothing uses",
  repairList: "List {name} in its group",
  repairRecap: "Assign the recap in {name} to its chat",
  deleted: "deleted",
  changed: "changed since the latest snapshot",
  noSnapshot: "no snapshot yet",
  unreadable: "cannot be read",

  chat: "Chat",
  menu: "Menu",
  print: "Print…",
  printNote: "Not everything is printed. Use “Print…” in the viewer to print all messages.",
  messageKeys: "j k: from message to message",
  snapshot: "Snapshot",
  previous: "Previous snapshot",
  next: "Next snapshot",
  position: "{n} of {of}",
  lorebookChanged: "lorebook changed",
  showHidden: "Hidden messages",
  showSwipes: "Swipes",
  showReasoning: "Reasoning",
  hidden: "hidden",
  reasoning: "reasoning",
  swipe: "swipe {n} of {of}",
  messageVersions: "Versions of this message",
  lorebookAtMoment: "Lorebook at this moment",
  noLorebook: "No lorebook.",
  lorebookUnknown: "The lorebook of that time is not known.",
  lorebookOfSnapshot: "The new chat gets the lorebook of this snapshot.",
  entryHistory: "History of this entry",
  changedLater: "changed since",
  deletedLater: "deleted since",

  zoom: "Zoom",
  keys:
    "j k: along the timeline · h l: between timelines · Enter: read · d: compare · " +
    "m: select · + − 0: zoom · /: search",
  youAreHere: "You are here",
  expand: "Expand {n} message|Expand {n} messages",
  sceneEnd: "scene end",
  read: "Read",
  selectToCompare: "Select to compare",
  compareWithSelected: "Compare with the selected snapshot",
  compareWithPrevious: "Compare with the previous snapshot",
  compareWithCurrent: "Compare with the current version",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  fitToView: "Fit to view",
  stories: "Stories",
  allStories: "All stories",
  selectSnapshot: "Select a snapshot to see what was said, and what you can do with it.",
  latestSnapshot: "latest snapshot",
  sincePrevious: "Changed since the previous snapshot: {changes}",
  listComma: ", ",

  before: "Before",
  after: "After",
  currentFiles: "Current files",
  noDifference: "No difference.",
  lorebook: "Lorebook",
  character: "Character",
  metadata: "Metadata",
  added: "added",
  removed: "removed",
  edited: "edited",
  moved: "moved",
  swiped: "swiped",
  renamed: "renamed",
  shownAgain: "shown again",
  recap: "recap",
  link: "links",
  reused: "UID reused",
  reordered: "order",
  rewritten: "only the formatting changed",
  keywords: "Keywords: {keys}",
  yes: "yes",
  no: "no",

  searchAll: "Search all history",
  searchStory: "Search the story",
  searchHint: "Searches messages, all their swipes and lorebook entries, deleted ones included.",
  nothingFound: "Nothing found.",
  noLongerInChat: "no longer in the chat",
  alsoIn: "also in {n} other place|also in {n} other places",
  inSwipe: "in swipe {n}",
  noLongerIn: "earlier text",
  onlyHere: "Search here",
  matchCount: "{n} match|{n} matches",
  matchesOrMore: "at least {n} matches",
  placeCount: "in {n} place|in {n} places",
  moreMatches: "Show {n} more match|Show {n} more matches",
  searching: "Searching…",
  nothingYet: "Nothing found yet.",
  filters: "Filters",
  filterWho: "Said by",
  everybody: "Everybody",
  you: "You ({name})",
  filterWhere: "Where",
  everywhere: "Everywhere",
  inMessages: "Messages",
  inLorebooks: "Lorebooks",
  inCharacters: "Characters",
  filterState: "Text",
  currentAndDeleted: "Current and deleted",
  onlyCurrent: "Only current",
  onlyDeleted: "Only deleted",
  filterMatch: "Find",
  matchWords: "All words",
  matchPhrase: "Exact phrase",
  matchRegex: "Regular expression",
  removeFilters: "Remove the filters",

  andMore: "{name} and {n} other|{name} and {n} others",
  didStore: "Stored {name}",
  didRestore: "Restored {name}",
  didFork: "Created {name}",
  didRepair: "Repaired {name}",
  didMerge: "Merged lorebooks into {name}",
  didImport: "Imported {name}",
  didSync: "Synchronised {name}",
  didForget: "Removed old snapshots of {name}",
  didErase: "Erased {name}",
  didTag: "Tagged “{name}”",
  didUndo: "Undid operation {n}",
  undo: "Undo",
  redo: "Redo",
  undoneBy: "undone by operation {n}",
  undoes: "undoes operation {n}",

  restore: "Restore",
  openHere: "Open in SillyTavern",
  restoreAs: "Restore as a new chat…",
  fork: "Fork from here…",
  tag: "Tag this moment…",
  tagged: "Tagged.",
  name: "Name",
  plannedChanges: "This will change",
  write: "write",
  replace: "replace",
  keep: "keep",
  delete: "delete",
  chatIsClosed: "The chat is closed in SillyTavern, or SillyTavern is not running",
  restorePrevious: "Restore the earlier version as “{name}”",
  apply: "Apply",
  cancel: "Cancel",
  done: "Done.",
  close: "Close",
  attachments: "{n} attachment, {size}|{n} attachments, {size}",
  disconnected: "stvc does not answer. Start it again; the viewer then continues here.",
};

/** @type {Record<keyof typeof ENGLISH, string>} */
const CHINESE = {
  language: "English",
  library: "书库",
  map: "故事地图",
  search: "搜索",
  history: "历史",
  problems: "问题",
  loading: "…",
  error: "错误：{message}",
  empty: "还没有内容。",
  more: "更多",
  showMore: "再显示 {n} 个字符",
  showUnchanged: "显示 {n} 个没有改动的字符",
  data: "{kind}，{size}",
  notInFile: "这个文件里没有这部分历史。",

  messages: "{n} 条消息",
  snapshots: "{n} 个快照",
  entries: "{n} 个条目",

  filter: "按名字筛选",
  otherTimelines: "世界书、角色和其他文件",
  lastBackup: "上次备份：{when}",
  noBackup: "还没有备份。",
  lastSnapshot: "上次快照：{when}",
  forkOf: "在 #{at} 之后从 {parent} 分叉",
  afterMessage: "从 #{at} 之后",
  chats: "{n} 个聊天",
  repair: "修复……",
  repairShared: "给 {name} 一本独立的世界书",
  repairRestore: "恢复 {name} 存过的版本",
  repairEmpty: "新建空的 {name}",
  repairClone: "复制原聊天的世界书，作为 {name}",
  repairDetach: "{name} 不用世界书",
  repairRemove: "删除没有任何地方使用的 {name}",
  repairList: "把 {name} 列进它的群组",
  repairRecap: "把 {name} 里的回顾改成属于这个聊天",
  deleted: "已删除",
  changed: "上次快照之后有改动",
  noSnapshot: "还没有快照",
  unreadable: "无法读取",

  chat: "聊天",
  menu: "菜单",
  print: "打印…",
  printNote: "没有打印全部内容。要打印所有消息，请用查看器里的“打印…”。",
  messageKeys: "j k：上一条和下一条消息",
  snapshot: "快照",
  previous: "上一个快照",
  next: "下一个快照",
  position: "{n} / {of}",
  lorebookChanged: "世界书有改动",
  showHidden: "隐藏的消息",
  showSwipes: "其他 swipe",
  showReasoning: "思考过程",
  hidden: "已隐藏",
  reasoning: "思考过程",
  swipe: "swipe {n} / {of}",
  messageVersions: "这条消息的各个版本",
  lorebookAtMoment: "这一刻的世界书",
  noLorebook: "没有世界书。",
  lorebookUnknown: "那时的世界书无从得知。",
  lorebookOfSnapshot: "新聊天会用这个快照里的世界书。",
  entryHistory: "这个条目的历史",
  changedLater: "之后有改动",
  deletedLater: "之后被删除",

  zoom: "缩放",
  keys: "j k：沿时间线移动 · h l：切换时间线 · Enter：阅读 · d：比较 · m：选定 · + − 0：缩放 · /：搜索",
  youAreHere: "当前位置",
  expand: "展开 {n} 条消息",
  sceneEnd: "场景结束",
  read: "阅读",
  selectToCompare: "选定，用来比较",
  compareWithSelected: "和选定的快照比较",
  compareWithPrevious: "和上一个快照比较",
  compareWithCurrent: "和当前版本比较",
  zoomIn: "放大",
  zoomOut: "缩小",
  fitToView: "显示全图",
  stories: "故事",
  allStories: "全部故事",
  selectSnapshot: "选一个快照，看当时说了什么，以及可以用它做什么。",
  latestSnapshot: "最新的快照",
  sincePrevious: "上一个快照以来的改动：{changes}",
  listComma: "，",

  before: "之前",
  after: "之后",
  currentFiles: "当前文件",
  noDifference: "没有不同。",
  lorebook: "世界书",
  character: "角色",
  metadata: "元数据",
  added: "新增",
  removed: "删除",
  edited: "修改",
  moved: "移动",
  swiped: "换了 swipe",
  renamed: "改名",
  shownAgain: "重新显示",
  recap: "前情提要",
  link: "链接",
  reused: "UID 被重用",
  reordered: "顺序",
  rewritten: "只有格式改动",
  keywords: "关键词：{keys}",
  yes: "是",
  no: "否",

  searchAll: "搜索全部历史",
  searchStory: "在故事里搜索",
  searchHint: "搜索消息、所有 swipe 和世界书条目，包括已删除的。",
  nothingFound: "没有找到结果。",
  noLongerInChat: "聊天里已经没有",
  alsoIn: "另外 {n} 处也有",
  inSwipe: "在 swipe {n} 里",
  noLongerIn: "以前的文本",
  onlyHere: "只搜这里",
  matchCount: "{n} 处匹配",
  matchesOrMore: "至少 {n} 处匹配",
  placeCount: "（分布在 {n} 处）",
  moreMatches: "再显示 {n} 处匹配",
  searching: "正在搜索……",
  nothingYet: "暂时没有找到。",
  filters: "筛选",
  filterWho: "说话者",
  everybody: "所有人",
  you: "你（{name}）",
  filterWhere: "范围",
  everywhere: "全部",
  inMessages: "消息",
  inLorebooks: "世界书",
  inCharacters: "角色",
  filterState: "文本",
  currentAndDeleted: "当前和已删除的",
  onlyCurrent: "只看当前的",
  onlyDeleted: "只看已删除的",
  filterMatch: "匹配方式",
  matchWords: "所有词",
  matchPhrase: "完整短语",
  matchRegex: "正则表达式",
  removeFilters: "清除筛选",

  andMore: "{name} 等 {n} 项",
  didStore: "存了 {name}",
  didRestore: "恢复了 {name}",
  didFork: "新建了 {name}",
  didRepair: "修复了 {name}",
  didMerge: "合并了世界书：{name}",
  didImport: "导入了 {name}",
  didSync: "同步了 {name}",
  didForget: "清理了 {name} 的旧快照",
  didErase: "彻底删除了 {name}",
  didTag: "加了标签“{name}”",
  didUndo: "撤销了操作 {n}",
  undo: "撤销",
  redo: "重做",
  undoneBy: "已被操作 {n} 撤销",
  undoes: "撤销了操作 {n}",

  restore: "恢复",
  openHere: "在酒馆里打开",
  restoreAs: "恢复成新的聊天…",
  fork: "从这里分叉…",
  tag: "给这一刻加标签…",
  tagged: "已加标签。",
  name: "名字",
  plannedChanges: "将要进行的改动",
  write: "写入",
  replace: "替换",
  keep: "不变",
  delete: "删除",
  chatIsClosed: "这个聊天已在酒馆里关闭，或者酒馆没有运行",
  restorePrevious: "把之前的版本恢复成“{name}”",
  apply: "执行",
  cancel: "取消",
  done: "完成。",
  close: "关闭",
  attachments: "{n} 个附件，{size}",
  disconnected: "stvc 没有回应。请重新启动它，查看器会在这里继续。",
};

/** Fields of messages and lorebook entries, in English and Chinese. */
const FIELDS = new Map([
  ["mes", ["Text", "文本"]],
  ["content", ["Text", "内容"]],
  ["comment", ["Title", "标题"]],
  ["key", ["Keywords", "关键词"]],
  ["keysecondary", ["Secondary keywords", "次要关键词"]],
  ["constant", ["Always active", "始终启用"]],
  ["disable", ["Disabled", "停用"]],
  ["selective", ["Uses secondary keywords", "使用次要关键词"]],
  ["order", ["Order", "顺序"]],
  ["displayIndex", ["Position in the list", "列表中的位置"]],
  ["position", ["Position in the prompt", "在提示词中的位置"]],
  ["depth", ["Depth", "深度"]],
  ["probability", ["Probability", "概率"]],
  ["sticky", ["Sticky", "粘滞"]],
  ["cooldown", ["Cooldown", "冷却"]],
  ["delay", ["Delay", "延迟"]],
  ["is_system", ["Hidden from the prompt", "对提示词隐藏"]],
  ["is_user", ["Said by the user", "由用户所说"]],
  ["name", ["Name", "名字"]],
  ["send_date", ["Date", "日期"]],
  ["swipes", ["Swipes", "Swipe 列表"]],
  ["swipe_id", ["Shown swipe", "显示的 swipe"]],
  ["extra.reasoning", ["Reasoning", "思考过程"]],
]);

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
