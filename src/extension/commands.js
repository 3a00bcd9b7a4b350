// Slash commands. Each returns what a script can go on with.

import * as deeds from "./deeds.js";
import { ask } from "./mailbox.js";
import { timeline } from "./memory.js";
import { view } from "./viewer.js";

// The older SillyTavern does not hand it out.
const ENUM = "/scripts/slash-commands/SlashCommandEnumValue.js";

/** Tags, for completion. @type {string[]} */
let names = [];

/** @param {(deed: () => Promise<string>) => Promise<string>} careful */
export async function addCommands(careful) {
  const { SlashCommandEnumValue } = await import(ENUM);
  const {
    ARGUMENT_TYPE,
    SlashCommand,
    SlashCommandArgument,
    SlashCommandNamedArgument,
    SlashCommandParser,
  } = SillyTavern.getContext();
  const text = (
    /** @type {string} */ description,
    required = false,
    /** @type {(() => any[]) | undefined} */ enumProvider = undefined,
  ) =>
    SlashCommandArgument.fromProps({
      description,
      typeList: [ARGUMENT_TYPE.STRING],
      isRequired: required,
      ...(enumProvider ? { enumProvider } : {}),
    });
  const named = (
    /** @type {string} */ name,
    /** @type {string} */ description,
    type = ARGUMENT_TYPE.STRING,
  ) => SlashCommandNamedArgument.fromProps({ name, description, typeList: [type] });
  const known = () => names.map((name) => new SlashCommandEnumValue(name));
  const add = (
    /** @type {string} */ name,
    /** @type {string} */ helpString,
    /** @type {string} */ returns,
    /** @type {any} */ deed,
    /** @type {any[]} */ unnamed = [],
    /** @type {any[]} */ more = [],
  ) =>
    SlashCommandParser.addCommandObject(
      SlashCommand.fromProps({
        name,
        helpString,
        returns,
        unnamedArgumentList: unnamed,
        namedArgumentList: more,
        callback: (/** @type {any} */ args, /** @type {any} */ value) =>
          careful(() => deed(args, String(value ?? "").trim())),
      }),
    );
  const last = () => SillyTavern.getContext().chat.length - 1;
  add(
    "stvc-snapshot",
    "Take a snapshot of the open chat with its lorebook.",
    "the snapshot's id",
    async (/** @type {any} */ _, /** @type {string} */ words) =>
      (await deeds.snapshot(words ? { message: words } : {})).id,
    [text("what to call it")],
  );
  add(
    "stvc-tag",
    "Name the open chat as it is, or as it was at a message.",
    "the name",
    async (/** @type {any} */ args, /** @type {string} */ name) =>
      deeds.tag(name, args.at === undefined ? undefined : Number(args.at)),
    [text("the name", true)],
    [named("at", "the message", ARGUMENT_TYPE.NUMBER)],
  );
  add(
    "stvc-fork",
    "Make a chat of its own from a message on, with a lorebook of its own, and open it.",
    "the new chat's name",
    async (/** @type {any} */ args, /** @type {string} */ name) => {
      const at = args.at === undefined ? last() : Number(args.at);
      return (
        await deeds.fork(at, name || `${SillyTavern.getContext().getCurrentChatId()} - ${at}`)
      ).name;
    },
    [text("its name")],
    [named("at", "the message; the last if not given", ARGUMENT_TYPE.NUMBER)],
  );
  add(
    "stvc-restore",
    "Set the open chat and its lorebook back to a snapshot: its id, a tag, ~1 for the one before, @yesterday.",
    "the snapshot",
    async (/** @type {any} */ _, /** @type {string} */ moment) => {
      const snapshot = /^[~@:]/.test(moment) ? `${timeline()}${moment}` : moment;
      const plan = await deeds.planned(snapshot);
      deeds.mustBeOpen(plan);
      await deeds.restore(plan);
      return plan.snapshot;
    },
    [text("the snapshot", true, known)],
  );
  add(
    "stvc-undo",
    "Take the last change of stvc back.",
    "the number of what was undone",
    async () => String(await deeds.undo()),
  );
  add("stvc-timelines", "Show the map of the open chat's story.", "nothing", async () => {
    await view(`#/tree/${encodeURIComponent(timeline())}`);
    return "";
  });
  add(
    "stvc-search",
    "Search all that was ever said.",
    "the matches, a line each",
    async (/** @type {any} */ _, /** @type {string} */ words) => {
      const { lines } = await ask("search", { text: words, count: 20 });
      return lines
        .filter((line) => line.type === "match")
        .map((line) => `${line.timeline} #${line.index ?? ""} ${line.text}`)
        .join("\n");
    },
    [text("the words", true)],
  );
}

/** Ask for the tags, so that they can be completed. */
export async function learn() {
  const { lines } = await ask("timelines");
  names = lines.flatMap((line) => line.tags ?? []);
}
