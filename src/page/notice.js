// Short messages about what was done.

import { translateError } from "./words.js";

/** Milliseconds for which a short message is shown. */
const NOTICE_TIME = 6000;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let noticeTimer;

/** Shows a short message for some seconds. @param {unknown} message */
export function notify(message) {
  const notice = document.getElementById("notice");
  if (!notice) return;
  notice.textContent = message instanceof Error ? translateError(message) : String(message);
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => (notice.textContent = ""), NOTICE_TIME);
}
