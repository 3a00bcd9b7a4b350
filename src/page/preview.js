// Shows what a planned change does to chats and lorebooks, before the user agrees.

import { linesOf } from "./api.js";
import { el } from "./dom.js";
import { shorten } from "./text.js";
import { splitTimeline, t } from "./words.js";

/** @typedef {import("./api.js").Line} Line */

/**
 * Describes the planned changes in sentences, with the last messages before and after.
 * @param {import("./api.js").Answer} answer to a request with `dry_run`
 */
export function renderPreview(answer) {
  const files = linesOf(answer, "file").filter((line) => line.preview);
  return files.map((line) => {
    const { before, after } = line.preview;
    const isChat = Boolean((before ?? after) && "messages" in (before ?? after));
    const [owner, name] = splitTimeline(line.path.replace(/\.\w+$/, ""));
    return el(
      "section",
      { class: "plan", "aria-label": name },
      el("h3", {}, el("small", {}, owner), " ", name),
      el("p", {}, isChat ? describeChat(line.preview) : describeLorebook(line.preview)),
      isChat ? el("div", { class: "sides" }, side("before", before), side("after", after)) : null,
    );
  });
}

/** Whether a plan replaces a chat together with its lorebook. @param {Line[]} files */
export function replacesBoth(files) {
  const replaced = files.filter((line) => line.replaces && line.preview);
  const isBook = (/** @type {Line} */ { path }) => path.startsWith("worlds/");
  return replaced.some(isBook) && replaced.some((line) => !isBook(line));
}

/** @param {{ before: Line | null, after: Line | null, changed: number }} preview */
function describeChat({ before, after, changed }) {
  if (!after) return t("chatIsDeleted");
  if (!before) return t("chatIsCreated", { n: after.messages });
  return before.messages === after.messages
    ? t("messagesChange", { n: changed })
    : t("messagesInstead", { n: after.messages, now: before.messages });
}

/** @param {{ before: Line | null, after: Line | null, changed: number }} preview */
function describeLorebook({ before, after, changed }) {
  if (!after) return t("lorebookIsDeleted");
  if (!before) return t("lorebookIsCreated", { n: after.entries });
  return changed ? t("entriesChange", { n: changed }) : t("formattingChanges");
}

/** @param {"before" | "after"} label @param {Line | null} chat */
function side(label, chat) {
  return el(
    "figure",
    { class: label },
    el("figcaption", {}, t(label)),
    chat?.text
      ? el("blockquote", { dir: "auto" }, el("b", {}, shorten(chat.name)), " ", shorten(chat.text))
      : el("p", { class: "facts" }, t("noMessages")),
  );
}
