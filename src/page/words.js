// What the page says, in two languages; and moments and numbers as people there write them.

const ENGLISH = {
  library: "Library",
  tree: "Tree",
  search: "Search",
  operations: "Done",
  doctor: "What is wrong",
  messages: "{n} messages",
  snapshots: "{n} snapshots",
  entries: "{n} entries",
  deleted: "deleted",
  changed: "changed since",
  new: "not stored yet",
  unreadable: "cannot be read",
  stored: "",
  unchanged: "",
  lastBackup: "Last backup {when}",
  noBackup: "No backup was taken yet.",
  lastSnapshot: "Last snapshot {when}",
  forkOf: "leaves {parent} after #{at}",
  filter: "Filter by name",
  other: "Lorebooks, characters and others",
  nothing: "There is nothing here yet.",
  nothingFound: "Nothing found.",
  loading: "…",
  more: "More",
  read: "Read",
  map: "Map",
  compareNow: "Compare with the one before",
  compareWith: "Compare with …",
  knew: "What the story knew",
  noBook: "No lorebook.",
  bookUnknown: "What the lorebook was then is not known.",
  bookOfSnapshot: "It gets the one that this snapshot has.",
  at: "at",
  history: "History of this entry",
  versions: "Versions of this message",
  hidden: "hidden",
  showHidden: "Hidden messages",
  showSwipes: "Swipes",
  showReasoning: "Reasoning",
  swipe: "swipe {n} of {of}",
  reasoning: "reasoning",
  then: "then",
  now: "now",
  newer: "changed since",
  gone: "gone since",
  moment: "Moment",
  bookChanged: "lorebook changed",
  position: "{n} of {of}",
  before: "Before",
  after: "After",
  noDifference: "No difference.",
  metadata: "Metadata",
  lorebook: "Lorebook",
  chat: "Chat",
  card: "Character",
  added: "added",
  removed: "removed",
  edited: "edited",
  moved: "moved",
  swiped: "swiped",
  renamed: "renamed",
  searchAll: "Search all that was ever said",
  live: "there now",
  was: "not there any more",
  alsoIn: "also in {n}",
  searchHint: "Messages, all their swipes, and lorebook entries, deleted ones too.",
  undo: "Undo",
  redo: "Redo",
  stateBefore: "Restore the state before as “{name}”",
  undone: "undone by {n}",
  undid: "undid {n}",
  restore: "Bring back",
  restoreAs: "As a chat of its own …",
  fork: "Another ending from here …",
  tag: "Name this moment …",
  name: "Name",
  plan: "This would be done",
  doIt: "Do it",
  cancel: "Cancel",
  write: "write",
  replace: "replace",
  keep: "keep",
  remove: "remove",
  doneNow: "Done.",
  closedFirst: "The chat is closed in SillyTavern, or SillyTavern does not run",
  gonePage: "The program is not running any more. Start `stvc view` again.",
  error: "This went wrong",
  back: "Back",
  language: "中文",
  tagged: "Named.",
  zoom: "Zoom",
  here: "you are here",
  folded: "{n} messages are folded; unfold them",
  scene: "end of a scene",
  hold: "Compare another with this",
  compareHeld: "Compare with the one held",
  keys: "j k: along · h l: between · Enter: read · d: compare · m: hold · /: search",
};

