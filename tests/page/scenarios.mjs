// Uses the viewer in headless Chromium, as the test in main.rs asks for.
// usage: node scenarios.mjs PLAYWRIGHT CHROMIUM AXE ADDRESS SCENARIO [ARGUMENT…]

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , playwright, executablePath, axe, address, scenario, ...scenarioArguments] = process.argv;
const { chromium } = createRequire(`${playwright}/`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const testSignals = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const problems = [];
/** The secret that the first page got in exchange for the code. */
let secret;
/** The page that was opened last; a failure reports its text. */
let lastPage;

/** Hands over to the test in Rust, and waits until that hands back. */
async function handOver(step) {
  console.log(step);
  await testSignals.next();
}

async function open(options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 800 },
    locale: "en-US",
    ...options,
  });
  const page = await context.newPage();
  lastPage = page;
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => problems.push(`error in the page: ${error.message}`));
  page.on("console", (line) => line.type() === "error" && problems.push(`console: ${line.text()}`));
  page.on("request", (request) => {
    const own = address.startsWith("file:") ? address : new URL(address).origin;
    if (!request.url().startsWith(own) && request.url() !== "data:,")
      problems.push(`request to another server: ${request.url()}`);
  });
  // The code in the address works once, so later windows start with the secret.
  if (secret)
    await context.addInitScript((secret) => sessionStorage.setItem("stvc-secret", secret), secret);
  await page.goto(
    secret ? address.replace(/#code=[0-9a-f]+(.*)$/, (_, place) => `#${place || "/"}`) : address,
  );
  if (address.includes("#code=")) {
    await page.waitForFunction(
      () => sessionStorage.getItem("stvc-secret") && !location.hash.includes("code="),
    );
    secret = await page.evaluate(() => sessionStorage.getItem("stvc-secret"));
    assert.deepEqual(await context.cookies(), [], "the server set a cookie");
  }
  return page;
}

/** Returns the boxes of both sides of a change, as soon as they are drawn. */
async function boxesOfSides(change) {
  for (let attempt = 0; ; attempt++) {
    const boxes = await change.evaluate((node) =>
      [".before", ".after"].map((side) =>
        node.querySelector(side)?.getBoundingClientRect().toJSON(),
      ),
    );
    if (boxes.every((box) => box?.height > 0)) return boxes;
    assert.ok(attempt < 100, "the sides of the change are not shown");
    await change.page().waitForTimeout(50);
  }
}

/** Fails if axe-core finds a violation. */
async function assertAccessible(page, place) {
  await page.evaluate(readFileSync(axe, "utf8"));
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  const found = violations.map(
    (one) =>
      `${one.id}: ${one.help}: ${one.nodes
        .map((node) => node.html.slice(0, 160))
        .slice(0, 3)
        .join(" ")}`,
  );
  assert.deepEqual(found, [], place);
}

const go = (page, hash) =>
  page.evaluate((to) => {
    location.hash = to;
  }, hash);
const waitForTitle = (page, text) => page.locator("h1", { hasText: text }).waitFor();

