// Controls the real page of SillyTavern in headless Chromium, by its real buttons.
//
// Reads one request per line, {"do": "say", "text": "…"}, and answers each with one line,
// {"ok": …} or {"error": "…"}. When stdin is closed, it closes the browser and removes its profile.
// usage: node driver.mjs PLAYWRIGHT_CORE CHROMIUM PROFILE OPTIONS
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

// OPTIONS are playwright's options of the browser: {"isMobile": true, …}.
const [library, executablePath, profile, options] = process.argv.slice(2);
const { chromium } = createRequire(`${library}/package.json`)("playwright-core");

// Nothing is fetched from other hosts: Chromium's own services are off, and no host name resolves.
// Requests are not intercepted, because that disables the cache: SillyTavern's page has 400 files.
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

// Warnings and errors that the page showed.
let warnings = [];
page.on("pageerror", (error) => warnings.push(`page error: ${error.message}`));
await page.exposeFunction("stvcToast", (level, text) => {
  const line = `${level}: ${text}`;
  if (!warnings.includes(line)) warnings.push(line);
});
await page.addInitScript(() => {
  // The server would request these from another host.
  const { fetch, setTimeout, clearTimeout } = window;
  window.fetch = (resource, ...rest) =>
    String(resource?.url ?? resource).startsWith("/api/horde/")
      ? Promise.resolve(Response.json([]))
      : fetch(resource, ...rest);
  // SillyTavern saves an edit up to a second later. Records pending timers that may save, and when
  // one last fired. Timers of these callers never save.
  const unrelated = new RegExp(
    [
      "PromptManager|extensions/tts|samplerSelect|openai\\.js|clearCommandProgress",
      "delay .*executeSlashCommandsOnChatInput",
      "EventEmitter\\.fn .*\\n.*EventEmitter\\.emit",
    ].join("|"),
    "s",
  );
  const caller = () => new Error().stack.split("\n").slice(3, 7).join("\n");
  window.stvcTimers = new Set();
  window.stvcTimer = 0;
  window.setTimeout = (act, delay, ...rest) => {
    if (!(delay >= 50 && delay <= 1500) || unrelated.test(caller()))
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
  // Without a graphics card, blur and shadows take a third of the time.
  document.addEventListener("DOMContentLoaded", () => {
    const style = document.createElement("style");
    style.textContent = ["backdrop-filter", "box-shadow", "text-shadow"]
      .map((property) => `* { ${property}: none !important; }`)
      .join("\n");
    document.head.append(style);
  });
  const recordToasts = (node) => {
    if (!(node instanceof Element)) return;
    for (const toast of [node, ...node.querySelectorAll(".toast")]) {
      const level = ["error", "warning"].find((level) =>
        toast.classList.contains(`toast-${level}`),
      );
      if (level) window.stvcToast(level, toast.innerText.trim());
    }
  };
  new MutationObserver((changes) =>
    changes.forEach((change) => change.addedNodes.forEach(recordToasts)),
  ).observe(document, { childList: true, subtree: true });
});

// Pending requests that write. A late save would make every comparison of files fail.
const pending = new Set();
let lastRequest = Date.now();
const isWrite = (request) =>
  request.method() === "POST" && new URL(request.url()).pathname.startsWith("/api/");
// Requests that may write a compared file; settings and token counts do not.
const isCompared = (request) =>
  /^\/api\/(chats|worldinfo|groups|characters)\//.test(new URL(request.url()).pathname);
const noteRequest = (request) => {
  if (isCompared(request)) lastRequest = Date.now();
};
const onEnd = (request) => {
  if (pending.delete(request)) noteRequest(request);
};
page.on("request", (request) => {
  if (isWrite(request)) {
    pending.add(request);
    noteRequest(request);
  }
});
page.on("requestfinished", onEnd);
page.on("requestfailed", onEnd);
// A closed page reports no end of its requests.
page.on("framenavigated", (frame) => {
  if (frame === page.mainFrame()) pending.clear();
});

// All requests of the page, and whether the extension's own code sent them.
let requests = [];
const devtools = await context.newCDPSession(page);
await devtools.send("Network.enable");
devtools.on("Network.requestWillBeSent", ({ request: { method, url }, initiator }) => {
  const own = (initiator.stack?.callFrames ?? []).some((frame) =>
    frame.url.includes("/third-party/stvc/"),
  );
  if (/^(http|ws)/.test(url)) requests.push({ method, url, own });
});

async function waitUntil(condition) {
  const start = Date.now();
  while (!condition()) {
    if (Date.now() - start > 60000)
      throw new Error(`still pending: ${[...pending].map((request) => request.url()).join(" ")}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// SillyTavern waits up to a second before it saves an edit. Without a pending timer, the save
// follows within a short time. In milliseconds.
const LONG_QUIET = 1300;
const SHORT_QUIET = 200;

let lastAction = 0;

// Waits until no reply is generated, no command runs, and no request is pending.
async function waitForIdle() {
  await page.waitForFunction(
    () =>
      !document.body.dataset.generating &&
      !document.querySelector("#form_sheld.isExecutingCommandsFromChatInput"),
  );
  await waitUntil(() => pending.size === 0);
}

// Ends an action whose save may still follow.
async function endAction() {
  await waitForIdle();
  lastAction = Date.now();
}

// Waits until everything is saved. Without an action since the last call, it returns at once.
async function settle() {
  await waitForIdle();
  const noTimer = () =>
    page.evaluate(
      (quiet) => !window.stvcTimers?.size && performance.now() - window.stvcTimer >= quiet,
      SHORT_QUIET,
    );
  for (;;) {
    await waitUntil(() => pending.size === 0);
    const quiet = () => (pending.size === 0 ? Date.now() - Math.max(lastRequest, lastAction) : 0);
    if (
      quiet() >= LONG_QUIET ||
      (quiet() >= SHORT_QUIET && (await noTimer()) && quiet() >= SHORT_QUIET)
    )
      return;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

async function endAndSettle() {
  await endAction();
  await settle();
}

async function waitForApp() {
  await page.waitForFunction(
    () => window.SillyTavern?.getContext && !document.getElementById("preloader"),
    null,
    { timeout: 90000 },
  );
  const welcome = page.locator("dialog.popup[open]", { hasText: "Welcome to SillyTavern" });
  // A listener that is added while the event is being emitted is never called, so one is added
  // again and again.
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
  await endAndSettle();
}

const message = (number) => page.locator(`#chat .mes[mesid="${number}"]`);
const popup = () => page.locator("dialog.popup[open]").last();

async function type(text) {
  const box = page.locator("#send_textarea");
  const send = page.locator("#send_but");
  await waitForIdle();
  await box.fill(text);
  // Just after an answer the page ignores clicks, so it is clicked until the field is cleared.
  for (let attempt = 0; attempt < 5; attempt++) {
    // Without a model the button is hidden.
    if (await send.isVisible()) await send.click();
    else await box.press("Enter");
    const accepted = page.waitForFunction(
      (text) => document.querySelector("#send_textarea").value !== text,
      text,
      { timeout: 10000 },
    );
    if (
      await accepted.then(
        () => true,
        () => false,
      )
    )
      return;
  }
  throw new Error(`the page did not accept: ${text}`);
}

async function typeCommand(text) {
  await type(text);
  await page.waitForFunction(() => document.querySelector("#send_textarea").value === "");
  await endAction();
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

async function waitForOtherChat(other) {
  await page.waitForFunction((other) => {
    const context = SillyTavern.getContext();
    const now = context.getCurrentChatId();
    return now && now !== other && context.chat.length;
  }, other);
  await endAction();
  return chatId();
}

async function manageChats() {
  await page.locator("#options_button").click();
  await page.locator("#option_select_chat").click();
  await page.locator("#select_chat_popup").waitFor();
  await page.locator("#select_chat_div .select_chat_block").first().waitFor();
}

const chatRow = (chat) =>
  page.locator(
    [chat, `${chat}.jsonl`]
      .map((file) => `#select_chat_div .select_chat_block[file_name="${file}"]`)
      .join(", "),
  );

const verbs = {
  async start({ url }) {
    await page.goto(url, { waitUntil: "domcontentloaded", timeout: 90000 });
    await waitForApp();
  },
  // Logs in as one of several users.
  async login({ url, user, password }) {
    await page.goto(url, { waitUntil: "domcontentloaded", timeout: 90000 });
    await page.locator("#userList .userSelect", { hasText: user }).click();
    await page.locator("#userPassword").fill(password);
    await page.locator("#loginButton").click();
    await page.waitForURL((there) => !there.pathname.includes("login"), {
      waitUntil: "domcontentloaded",
    });
    await waitForApp();
  },
  // Removes what SillyTavern stores in the browser, except the cache.
  async clear_browser_data({ url }) {
    await page.goto("about:blank");
    await context.clearCookies();
    await devtools.send("Storage.clearDataForOrigin", {
      origin: new URL(url).origin,
      storageTypes: "cookies,local_storage,indexeddb,service_workers,websql,file_systems",
    });
    [warnings, requests] = [[], []];
  },
  // Closes the page in the middle of an action.
  async abandon_page() {
    await page.goto("about:blank");
  },
  async close_page() {
    await settle();
    await page.goto("about:blank");
  },
  async reload() {
    await page.reload({ waitUntil: "domcontentloaded" });
    await waitForApp();
  },
  // Waits until the page has reloaded itself.
  async wait_for_reload() {
    await page
      .waitForFunction(
        () => !window.SillyTavern?.getContext || document.getElementById("preloader"),
      )
      .catch(() => {});
    await waitForApp();
  },
  settle,
  async connect_model({ url }) {
    await typeCommand("/api quiet=true custom");
    await typeCommand(`/api-url quiet=true ${url}`);
    await page.waitForFunction(() => SillyTavern.getContext().onlineStatus !== "no_connection");
  },
  type_command: ({ text }) => typeCommand(text),
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
    await endAndSettle();
    await verbs.select({ name });
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
    await endAndSettle();
    await verbs.select({ name });
    return chatId();
  },
  async select({ name }) {
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
    // SillyTavern redraws the list now and then, and a click on the old one is lost.
    for (let attempt = 0; attempt < 5; attempt++) {
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
    await endAndSettle();
    await closeDrawer("#rightNavDrawerIcon", "#right-nav-panel");
  },
  // Creates a lorebook with one entry, bound to the open character, the persona or all chats.
  async add_lorebook({ name, key, content, to }) {
    await page.evaluate(async (name) => {
      const { saveWorldInfo, updateWorldInfoList } = SillyTavern.getContext();
      await saveWorldInfo(name, { entries: {} }, true);
      await updateWorldInfoList();
    }, name);
    await typeCommand(`/createentry file="${name}" key="${key}" ${content}`);
    if (to === "all") await typeCommand(`/world state=on silent=true ${name}`);
    await page.evaluate(
      async ({ name, to }) => {
        const { writeExtensionField, characterId, powerUserSettings } = SillyTavern.getContext();
        if (to === "character") await writeExtensionField(characterId, "world", name);
        if (to === "persona") {
          // As SillyTavern's own list of lorebooks does it.
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
    await endAndSettle();
  },
  // Sends a message with a file, attached like by the paper clip.
  async attach({ text, name, type, bytes }) {
    await page.setInputFiles("#file_form_input", {
      name,
      mimeType: type,
      buffer: Buffer.from(bytes, "base64"),
    });
    await verbs.say({ text });
    await endAndSettle();
  },
  // Returns the widths of the pictures and the contents of the files in the open chat.
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
  // Sends a message and waits for the answer.
  async say({ text }) {
    const before = await page.evaluate(() => SillyTavern.getContext().chat.length);
    await type(text);
    await page.waitForFunction(
      (before) => SillyTavern.getContext().chat.length >= before + 2,
      before,
    );
    await endAction();
  },
  async edit({ message: number, text }) {
    await message(number).locator(".mes_edit").click();
    await page.locator("#curEditTextarea").fill(text);
    await message(number).locator(".mes_edit_done").click();
    await endAndSettle();
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
    await endAction();
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
    await endAndSettle();
    return page.evaluate(
      (number) => SillyTavern.getContext().chat[number].extra.bookmark_link,
      number,
    );
  },
  async branch({ message: number }) {
    const before = await chatId();
    await messageMenu(number, ".mes_create_branch");
    return waitForOtherChat(before);
  },
  async back() {
    const before = await chatId();
    await page.locator("#options_button").click();
    await page.locator("#option_back_to_main").click();
    return waitForOtherChat(before);
  },
  // Clicks "Close chat".
  async close_chat() {
    await settle();
    await page.locator("#options_button").click();
    await page.locator("#option_close_chat").locator("visible=true").click();
    await page.waitForFunction(() => !SillyTavern.getContext().getCurrentChatId());
    await endAndSettle();
  },
  async open({ chat }) {
    if ((await chatId()) === chat) return;
    await settle();
    await manageChats();
    await chatRow(chat).click();
    await page.waitForFunction(
      (chat) =>
        SillyTavern.getContext().getCurrentChatId() === chat &&
        SillyTavern.getContext().chat.length,
      chat,
    );
    await endAndSettle();
  },
  async delete({ chat }) {
    await manageChats();
    await chatRow(chat)
      .locator('xpath=ancestor-or-self::*[.//*[contains(@class,"PastChat_cross")]][1]')
      .locator(".PastChat_cross")
      .click();
    // 1.12 asks in a popup of another kind.
    await page
      .locator("dialog.popup[open] .popup-button-ok, #dialogue_popup_ok")
      .locator("visible=true")
      .last()
      .click();
    await endAndSettle();
    await page.locator("#select_chat_cross").click();
    await page.locator("#select_chat_popup").waitFor({ state: "hidden" });
  },
  // The open chat, its metadata and its lorebook in the page's memory.
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
  take_warnings() {
    const all = warnings;
    warnings = [];
    return all;
  },
  take_requests() {
    const all = requests;
    requests = [];
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
  async wait_until({ script }) {
    await page.waitForFunction(script, undefined, { timeout: 30000 });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  let timer;
  try {
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("no result after 150 seconds")), 150000);
    });
    answer = { ok: (await Promise.race([verbs[request.do](request), timeout])) ?? null };
  } catch (error) {
    // The first lines name the element that was waited for; the rest is the browser's log.
    answer = {
      error: String(error.message)
        .replace(/\x1b\[\d+m/g, "")
        .split("\n")
        .slice(0, 4)
        .join(" "),
    };
  }
  clearTimeout(timer);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await context.close();
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
