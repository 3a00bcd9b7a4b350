// Slash commands. Each returns a value that a script can use.

import * as actions from "./actions.js";
import { ask } from "./mailbox.js";
import { timeline } from "./sillytavern.js";
import { openViewer } from "./viewer.js";

// Module of `SlashCommandEnumValue`, which SillyTavern 1.12 does not export to extensions.
const ENUM = "/scripts/slash-commands/SlashCommandEnumValue.js";

/** Tags that the completion of slash commands offers. @type {string[]} */
let tags = [];

/** @param {(action: () => Promise<string>) => Promise<string>} runAction */
export async function addCommands(runAction) {
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
    {
      isRequired = false,
      enumProvider = /** @type {(() => any[]) | undefined} */ (undefined),
    } = {},
  ) =>
    SlashCommandArgument.fromProps({
      description,
      typeList: [ARGUMENT_TYPE.STRING],
      isRequired,
      ...(enumProvider ? { enumProvider } : {}),
    });
  const number = (/** @type {string} */ name, /** @type {string} */ description) =>
    SlashCommandNamedArgument.fromProps({ name, description, typeList: [ARGUMENT_TYPE.NUMBER] });
  const knownTags = () => tags.map((name) => new SlashCommandEnumValue(name));
  const add = (
    /** @type {string} */ name,
    /** @type {string} */ helpString,
    /** @type {string} */ returns,
    /** @type {(args: any, text: string) => Promise<string>} */ act,
    /** @type {any[]} */ unnamedArgumentList = [],
    /** @type {any[]} */ namedArgumentList = [],
  ) =>
    SlashCommandParser.addCommandObject(
      SlashCommand.fromProps({
        name,
        helpString,
        returns,
        unnamedArgumentList,
        namedArgumentList,
        callback: (/** @type {any} */ args, /** @type {any} */ value) =>
          runAction(() => act(args, String(value ?? "").trim())),
      }),
    );
  const lastMessage = () => SillyTavern.getContext().chat.length - 1;
  add(
    "stvc-snapshot",
    "Creates a snapshot of the open chat and its lorebook.",
    "id of the snapshot",
    async (_, description) =>
      (await actions.createSnapshot(description ? { message: description } : {})).id,
    [text("description of the snapshot")],
  );
  add(
    "stvc-tag",
    "Tags the open chat as it is now, or as it is at a message.",
    "name of the tag",
    async (args, name) => actions.tag(name, args.at === undefined ? undefined : Number(args.at)),
    [text("name of the tag", { isRequired: true })],
    [number("at", "number of the message")],
  );
  add(
    "stvc-fork",
    "Forks the open chat at a message, with its own lorebook, and opens the fork.",
    "name of the new chat",
    async (args, name) => {
      const at = args.at === undefined ? lastMessage() : Number(args.at);
      const chat = SillyTavern.getContext().getCurrentChatId();
      return (await actions.fork(at, name || `${chat} - ${at}`)).name;
    },
    [text("name of the new chat")],
    [number("at", "number of the message; default: the last one")],
  );
  add(
    "stvc-restore",
    "Restores the open chat and its lorebook to a snapshot: an id, a tag, ~1 for the previous" +
      " snapshot, or a time such as @yesterday.",
    "id of the snapshot",
    async (_, moment) => {
      const snapshot = /^[~@:]/.test(moment) ? `${timeline()}${moment}` : moment;
      const plan = await actions.planRestore(snapshot);
      actions.requireOpenChat(plan);
      await actions.restore(plan);
      return plan.snapshot;
    },
    [text("snapshot to restore", { isRequired: true, enumProvider: knownTags })],
  );
  add("stvc-undo", "Undoes the last change of stvc.", "number of the undone operation", async () =>
    String(await actions.undo()),
  );
  add("stvc-timelines", "Opens the map of the open chat.", "nothing", async () => {
    await openViewer(`#/tree/${encodeURIComponent(timeline())}`);
    return "";
  });
  add(
    "stvc-search",
    "Searches all messages and lorebook entries in all snapshots.",
    "matches, one per line",
    async (_, words) => {
      const { lines } = await ask("search", { text: words, count: 20 });
      return lines
        .filter((line) => line.type === "match")
        .map((line) => `${line.timeline} #${line.index ?? ""} ${line.text}`)
        .join("\n");
    },
    [text("words to search for", { isRequired: true })],
  );
}

/** Loads the tags for completion. */
export async function loadTags() {
  const { lines } = await ask("timelines");
  tags = lines.flatMap((line) => line.tags ?? []);
}