/** Returns the pixels of pictures, scaled down. */
async function scaleDown(pictures, x, y) {
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
    await waitForTitle(page, "Library");
    assert.ok(!page.url().includes("code"), "the code is still in the address");
    await page.reload();
    await waitForTitle(page, "Library");
    assert.equal(await page.locator("[role=alert]").count(), 0, "a reload needed another code");
    assert.equal(await page.locator(".row a.name", { hasText: "Tide Office" }).count(), 1);
    // Chat and lorebook move together with the slider.
    await page.click(".row a.name >> text=Tide Office");
    await waitForTitle(page, "Mira / Tide Office");
    await page.locator(".message").nth(5).waitFor();
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).click();
    await page.locator(".lorebook", { hasText: "No mast." }).waitFor();
    await page.locator(".lorebook .entry-history li").nth(2).waitFor();
    const slider = page.locator("input[type=range]");
    await slider.focus();
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).click();
    await page.locator(".lorebook", { hasText: "Two masts." }).waitFor();
    await page.locator(".lorebook .label", { hasText: "changed since" }).waitFor();
    const addressOfOldest = page.url();
    await page.goBack();
    await waitForTitle(page, "Library");
    await page.goForward();
    await waitForTitle(page, "Mira / Tide Office");
    // The address names that snapshot and opens it.
    await page.goto("about:blank");
    await page.goto(addressOfOldest);
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
    // The keys of the map move along lanes and between them.
    await go(page, "#/tree");
    await page.locator("svg .lane").nth(1).waitFor();
    await page.locator("[role=tree]").focus();
    for (const key of ["l", "k", "j", "h"]) await page.keyboard.press(key);
    await page.locator(".selection .owner", { hasText: "Mira" }).waitFor();
    await page.locator("svg .flag", { hasText: "part one" }).waitFor();
    await page.keyboard.press("Enter");
    await waitForTitle(page, "Mira / ");
    // The map marks the snapshot that was read. "m" selects one, and "d" compares with it.
    await page.click(".buttons a >> text=Map");
    await page.locator("svg text.here").waitFor();
    await page.locator("[role=tree]").focus();
    await page.keyboard.press("m");
    await page.keyboard.press("k");
    await page.keyboard.press("d");
    await page.locator(".place.compare .heads .date").nth(1).waitFor();
    await page.goBack();
    await page.locator("svg circle[data-dot]").first().waitFor();
    // The pointer shows a message.
    await page.locator("svg circle[data-dot]").first().hover();
    await page.locator(".preview:not([hidden]) b").waitFor();
    await go(page, "#/compare/Tide%20Office~2/Tide%20Office");
    await page.locator("ins").first().waitFor();
    await page.locator(".compare", { hasText: "mast" }).waitFor();
    await page.keyboard.press("/");
    await page.fill("input[type=search]", "mast");
    await page.keyboard.press("Enter");
    await page.locator(".matches li", { hasText: "Kestrel" }).first().waitFor();
    await page.locator(".matches a").first().click();
    await page.locator("h1").waitFor();
    await go(page, "#/operations");
    await page.locator(".operations li").first().waitFor();
    // Unknown names show an error, and the viewer still works.
    await go(page, "#/read/nothing%20like%20that");
    await page.locator("[role=alert]").waitFor();
    await go(page, "#/%E0%A4%A/../x");
    await waitForTitle(page, "Library");
  },

  async hostile() {
    const page = await open();
    await waitForTitle(page, "Library");
    await page.locator(".row a.name").first().click();
    await page.locator(".message").nth(4).waitFor();
    for (const box of await page.locator(".tools input[type=checkbox]").all()) await box.check();
    await page.locator(".lorebook summary").first().click();
    if (!address.startsWith("file:")) {
      await page.locator(".versions summary").first().click();
      await page.locator(".versions ol li").first().waitFor();
    }
    for (const place of ["#/tree", "#/search?q=window", "#/operations", "#/"]) {
      await go(page, place);
      await page.waitForTimeout(500);
      await assertInert(page);
    }
    await page.goBack();
    async function assertInert(page) {
      assert.equal(await page.evaluate(() => window.hit), undefined, "a script in the chat ran");
      const selectors = ["img", "script", "iframe", "object", "style", "[onerror]", "[onload]"];
      const active = await page.evaluate(
        (selector) => document.querySelectorAll(selector).length,
        selectors.map((selector) => `#place ${selector}`).join(", "),
      );
      assert.equal(active, 0, "elements of the chat are active");
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
      await waitForTitle(wide, "Library");
      for (const place of PLACES) {
        await go(wide, place);
        await wide.waitForTimeout(400);
        await assertAccessible(wide, `${place} ${colorScheme}`);
      }
      const page = await open({
        viewport: { width: 360, height: 700 },
        colorScheme,
        locale: "zh-CN",
      });
      await waitForTitle(page, "书库");
      for (const place of PLACES) {
        await go(page, place);
        await page.locator("h1").waitFor();
        await page.waitForTimeout(400);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${place} is ${wide} pixels wide`);
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
        assert.deepEqual(nameless, [], `${place}: elements without a label`);
        await assertAccessible(page, `${place} ${colorScheme} 360`);
      }
      await page.click("#top button");
      await page.locator("#top nav", { hasText: "Library" }).waitFor();
    }
    const page = await open({ javaScriptEnabled: false });
    assert.ok((await page.innerText("body")).includes("JavaScript"));
  },

  /** Takes the pictures of the documents, or compares them coarsely, because fonts differ. */
  async pictures() {
    const [mode, folder, now] = scenarioArguments;
    const story = encodeURIComponent("chats/Mira Voss/The Tide Office — part 1 (雨)");
    const moment = `${story}~3`;
    const desktop = { width: 1200, height: 750 };
    const shots = [
      { name: "tree", hash: `#/tree/${story}`, viewport: desktop },
      { name: "reader", hash: `#/read/${story}`, viewport: desktop },
      { name: "compare", hash: `#/compare/${moment}/${story}`, viewport: desktop },
      { name: "phone", hash: `#/read/${moment}`, viewport: { width: 390, height: 750 } },
    ];
    const [x, y] = [64, 40];
    const outdated = [];
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ viewport: desktop, colorScheme, timezoneId: "UTC" });
      await page.clock.setFixedTime(new Date(Number(now) * 1000));
      for (const { name, hash, viewport } of shots) {
        await page.setViewportSize(viewport);
        await go(page, hash);
        await waitForTitle(page, "The Tide Office");
        if (name === "reader") {
          await page.locator(".place.read .message").first().waitFor();
          await page.locator(".place.read input[type=range]").evaluate((slider) => {
            slider.value = slider.max - 3;
            slider.dispatchEvent(new Event("input"));
          });
          await page.locator("output", { hasText: "5 of 8" }).waitFor();
          await page.waitForTimeout(500);
          await page.locator(".lorebook summary", { hasText: "Old Kestrel" }).click();
          await page.locator(".lorebook .entry-history li").first().waitFor();
        } else if (name === "compare") {
          await page.locator(".change").nth(2).waitFor();
          await page.locator(".filters button", { hasText: "Lorebook" }).click();
          await page.locator(".change ins").first().waitFor();
        } else if (name === "phone") {
          await page.locator(".place.read .message").nth(3).waitFor();
        } else {
          await page.locator(".place.tree svg .lane").nth(3).waitFor();
        }
        await page.mouse.move(0, 0);
        await page.waitForTimeout(500);
        const path = `${folder}/${name}-${colorScheme}.png`;
        const picture = await page.screenshot();
        if (mode === "update") {
          mkdirSync(folder, { recursive: true });
          writeFileSync(path, picture);
          continue;
        }
        const [current, stored] = await scaleDown([picture, readFileSync(path)], x, y);
        const changed = current.filter((value, n) => Math.abs(value - stored[n]) > 24);
        const percent = Math.round((changed.length / current.length) * 100);
        if (percent > 12) outdated.push(`${path}: ${percent} % of the picture differs`);
      }
    }
    assert.deepEqual(outdated, [], "run `UPDATE_DOCS=1 cargo test --test page pictures`");
  },

  async standalone() {
    const page = await open();
    await waitForTitle(page, "Library");
    assert.equal(await page.locator(".row").count(), 1);
    await page.click(".row a.name");
    await waitForTitle(page, "Mira / Tide Office");
    await page.locator(".message").nth(5).waitFor();
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).click();
    await page.locator(".lorebook .entry-history li").nth(2).waitFor();
    await page.locator("input[type=range]").focus();
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
    await page.locator(".lorebook .label", { hasText: "changed since" }).waitFor();
    await page.keyboard.press("End");
    await page.click(".buttons a >> text=Compare with the previous snapshot");
    await page.locator("ins").first().waitFor();
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    await page.locator("svg .flag", { hasText: "part one" }).waitFor();
    await page.keyboard.press("/");
    await page.fill("input[type=search]", "no mast");
    await page.keyboard.press("Enter");
    await page.locator(".matches li", { hasText: "Kestrel" }).first().waitFor();
    await page.click("#top button");
    await page.locator("#top nav", { hasText: "书库" }).waitFor();
    assert.equal(await page.locator("#top nav a").count(), 3);
    await assertAccessible(page, "a standalone file");
  },

  async story() {
    const page = await open();
    await waitForTitle(page, "Mira / Tide Office");
    await page.locator(".message").nth(6).waitFor();
    assert.equal(await page.locator(".message").count(), 7);
    assert.equal(await page.locator(".message.hidden").count(), 0);
    assert.ok(await page.locator(".message").first().isVisible(), "the story starts at its end");
    assert.equal(await page.locator(".message", { hasText: "onerror=hit" }).count(), 1);
    assert.equal(await page.locator("#place img").count(), 0, "HTML of the chat is active");
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).click();
    await page.locator(".lorebook p", { hasText: "No mast." }).waitFor();
    const absent =
      ".slider, .tools, .buttons, .versions, .fork-button, .swipes, .entry-history h3, [role=alert]";
    assert.equal(await page.locator(absent).count(), 0, "a control has no data");
    assert.deepEqual(await page.locator("#top nav a").allInnerTexts(), ["Read", "Search"]);
    await assertAccessible(page, "a story");
    await page.keyboard.press("/");
    await page.fill("input[type=search]", "no mast");
    await page.keyboard.press("Enter");
    await page.locator(".matches li", { hasText: "Kestrel" }).first().waitFor();
    assert.equal(await page.locator(".matches", { hasText: "Invalid" }).count(), 0);
    await assertAccessible(page, "search in a story");
    await page.click(".matches a");
    await waitForTitle(page, "Mira / Tide Office");
    await page.click("#top button");
    await page.locator("#top nav", { hasText: "阅读" }).waitFor();
    // A typed address reports that the file lacks the map.
    await go(page, "#/tree");
    await page.locator("[role=alert]").waitFor();
  },

  async stories() {
    const page = await open();
    await waitForTitle(page, "Library");
    assert.equal(await page.locator(".row").count(), 2);
    assert.equal(await page.locator(".row a").count(), 2, "a row links to more than the text");
    assert.ok(!/snapshot|backup|NaN|undefined/i.test(await page.innerText("#place")));
    assert.deepEqual(await page.locator("#top nav a").allInnerTexts(), ["Library", "Search"]);
    await assertAccessible(page, "several stories");
    await page.click(".row a >> text=What if");
    await waitForTitle(page, "Mira / What if");
    await page.locator(".message").nth(3).waitFor();
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
                lane.getAttribute("data-timeline"),
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

  /** Clicks each dot of the map: the lane that it is drawn in must be selected. */
  async dots() {
    const page = await open();
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    const named = await page.evaluate(() =>
      [...document.querySelectorAll("svg .lane")].map((lane) => [
        lane.getAttribute("data-lane"),
        lane.getAttribute("data-timeline"),
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
      await page.locator(`.lane[data-lane="${lane}"].selected`).waitFor({ state: "attached" });
      const [, owner, name] = lanes.get(lane).split("/");
      await page.locator(".selection .owner small", { hasText: owner }).waitFor();
      await page.locator(".selection h2", { hasText: name }).waitFor();
      const selected = page.locator(`svg [data-lane="${lane}"] circle.selected`);
      assert.equal(await selected.getAttribute("data-dot"), dot);
    }
  },

  /** The map zooms, pans and names its parts without collisions. */
  async map() {
    const page = await open();
    const tree = page.locator("[role=tree]");
    const size = () => tree.evaluate((svg) => Number(svg.getAttribute("height")));
    await go(page, "#/tree/Tide%20Office");
    await page.locator(".dots circle.selected").waitFor();
    await page.locator(".selection h2", { hasText: "Tide Office" }).waitFor();
    await page.locator(".selection .actions a", { hasText: "Read" }).waitFor();
    // Names are shown, never paths.
    const text = await page.innerText("#place");
    assert.ok(!/chats\/|jsonl/.test(text), text);
    // No label covers another label or a line.
    const covered = await page.evaluate(() => {
      const boxes = [...document.querySelectorAll(".canvas text")].map((label) => [
        label.textContent,
        label.getBoundingClientRect(),
      ]);
      const overlap = (a, b) =>
        a.left < b.right - 1 &&
        b.left < a.right - 1 &&
        a.top < b.bottom - 3 &&
        b.top < a.bottom - 3;
      return boxes.flatMap(([a, box], n) =>
        boxes.slice(n + 1).flatMap(([b, other]) => (overlap(box, other) ? `${a} on ${b}` : [])),
      );
    });
    assert.deepEqual(covered, []);
    // The address keeps the selected snapshot, which stays selected at another zoom.
    await page.waitForURL(/at=[0-9a-f]{40}/);
    const before = await size();
    await page.locator(".dots circle.selected").hover();
    await page.keyboard.down("Control");
    for (let n = 0; n < 3; n++) await page.mouse.wheel(0, -40);
    await page.keyboard.up("Control");
    await page.waitForFunction(
      (before) =>
        Number(document.querySelector("[role=tree]").getAttribute("height")) > before * 1.2,
      before,
    );
    await page.waitForURL(/z=/);
    await tree.focus();
    await page.keyboard.press("0");
    await page.waitForFunction(
      (before) => Number(document.querySelector("[role=tree]").getAttribute("height")) <= before,
      before,
    );
    // A snapshot is chosen for a comparison, and the next one is compared with it.
    await page.click(".selection button >> text=Select to compare");
    await page.locator(".dots circle.compared").waitFor();
    await tree.focus();
    await page.keyboard.press("k");
    await page.locator(".selection a", { hasText: "Compare with the selected snapshot" }).waitFor();
    await page.locator(".selection .changes", { hasText: "previous snapshot" }).waitFor();
    // The list of stories leads to the map of all.
    await page.click("button >> text=Stories");
    await page.locator(".stories section[aria-label=Mira] a", { hasText: "Tide Office" }).waitFor();
    await assertAccessible(page, "the list of stories");
    await page.click(".stories a >> text=All stories");
    await waitForTitle(page, "Map");
    await page.locator(".owners", { hasText: "Mira" }).waitFor({ state: "attached" });
    // On a phone, the details are a sheet that can be closed, and two fingers zoom.
    const phone = await open({ viewport: { width: 390, height: 844 }, hasTouch: true });
    await go(phone, "#/tree/Tide%20Office");
    const sheet = phone.locator(".selection.open");
    await sheet.waitFor();
    assert.ok((await sheet.boundingBox()).y > 300, "the sheet covers the map");
    const small = await phone.evaluate(() =>
      [...document.querySelectorAll(".tree button, .tree a, .tree .button")]
        .filter((node) => node.checkVisibility() && !node.matches(".fold"))
        .map((node) => [node.getBoundingClientRect(), node.textContent])
        .filter(([box]) => box.width < 44 || box.height < 44)
        .map(([, text]) => text),
    );
    assert.deepEqual(small, []);
    const scrollHeight = () =>
      phone.locator("[role=tree]").evaluate((svg) => Number(svg.getAttribute("height")));
    const unpinched = await scrollHeight();
    const session = await phone.context().newCDPSession(phone);
    const touch = (type, distance) =>
      session.send("Input.dispatchTouchEvent", {
        type,
        touchPoints:
          type === "touchEnd" ? [] : [-1, 1].map((n) => ({ x: 200, y: 250 + n * distance })),
      });
    await touch("touchStart", 40);
    for (const distance of [60, 80, 100]) await touch("touchMove", distance);
    await touch("touchEnd");
    await phone.waitForTimeout(300);
    assert.ok((await scrollHeight()) > 1.2 * unpinched, "two fingers do not zoom");
    await phone.click(".selection .close");
    await sheet.waitFor({ state: "detached" });
    await phone.click("button[aria-label='Fit to view']");
    await phone.waitForTimeout(300);
    const circle = await phone.locator(".dots circle[data-dot]").first().boundingBox();
    await phone.touchscreen.tap(circle.x + circle.width / 2 + 8, circle.y + circle.height / 2);
    await sheet.waitFor();
  },

  /** Many timelines: only the visible part of the map is in the document. */
  async crowd() {
    const page = await open();
    page.setDefaultTimeout(60_000);
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    const count = () => page.evaluate(() => document.querySelectorAll("#place *").length);
    assert.ok((await count()) < 1500, `${await count()} elements`);
    const minimap = page.locator(".minimap");
    await minimap.waitFor();
    const left = () => page.locator(".canvas").evaluate((canvas) => canvas.scrollLeft);
    const box = await minimap.boundingBox();
    await page.mouse.click(box.x + box.width * 0.8, box.y + 10);
    assert.ok((await left()) > 1000);
    // The pointer drags the map.
    const before = await left();
    await page.mouse.move(600, 600);
    await page.mouse.down();
    await page.mouse.move(700, 600, { steps: 4 });
    await page.mouse.up();
    assert.equal(await left(), before - 100);
    // The point under the pointer stays there at another zoom.
    await page.locator(".dots circle[data-dot]").first().waitFor();
    const pointed = await page.evaluate(() => {
      const isNear = ({ x, y }) => Math.hypot(x - 500, y - 400) < 350;
      const boxes = [...document.querySelectorAll(".dots circle.latest")].map((dot) => [
        dot.closest("[data-lane]").dataset.lane,
        dot.getBoundingClientRect(),
      ]);
      const [lane, box] = boxes.find(([, box]) => isNear(box));
      return { lane, x: box.x + box.width / 2, y: box.y + box.height / 2 };
    });
    await page.mouse.move(pointed.x, pointed.y);
    await page.keyboard.down("Control");
    for (let n = 0; n < 4; n++) await page.mouse.wheel(0, -40);
    await page.keyboard.up("Control");
    await page.waitForURL(/z=/);
    const box2 = await page
      .locator(`.dots[data-lane="${pointed.lane}"] circle.latest`)
      .boundingBox();
    const [x, y] = [box2.x + box2.width / 2, box2.y + box2.height / 2];
    const distance = Math.hypot(x - pointed.x, y - pointed.y);
    assert.ok(distance < 6, `the point under the pointer moved by ${distance} pixels`);
    await page.click("button[aria-label='Fit to view']");
    await minimap.waitFor({ state: "hidden" });
    const { clientWidth, scrollWidth } = await page.locator(".canvas").evaluate((canvas) => ({
      clientWidth: canvas.clientWidth,
      scrollWidth: canvas.scrollWidth,
    }));
    assert.ok(scrollWidth <= clientWidth + 1, `${scrollWidth} of ${clientWidth} pixels`);
    await assertAccessible(page, "a crowded map");
  },

  /** Filters are in the address, and matches are marked and grouped by chat. */
  async finds() {
    const page = await open();
    await go(page, "#/search?q=says");
    const group = page.locator(".matches section[aria-label='Mira: Long']");
    await group.locator("li mark", { hasText: "says" }).first().waitFor();
    assert.equal(await group.locator("li").count(), 5);
    await group.locator("button.more").click();
    await group.locator("li").nth(11).waitFor();
    const status = page.locator("p[role=status]");
    const found = async (name, value, expected) => {
      await page.selectOption(`select[name=${name}]`, value);
      await page.waitForURL((url) => url.hash.includes(`${name}=`) === (value !== ""));
      await page.locator(`select[name=${name}]`).waitFor();
      await status.filter({ hasText: expected }).waitFor();
      assert.equal(
        await page.evaluate(() => document.activeElement.getAttribute("name")),
        name,
        "the focus left the filter",
      );
    };
    // The user is the first speaker.
    await page.locator("select[name=who] option", { hasText: "You (Wren)" }).waitFor({
      state: "attached",
    });
    const all = await status.innerText();
    await found("who", "Mira", /match/);
    const speakers = await page.locator(".matches a.name").allInnerTexts();
    assert.ok(
      speakers.length > 0 && speakers.every((name) => name.endsWith("Mira")),
      `${speakers}`,
    );
    await page.goBack();
    await status.filter({ hasText: all }).waitFor();
    assert.equal(await page.inputValue("select[name=who]"), "");
    await found("where", "lorebook", "Nothing found");
    await page.click("button >> text=Remove the filters");
    await status.filter({ hasText: all }).waitFor();
    // One chat.
    await group.locator("button", { hasText: "Search here" }).click();
    await page.waitForURL(/where=chats/);
    await status.filter({ hasText: "12 matches in 1 place" }).waitFor();
    // Deleted text: an earlier version of the entry.
    await go(page, "#/search?q=masts&state=deleted");
    await page.locator(".matches .label", { hasText: "earlier text" }).waitFor();
    await go(page, "#/search?q=masts&state=current");
    await status.filter({ hasText: "Nothing found" }).waitFor();
    // A phrase, and a regular expression.
    await go(page, "#/search?q=says%20Long");
    await status.filter({ hasText: "match" }).waitFor();
    await found("match", "phrase", "Nothing found");
    await go(page, "#/search?q=No%20m%5Ba-z%5D%2Bt&match=regex");
    await page.locator(".matches mark", { hasText: "No mast" }).waitFor();
    await assertAccessible(page, "a search");
    await page.locator(".matches li").first().click();
    await page.locator(".lorebook details[open]").waitFor();
  },

  async long() {
    const page = await open();
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message[data-message='3000']").waitFor();
    await page.locator(".lorebook [data-uid='0']").waitFor();
    const rows = () => page.evaluate(() => document.querySelectorAll("#place li").length);
    assert.ok((await rows()) < 800, `${await rows()} rows`);
    await page.evaluate(() => {
      document.querySelector(".lorebook").scrollTop = 1e9;
    });
    await page.locator(".lorebook [data-uid='9999']").waitFor();
    await page.evaluate(() => {
      document.querySelector(".chat").scrollTop = 0;
    });
    await page.locator(".message[data-message='0']").waitFor();
    assert.ok((await rows()) < 800, `${await rows()} rows`);
    await go(page, "#/read/Tide%20Office?m=1500&e=7777");
    await page.locator(".message[data-message='1500']").waitFor();
    await page.locator(".lorebook details[open][data-uid='7777']").waitFor();
  },

  async lands() {
    const page = await open();
    /** Waits until message `index` is where it should be, and stays there. */
    const waitForMessage = async (index, part) => {
      await page.locator(`.message[data-message="${index}"]`).waitFor();
      const isThere = ([index, part]) => {
        const row = document.querySelector(`.message[data-message="${index}"]`);
        if (!row) return false;
        const [box, chat] = [row, row.closest(".chat")].map((node) => node.getBoundingClientRect());
        const point = part === 0.5 && box.height > chat.height ? 0 : part;
        const distance = box.top + point * box.height - chat.top - point * chat.height;
        return Math.abs(distance) < 30;
      };
      await page.waitForFunction(isThere, [index, part]);
      // Pages near the visible part are loaded meanwhile.
      await page.waitForTimeout(400);
      assert.ok(await page.evaluate(isThere, [index, part]), `#${index} moved`);
    };
    const marked = () => page.locator(".message[aria-current]").getAttribute("data-message");
    await go(page, "#/read/Tide%20Office");
    await waitForMessage(2000, 1);
    assert.equal(await page.locator(".message[aria-current]").count(), 0);
    for (const index of [120, 250, 0, 1555, 2000]) {
      await go(page, `#/read/Tide%20Office?m=${index}`);
      await page.locator(`.message[data-message="${index}"][aria-current]`).waitFor();
      if (index === 0 || index === 2000) continue;
      await waitForMessage(index, 0.5);
    }
    await go(page, "#/read/Tide%20Office?m=1555");
    await waitForMessage(1555, 0.5);
    // Fonts and pictures change heights later.
    await page.evaluate(() => {
      document.documentElement.style.fontSize = "20px";
      const picture = document.createElement("div");
      picture.style.height = "700px";
      document.querySelector('.message[data-message="1553"]').append(picture);
    });
    await waitForMessage(1555, 0.5);
    // The user can scroll away.
    await page.locator(".chat").hover();
    await page.mouse.wheel(0, 3000);
    await page.waitForFunction(() => {
      const row = document.querySelector('.message[data-message="1555"]');
      return !row || row.getBoundingClientRect().bottom < 0;
    });
    // A link inside the chat, and a search hit.
    await go(page, "#/read/Tide%20Office~1");
    await page.locator('.message[data-message="1999"] header a').click();
    await page.locator('.message[data-message="1999"][aria-current]').waitFor();
    await go(page, "#/search?q=777");
    await page.locator(".matches a").first().click();
    await page.locator(".message[aria-current]").waitFor();
    assert.equal(await marked(), "777");
    await waitForMessage(777, 0.5);
  },

  async stays() {
    const page = await open();
    await waitForTitle(page, "Library");
    /** Returns the first visible element of a kind, and its position. */
    const view = (scroller, rows, name) =>
      page.evaluate(
        ([scroller, rows, name]) => {
          const { top } = document.querySelector(scroller).getBoundingClientRect();
          for (const row of document.querySelectorAll(rows)) {
            const box = row.getBoundingClientRect();
            if (box.bottom > top) return [row.getAttribute(name), Math.round(box.top / 4)];
          }
        },
        [scroller, rows, name],
      );
    const focused = () =>
      page.evaluate(() => {
        const { activeElement: element } = document;
        return [element.tagName, element.getAttribute("aria-label"), element.textContent];
      });
    // Library: the filter and the focus stay.
    await page.fill("input[type=search]", "Mira");
    await page.locator("main").hover();
    await page.mouse.wheel(0, 900);
    await page.waitForTimeout(300);
    const rows = ["main", ".row", "data-key"];
    const before = { view: await view(...rows), focus: await focused() };
    await handOver("change");
    await page.locator(".row", { hasText: "Brand new 601" }).waitFor({ state: "attached" });
    await page.waitForTimeout(300);
    assert.equal(await page.inputValue("input[type=search]"), "Mira");
    assert.deepEqual({ view: await view(...rows), focus: await focused() }, before);
    await page.locator(".row a.name", { hasText: "Tale 30" }).focus();
    await page.waitForTimeout(300);
    // Reader: the message, the snapshot and the focus stay.
    await go(page, "#/read/Tide%20Office~2?m=300");
    await page.locator(".message[aria-current]").waitFor();
    await page.locator(".chat").hover();
    await page.mouse.wheel(0, 500);
    await page.waitForTimeout(500);
    const messages = [".chat", ".message", "data-message"];
    const reading = await view(...messages);
    await page.locator(".buttons a").first().focus();
    const focus = await focused();
    const slider = page.locator("input[type=range]");
    assert.equal(await slider.inputValue(), "0");
    await handOver("change");
    await page.locator("output", { hasText: "1 of 4" }).waitFor();
    assert.equal(await slider.inputValue(), "0");
    assert.deepEqual(await view(...messages), reading);
    assert.deepEqual(await focused(), focus);
    // Another snapshot is shown at the same message.
    await page.locator(".slider button").last().click();
    await page.locator("output", { hasText: "2 of 4" }).waitFor();
    await page.waitForTimeout(800);
    assert.deepEqual(await view(...messages), reading);
    // A moment between snapshots has its place among them.
    await go(page, "#/read/Tide%20Office~3%3A5");
    await page.locator("output", { hasText: "1 of 5 · 6 messages" }).waitFor();
    await handOver("change");
    await page.locator("output", { hasText: "1 of 6 · 6 messages" }).waitFor();
    // Map: the selected snapshot stays selected and in its place.
    await go(page, "#/tree");
    await page.locator("svg circle[data-dot]").first().waitFor();
    await page.locator("[role=tree]").focus();
    for (const key of ["l", "l", "l"]) await page.keyboard.press(key);
    await page.locator(".selection h2").waitFor();
    const selection = () =>
      page.evaluate(() => {
        const circle = document.querySelector("circle.selected");
        return [
          document.querySelector(".selection h2").textContent,
          Math.round(circle.getBoundingClientRect().left / 4),
        ];
      });
    const selected = await selection();
    const lanes = () =>
      page.locator("[role=tree]").evaluate((svg) => Number(svg.getAttribute("width")));
    const width = await lanes();
    await handOver("change");
    await page.waitForFunction(
      (width) => Number(document.querySelector("[role=tree]").getAttribute("width")) > width,
      width,
    );
    assert.deepEqual(await selection(), selected);
  },

  async fields() {
    const page = await open();
    const counts = [];
    page.on("response", async (response) => {
      if (!response.url().endsWith("/api")) return;
      const { lines } = await response.json().catch(() => ({ lines: [] }));
      counts.push(lines.filter((line) => line.type === "change").length);
    });
    await go(page, "#/compare/Tide%20Office~1/Tide%20Office");
    await page.locator(".changes h2", { hasText: "Messages 1998" }).waitFor();
    const first = page.locator(".change").first();
    assert.deepEqual(await first.locator(".before .field").allInnerTexts(), [
      "Hidden from the prompt",
    ]);
    // Only changes near the visible part are loaded and in the document.
    const changes = () => page.locator(".change").count();
    assert.ok((await changes()) <= 100, `${await changes()} changes`);
    const current = () =>
      page.evaluate(() => Number(document.activeElement.getAttribute("data-change")));
    await page.keyboard.press("n");
    await page.waitForFunction(() => document.activeElement.getAttribute("data-change") === "0");
    await page.keyboard.press("n");
    await page.waitForFunction(() => document.activeElement.getAttribute("data-change") === "1");
    await page.click(".steps button >> text=Next change");
    await page.waitForFunction(() => document.activeElement.getAttribute("data-change") === "2");
    await page.locator(".position", { hasText: "3 of 1999" }).waitFor();
    await page.keyboard.press("p");
    await page.waitForFunction(() => document.activeElement.getAttribute("data-change") === "1");
    // Keys that are pressed while changes are loaded count.
    for (let n = 0; n < 120; n++) await page.keyboard.press("n");
    await page.waitForFunction(() => document.activeElement.getAttribute("data-change") === "121");
    // A change far away is loaded when it is the next one.
    await page.locator(".changes").evaluate((changes) => (changes.scrollTop = 1e9));
    await page.waitForTimeout(500);
    await page.keyboard.press("p");
    await page.waitForFunction(() => document.activeElement.getAttribute("data-change") > 1900);
    const reached = await current();
    await page.keyboard.press("p");
    await page.waitForFunction(
      (before) => document.activeElement.getAttribute("data-change") === String(before - 1),
      reached,
    );
    assert.ok((await changes()) <= 200, `${await changes()} changes`);
    assert.ok(Math.max(...counts) <= 50, counts.join(" "));
    // Only the lorebook: each field that changed, and nothing that did not.
    await page.click(".filters button >> text=Lorebook");
    const entry = page.locator(".change", { hasText: "Kestrel" });
    await entry.waitFor();
    assert.equal(await changes(), 1);
    assert.ok(!(await entry.innerText()).includes("Two masts"), "unchanged content is shown");
    assert.deepEqual(await entry.locator(".before .field").allInnerTexts(), [
      "Keywords",
      "Always active",
      "Order",
    ]);
    assert.deepEqual(await entry.locator("del").allInnerTexts(), ["ship", "no", "100"]);
    assert.deepEqual(await entry.locator("ins").allInnerTexts(), ["boat", "yes", "50"]);
    await assertAccessible(page, "a comparison");
    // The reader shows the keywords of an entry.
    await go(page, "#/read/Tide%20Office");
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).click();
    await page.locator(".lorebook", { hasText: "Keywords: kestrel, boat" }).waitFor();
  },

  async sides() {
    const page = await open();
    await go(page, "#/compare/Tide%20Office~1/Tide%20Office");
    await waitForTitle(page, "Mira / Tide Office");
    assert.deepEqual(await page.locator(".head .chip").allInnerTexts(), [
      "40 messages",
      "40 messages",
    ]);
    assert.deepEqual(await page.locator(".counts .kind").allInnerTexts(), [
      "added 1",
      "removed 1",
      "edited 1",
    ]);
    // Both sides of an edited message, with its Markdown.
    const edited = page.locator(".change", { hasText: "#20" });
    assert.deepEqual(await edited.locator(".before del").allInnerTexts(), ["harbour"]);
    assert.deepEqual(await edited.locator(".after ins").allInnerTexts(), ["open sea"]);
    assert.equal(await edited.locator(".after em").innerText(), "open sea");
    const [left, right] = await boxesOfSides(edited);
    assert.ok(left.x + left.width <= right.x + 1 && left.y === right.y, "not side by side");
    // Unchanged text is folded, and both sides unfold together.
    assert.equal(await edited.locator(".unchanged").count(), 2);
    await edited.locator(".before .unchanged").click();
    assert.equal(await edited.locator(".unchanged").count(), 0);
    assert.deepEqual(await page.locator(".gap").allInnerTexts(), [
      "… 20 unchanged messages",
      "… 9 unchanged messages",
      "… 9 unchanged messages",
    ]);
    await page.locator(".gap").first().click();
    await page.locator(".unchanged-message", { hasText: "#19" }).waitFor();
    assert.equal(await page.locator(".unchanged-message").count(), 20);
    await assertAccessible(page, "a comparison of messages");
    // The older side can be restored.
    await page.click("button >> text=Restore this");
    await page.locator("dialog .plan", { hasText: "Tide Office" }).waitFor();
    await page.keyboard.press("Escape");
    // On a phone, one side is below the other.
    const phone = await open({ viewport: { width: 390, height: 844 }, hasTouch: true });
    await go(phone, "#/compare/Tide%20Office~1/Tide%20Office");
    const below = phone.locator(".change", { hasText: "#20" });
    const [upper, lower] = await boxesOfSides(below);
    assert.ok(upper.y + upper.height <= lower.y + 1, "not one below the other");
    const small = await phone.evaluate(() =>
      [...document.querySelectorAll("#place :is(a, button, summary)")]
        .filter((node) => node.offsetParent)
        .map((node) => [node.getBoundingClientRect(), node.outerHTML.slice(0, 90)])
        .filter(([box]) => box.width < 44 || box.height < 44)
        .map(([box, html]) => `${html} ${box.width} × ${box.height}`),
    );
    assert.deepEqual(small, []);
  },

  /** The marks of SillyTavern's Markdown become elements, and nothing else does. */
  async markdown() {
    const page = await open();
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message").first().waitFor();
    const rendered = await page.locator(".message").evaluateAll((rows) => {
      const skeleton = (node) => {
        if (node.nodeType === Node.TEXT_NODE) return node.data;
        const inner = [...node.childNodes].map(skeleton).join("");
        return `<${node.localName}>${inner}</${node.localName}>`.replace("></br>", ">");
      };
      return rows.map((row) =>
        [...row.childNodes]
          .filter((node) => !node.matches(".avatar, header"))
          .map(skeleton)
          .join(""),
      );
    });
    assert.deepEqual(rendered, JSON.parse(scenarioArguments[0]));
    // Headings of a text are not headings of the page.
    assert.equal(await page.locator(".message :is(h1, h2, h3, h4, h5, h6)").count(), 0);
    assert.equal(await page.locator(".message [role=heading]").count(), 0);
    const wide = await page.locator(".message pre").first().boundingBox();
    const chat = await page.locator(".chat").boundingBox();
    assert.ok(wide.x + wide.width <= chat.x + chat.width, "long code makes the chat wider");
    await assertAccessible(page, "texts");
  },

  async small() {
    // At 200 % zoom, a window has half as many pixels.
    for (const [width, height, least] of [
      [640, 360, 200],
      [390, 844, 560],
    ]) {
      const page = await open({ viewport: { width, height }, hasTouch: width < 600 });
      await go(page, "#/read/Tide%20Office");
      await page.locator('.message[data-message="300"]').waitFor();
      const box = await page.locator(".chat").boundingBox();
      assert.ok(box.height >= least, `the chat has ${box.height} of ${height} pixels`);
      await page.click("button >> text=Lorebook");
      await page.locator(".lorebook summary", { hasText: "Kestrel" }).waitFor();
      await page.click("button >> text=Lorebook");
      await page.locator('.message[data-message="300"]').waitFor();
      await page.click("button >> text=Menu");
      await page.locator(".buttons a >> text=Map").waitFor();
    }
    const phone = await open({ viewport: { width: 390, height: 844 }, hasTouch: true });
    for (const place of PLACES) {
      await go(phone, place.replace("~2", "~1"));
      await phone.locator("h1").waitFor();
      await phone.waitForTimeout(500);
      if (place.startsWith("#/read")) await phone.click("button >> text=Menu");
      const small = await phone.evaluate(() =>
        [...document.querySelectorAll("a, button, summary, input, select")]
          .map((node) => node.closest("label") ?? node)
          .filter((node) => node.offsetParent)
          .map((node) => [node.getBoundingClientRect(), node.outerHTML.slice(0, 90)])
          .filter(([box]) => box.width < 24 || box.height < 24)
          .map(([box, html]) => `${html} ${box.width} × ${box.height}`),
      );
      assert.deepEqual(small, [], place);
    }
    // The focus follows links, and returns after Back and after a dialog.
    const page = await open();
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    await page.locator(".row a.name", { hasText: "Tide Office" }).focus();
    await page.keyboard.press("Enter");
    await waitForTitle(page, "Mira / Tide Office");
    await page.waitForFunction(() => document.activeElement.tagName === "H1");
    await page.goBack();
    await page.waitForFunction(() => document.activeElement.textContent === "Tide Office");
    await page.goForward();
    await waitForTitle(page, "Mira / Tide Office");
    await page.locator(".message").nth(5).waitFor();
    await page.locator("button", { hasText: "Tag this moment" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("dialog input").fill("here");
    await page.keyboard.press("Enter");
    await page.locator("output .tag", { hasText: "here" }).waitFor();
    assert.equal(await focused(), "Tag this moment…");
    await page.locator("button", { hasText: "Restore as a new chat" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("dialog button", { hasText: "Apply" }).click();
    await page.locator("dialog .plan").first().waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.equal(await focused(), "Restore as a new chat…");
    // The lorebook is a few keys away from the chat, and j and k walk through the messages.
    await page.locator(".chat").focus();
    await page.keyboard.press("j");
    const current = () =>
      page.evaluate(() => Number(document.activeElement.getAttribute("data-message")));
    const first = await current();
    await page.keyboard.press("k");
    assert.equal(await current(), first - 1);
    await page.keyboard.press("Tab");
    assert.equal(await focused(), `#${first - 1}`);
    let keys = 1;
    const isInLorebook = () => page.evaluate(() => !!document.activeElement.closest(".lorebook"));
    while (!(await isInLorebook()) && keys < 20) {
      await page.keyboard.press("Tab");
      keys++;
    }
    assert.ok(keys < 6, `${keys} keys`);
    // All messages and entries are printed, dark on light.
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    const ink = await page.evaluate(() => getComputedStyle(document.body).color);
    assert.equal(ink, "rgb(38, 34, 28)");
    await page.emulateMedia({ media: null, colorScheme: null });
    await page.evaluate(() => {
      window.print = () => (window.isPrinted = true);
    });
    await page.locator(".chat").focus();
    await page.keyboard.press("Control+p");
    await page.waitForFunction(() => window.isPrinted);
    assert.equal(await page.locator(".message").count(), 301);
    const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
    const pages = pdf.match(/\/Type\s*\/Page\b/g).length;
    assert.ok(pages > 10, `${pages} pages`);
  },

  async labels() {
    const page = await open();
    // The times of two timelines have different offsets.
    await page.route("**/api", async (route) => {
      const { verb, args } = route.request().postDataJSON();
      if (verb === "operations") {
        const row = (_, n) => ({
          type: "operation",
          number: 120 - n,
          command: ["stvc", "snapshot"],
          time: "2026-11-14T23:00:00Z",
        });
        const all = Array.from({ length: 120 }, row);
        const { first = 0, count } = args;
        const next = first + count < all.length ? first + count : null;
        const lines = [...all.slice(first, first + count), { type: "summary" }];
        return route.fulfill({ json: { lines, exit: 0, next } });
      }
      const response = await route.fetch();
      const answer = await response.json();
      for (const line of answer.lines)
        if (line.timeline === "chats/Mira/Older") line.time = "2030-01-02T01:00:00+14:00";
        else if (line.timeline === "chats/Mira/Tide Office")
          line.time = "2030-01-01T23:00:00-10:00";
      await route.fulfill({ response, json: answer });
    });
    await go(page, "#/search");
    await go(page, "#/");
    await waitForTitle(page, "Library");
    const names = await page.locator("section[aria-label=Mira] .name").allInnerTexts();
    assert.deepEqual(names, ["Tide Office", "Older"]);
    await page.locator("h2", { hasText: "The Crew" }).waitFor();
    await page.locator(".row .name", { hasText: "The Crew" }).waitFor();
    assert.ok(!(await page.innerText("#place")).includes("0 messages"));
    // A place is named by its own properties only.
    await go(page, "#/constructor");
    await waitForTitle(page, "Library");
    // A character has files and no text. A lorebook has the whole width.
    await go(page, "#/read/characters%2FMira");
    await page.locator(".files li", { hasText: "characters/Mira.png" }).waitFor();
    assert.ok(!/0 messages|No lorebook/.test(await page.innerText("#place")));
    await go(page, "#/read/worlds%2FHarbour");
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).waitFor();
    assert.ok((await page.locator(".lorebook").boundingBox()).width > 1000);
    // Notes and attachments are shown with the snapshot.
    await go(page, "#/read/Tide%20Office");
    await page.locator("output", { hasText: "before the ferry" }).waitFor();
    await page.locator(".files", { hasText: "1 attachment," }).waitFor();
    // A short message goes away.
    await page.click("button >> text=Tag this moment");
    await page.fill("dialog input", "here");
    await page.click("dialog button.primary");
    await page.locator("#notice:not(:empty)").waitFor();
    await page.locator("#notice:not(:empty)").waitFor({ state: "detached" });
    // After a change, the dialog has nothing left to confirm or to cancel.
    await page.click("button >> text=Restore as a new chat");
    await page.click("dialog button.primary");
    await page.locator("dialog .plan").first().waitFor();
    await page.click("dialog button.primary");
    await page.locator("dialog h2", { hasText: "Done." }).waitFor();
    assert.deepEqual(await page.locator("dialog button").allInnerTexts(), ["Undo", "Close"]);
    await page.click("dialog button >> text=Close");
    await go(page, "#/operations");
    await page.locator(".operations li").nth(99).waitFor();
    await page.click("button >> text=More");
    await page.locator(".operations li").nth(119).waitFor();
    // The viewer says so if the program stops.
    await page.unrouteAll({ behavior: "wait" });
    await handOver("stop");
    await page.locator("#disconnected", { hasText: "stvc does not answer" }).waitFor();
    await go(page, "#/");
    await page.locator("#place [role=alert]", { hasText: "stvc does not answer" }).waitFor();
    problems.length = 0;
  },

  async heavy() {
    const page = await open();
    page.setDefaultTimeout(90_000);
    const nodes = () =>
      page.evaluate(() => {
        const walker = document.createTreeWalker(document.getElementById("place"));
        let count = 0;
        while (walker.nextNode()) count++;
        return count;
      });
    await go(page, "#/read/Tide%20Office~1");
    await page.locator(".message", { hasText: "The end." }).waitFor();
    for (const box of await page.locator(".tools input[type=checkbox]").all()) await box.check();
    assert.ok((await nodes()) < 250_000, `${await nodes()} nodes`);
    const message = (index) => page.locator(`.message[data-message="${index}"]`);
    // Pictures are shown without the Markdown or HTML around them, and other data as its size.
    const isShown = (picture) => picture.complete && picture.naturalWidth === 8;
    await message(0).locator("img").first().scrollIntoViewIfNeeded();
    assert.deepEqual(
      await message(0)
        .locator(":scope > img")
        .evaluateAll((pictures) => pictures.map((one) => one.naturalWidth)),
      [8, 8],
    );
    assert.ok(await message(0).locator("img").first().evaluate(isShown));
    assert.ok(!/!\[|<img|base64/.test(await message(0).innerText()));
    await message(1).locator(":scope > p .data", { hasText: "image/png" }).waitFor();
    await message(1).locator(":scope > p .data", { hasText: "image/svg+xml" }).waitFor();
    // The rest of a text is shown on request.
    const length = () => message(2).evaluate((row) => row.textContent.length);
    const before = await length();
    assert.ok(before < 50_000, `${before} characters`);
    await message(2).locator(":scope > .folded, :scope > p .folded").first().click();
    assert.ok((await length()) > before);
    await page.locator(".lorebook summary", { hasText: "Kestrel" }).click();
    await page.locator(".lorebook .entry-history li").nth(1).waitFor();
    assert.ok((await nodes()) < 250_000, `${await nodes()} nodes`);
    await go(page, "#/compare/Edited~1/Edited");
    await page.locator(".change ins", { hasText: "Before." }).last().waitFor();
    assert.ok((await nodes()) < 50_000, `${await nodes()} nodes`);
    await go(page, "#/search?q=wwww");
    await page.locator(".matches li").first().waitFor();
  },

  async live() {
    const page = await open();
    await waitForTitle(page, "Library");
    await page.waitForTimeout(2500);
    await handOver("looking");
    await page.locator(".row", { hasText: "Brand new" }).waitFor();
    // The viewer works after garbage collection, and shows an error after the store is gone.
    await handOver("collect");
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message").nth(3).waitFor();
    await handOver("remove");
    await go(page, "#/read/What%20if");
    await page.locator("[role=alert]").waitFor();
    await go(page, "#/");
    await page.locator("h1, [role=alert]").waitFor();
  },

  /**
   * Answers name the moment, chat and lorebook, and later requests use that name. A restore uses
   * the moment that its plan named.
   */
  async moments() {
    const [locale, lorebookChanged] = scenarioArguments;
    const book = `+${"b".repeat(40)}`;
    const resolved = `+${"c".repeat(40)}`;
    const page = await open({ locale });
    const requests = [];
    await page.route("**/api", async (route) => {
      const { verb, args } = route.request().postDataJSON();
      requests.push({ verb, args });
      const postData = JSON.stringify({ verb, args }).replaceAll(book, "").replaceAll(resolved, "");
      const response = await route.fetch({ postData });
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
    await page.locator("output", { hasText: lorebookChanged }).waitFor();
    await page.locator(".message").nth(5).waitFor();
    const newest = requests.find(({ verb }) => verb === "messages").args.snapshot;
    assert.ok(newest.endsWith(book), newest);
    assert.ok(requests.some(({ verb, args }) => verb === "lore" && args.snapshot === newest));
    assert.ok(decodeURIComponent(page.url()).endsWith(`#/read/${newest}`), page.url());
    await page
      .locator(`.buttons a[href$="${encodeURIComponent(newest)}"]`)
      .first()
      .waitFor();
    // The previous stop of the slider is a snapshot of the chat.
    await page.locator(".slider button").first().click();
    await page.locator("output", { hasText: lorebookChanged }).waitFor({ state: "detached" });
    await page.locator(".slider button").last().click();
    await page.locator("output", { hasText: lorebookChanged }).waitFor();
    await page.locator(".place.read > .buttons button").first().click();
    await page.locator("dialog li", { hasText: "Tide Office.jsonl" }).waitFor();
    await page.locator("dialog .closed input").check();
    await page.click("dialog button.primary");
    await page.locator("dialog button.primary").waitFor({ state: "detached" });
    const [plan, restore] = requests
      .filter(({ verb }) => verb === "restore")
      .map(({ args }) => args);
    assert.equal(plan.snapshot, newest);
    assert.equal(restore.snapshot, newest.replace(book, resolved));
    assert.ok(Array.isArray(restore.expect));
  },

  async change() {
    const page = await open();
    await go(page, "#/read/Tide%20Office~2");
    await page.click("button >> text=Restore");
    await page.locator("dialog .plan", { hasText: "4 messages instead of 6." }).waitFor();
    await page.locator("dialog .plan", { hasText: "1 entry changes." }).waitFor();
    assert.match(await page.innerText("dialog .sides .before"), /Mira 5/);
    assert.match(await page.innerText("dialog .sides .after"), /Mira 3/);
    // Other chats that use the lorebook are named.
    await page.locator("dialog .warning", { hasText: "What if" }).waitFor();
    await page.locator("dialog .chat-only").check();
    await page
      .locator("dialog .plan", { hasText: "1 entry changes." })
      .waitFor({ state: "detached" });
    await page.locator("dialog .chat-only:checked").waitFor();
    await page.locator("dialog .chat-only").uncheck();
    await page.locator("dialog .plan", { hasText: "1 entry changes." }).waitFor();
    await page.locator("dialog .closed input").check();
    await page.click("dialog button.primary");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await handOver("restored");
    await page.click("dialog button >> text=Undo");
    await waitForTitle(page, "History");
    await page.locator(".operations button").first().click();
    await page.locator("dialog .plan", { hasText: "Tide Office" }).first().waitFor();
    await page.locator("dialog .closed input").check();
    await page.click("dialog button.primary");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await handOver("undone");
    await page.keyboard.press("Escape");
    await go(page, "#/read/Tide%20Office");
    await page.locator(".message").nth(1).locator("button").click();
    await page.fill("dialog input", "Another");
    await page.click("dialog button.primary");
    await page.locator("dialog .plan", { hasText: "Another" }).first().waitFor();
    await page.click("dialog button.primary");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await handOver("forked");
  },

  async repair() {
    const page = await open();
    await go(page, "#/");
    await page.locator(".row.deleted").waitFor();
    // The fork is below its parent.
    const names = await page.locator("section[aria-label=Mira] .name").allInnerTexts();
    assert.deepEqual(names.slice(names.indexOf("Tide Office")), ["Tide Office", "What if"]);
    await page.locator(".row.deleted button").click();
    await page.locator("dialog .plan", { hasText: "Gone" }).first().waitFor();
    await page.click("dialog button.primary");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await handOver("restored");
    await page.keyboard.press("Escape");
    const repair = page.locator(".problems .repair", { hasText: "its own lorebook" });
    await repair.waitFor({ state: "attached" });
    await page.locator(".problems details").evaluate((details) => (details.open = true));
    // The page names no command, because it cannot run one.
    assert.ok(!(await page.innerText("#place")).includes("`stvc"));
    await repair.locator("button").click();
    await page.locator("dialog li", { hasText: "What if.jsonl" }).waitFor();
    await page.locator("dialog .closed input").check();
    await page.click("dialog button.primary");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await handOver("repaired");
    await page.keyboard.press("Escape");
    await repair.waitFor({ state: "detached" });
    await go(page, "#/operations");
    await page.locator(".sentence", { hasText: "Repaired What if" }).waitFor();
    await page.locator(".sentence", { hasText: "Restored Gone" }).waitFor();
  },

  async offer() {
    const page = await open();
    await go(page, "#/read/Tide%20Office~2");
    await page.click("button >> text=Restore");
    await page.locator("dialog .plan", { hasText: "Tide Office" }).first().waitFor();
    await page.locator("dialog .closed input").check();
    await page.click("dialog button.primary");
    await page.locator("dialog", { hasText: "Done." }).waitFor();
    await handOver("written");
    await page.click("dialog button >> text=Undo");
    await waitForTitle(page, "History");
    await page.locator(".operations button").first().click();
    await page.locator("dialog", { hasText: "1 message was added to" }).waitFor();
    await page.click("dialog .offer button");
    await page.locator("dialog .offer", { hasText: "Done." }).waitFor();
    await handOver("restored");
  },
};

try {
  await scenarios[scenario]();
  // One scenario requests something that the server refuses, and Chromium logs that.
  const unexpected = problems.filter((problem) => !problem.includes("403"));
  assert.deepEqual(unexpected, []);
} catch (error) {
  console.error(
    error.message,
    error.stack,
    problems,
    lastPage?.url().replace(/code=.*/, ""),
    await lastPage?.innerText("body").catch(() => ""),
  );
  process.exitCode = 1;
} finally {
  await browser.close();
  process.exit();
}
