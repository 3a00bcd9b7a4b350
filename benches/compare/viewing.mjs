// Measures the viewer: `node viewing.mjs PLAYWRIGHT CHROMIUM ADDRESS CHATS SERVER LONG SNAPSHOTS`
// prints one JSON object, times in milliseconds. LONG is a timeline with so many snapshots.

import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , playwright, executablePath, address, chats, server, long, snapshots] = process.argv;
const { chromium } = createRequire(`${playwright}/`)("playwright-core");
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--enable-precise-memory-info"],
});
const measured = {};
const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** A page in a process of its own, with what it asks and how long that takes. */
async function fresh() {
  const page = await (
    await browser.newContext({ viewport: { width: 1200, height: 800 } })
  ).newPage();
  page.asked = [];
  page.bytes = 0;
  page.on("requestfinished", async (request) => {
    const { responseStart, requestStart } = request.timing();
    const sizes = await request.sizes().catch(() => null);
    page.bytes += sizes?.responseBodySize ?? 0;
    if (request.url().endsWith("/api"))
      page.asked.push({ took: responseStart - requestStart, body: request.postData() });
  });
  return page;
}

/** From opening an address until this is painted. */
async function painted(page, url, selector) {
  const begin = performance.now();
  await page.goto(url, { waitUntil: "commit" });
  // A lane without height, a straight line, is invisible to Playwright.
  await page.waitForSelector(selector, { state: "attached" });
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  return performance.now() - begin;
}

/** The time between frames that the browser drew, by its own trace, while something moves. */
async function frames(page, move) {
  await browser.startTracing(page, {
    categories: ["devtools.timeline", "disabled-by-default-devtools.timeline.frame"],
  });
  await move();
  const trace = JSON.parse(await browser.stopTracing());
  const drawn = trace.traceEvents
    .filter((event) => event.name === "DrawFrame")
    .map((event) => event.ts / 1000)
    .sort((a, b) => a - b);
  const gaps = drawn.slice(1).map((at, n) => at - drawn[n]);
  return gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
}

/** Memory of the page: that of its process. */
async function memory(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session
    .send("Performance.enable")
    .then(() => session.send("Performance.getMetrics"));
  const heap = metrics.find((one) => one.name === "JSHeapTotalSize").value;
  const { processInfo } = await (
    await browser.newBrowserCDPSession()
  ).send("SystemInfo.getProcessInfo");
  const sizes = processInfo
    .filter((one) => one.type === "renderer")
    .map((one) => {
      const status = readFileSync(`/proc/${one.id}/status`, "utf8");
      // Private memory: all processes share the program's code.
      return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
    });
  return Math.max(heap, ...sizes);
}

const first = await fresh();
await painted(first, address, ".row a.name");
const origin = new URL(address).origin;
const [libraries, trees] = [[], []];
let bytes = 0;
const secret = await first.evaluate(() => sessionStorage.getItem("stvc-secret"));
await first.context().close();
/** A page with the secret that the first page got for its code. */
async function again() {
  const page = await fresh();
  await page.addInitScript((secret) => sessionStorage.setItem("stvc-secret", secret), secret);
  return page;
}
for (let round = 0; round < 3; round++) {
  for (const [place, selector, times] of [
    ["#/", ".row a.name", libraries],
    ["#/tree", "svg .lane", trees],
  ]) {
    const page = await again();
    times.push(await painted(page, `${origin}/${place}`, selector));
    await page.waitForTimeout(300);
    if (!round) bytes += page.bytes;
    await page.context().close();
  }
}
measured.library = median(libraries);
measured.tree = median(trees);
measured.bytes = bytes;

// The long chat, in each place of the viewer.
const moment = encodeURIComponent(long);
for (const [name, place, selector] of [
  ["read", `read/${moment}?m=${snapshots}`, ".message"],
  ["compare", `compare/${moment}~${snapshots - 1}/${moment}`, ".change"],
  ["search", "search?q=the", ".matches .card"],
]) {
  const times = [];
  for (let round = 0; round < 3; round++) {
    const page = await again();
    times.push(await painted(page, `${origin}/#/${place}`, selector));
    await page.waitForTimeout(300);
    await page.context().close();
  }
  measured[name] = median(times);
}

