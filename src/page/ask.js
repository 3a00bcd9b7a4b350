// The only way to the program: one request, one answer.

/**
 * @typedef {Record<string, any> & { type: string }} Line
 * @typedef {{ lines: Line[], exit: number, next: number | null }} Answer
 */

/** What the program says went wrong. */
export class Refused extends Error {
  /** @param {Line[]} lines */
  constructor(lines) {
    const error = lines.find((line) => line.type === "error");
    super(error?.message ?? "?");
    this.hint = error?.hint ?? null;
    this.lines = lines;
  }

  /** Whether this is why. @param {string} code */
  is(code) {
    return this.lines.some((line) => line.code === code);
  }
}

/** @type {Record<string, Answer> | null} */
const kept = readKept();

/** What a page that was written into a file brings along. */
function readKept() {
  const node = document.getElementById("kept");
  return node ? JSON.parse(node.textContent ?? "{}") : null;
}

/** Whether this is a page that was written into a file. */
export const isFile = kept !== null;

/**
 * Ask.
 * @param {string} verb
 * @param {Record<string, unknown>} [args]
 * @returns {Promise<Answer>}
 */
export async function ask(verb, args = {}) {
  const body = JSON.stringify({ verb, args });
  const answer = kept ? fromFile(body) : await fromServer(body);
  if (answer.lines.some((line) => line.type === "error")) throw new Refused(answer.lines);
  return answer;
}

/** @param {string} body @returns {Answer} */
function fromFile(body) {
  const answer = kept?.[body];
  if (answer) return answer;
  throw new Refused([{ type: "error", message: "This file does not hold that.", hint: null }]);
}

/** @param {string} body @returns {Promise<Answer>} */
async function fromServer(body) {
  const response = await fetch("/api", {
    method: "POST",
    headers: { "content-type": "application/json", "x-stvc": "1" },
    body,
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/**
 * All lines of a type.
 * @param {Answer} answer
 * @param {string} type
 */
export function of(answer, type) {
  return answer.lines.filter((line) => line.type === type);
}

/** Whether the program lets the page change something. */
export let mayWrite = false;

/**
 * Tell whenever the store changed, without being asked for anything more.
 * @param {() => void} changed
 */
export async function follow(changed) {
  if (kept) return;
  /** @type {string | null | undefined} */
  let known;
  for (;;) {
    try {
      const { state, write } = await (await fetch("/state")).json();
      if (known !== undefined && (state !== known || write !== mayWrite)) {
        mayWrite = write;
        changed();
      }
      [known, mayWrite] = [state, write];
      document.body.classList.remove("gone");
    } catch {
      document.body.classList.add("gone");
    }
    await new Promise((done) => setTimeout(done, document.hidden ? 10_000 : 1_500));
  }
}

/** Ask once what may be done, before anything is drawn. */
export async function begin() {
  if (kept) return;
  const { write } = await (await fetch("/state")).json();
  mayWrite = write;
}
