// Sends requests to the program. Requests and answers are files that SillyTavern writes and serves
// (docs/mailbox.md).

export const PROTOCOL = 1;
export const STATUS_FILE = "stvc-status.json";
/** Milliseconds to wait for an answer before the watch is considered not running. */
const TIMEOUT = 20_000;
/** Milliseconds to wait for the answer to a greeting. */
const GREETING_TIMEOUT = 2500;

/**
 * @typedef {Record<string, any> & { type: string }} Line
 *
 * @typedef {object} Answer
 * @property {Line[]} lines
 * @property {number} exit
 * @property {number | null} next
 * @property {number} [operation] number of the newest operation
 * @property {string} [session]
 */

/** An error that the program returned. */
export class Refused extends Error {
  /** @param {string} message @param {string | null} hint @param {Line[]} lines */
  constructor(message, hint = null, lines = []) {
    super(message);
    this.hint = hint;
    /** The code of the program's error, or an empty string. @type {string} */
    this.code = lines.find((line) => line.type === "error")?.code ?? "";
    this.lines = lines;
    /**
     * Earlier versions that the user can restore as new chats, if an undo was refused.
     * @type {{ timeline: string, moment: string, name: string }[]}
     */
    this.offers = lines.find((line) => line.type === "error")?.offers ?? [];
  }

  /** @param {string} code of a finding or an error */
  hasCode(code) {
    return this.lines.some((line) => line.code === code);
  }
}

/** No watch answered. */
export class NoAnswer extends Refused {}

const headers = () => SillyTavern.getContext().getRequestHeaders();

/** @param {string} text */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** @param {Uint8Array} bytes */
export function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const newId = () => hex(crypto.getRandomValues(new Uint8Array(16)));

/**
 * The session id of the running watch. The watch refuses changes without its session id.
 * @type {string | null}
 */
let session = null;

/** Whether the last request was answered. If not, the watch is greeted before the next request. */
let isAnswering = false;

/** Throws {@link NoAnswer} at once if the watch is not running. */
export async function requireWatch() {
  if (!isAnswering) await sendOnce("hello", {}, GREETING_TIMEOUT);
}

/**
 * Sends a request and returns its answer, which may contain an error. If the watch was restarted,
 * it refuses the old session id, and the request is sent again with the new one.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @param {number} timeout in milliseconds
 * @returns {Promise<Answer>}
 */
export async function send(verb, args = {}, timeout = TIMEOUT) {
  const sent = session;
  if (verb !== "hello") await requireWatch();
  const answer = await sendOnce(verb, args, timeout);
  const isExpired = answer.session !== sent && answer.lines.some((line) => line.type === "error");
  return isExpired ? await sendOnce(verb, args, timeout) : answer;
}

/**
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @param {number} timeout in milliseconds
 * @returns {Promise<Answer>}
 */
async function sendOnce(verb, args, timeout) {
  const id = newId();
  const locale = SillyTavern.getContext().getCurrentLocale?.() ?? "en";
  const data = base64(JSON.stringify({ protocol: PROTOCOL, session, verb, args, locale }));
  await upload(`stvc-req-${id}.json`, data);
  const start = Date.now();
  for (let wait = 15; Date.now() - start < timeout; wait = Math.min(250, wait * 1.3)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const response = await fetch(`/user/files/stvc-res-${id}.json`, { cache: "no-store" });
    const answer = response.ok ? await response.json().catch(() => null) : null;
    if (!answer) continue;
    void removeFile(`stvc-res-${id}.json`);
    isAnswering = true;
    session = answer.session ?? session;
    return answer;
  }
  void removeFile(`stvc-req-${id}.json`);
  isAnswering = false;
  throw new NoAnswer("`stvc watch` did not answer");
}

/** Writes a file of the mailbox. @param {string} name @param {string} data in base64 */
async function upload(name, data) {
  const body = JSON.stringify({ name, data });
  const response = await fetch("/api/files/upload", { method: "POST", headers: headers(), body });
  if (!response.ok)
    throw new Refused(
      `SillyTavern did not accept the file: ${response.status} ${await response.text()}`,
    );
}

/** Reads a file of the mailbox. Returns null if it does not exist. @param {string} name */
export async function readFile(name) {
  const response = await fetch(`/user/files/${name}`, { cache: "no-store" }).catch(() => null);
  return response?.ok ? await response.json().catch(() => null) : null;
}

/** Writes a file of the mailbox. @param {string} name @param {unknown} value */
export const writeFile = (name, value) => upload(name, base64(JSON.stringify(value)));

/** Removes a file of the mailbox. @param {string} name */
export async function removeFile(name) {
  await fetch("/api/files/delete", {
    method: "POST",
    headers: headers(),
    body: JSON.stringify({ path: `user/files/${name}` }),
  }).catch(() => {});
}

/**
 * Sends a request and returns its answer. Throws {@link Refused} if the program reports an error.
 * @param {string} verb
 * @param {Record<string, unknown>} [args]
 */
export async function ask(verb, args = {}) {
  const answer = await send(verb, args);
  const error = answer.lines.find((line) => line.type === "error");
  if (error) throw new Refused(error.message, error.hint, answer.lines);
  // A line `failed` means that the timeline of the request could not be read or changed.
  const failed =
    answer.exit === 0 ? undefined : answer.lines.find((line) => line.type === "failed");
  if (failed)
    throw new Refused(
      failed.message,
      answer.lines.find((line) => line.type === "finding")?.remedy,
      answer.lines,
    );
  return answer;
}

/** Reads the status file. Returns null if the file does not exist. */
export async function readStatus() {
  // While the watch replaces the file, SillyTavern may send it truncated. It is then read again.
  for (let attempt = 0; attempt < 3; attempt++) {
    const response = await fetch(`/user/files/${STATUS_FILE}`, { cache: "no-store" }).catch(
      () => null,
    );
    if (!response?.ok) return null;
    const status = await response.json().catch(() => null);
    session = status?.session ?? session;
    if (status) return status;
  }
  return null;
}
