// The only way to the program: one request, one answer. A page that was written into a file has its answers with it.

import { fromFile, isFile } from "./file.js";

/**
 * @typedef {Record<string, any> & { type: string }} Line
 * @typedef {{ lines: Line[], exit: number, next: number | null }} Answer
 * @typedef {{ state: string | null, write: boolean }} State
 */

/** What the program says went wrong. */
export class Refused extends Error {
  /** @param {Line[]} lines */
  constructor(lines) {
    const error = lines.find((line) => line.type === "error");
    super(error?.message ?? "?");
    this.hint = error?.hint ?? null;
    this.lines = lines;
    /** States that can be restored beside what is there. @type {{ timeline: string, moment: string, name: string }[]} */
    this.offers = error?.offers ?? [];
  }

  /** Whether this is why. @param {string} code */
  is(code) {
    return this.lines.some((line) => line.code === code);
  }
}

/**
 * Inside SillyTavern's page the extension asks for us.
 * @type {{ ask: (verb: string, args: Record<string, unknown>) => Promise<Answer>, state: () => Promise<State> } | null}
 */
const outside = asker();

function asker() {
  try {
    return window.parent === window ? null : (/** @type {any} */ (window.parent).stvc ?? null);
  } catch {
    // A frame of somebody else's page, who is none of our business.
    return null;
  }
}

/** Whether SillyTavern's page shows this one: then it reads again what is replaced. */
export const isInside = outside !== null;

/**
 * Ask.
 * @param {string} verb
 * @param {Record<string, unknown>} [args]
 * @returns {Promise<Answer>}
 */
export async function ask(verb, args = {}) {
  const answer = isFile
    ? fromFile(verb, args)
    : outside
      ? await outside.ask(verb, args)
      : await fromServer(JSON.stringify({ verb, args }));
  if (answer.lines.some((line) => line.type === "error")) throw new Refused(answer.lines);
  return answer;
}

/** Where the secret is kept for a reload of this tab. */
const KEY = "stvc-secret";

/** What every question to the server is asked with. It is in no cookie: those are sent to every server on this computer. */
let secret = kept();

function kept() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Trade the code in the address, which works once, for the secret. */
export async function enter() {
  const [, code, place] = location.hash.match(/^#code=([0-9a-f]+)(.*)$/) ?? [];
  if (!code || isFile || outside) return;
  history.replaceState(null, "", `#${place || "/"}`);
  secret = (
    await (
      await told(
        fetch("/enter", {
          method: "POST",
          headers: { "content-type": "application/json", "x-stvc-code": code },
        }),
      )
    ).json()
  ).secret;
  try {
    sessionStorage.setItem(KEY, secret);
  } catch {
    // Then a reload needs another address.
  }
}

/** What the server answers, unless it refuses. @param {Promise<Response>} asked */
async function told(asked) {
  const response = await asked;
  if (!response.ok) throw new Error(await response.text());
  return response;
}

/** @param {string} body @returns {Promise<Answer>} */
async function fromServer(body) {
  const headers = { "content-type": "application/json", "x-stvc": secret };
  return (await told(fetch("/api", { method: "POST", headers, body }))).json();
}

/**
 * All lines of a type.
 * @param {Answer} answer
 * @param {string} type
 */
export function of(answer, type) {
  return answer.lines.filter((line) => line.type === type);
}

/**
 * All pages of an answer, one after the other.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @param {(answer: Answer) => void} each
 */
export async function pages(verb, args, each) {
  let next = /** @type {number | null} */ (0);
  while (next !== null) {
    const answer = /** @type {Answer} */ (await ask(verb, { ...args, first: next, count: 1000 }));
    each(answer);
    next = answer.next;
  }
}

/** What changes whenever the store does, and what may be done. @returns {Promise<State>} */
async function state() {
  return outside
    ? outside.state()
    : (await told(fetch("/state", { headers: { "x-stvc": secret } }))).json();
}

let write = false;

/** Whether the program lets the page change something. */
export function mayWrite() {
  return write;
}

/**
 * Tell whenever the store changed, without being asked for anything more.
 * @param {() => void} changed
 */
export async function follow(changed) {
  if (isFile) return;
  /** @type {string | null | undefined} */
  let known;
  for (;;) {
    try {
      const now = await state();
      if (known !== undefined && (now.state !== known || now.write !== write)) {
        write = now.write;
        changed();
      }
      [known, write] = [now.state, now.write];
      document.body.classList.remove("gone");
    } catch (error) {
      // Nobody answers. Whoever answers with a refusal is there.
      if (outside || error instanceof TypeError) document.body.classList.add("gone");
    }
    await new Promise((done) => setTimeout(done, document.hidden ? 10_000 : 1_500));
  }
}

/** Ask once what may be done, before anything is drawn. */
export async function begin() {
  if (isFile) return;
  // A code that was used before is told by what is asked next.
  await enter().catch(() => {});
  write = (await state()).write;
}
