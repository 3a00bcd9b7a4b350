// Somebody who looks at the page: `node scenarios.mjs PLAYWRIGHT CHROMIUM AXE ADDRESS SCENARIO …`.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , playwright, executablePath, axe, address, scenario, ...more] = process.argv;
const { chromium } = createRequire(`${playwright}/`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const turns = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const problems = [];
/** What the page shows to the server, once it was opened. */
let secret;
/** The page that is looked at, to tell what it shows when something went wrong. */
let seen;

/** Tell the test whose turn it is, and wait for ours. */
async function yours(word) {
  console.log(word);
  await turns.next();
}

async function open(options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 800 },
    locale: "en-US",
    ...options,
  });
  const page = await context.newPage();
  seen = page;
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => problems.push(`error in the page: ${error.message}`));
  page.on("console", (line) => line.type() === "error" && problems.push(`console: ${line.text()}`));
  page.on("request", (request) => {
    const own = address.startsWith("file:") ? address : new URL(address).origin;
    if (!request.url().startsWith(own) && request.url() !== "data:,")
      problems.push(`asked elsewhere: ${request.url()}`);
  });
  // The address works once; what the page has by then is carried over to other windows.
  if (secret)
    await context.addInitScript((kept) => sessionStorage.setItem("stvc-secret", kept), secret);
  await page.goto(
    secret ? address.replace(/#code=[0-9a-f]+(.*)$/, (_, place) => `#${place || "/"}`) : address,
  );
  if (address.includes("#code=")) {
    await page.waitForFunction(
      () => sessionStorage.getItem("stvc-secret") && !location.hash.includes("code="),
    );
    secret = await page.evaluate(() => sessionStorage.getItem("stvc-secret"));
    assert.deepEqual(await context.cookies(), [], "there is a cookie");
  }
  return page;
}

/** What a checker of accessibility finds. */
async function accessible(page, place) {
  await page.evaluate(readFileSync(axe, "utf8"));
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  const told = violations.map(
    (one) =>
      `${one.id}: ${one.help}: ${one.nodes
        .map((node) => node.html.slice(0, 160))
        .slice(0, 3)
        .join(" ")}`,
  );
  assert.deepEqual(told, [], place);
}

const go = (page, hash) =>
  page.evaluate((to) => {
    location.hash = to;
  }, hash);
const title = (page, text) => page.locator("h1", { hasText: text }).waitFor();

/** Pictures in few large dots. */
async function coarse(pictures, x, y) {
  const page = await (await browser.newContext()).newPage();
  return Promise.all(
    pictures.map((picture) =>
      page.evaluate(
        async ([source, x, y]) => {
          const image = await createImageBitmap(await (await fetch(source)).blob(), {
            resizeWidth: x,
            resizeHeight: y,
            resizeQuality: "medium",
          });
          const context = new OffscreenCanvas(x, y).getContext("2d");
          context.drawImage(image, 0, 0);
          return [...context.getImageData(0, 0, x, y).data];
        },
        [`data:image/png;base64,${picture.toString("base64")}`, x, y],
      ),
    ),
  );
}

const PLACES = [
  "#/",
  "#/tree",
  "#/tree/Tide%20Office",
  "#/read/Tide%20Office",
  "#/compare/Tide%20Office~2/Tide%20Office",
  "#/search?q=mast",
  "#/operations",
];

