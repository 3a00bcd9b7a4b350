// A writer at SillyTavern: headless Chromium, the real page, its real buttons.
// Reads one request a line, {"do": "say", "text": "…"}, and answers each with one line, {"ok": …} or {"error": "…"}.
// When its input ends, it closes the browser and removes its profile.
// usage: node driver.mjs PLAYWRIGHT_CORE CHROMIUM PROFILE OPTIONS
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

// What the browser is like, in playwright's words: {"isMobile": true, …}.
const [library, executablePath, profile, options] = process.argv.slice(2);
const { chromium } = createRequire(`${library}/package.json`)("playwright-core");

// Nothing is fetched from outside: Chromium's own services are off, and no name of another host is resolved.
// (Requests are not intercepted, because Chromium keeps no cache then, and SillyTavern's page has 400 files.)
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  viewport: { width: 1400, height: 1000 },
  reducedMotion: "reduce",
  args: [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ],
  ...JSON.parse(options),
});
context.setDefaultTimeout(60000);
const page = context.pages()[0] ?? (await context.newPage());

// What the page said that a writer would be alarmed by.
let complaints = [];
page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
await page.exposeFunction("stvcToast", (level, text) => {
  const line = `${level}: ${text}`;
  if (!complaints.includes(line)) complaints.push(line);
});
await page.addInitScript(() => {
  // The server would ask the world for these.
  const { fetch, setTimeout, clearTimeout } = window;
  window.fetch = (resource, ...rest) =>
    String(resource?.url ?? resource).startsWith("/api/horde/")
      ? Promise.resolve(Response.json([]))
      : fetch(resource, ...rest);
  // SillyTavern saves an edit up to a second later: the timers that may still become a save, and when one last went off. Those of others draw, speak or count.
  const others =
    /PromptManager|extensions\/tts|samplerSelect|openai\.js|clearCommandProgress|delay .*executeSlashCommandsOnChatInput|EventEmitter\.fn .*\n.*EventEmitter\.emit/s;
  const caller = () => new Error().stack.split("\n").slice(3, 7).join("\n");
  window.stvcTimers = new Set();
  window.stvcTimer = 0;
  window.setTimeout = (act, delay, ...rest) => {
    if (!(delay >= 50 && delay <= 1500) || others.test(caller()))
      return setTimeout(act, delay, ...rest);
    const timer = setTimeout(
      (...given) => {
        window.stvcTimers.delete(timer);
        window.stvcTimer = performance.now();
        act(...given);
      },
      delay,
      ...rest,
    );
    window.stvcTimers.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => {
    window.stvcTimers.delete(timer);
    clearTimeout(timer);
  };
  // Blur and shadows are a third of the work of a browser without a graphics card.
  document.addEventListener("DOMContentLoaded", () => {
    const style = document.createElement("style");
    style.textContent =
      "* { backdrop-filter: none !important; box-shadow: none !important; text-shadow: none !important; }";
    document.head.append(style);
  });
  const look = (node) => {
    if (!(node instanceof Element)) return;
    for (const toast of [node, ...node.querySelectorAll(".toast")]) {
      const level = ["error", "warning"].find((level) =>
        toast.classList.contains(`toast-${level}`),
      );
      if (level) window.stvcToast(level, toast.innerText.trim());
    }
  };
  new MutationObserver((changes) =>
    changes.forEach((change) => change.addedNodes.forEach(look)),
  ).observe(document, { childList: true, subtree: true });
});

// Requests that write, under way or just done: a save that is still to come would spoil every comparison.
const underWay = new Set();
let lastRequest = Date.now();
const writes = (request) =>
  request.method() === "POST" && new URL(request.url()).pathname.startsWith("/api/");
// Settings and token counts come and go on their own; nothing that is compared depends on them.
const matters = (request) =>
  /^\/api\/(chats|worldinfo|groups|characters)\//.test(new URL(request.url()).pathname);
const heard = (request) => {
  if (matters(request)) lastRequest = Date.now();
};
const done = (request) => {
  if (underWay.delete(request)) heard(request);
};
page.on("request", (request) => {
  if (writes(request)) {
    underWay.add(request);
    heard(request);
  }
});
page.on("requestfinished", done);
page.on("requestfailed", done);
// Of a page that is gone nothing more is heard.
page.on("framenavigated", (frame) => {
  if (frame === page.mainFrame()) underWay.clear();
});

// Everything the page asked of anybody, and whether the extension's own code did.
let traffic = [];
const wire = await context.newCDPSession(page);
await wire.send("Network.enable");
wire.on("Network.requestWillBeSent", ({ request: { method, url }, initiator }) => {
  const own = (initiator.stack?.callFrames ?? []).some((frame) =>
    frame.url.includes("/third-party/stvc/"),
  );
  if (/^(http|ws)/.test(url)) traffic.push({ method, url, own });
});

async function until(condition) {
  const begin = Date.now();
  while (!condition()) {
    if (Date.now() - begin > 60000)
      throw new Error(
        `still under way: ${[...underWay].map((request) => request.url()).join(" ")}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// SillyTavern waits up to a second before it saves what was edited. Where no timer is set, a request that is still to come follows within a moment.
const QUIET = 1300;
const MOMENT = 200;

let lastDeed = 0;

// The model writes nothing, no command runs, and no request is on its way.
async function calm() {
  await page.waitForFunction(
    () =>
      !document.body.dataset.generating &&
      !document.querySelector("#form_sheld.isExecutingCommandsFromChatInput"),
  );
  await until(() => underWay.size === 0);
}

// Something was done; its save may still be to come.
async function did() {
  await calm();
  lastDeed = Date.now();
}

// Everything is saved. Asked for again without anything done in between, it takes no time.
async function settle() {
  await calm();
  const noTimer = () =>
    page.evaluate(
      (moment) => !window.stvcTimers?.size && performance.now() - window.stvcTimer >= moment,
      MOMENT,
    );
  for (;;) {
    await until(() => underWay.size === 0);
    const quiet = () => (underWay.size === 0 ? Date.now() - Math.max(lastRequest, lastDeed) : 0);
    if (quiet() >= QUIET || (quiet() >= MOMENT && (await noTimer()) && quiet() >= MOMENT)) return;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

async function saved() {
  await did();
  await settle();
}

async function ready() {
  await page.waitForFunction(
    () => window.SillyTavern?.getContext && !document.getElementById("preloader"),
    null,
    { timeout: 90000 },
  );
  const welcome = page.locator("dialog.popup[open]", { hasText: "Welcome to SillyTavern" });
  // Who asks after it happened is told at once, but who asks while it happens is not told at all: so it is asked again and again.
  const started = page.waitForFunction(
    () => {
      const { eventSource, eventTypes, event_types } = SillyTavern.getContext();
      eventSource.on((eventTypes ?? event_types).APP_READY, () => {
        window.stvcReady = true;
      });
      return window.stvcReady;
    },
    null,
    { polling: 300, timeout: 90000 },
  );
  const first = await Promise.race([
    started.then(() => "ready"),
    welcome.waitFor({ timeout: 90000 }).then(
      () => "welcome",
      () => "ready",
    ),
  ]);
  if (first === "welcome") await welcome.locator(".popup-button-ok").click();
  await started;
  await saved();
}

const message = (number) => page.locator(`#chat .mes[mesid="${number}"]`);
const popup = () => page.locator("dialog.popup[open]").last();

async function type(text) {
  const box = page.locator("#send_textarea");
  const send = page.locator("#send_but");
  await calm();
  await box.fill(text);
  // For a moment after an answer the page takes no notice of a click: so it is clicked until the text is taken.
  for (let tries = 0; tries < 5; tries++) {
    // Without a model there is no button.
    if (await send.isVisible()) await send.click();
    else await box.press("Enter");
    const taken = page.waitForFunction(
      (text) => document.querySelector("#send_textarea").value !== text,
      text,
      { timeout: 10000 },
    );
    if (
      await taken.then(
        () => true,
        () => false,
      )
    )
      return;
  }
  throw new Error(`not taken: ${text}`);
}

async function command(text) {
  await type(text);
  await page.waitForFunction(() => document.querySelector("#send_textarea").value === "");
  await did();
}

async function openDrawer(icon, inside) {
  if (!(await page.locator(inside).isVisible())) await page.locator(icon).click();
  await page.locator(inside).waitFor();
}

async function closeDrawer(icon, inside) {
  if (await page.locator(inside).isVisible()) await page.locator(icon).click();
  await page.locator(inside).waitFor({ state: "hidden" });
}

async function listCharacters() {
  if (!(await page.locator("#rm_button_create").isVisible()))
    await page.locator("#rm_button_characters").click();
  await page.locator("#rm_button_create").waitFor();
}

async function messageMenu(number, button) {
  await message(number).locator(".extraMesButtonsHint").click();
  await message(number).locator(button).click();
}

const chatId = () => page.evaluate(() => SillyTavern.getContext().getCurrentChatId());

async function chatBecomes(other) {
  await page.waitForFunction((other) => {
    const context = SillyTavern.getContext();
    const now = context.getCurrentChatId();
    return now && now !== other && context.chat.length;
  }, other);
  await did();
  return chatId();
}

async function manageChats() {
  await page.locator("#options_button").click();
  await page.locator("#option_select_chat").click();
  await page.locator("#select_chat_popup").waitFor();
  await page.locator("#select_chat_div .select_chat_block").first().waitFor();
}

const named = (chat) =>
  page.locator(
    `#select_chat_div .select_chat_block[file_name="${chat}"], #select_chat_div .select_chat_block[file_name="${chat}.jsonl"]`,
  );

const verbs = {
  async start({ url }) {
    await page.goto(url, { waitUntil: "domcontentloaded", timeout: 90000 });
    await ready();
  },
  // As one of several users, by the page that asks who.
  async login({ url, user, password }) {
    await page.goto(url, { waitUntil: "domcontentloaded", timeout: 90000 });
    await page.locator("#userList .userSelect", { hasText: user }).click();
    await page.locator("#userPassword").fill(password);
    await page.locator("#loginButton").click();
    await page.waitForURL((there) => !there.pathname.includes("login"), {
      waitUntil: "domcontentloaded",
    });
    await ready();
  },
  // Another writer: nothing that SillyTavern keeps in the browser is left, apart from the cache.
  async forget({ url }) {
    await page.goto("about:blank");
    await context.clearCookies();
    await wire.send("Storage.clearDataForOrigin", {
      origin: new URL(url).origin,
      storageTypes: "cookies,local_storage,indexeddb,service_workers,websql,file_systems",
    });
    [complaints, traffic] = [[], []];
  },
  // Gone in the middle of whatever it does.
  async vanish() {
    await page.goto("about:blank");
  },
  async leave() {
    await settle();
    await page.goto("about:blank");
  },
  async reload() {
    await page.reload({ waitUntil: "domcontentloaded" });
    await ready();
  },
  // It reloads by itself.
  async returns() {
    await page
      .waitForFunction(
        () => !window.SillyTavern?.getContext || document.getElementById("preloader"),
      )
      .catch(() => {});
    await ready();
  },
  settle,
  async connect({ url }) {
    await command("/api quiet=true custom");
    await command(`/api-url quiet=true ${url}`);
    await page.waitForFunction(() => SillyTavern.getContext().onlineStatus !== "no_connection");
  },
  command: ({ text }) => command(text),
  async character({ name, greeting }) {
    await openDrawer("#rightNavDrawerIcon", "#right-nav-panel");
    await listCharacters();
    await page.locator("#rm_button_create").click();
    await page.locator("#character_name_pole").fill(name);
    await page.locator("#firstmessage_textarea").fill(greeting);
    await page.locator("#create_button").evaluate((button) => button.click());
    await page.waitForFunction(
      (name) => SillyTavern.getContext().characters.some((one) => one.name === name),
      name,
    );
    await saved();
    await verbs.go({ name });
    return chatId();
  },
  async group({ name, members }) {
    await openDrawer("#rightNavDrawerIcon", "#right-nav-panel");
    await listCharacters();
    await page.locator("#rm_button_group_chats").click();
    for (const member of members) {
      await page
        .locator("#rm_group_add_members .group_member", { hasText: member })
        .locator('[data-action="add"]')
        .click();
    }
    await page.locator("#rm_group_chat_name").fill(name);
    await page.locator("#rm_group_submit").click();
    await page.waitForFunction(
      (name) => SillyTavern.getContext().groups.some((one) => one.name === name),
      name,
    );
    await saved();
    await verbs.go({ name });
    return chatId();
  },
  async go({ name }) {
    const exactly = page.locator(".ch_name").getByText(name, { exact: true });
    const isOpen = (timeout) =>
      page.waitForFunction(
        (name) => {
          const { characters, characterId, groups, groupId, chat } = SillyTavern.getContext();
          const open = groupId
            ? groups.find((one) => one.id === groupId)?.name
            : characters[characterId]?.name;
          return open === name && chat.length;
        },
        name,
        { timeout },
      );
    // The list is drawn anew now and then, and a click on the old one is lost.
    for (let tries = 0; tries < 5; tries++) {
      await openDrawer("#rightNavDrawerIcon", "#right-nav-panel");
      await listCharacters();
      await page
        .locator("#rm_print_characters_block .entity_block")
        .filter({ has: exactly })
        .first()
        .click();
      if (
        await isOpen(15000).then(
          () => true,
          () => false,
        )
      )
        break;
    }
    await isOpen(1000);
    await saved();
    await closeDrawer("#rightNavDrawerIcon", "#right-nav-panel");
  },
  // A lorebook with one entry, bound to the open character, to the persona or to all chats.
  async book({ name, key, content, to }) {
    await page.evaluate(async (name) => {
      const { saveWorldInfo, updateWorldInfoList } = SillyTavern.getContext();
      await saveWorldInfo(name, { entries: {} }, true);
      await updateWorldInfoList();
    }, name);
    await command(`/createentry file="${name}" key="${key}" ${content}`);
    if (to === "all") await command(`/world state=on silent=true ${name}`);
    await page.evaluate(
      async ({ name, to }) => {
        const { writeExtensionField, characterId, powerUserSettings } = SillyTavern.getContext();
        if (to === "character") await writeExtensionField(characterId, "world", name);
        if (to === "persona") {
          // As the page's own list of lorebooks does it.
          const { user_avatar } = await import("/scripts/personas.js");
          powerUserSettings.persona_description_lorebook = name;
          const known = powerUserSettings.persona_descriptions[user_avatar] ?? {
            description: "",
            position: 0,
          };
          powerUserSettings.persona_descriptions[user_avatar] = { ...known, lorebook: name };
        }
        await (await import("/script.js")).saveSettings();
      },
      { name, to },
    );
    await saved();
  },
  // Say something with a file, chosen as the paper clip does it.
  async attach({ text, name, type, bytes }) {
    await page.setInputFiles("#file_form_input", {
      name,
      mimeType: type,
      buffer: Buffer.from(bytes, "base64"),
    });
    await verbs.say({ text });
    await saved();
  },
  // The pictures that are shown, and what the files say that messages name.
  attachments: () =>
    page.evaluate(async () => {
      const shown = [...document.querySelectorAll("#chat .mes .mes_img")].filter((one) =>
        one.getAttribute("src"),
      );
      await Promise.all(shown.map((one) => one.decode().catch(() => {})));
      const files = SillyTavern.getContext().chat.flatMap(
        (one) => one.extra?.files ?? [one.extra?.file ?? []].flat(),
      );
      const read = async (file) => {
        const answer = await fetch(file.url);
        return answer.ok ? `${file.name}: ${await answer.text()}` : `${file.url}: ${answer.status}`;
      };
      return {
        pictures: shown.map((one) => one.naturalWidth),
        files: await Promise.all(files.map(read)),
      };
    }),
  // Say something and wait for the answer.
  async say({ text }) {
    const before = await page.evaluate(() => SillyTavern.getContext().chat.length);
    await type(text);
    await page.waitForFunction(
      (before) => SillyTavern.getContext().chat.length >= before + 2,
      before,
    );
    await did();
  },
  async edit({ message: number, text }) {
    await message(number).locator(".mes_edit").click();
    await page.locator("#curEditTextarea").fill(text);
    await message(number).locator(".mes_edit_done").click();
    await saved();
  },
  async swipe() {
    const count = () =>
      page.evaluate(() => SillyTavern.getContext().chat.at(-1).swipes?.length ?? 1);
    const before = await count();
    await page.locator("#chat .last_mes .swipe_right").last().click();
    await page.waitForFunction(
      (before) => SillyTavern.getContext().chat.at(-1).swipes?.length > before,
      before,
    );
    await did();
    return count();
  },
  async checkpoint({ message: number, name }) {
    await messageMenu(number, ".mes_create_bookmark");
    await popup().locator(".popup-input").fill(name);
    await popup().locator(".popup-button-ok").click();
    await page.waitForFunction(
      (number) => SillyTavern.getContext().chat[number].extra?.bookmark_link,
      number,
    );
    await saved();
    return page.evaluate(
      (number) => SillyTavern.getContext().chat[number].extra.bookmark_link,
      number,
    );
  },
  async branch({ message: number }) {
    const before = await chatId();
    await messageMenu(number, ".mes_create_branch");
    return chatBecomes(before);
  },
  async back() {
    const before = await chatId();
    await page.locator("#options_button").click();
    await page.locator("#option_back_to_main").click();
    return chatBecomes(before);
  },
  // "Close chat".
  async close() {
    await settle();
    await page.locator("#options_button").click();
    await page.locator("#option_close_chat").locator("visible=true").click();
    await page.waitForFunction(() => !SillyTavern.getContext().getCurrentChatId());
    await saved();
  },
  async open({ chat }) {
    if ((await chatId()) === chat) return;
    await settle();
    await manageChats();
    await named(chat).click();
    await page.waitForFunction(
      (chat) =>
        SillyTavern.getContext().getCurrentChatId() === chat &&
        SillyTavern.getContext().chat.length,
      chat,
    );
    await saved();
  },
  async delete({ chat }) {
    await manageChats();
    await named(chat)
      .locator('xpath=ancestor-or-self::*[.//*[contains(@class,"PastChat_cross")]][1]')
      .locator(".PastChat_cross")
      .click();
    // 1.12 asks in a window of an older kind.
    await page
      .locator("dialog.popup[open] .popup-button-ok, #dialogue_popup_ok")
      .locator("visible=true")
      .last()
      .click();
    await saved();
    await page.locator("#select_chat_cross").click();
    await page.locator("#select_chat_popup").waitFor({ state: "hidden" });
  },
  // What the program itself sees.
  state: () =>
    page.evaluate(async () => {
      const context = SillyTavern.getContext();
      const metadata = context.chatMetadata ?? {};
      const world = metadata.world_info ?? null;
      const book = world ? await context.loadWorldInfo(world) : null;
      return {
        chat: context.getCurrentChatId(),
        messages: context.chat.map((one) => one.mes),
        shown: [...document.querySelectorAll("#chat .mes .mes_text")].map((one) => one.innerText),
        swipes: context.chat.map((one) => one.swipes?.length ?? 0),
        links: context.chat.map((one) => one.extra?.bookmark_link ?? null),
        main_chat: metadata.main_chat ?? null,
        integrity: metadata.integrity ?? null,
        world,
        uids: book ? Object.values(book.entries).map((entry) => entry.uid) : null,
        contents: book ? Object.values(book.entries).map((entry) => entry.content) : null,
        sticky: Object.keys(metadata.timedWorldInfo?.sticky ?? {}),
      };
    }),
  popup: async () =>
    (await page.locator("dialog.popup[open]").count()) ? popup().innerText() : null,
  async press({ button }) {
    await popup().locator(button).click();
  },
  complaints() {
    const all = complaints;
    complaints = [];
    return all;
  },
  traffic() {
    const all = traffic;
    traffic = [];
    return all;
  },
  async tap({ selector }) {
    await page.locator(selector).first().tap();
  },
  async screenshot({ path }) {
    await page.screenshot({ path });
  },
  evaluate: ({ script }) => page.evaluate(script),
  async click({ selector }) {
    await page.locator(selector).first().click();
  },
  async until({ script }) {
    await page.waitForFunction(script, undefined, { timeout: 30000 });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  let clock;
  try {
    const late = new Promise((_, reject) => {
      clock = setTimeout(() => reject(new Error("nothing happens any more")), 150000);
    });
    answer = { ok: (await Promise.race([verbs[request.do](request), late])) ?? null };
  } catch (error) {
    // The first lines say which element was waited for; the browser's own log is long and of no use.
    answer = {
      error: String(error.message)
        .replace(/\x1b\[\d+m/g, "")
        .split("\n")
        .slice(0, 4)
        .join(" "),
    };
  }
  clearTimeout(clock);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await context.close();
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
