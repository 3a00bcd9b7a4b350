// Sends requests to the program and returns its answers. Requests go to the server of `stvc view`
// or to the extension in SillyTavern's page. In a standalone file, stored answers are used instead.

import { answerFromFile, isStandalone } from "./standalone.js";

/**
 * @typedef {Record<string, any> & { type: string }} Line
 * @typedef {{ lines: Line[], exit: number, next: number | null }} Answer
 * @typedef {{ state: string | null, write: boolean }} State
 *
 * @typedef {object} Extension the interface of stvc's extension in SillyTavern's page
 * @property {(verb: string, args: Record<string, unknown>) => Promise<Answer>} ask
 * @property {(timeline: string, message?: number) => Promise<void>} open opens a chat in
 *   SillyTavern
 * @property {() => Promise<State>} state
 */

/** An error that the program returned. */
export class Refused extends Error {
  /** @param {Line[]} lines */
  constructor(lines) {
    const error = lines.find((line) => line.type === "error");
    super(error?.message ?? "?");
    this.hint = error?.hint ?? null;
    /** @type {string} */
    this.code = error?.code ?? "";
    this.lines = lines;
    /**
     * Earlier versions that the user can restore as new chats, if an undo was refused.
     * @type {{ timeline: string, moment: string, name: string }[]}
     */
    this.offers = error?.offers ?? [];
  }

  /** @param {string} code of a finding or an error */
  hasCode(code) {
    return this.lines.some((line) => line.code === code);
  }
}

/** The extension, if it shows the viewer in a frame. @type {Extension | null} */
const extension = findExtension();

function findExtension() {
  try {
    return window.parent === window ? null : (/** @type {any} */ (window.parent).stvc ?? null);
  } catch {
    // The viewer is in a frame of another origin, whose properties cannot be read.
    return null;
  }
}

/** Whether SillyTavern's page shows the viewer. SillyTavern's page then reloads replaced files. */
export const isInSillyTavern = extension !== null;

/** Opens a chat in SillyTavern; null outside of SillyTavern. */
export const openInSillyTavern = extension && extension.open;

/**
 * Sends a request and returns its answer. Throws {@link Refused} if the program reports an error.
 * @param {string} verb
 * @param {Record<string, unknown>} [args]
 * @returns {Promise<Answer>}
 */
export async function ask(verb, args = {}) {
  const answer = isStandalone
    ? answerFromFile(verb, args)
    : extension
      ? await extension.ask(verb, args)
      : await askServer(JSON.stringify({ verb, args }));
  if (answer.lines.some((line) => line.type === "error")) throw new Refused(answer.lines);
  return answer;
}

/** Key of the secret in the session storage, which survives a reload of the tab. */
const SECRET_KEY = "stvc-secret";

/**
 * The secret, which authorises every request to the server. It is not in a cookie, because a
 * browser sends cookies to every port of a host.
 */
let secret = readSecret();

function readSecret() {
  try {
    return sessionStorage.getItem(SECRET_KEY) ?? "";
  } catch {
    return "";
  }
}

/** Exchanges the one-time code in the address for the secret. */
export async function exchangeCode() {
  const [, code, place] = location.hash.match(/^#code=([0-9a-f]+)(.*)$/) ?? [];
  if (!code || isStandalone || extension) return;
  history.replaceState(null, "", `#${place || "/"}`);
  const headers = { "content-type": "application/json", "x-stvc-code": code };
  const response = await requireOk(fetch("/enter", { method: "POST", headers }));
  secret = (await response.json()).secret;
  try {
    sessionStorage.setItem(SECRET_KEY, secret);
  } catch {
    // Without session storage, the user needs a new address from the program after a reload.
  }
}

/** @param {Promise<Response>} pending */
async function requireOk(pending) {
  const response = await pending;
  if (!response.ok) throw new Error(await response.text());
  return response;
}

/** @param {string} body @returns {Promise<Answer>} */
async function askServer(body) {
  const headers = { "content-type": "application/json", "x-stvc": secret };
  return (await requireOk(fetch("/api", { method: "POST", headers, body }))).json();
}

/** @param {Answer} answer @param {string} type */
export function linesOf(answer, type) {
  return answer.lines.filter((line) => line.type === type);
}

/**
 * Requests all pages of an answer, one after the other.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @param {(answer: Answer) => void} onPage
 */
export async function pages(verb, args, onPage) {
  let next = /** @type {number | null} */ (0);
  while (next !== null) {
    const answer = /** @type {Answer} */ (await ask(verb, { ...args, first: next, count: 1000 }));
    onPage(answer);
    next = answer.next;
  }
}

/**
 * Returns a value that changes whenever the store changes, and whether the viewer may write.
 * @returns {Promise<State>}
 */
async function readState() {
  return extension
    ? extension.state()
    : (await requireOk(fetch("/state", { headers: { "x-stvc": secret } }))).json();
}

let write = false;

/** Returns whether the program accepts changes from the viewer. */
export function mayWrite() {
  return write;
}

/**
 * Polls the program.
 * @param {object} listeners
 * @param {() => void} listeners.onChange called when the store changed
 * @param {(isConnected: boolean) => void} listeners.onConnection called when the program stopped
 *   answering, or answers again
 */
export async function followStore({ onChange, onConnection }) {
  if (isStandalone) return;
  /** @type {string | null | undefined} */
  let known;
  let isConnected = true;
  const report = (/** @type {boolean} */ now) => {
    if (now !== isConnected) onConnection(now);
    isConnected = now;
  };
  for (;;) {
    try {
      const now = await readState();
      if (known !== undefined && (now.state !== known || now.write !== write)) {
        write = now.write;
        onChange();
      }
      [known, write] = [now.state, now.write];
      report(true);
    } catch (error) {
      // `fetch` throws a TypeError if no server answers. A server that refuses is still running.
      if (extension || error instanceof TypeError) report(false);
    }
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 10_000 : 1_500));
  }
}

/** Connects to the program, before anything is drawn. */
export async function connect() {
  if (isStandalone) return;
  // If the code was used already, the next request fails with an explanation.
  await exchangeCode().catch(() => {});
  write = (await readState()).write;
}
