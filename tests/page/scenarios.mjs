// Somebody who looks at the page: `node scenarios.mjs PLAYWRIGHT CHROMIUM ADDRESS SCENARIO`.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , playwright, executablePath, address, scenario] = process.argv;
const { chromium } = createRequire(`${playwright}/`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const turns = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const problems = [];
/** The page that is looked at, to tell what it shows when something went wrong. */
let seen;

/** Tell the test whose turn it is, and wait for ours. */
async function yours(word) {
  console.log(word);
  await turns.next();
}

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, locale: "en-US", ...options });
  const page = await context.newPage();
  seen = page;
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => problems.push(`error in the page: ${error.message}`));
  page.on("console", (line) => line.type() === "error" && problems.push(`console: ${line.text()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(address).origin)) problems.push(`asked elsewhere: ${request.url()}`);
  });
  await page.goto(address);
  return page;
}

const go = (page, hash) => page.evaluate((to) => { location.hash = to; }, hash);
const title = (page, text) => page.locator("h1", { hasText: text }).waitFor();

const scenarios = {
  async walk() {
    const page = await open();
    await title(page, "Library");
    assert.ok(!page.url().includes("token"), "the token stays in the address");
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
    // Two states side by side.
    await go(page, "#/compare/Tide%20Office~2/Tide%20Office");
    await page.locator("ins").first().waitFor();
    assert.ok((await page.innerText(".compare")).includes("mast"));
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
    await page.locator(".versions summary").first().click();
    await page.locator(".versions ol li").first().waitFor();
    for (const place of ["#/tree", "#/search?q=window", "#/operations", "#/"]) {
      await go(page, place);
      await page.waitForTimeout(500);
      await inert(page);
    }
    await page.goBack();
    async function inert(page) {
      assert.equal(await page.evaluate(() => window.hit), undefined, "a script of the chat ran");
      const odd = await page.evaluate(() => [...document.querySelectorAll("#place img, #place script, #place iframe, #place object, #place style, #place [onerror], #place [onload]")].length);
      assert.equal(odd, 0);
      const links = await page.evaluate(() => [...document.querySelectorAll("#place a")].map((a) => a.getAttribute("href")));
      assert.ok(links.every((href) => href.startsWith("#/")), links.join(" "));
    }
  },

  async fits() {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ viewport: { width: 360, height: 700 }, colorScheme, locale: "zh-CN" });
      await title(page, "书库");
      for (const place of ["#/", "#/tree", "#/read/Tide%20Office", "#/compare/Tide%20Office~2/Tide%20Office", "#/search?q=mast", "#/operations"]) {
        await go(page, place);
        await page.locator("h1").waitFor();
        await page.waitForTimeout(400);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${place} is ${wide} wide`);
        const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, a, svg[role], [role=tree]")]
          .filter((node) => !(node.textContent || "").trim() && !node.getAttribute("aria-label") && !node.closest("label")?.textContent?.trim())
          .map((node) => node.outerHTML.slice(0, 120)));
        assert.deepEqual(nameless, [], `${place}: without a name`);
        const faint = await page.evaluate(contrasts);
        assert.deepEqual(faint, [], `${place}: hard to read in ${colorScheme}`);
      }
      await page.click("#top button");
      await page.locator("#top nav", { hasText: "Library" }).waitFor();
    }
    const page = await open({ javaScriptEnabled: false });
    assert.ok((await page.innerText("body")).includes("JavaScript"));
  },

  async live() {
    const page = await open();
    await title(page, "Library");
    await page.waitForTimeout(2500);
    await yours("looking");
    await page.locator(".row", { hasText: "Brand new" }).waitFor();
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
};

/** Texts that stand out too little against what is behind them. */
function contrasts() {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const part = (value) => ((value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(at).backgroundColor);
      if (alpha > 0.5) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  for (const node of document.querySelectorAll("#top *, #place *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    const style = getComputedStyle(node);
    if (!own || node instanceof SVGElement || node.closest(".message.hidden, .off, button:disabled, .message .way")) continue;
    const [a, b] = [light(parse(style.color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)}`);
  }
  return [...faint];
}

try {
  await scenarios[scenario]();
  // What a page asks for that is not there is told by the browser, too; a test asks for it once.
  const real = problems.filter((problem) => !problem.includes("403"));
  assert.deepEqual(real, []);
} catch (error) {
  console.error(error.message, error.stack, problems, seen?.url().replace(/token=.*/, ""), await seen?.innerText("body").catch(() => ""));
  process.exitCode = 1;
} finally {
  await browser.close();
  process.exit();
}
