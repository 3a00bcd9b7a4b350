// Sends requests to the program. Requests and answers are files that SillyTavern writes and serves
// (docs/mailbox.md).

export const PROTOCOL = 1;
/** Milliseconds to wait for an answer before the watch is considered not running. */
const TIMEOUT = 20_000;

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
  const upload = await fetch("/api/files/upload", {
    method: "POST",
    headers: headers(),
    body: JSON.stringify({ name: `stvc-req-${id}.json`, data }),
  });
  if (!upload.ok)
    throw new Refused(
      `SillyTavern did not accept the request: ${upload.status} ${await upload.text()}`,
    );
  const start = Date.now();
  for (let wait = 15; Date.now() - start < timeout; wait = Math.min(250, wait * 1.3)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const response = await fetch(`/user/files/stvc-res-${id}.json`, { cache: "no-store" });
    const answer = response.ok ? await response.json().catch(() => null) : null;
    if (!answer) continue;
    void remove(`user/files/stvc-res-${id}.json`);
    session = answer.session ?? session;
    return answer;
  }
  void remove(`user/files/stvc-req-${id}.json`);
  throw new NoAnswer("`stvc watch` did not answer");
}

/** @param {string} path */
async function remove(path) {
  await fetch("/api/files/delete", {
    method: "POST",
    headers: headers(),
    body: JSON.stringify({ path }),
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
    const response = await fetch("/user/files/stvc-status.json", { cache: "no-store" }).catch(
      () => null,
    );
    if (!response?.ok) return null;
    const status = await response.json().catch(() => null);
    session = status?.session ?? session;
    if (status) return status;
  }
  return null;
}