const page = await again();
await painted(page, `${origin}/#/tree`, "svg .lane");
measured.map_frame = await frames(page, () =>
  page.evaluate(async () => {
    const sheet = document.querySelector(".canvas");
    for (let n = 0; n < 120; n++) {
      sheet.scrollLeft += 37;
      sheet.scrollTop += n % 20 < 10 ? 30 : -30;
      await new Promise(requestAnimationFrame);
    }
  }),
);
const story = encodeURIComponent("chats/Character 3/Story 1");
await painted(page, `${origin}/#/tree/${story}`, "svg .lane");
await page.waitForTimeout(1000);
await page.evaluate((to) => {
  location.hash = to;
}, `#/read/${story}`);
await page.waitForSelector(".message");
await page.waitForTimeout(500);
measured.slider_frame = await frames(page, () =>
  page.evaluate(async () => {
    const slider = document.querySelector("input[type=range]");
    for (let n = 0; n < 120; n++) {
      slider.value = String(n % 20 < 10 ? n % 10 : 9 - (n % 10));
      slider.dispatchEvent(new Event("input"));
      await new Promise(requestAnimationFrame);
    }
  }),
);
await page.waitForTimeout(500);
measured.page = await memory(page);
// Requests for the visible part only: scenes arrive later, and the doctor reads every file.
const asked = page.asked.filter(
  (one) => !one.body.includes("scenes") && !one.body.includes("doctor"),
);
measured.answer = Math.max(...asked.map((one) => one.took));
if (process.env.STVC_ANSWERS) console.error(asked.sort((a, b) => b.took - a.took).slice(0, 12));
// The time that the server needs while nobody does anything.
const ticks = () => {
  const numbers = readFileSync(`/proc/${server}/stat`, "utf8").split(") ")[1].split(" ");
  return Number(numbers[11]) + Number(numbers[12]);
};
const SECONDS = 20;
const ticksBefore = ticks();
await page.waitForTimeout(SECONDS * 1000);
measured.idle = ((ticks() - ticksBefore) * 10) / SECONDS;
measured.server =
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server}/status`, "utf8"))[1]) * 1024;
await page.context().close();

// The peer's approach: all of SillyTavern's answers to `/api/chats/get`, and a tree of texts built
// in the browser.
const files = readdirSync(chats, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith(".jsonl"));
const tavern = createServer((request, response) => {
  const name = decodeURIComponent(request.url.slice(1));
  if (!files.includes(name))
    return response.setHeader("content-type", "text/html").end("<body></body>");
  const lines = readFileSync(join(chats, name), "utf8").split("\n").filter(Boolean);
  response
    .setHeader("content-type", "application/json")
    .end(JSON.stringify(lines.map((line) => JSON.parse(line))));
});
await new Promise((done) => tavern.listen(0, "127.0.0.1", done));
const other = await fresh();
await other.goto(`http://127.0.0.1:${tavern.address().port}/`);
const began = performance.now();
measured.fetched_bytes = await other.evaluate(async (names) => {
  let bytes = 0;
  const all = await Promise.all(
    names.map(async (name) => {
      const text = await (await fetch(`/${encodeURIComponent(name)}`)).text();
      bytes += text.length;
      return JSON.parse(text);
    }),
  );
  // Equal texts at equal depth are one node.
  const levels = [];
  for (const chat of all)
    chat.forEach((message, depth) => {
      levels[depth] ??= new Map();
      const known = levels[depth].get(message.mes) ?? [];
      known.push(message);
      levels[depth].set(message.mes, known);
    });
  document.body.textContent = String(levels.reduce((sum, level) => sum + level.size, 0));
  window.kept = [all, levels];
  return bytes;
}, files);
await other.evaluate(
  () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
);
measured.fetched = performance.now() - began;
measured.fetched_page = await memory(other);
tavern.close();
await browser.close();
console.log(JSON.stringify(measured));
process.exit();