/** @type {Record<keyof typeof ENGLISH, string>} */
const CHINESE = {
  library: "书库",
  tree: "分叉图",
  search: "搜索",
  operations: "操作记录",
  doctor: "问题",
  messages: "{n} 条消息",
  snapshots: "{n} 个快照",
  entries: "{n} 个条目",
  deleted: "已删除",
  changed: "之后有改动",
  new: "还没有快照",
  unreadable: "无法读取",
  stored: "",
  unchanged: "",
  lastBackup: "上次备份：{when}",
  noBackup: "还没有做过备份。",
  lastSnapshot: "上次快照：{when}",
  forkOf: "在 #{at} 之后从 {parent} 分出",
  filter: "按名字筛选",
  other: "世界书、角色和其他",
  nothing: "这里还什么都没有。",
  nothingFound: "什么也没找到。",
  loading: "…",
  more: "更多",
  read: "阅读",
  map: "分叉图",
  compareNow: "和前一个比较",
  compareWith: "和……比较",
  knew: "故事当时知道什么",
  noBook: "没有世界书。",
  bookUnknown: "当时的世界书是什么样，已无从得知。",
  bookOfSnapshot: "会用这个快照里的世界书。",
  at: "于",
  history: "这个条目的历史",
  versions: "这条消息的各个版本",
  hidden: "已隐藏",
  showHidden: "隐藏的消息",
  showSwipes: "其他 swipe",
  showReasoning: "思考过程",
  swipe: "swipe {n} / {of}",
  reasoning: "思考过程",
  then: "当时",
  now: "现在",
  newer: "之后改过",
  gone: "之后删除",
  moment: "时间点",
  bookChanged: "世界书有改动",
  position: "{n} / {of}",
  before: "之前",
  after: "之后",
  noDifference: "没有不同。",
  metadata: "元数据",
  lorebook: "世界书",
  chat: "聊天",
  card: "角色",
  added: "新增",
  removed: "删除",
  edited: "修改",
  moved: "移动",
  swiped: "换了 swipe",
  renamed: "改名",
  searchAll: "搜索写过的一切",
  live: "现在还在",
  was: "已经不在了",
  alsoIn: "另外 {n} 处也有",
  searchHint: "消息、所有 swipe 和世界书条目，删掉的也算。",
  undo: "撤销",
  redo: "重做",
  stateBefore: "把之前的状态恢复成“{name}”",
  undone: "已被 {n} 撤销",
  undid: "撤销了 {n}",
  restore: "恢复",
  restoreAs: "恢复成独立的聊天……",
  fork: "从这里另写一个结局……",
  tag: "给这一刻起名……",
  name: "名字",
  plan: "将会这样做",
  doIt: "执行",
  cancel: "取消",
  write: "写入",
  replace: "替换",
  keep: "不变",
  remove: "删除",
  doneNow: "完成。",
  closedFirst: "酒馆里已关闭这个聊天，或者酒馆没有在运行",
  gonePage: "程序已经停止。请重新运行 `stvc view`。",
  error: "出错了",
  back: "返回",
  language: "English",
  tagged: "已命名。",
  zoom: "缩放",
  here: "当前位置",
  folded: "折叠了 {n} 条消息，点开查看",
  scene: "一幕结束",
  hold: "拿另一个来和它比较",
  compareHeld: "和选定的那个比较",
  keys: "j k：前后 · h l：左右 · Enter：阅读 · d：比较 · m：选定 · /：搜索",
};

/** @type {"en" | "zh"} */
let language = chosen();

/** The language that is spoken. */
export function spoken() {
  return language;
}

function chosen() {
  const set = read("stvc-language");
  if (set === "en" || set === "zh") return set;
  // Who shows this page in a frame may say.
  const told = new URLSearchParams(location.search).get("lang");
  if (told === "en" || told === "zh") return told;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** @param {string} key */
function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Change over to the other language. */
export function turn() {
  language = language === "en" ? "zh" : "en";
  try {
    localStorage.setItem("stvc-language", language);
  } catch {
    // A page in a file has no storage in some browsers.
  }
}

/**
 * What is said.
 * @param {keyof typeof ENGLISH} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const text = (language === "zh" ? CHINESE : ENGLISH)[key];
  return text.replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/**
 * How long ago, or the day.
 * @param {string} time
 */
export function ago(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const steps = /** @type {const} */ ([
    ["second", 60],
    ["minute", 60],
    ["hour", 24],
    ["day", 30],
    ["month", 12],
    ["year", 1e9],
  ]);
  let value = seconds;
  for (const [unit, many] of steps) {
    if (Math.abs(value) < many) return format.format(Math.round(value), unit);
    value /= many;
  }
  return time;
}

/** @param {string | number} time */
export function date(time) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(
    new Date(time),
  );
}

/**
 * A timeline as people call it: whose it is, and its name.
 * @param {string} timeline
 * @returns {[string, string]}
 */
export function parts(timeline) {
  const pieces = timeline.split("/");
  if (pieces[0] === "chats" && pieces.length > 2) return [pieces[1], pieces.slice(2).join("/")];
  return [pieces[0], pieces.slice(1).join("/") || pieces[0]];
}
