// The way to the program: files that SillyTavern itself writes and serves (docs/mailbox.md of stvc).

/** What is spoken here. */
export const PROTOCOL = 1;
/** So long an answer is waited for before the program is taken to be away. */
const PATIENCE = 20_000;

/** @typedef {Record<string, any> & { type: string }} Line */

/** What the program says went wrong, or that nobody answers. */
export class Refused extends Error {
  /** @param {string} message @param {string | null} hint @param {Line[]} lines */
  constructor(message, hint = null, lines = []) {
    super(message);
    this.hint = hint;
    this.lines = lines;
    /** States that can be restored beside what is there. @type {{ timeline: string, moment: string, name: string }[]} */
    this.offers = lines.find((line) => line.type === "error")?.offers ?? [];
  }

  /** Whether this is why. @param {string} code */
  is(code) {
    return this.lines.some((line) => line.code === code);
  }
}

/** Nobody answers. */
export class Away extends Refused {}

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

/** The session of the watch that runs; a change is refused without it. @type {string | null} */
let session = null;

/**
 * Ask, and wait for the answer, whatever it says. A request of a session that is over was refused, so it is sent again.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @param {number} patience
 * @returns {Promise<{ lines: Line[], exit: number, next: number | null, operation?: number, session?: string }>}
 */
export async function send(verb, args = {}, patience = PATIENCE) {
  const sent = session;
  const answer = await sendOnce(verb, args, patience);
  const isOver = answer.session !== sent && answer.lines.some((line) => line.type === "error");
  return isOver ? await sendOnce(verb, args, patience) : answer;
}

/**
 * Ask once.
 * @param {string} verb
 * @param {Record<string, unknown>} args
 * @param {number} patience
 * @returns {Promise<{ lines: Line[], exit: number, next: number | null, operation?: number, session?: string }>}
 */
async function sendOnce(verb, args, patience) {
  const id = newId();
  const locale = SillyTavern.getContext().getCurrentLocale?.() ?? "en";
  const data = base64(JSON.stringify({ protocol: PROTOCOL, session, verb, args, locale }));
  const put = await fetch("/api/files/upload", {
    method: "POST",
    headers: headers(),
    body: JSON.stringify({ name: `stvc-req-${id}.json`, data }),
  });
  if (!put.ok) throw new Refused(`SillyTavern: ${put.status} ${await put.text()}`);
  const begin = Date.now();
  for (let wait = 15; Date.now() - begin < patience; wait = Math.min(250, wait * 1.3)) {
    await new Promise((done) => setTimeout(done, wait));
    const answer = await fetch(`/user/files/stvc-res-${id}.json`, { cache: "no-store" });
    const told = answer.ok ? await answer.json().catch(() => null) : null;
    if (!told) continue;
    void remove(`user/files/stvc-res-${id}.json`);
    session = told.session ?? session;
    return told;
  }
  void remove(`user/files/stvc-req-${id}.json`);
  throw new Away("stvc watch does not answer");
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
 * Ask; what is refused is thrown.
 * @param {string} verb
 * @param {Record<string, unknown>} [args]
 */
export async function ask(verb, args = {}) {
  const answer = await send(verb, args);
  const error = answer.lines.find((line) => line.type === "error");
  if (error) throw new Refused(error.message, error.hint, answer.lines);
  // One timeline was asked for, and a rule said no.
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

/** What the program tells without being asked; null if it never did. */
export async function status() {
  // It may be written anew while SillyTavern sends it: then it comes cut off.
  for (let tries = 0; tries < 3; tries++) {
    const answer = await fetch("/user/files/stvc-status.json", { cache: "no-store" }).catch(
      () => null,
    );
    if (!answer?.ok) return null;
    const told = await answer.json().catch(() => null);
    session = told?.session ?? session;
    if (told) return told;
  }
  return null;
}