const scenarios = {
  async walk() {
    const page = await open();
    await title(page, "Library");
    assert.ok(!page.url().includes("code"), "the code stays in the address");
    await page.reload();
    await title(page, "Library");
    assert.equal(await page.locator(".bad").count(), 0, "a reload needs no other code");
    assert.equal(await page.locator(".row a.name", { hasText: "Tide Office" }).count(), 1);
    // A chat, with what the story knew; back in time both move.
    await page.click(".row a.name >> text=Tide Office");
    await title(page, "Mira / Tide Office");
    await page.locator(".message").nth(5).waitFor();
    await page.locator(".book summary", { hasText: "Kestrel" }).click();
    await page.locator(".book", { hasText: "No mast." }).waitFor();
    await page.locator(".book .past li").nth(2).waitFor();
    const slider = page.locator("input[type=range]");
    await slider.focus();
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
    await page.locator(".book summary", { hasText: "Kestrel" }).click();
    await page.locator(".book", { hasText: "Two masts." }).waitFor();
    await page.locator(".book .mark", { hasText: "changed since" }).waitFor();
    const then = page.url();
    // Back and forward.
    await page.goBack();
    await title(page, "Library");
    await page.goForward();
    await title(page, "Mira / Tide Office");
    // The address is of that moment, and opens it.
    await page.goto("about:blank");
    await page.goto(then);
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
    // The map: keys go along lanes and between them.
    await go(page, "#/tree");
    await page.locator("svg .lane").nth(1).waitFor();
    await page.locator("svg").focus();
    for (const key of ["l", "k", "j", "h"]) await page.keyboard.press(key);
    await page.locator(".about h2", { hasText: "Mira" }).waitFor();
    await page.locator("svg .flag", { hasText: "part one" }).waitFor();
    await page.keyboard.press("Enter");
    await title(page, "Mira / ");
    // Back on the map it says where one was; one that is held is compared with the next.
    await page.click(".buttons a >> text=Map");
    await page.locator("svg text.here").waitFor();
    await page.locator("svg").focus();
    await page.keyboard.press("m");
    await page.keyboard.press("k");
    await page.keyboard.press("d");
    await title(page, "Before");
    await page.goBack();
    await page.locator("svg circle[data-dot]").first().waitFor();
    // What was said, where one points.
    await page.locator("svg circle[data-dot]").first().hover();
    await page.locator(".said:not([hidden]) b").waitFor();
    // Two states side by side.
    await go(page, "#/compare/Tide%20Office~2/Tide%20Office");
    await page.locator("ins").first().waitFor();
    await page.locator(".compare", { hasText: "mast" }).waitFor();
    // Search, by its key.
    await page.keyboard.press("/");
    await page.fill("input[type=search]", "mast");
    await page.keyboard.press("Enter");
    await page.locator(".found li", { hasText: "Kestrel" }).first().waitFor();
    await page.locator(".found a").first().click();
    await page.locator("h1").waitFor();
    await go(page, "#/operations");
    await page.locator(".operations li").first().waitFor();
    // What is not there is told, and the page goes on.
    await go(page, "#/read/nothing%20like%20that");
    await page.locator("[role=alert]").waitFor();
    await go(page, "#/%E0%A4%A/../x");
    await title(page, "Library");
  },

  async hostile() {
    const page = await open();
    await title(page, "Library");
    await page.locator(".row a.name").first().click();
    await page.locator(".message").nth(4).waitFor();
    for (const box of await page.locator(".tools input[type=checkbox]").all()) await box.check();
    await page.locator(".book summary").first().click();
    if (!address.startsWith("file:")) {
      await page.locator(".versions summary").first().click();
      await page.locator(".versions ol li").first().waitFor();
    }
    for (const place of ["#/tree", "#/search?q=window", "#/operations", "#/"]) {
      await go(page, place);
      await page.waitForTimeout(500);
      await inert(page);
    }
    await page.goBack();
    async function inert(page) {
      assert.equal(await page.evaluate(() => window.hit), undefined, "a script of the chat ran");
      const odd = await page.evaluate(
        () =>
          [
            ...document.querySelectorAll(
              "#place img, #place script, #place iframe, #place object, #place style, #place [onerror], #place [onload]",
            ),
          ].length,
      );
      assert.equal(odd, 0);
      const links = await page.evaluate(() =>
        [...document.querySelectorAll("#place a")].map((a) => a.getAttribute("href")),
      );
      assert.ok(
        links.every((href) => href.startsWith("#/")),
        links.join(" "),
      );
    }
  },

  async fits() {
    for (const colorScheme of ["light", "dark"]) {
      const wide = await open({ viewport: { width: 1600, height: 900 }, colorScheme });
      await title(wide, "Library");
      for (const place of PLACES) {
        await go(wide, place);
        await wide.waitForTimeout(400);
        await accessible(wide, `${place} ${colorScheme}`);
      }
      const page = await open({
        viewport: { width: 360, height: 700 },
        colorScheme,
        locale: "zh-CN",
      });
      await title(page, "书库");
      for (const place of PLACES) {
        await go(page, place);
        await page.locator("h1").waitFor();
        await page.waitForTimeout(400);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${place} is ${wide} wide`);
        const nameless = await page.evaluate(() =>
          [...document.querySelectorAll("button, input, a, svg[role], [role=tree]")]
            .filter(
              (node) =>
                !(node.textContent || "").trim() &&
                !node.getAttribute("aria-label") &&
                !node.closest("label")?.textContent?.trim(),
            )
            .map((node) => node.outerHTML.slice(0, 120)),
        );
        assert.deepEqual(nameless, [], `${place}: without a name`);
        await accessible(page, `${place} ${colorScheme} 360`);
      }
      await page.click("#top button");
      await page.locator("#top nav", { hasText: "Library" }).waitFor();
    }
    const page = await open({ javaScriptEnabled: false });
    assert.ok((await page.innerText("body")).includes("JavaScript"));
  },

  /** The pictures of the documents: made, or held against those that are there, coarsely, for fonts differ. */
  async pictures() {
    const [wish, folder, now] = more;
    const story = encodeURIComponent("chats/Mira Voss/The Tide Office — part 1 (雨)");
    const places = { tree: `#/tree/${story}`, reader: `#/read/${story}` };
    const { x, y, off } = { x: 64, y: 40, off: [] };
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({
        viewport: { width: 1200, height: 750 },
        colorScheme,
        timezoneId: "UTC",
      });
      await page.clock.setFixedTime(new Date(Number(now) * 1000));
      for (const [name, hash] of Object.entries(places)) {
        await go(page, hash);
        await title(page, "The Tide Office");
        if (name === "reader") {
          await page.locator(".place.read .message").first().waitFor();
          await page.locator(".place.read input[type=range]").evaluate((slider) => {
            slider.value = slider.max - 3;
            slider.dispatchEvent(new Event("input"));
          });
          await page.locator("output", { hasText: "5 of 8" }).waitFor();
          await page.waitForTimeout(500);
          await page.locator(".book summary", { hasText: "Old Kestrel" }).click();
          await page.locator(".book .past li").first().waitFor();
        } else {
          await page.locator(".place.tree svg .lane").nth(3).waitFor();
        }
        await page.mouse.move(0, 0);
        await page.waitForTimeout(500);
        const path = `${folder}/${name}-${colorScheme}.png`;
        const picture = await page.screenshot();
        if (wish === "make") {
          mkdirSync(folder, { recursive: true });
          writeFileSync(path, picture);
          continue;
        }
        const [is, was] = await coarse([picture, readFileSync(path)], x, y);
        const differs = is.filter((value, n) => Math.abs(value - was[n]) > 24).length / is.length;
        if (differs > 0.12)
          off.push(`${path}: ${Math.round(differs * 100)} % of it looks otherwise`);
      }
    }
    assert.deepEqual(off, [], "UPDATE_DOCS=1 cargo test --test page pictures");
  },

  async file() {
    const page = await open();
    await title(page, "Library");
    assert.equal(await page.locator(".row").count(), 1);
    await page.click(".row a.name");
    await title(page, "Mira / Tide Office");
    await page.locator(".message").nth(5).waitFor();
    await page.locator(".book summary", { hasText: "Kestrel" }).click();
    await page.locator(".book .past li").nth(2).waitFor();
    await page.locator("input[type=range]").focus();
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
    await page.locator(".book .mark", { hasText: "changed since" }).waitFor();
    await page.keyboard.press("End");
    await page.click(".buttons a >> text=Compare with the one before");
    await page.locator("ins").first().waitFor();
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    await page.locator("svg .flag", { hasText: "part one" }).waitFor();
    await page.keyboard.press("/");
    await page.fill("input[type=search]", "no mast");
    await page.keyboard.press("Enter");
    await page.locator(".found li", { hasText: "Kestrel" }).first().waitFor();
    await page.click("#top button");
    await page.locator("#top nav", { hasText: "书库" }).waitFor();
    assert.equal(await page.locator("#top nav a").count(), 3);
    await accessible(page, "a file");
  },

  async lanes() {
    const page = await open();
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    console.log(
      await page.evaluate(() =>
        JSON.stringify(
          Object.fromEntries(
            [...document.querySelectorAll("svg .lane")]
              .map((lane) => [
                lane.getAttribute("aria-label"),
                document.querySelectorAll(
                  `svg [data-lane="${lane.getAttribute("data-lane")}"] circle[data-dot]`,
                ).length,
              ])
              .sort(),
          ),
        ),
      ),
    );
  },

  /** A click on each dot of the map: the lane that it is drawn in, and the timeline that is selected then. */
  async dots() {
    const page = await open();
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    const named = await page.evaluate(() =>
      [...document.querySelectorAll("svg .lane")].map((lane) => [
        lane.getAttribute("data-lane"),
        lane.getAttribute("aria-label"),
      ]),
    );
    const lanes = new Map(named);
    const places = await page.evaluate(() =>
      [...document.querySelectorAll("svg circle[data-dot]")].map((dot) => {
        const box = dot.getBoundingClientRect();
        return [
          dot.closest("[data-lane]").getAttribute("data-lane"),
          dot.getAttribute("data-dot"),
          box.x + box.width / 2,
          box.y + box.height / 2,
        ];
      }),
    );
    assert.ok(places.length > 3);
    for (const [lane, dot, x, y] of places) {
      await page.mouse.click(x, y);
      await page.locator(`svg [data-lane="${lane}"].chosen`).waitFor({ state: "attached" });
      const [, folder, ...rest] = lanes.get(lane).split("/");
      await page.locator(".about h2", { hasText: `${folder} / ${rest.join("/")}` }).waitFor();
      assert.equal(
        await page.locator(`svg [data-lane="${lane}"] circle[r="7"]`).getAttribute("data-dot"),
        dot,
      );
    }
  },

  async long() {
    const page = await open();
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message[data-message='3000']").waitFor();
    await page.locator(".book [data-uid='0']").waitFor();
    const many = () => page.evaluate(() => document.querySelectorAll("#place li").length);
    assert.ok((await many()) < 800, `${await many()} rows`);
    await page.evaluate(() => {
      document.querySelector(".book").scrollTop = 1e9;
    });
    await page.locator(".book [data-uid='9999']").waitFor();
    await page.evaluate(() => {
      document.querySelector(".story").scrollTop = 0;
    });
    await page.locator(".message[data-message='0']").waitFor();
    assert.ok((await many()) < 800, `${await many()} rows`);
    await go(page, "#/read/Tide%20Office?m=1500&e=7777");
    await page.locator(".message[data-message='1500']").waitFor();
    await page.locator(".book details[open][data-uid='7777']").waitFor();
  },

  async live() {
    const page = await open();
    await title(page, "Library");
    await page.waitForTimeout(2500);
    await yours("looking");
    await page.locator(".row", { hasText: "Brand new" }).waitFor();
    // Collected, and then gone: the page says so, and nothing breaks.
    await yours("collect");
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message").nth(3).waitFor();
    await yours("remove");
    await go(page, "#/read/What%20if");
    await page.locator("[role=alert]").waitFor();
    await go(page, "#/");
    await page.locator("h1, [role=alert]").waitFor();
  },

  /** Answers name the pair of chat and lorebook; every later request names that pair, and what a plan resolved is what is done. */
  async moments() {
    const book = `+${"b".repeat(40)}`;
    const resolved = `+${"c".repeat(40)}`;
    const page = await open({ locale: more[0] });
    const asked = [];
    await page.route("**/api", async (route) => {
      const { verb, args } = route.request().postDataJSON();
      asked.push({ verb, args });
      const known = JSON.stringify({ verb, args }).replaceAll(book, "").replaceAll(resolved, "");
      const response = await route.fetch({ postData: known });
      const answer = await response.json();
      const [newest] = answer.lines.filter((line) => line.type === "snapshot");
      if (verb === "log")
        answer.lines.unshift({
          ...newest,
          id: book.slice(1),
          timeline: "worlds/Harbour",
          lorebook: null,
          moment: newest.id + book,
        });
      if (verb === "show" && String(args.snapshot).includes("Tide"))
        newest.moment = newest.id + book;
      for (const line of answer.lines)
        if (line.type === "restored") line.moment = line.snapshot + resolved;
      await route.fulfill({ response, json: answer });
    });
    await go(page, "#/read/Tide%20Office");
    await page.locator("output", { hasText: more[1] }).waitFor();
    await page.locator(".message").nth(5).waitFor();
    const newest = asked.find(({ verb }) => verb === "messages").args.snapshot;
    assert.ok(newest.endsWith(book), newest);
    assert.ok(asked.some(({ verb, args }) => verb === "lore" && args.snapshot === newest));
    assert.ok(decodeURIComponent(page.url()).endsWith(`#/read/${newest}`), page.url());
    await page
      .locator(`.buttons a[href$="${encodeURIComponent(newest)}"]`)
      .first()
      .waitFor();
    // The stop before it is the chat's own snapshot.
    await page.locator(".time button").first().click();
    await page.locator("output", { hasText: more[1] }).waitFor({ state: "detached" });
    await page.locator(".time button").last().click();
    await page.locator("output", { hasText: more[1] }).waitFor();
    await page.locator(".place.read > .buttons button").first().click();
    await page.locator("dialog li", { hasText: "Tide Office.jsonl" }).waitFor();
    await page.locator("dialog input[type=checkbox]").check();
    await page.click("dialog button.yes");
    await page.locator("dialog .buttons button.yes[disabled]").waitFor();
    await page.waitForTimeout(500);
    const [plan, deed] = asked.filter(({ verb }) => verb === "restore").map(({ args }) => args);
    assert.equal(plan.snapshot, newest);
    assert.equal(deed.snapshot, newest.replace(book, resolved));
    assert.ok(Array.isArray(deed.expect));
  },

  async change() {
    const page = await open();
    await go(page, "#/read/Tide%20Office~2");
    await page.click("button >> text=Bring back");
    await page.locator("dialog li", { hasText: "Tide Office.jsonl" }).waitFor();
    await page.locator("dialog input[type=checkbox]").check();
    await page.click("dialog button.yes");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await yours("restored");
    await page.click("dialog button >> text=Undo");
    await title(page, "Done");
    await page.locator(".operations button").first().click();
    await page.locator("dialog li", { hasText: "Tide Office.jsonl" }).waitFor();
    await page.locator("dialog input[type=checkbox]").check();
    await page.click("dialog button.yes");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await yours("undone");
    await page.keyboard.press("Escape");
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message").nth(1).locator("button").click();
    await page.fill("dialog input", "Another");
    await page.click("dialog button.yes");
    await page.locator("dialog li", { hasText: "Another.jsonl" }).waitFor();
    await page.click("dialog button.yes");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await yours("forked");
  },

  async offer() {
    const page = await open();
    await go(page, "#/read/Tide%20Office~2");
    await page.click("button >> text=Bring back");
    await page.locator("dialog li", { hasText: "Tide Office.jsonl" }).waitFor();
    await page.locator("dialog input[type=checkbox]").check();
    await page.click("dialog button.yes");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await yours("written");
    await page.click("dialog button >> text=Undo");
    await title(page, "Done");
    await page.locator(".operations button").first().click();
    await page.locator("dialog", { hasText: "1 message was added to" }).waitFor();
    await page.click("dialog .offer button");
    await page.locator("dialog .offer", { hasText: "Done." }).waitFor();
    await yours("restored");
  },
};

try {
  await scenarios[scenario]();
  // What a page asks for that is not there is told by the browser, too; a test asks for it once.
  const real = problems.filter((problem) => !problem.includes("403"));
  assert.deepEqual(real, []);
} catch (error) {
  console.error(
    error.message,
    error.stack,
    problems,
    seen?.url().replace(/code=.*/, ""),
    await seen?.innerText("body").catch(() => ""),
  );
  process.exitCode = 1;
} finally {
  await browser.close();
  process.exit();
}
