//! What people type: some command lines for each command, with what they do.

type Example = (&'static str, &'static str);

const EXAMPLES: &[(&str, &[Example])] = &[
    ("init", &[("stvc init", "make the store of the SillyTavern you are in")]),
    (
        "snapshot",
        &[
            ("stvc snapshot", "take everything that changed"),
            (
                "stvc snapshot \"Tide Office\" -m \"Before the storm\"",
                "one chat, with words of your own",
            ),
            (
                "stvc snapshot \"Tide Office\" --at 12 --tag dawn",
                "a checkpoint at message 12, called dawn",
            ),
        ],
    ),
    (
        "status",
        &[
            ("stvc status", "what changed, and when the last backup was"),
            ("stvc status Mira", "the same for the chats with Mira in their name"),
        ],
    ),
    (
        "timelines",
        &[
            ("stvc timelines --tree", "every chat below the one it was forked from"),
            (
                "stvc timelines Mira --sort messages",
                "the chats with Mira in their name, the longest first",
            ),
            (
                "stvc timelines \"Branch #2\" --parent \"Tide Office\"",
                "say what it was forked from",
            ),
        ],
    ),
    (
        "log",
        &[
            ("stvc log --graph", "all snapshots, with the forks drawn"),
            ("stvc log \"Tide Office\" --since \"2 weeks ago\"", "what was taken of a chat lately"),
            (
                "stvc log \"Tide Office\" --message 12",
                "every version of a message, and what it is in forks",
            ),
        ],
    ),
    (
        "lore",
        &[
            ("stvc lore", "the lorebooks and their entries, with when each last changed"),
            ("stvc lore Kestrel", "what became of an entry, and at which messages"),
            ("stvc lore Kestrel --blame", "where each of its sentences comes from"),
            ("stvc lore Kestrel --at \"2 weeks ago\"", "what it said then"),
            ("stvc lore \"Tide Office Lore\" --at 12", "all that was known at message 12"),
            ("stvc lore --active 12", "which entries the model was told at message 12"),
        ],
    ),
    (
        "show",
        &[
            ("stvc show \"Tide Office\"", "the newest snapshot of a chat"),
            ("stvc show \"Tide Office@yesterday\"", "what it was at the end of yesterday"),
            ("stvc show \"Tide Office~1\" --message 12", "message 12 as it was one snapshot ago"),
            ("stvc show \"Tide Office\" --format markdown -o story.md", "the story in a file"),
        ],
    ),
    (
        "diff",
        &[
            ("stvc diff \"Tide Office\"", "what changed since the last snapshot"),
            ("stvc diff \"Tide Office@2 weeks ago\" \"Tide Office\"", "what changed in two weeks"),
            ("stvc diff \"Tide Office...Branch #2\"", "what two timelines have each for itself"),
        ],
    ),
    (
        "search",
        &[
            ("stvc search lighthouse keeper", "every text that has both words"),
            (
                "stvc search --who Mira --since 2026-11-01 letter",
                "what Mira said about a letter this month",
            ),
        ],
    ),
    (
        "restore",
        &[
            ("stvc restore \"Tide Office\"", "bring a lost chat back"),
            (
                "stvc restore \"Tide Office@yesterday\" --overwrite",
                "go back to yesterday; what is there is kept",
            ),
            (
                "stvc restore \"Tide Office~3\" --as \"What if\"",
                "an older state as a chat of its own",
            ),
        ],
    ),
    (
        "fork",
        &[
            ("stvc fork \"Tide Office\" --at 12", "another ending from message 12 on"),
            (
                "stvc fork \"Tide Office\" --at 12 --as \"The bell never rang\"",
                "the same under a name of yours",
            ),
        ],
    ),
    (
        "merge",
        &[
            (
                "stvc merge \"Tide Office\" \"What if\"",
                "show what the lorebook of one would give the other",
            ),
            ("stvc merge \"Tide Office\" \"What if\" --yes", "do it"),
        ],
    ),
    (
        "reconstruct",
        &[(
            "stvc reconstruct \"Tide Office\" --dry-run",
            "which states of before can be put together",
        )],
    ),
    (
        "check",
        &[
            ("stvc check", "is everything there that should be?"),
            ("stvc check chats.stvc", "the same for a backup"),
        ],
    ),
    (
        "doctor",
        &[
            ("stvc doctor", "what is wrong with chats and lorebooks"),
            ("stvc doctor --fix", "repair it, asking each time"),
        ],
    ),
    (
        "tag",
        &[
            ("stvc tag dawn \"Tide Office\"", "give the newest snapshot of a chat a name"),
            ("stvc tag dawn \"Tide Office~2\" --move", "let it name another one"),
            ("stvc tag --delete dawn", "take the name away"),
        ],
    ),
    (
        "backup",
        &[
            ("stvc backup chats.stvc", "everything in one file"),
            ("stvc backup --encrypt chats.stvc", "the same with a passphrase"),
            ("stvc backup /media/stick/chats", "a folder, to which only what is new is copied"),
            ("stvc backup", "again to where the last one went"),
        ],
    ),
    (
        "import",
        &[
            ("stvc import", "SillyTavern's own backups, as snapshots of their chats"),
            ("stvc import chats.stvc", "a backup; then `stvc restore --all`"),
        ],
    ),
    (
        "sync",
        &[
            ("stvc sync /media/shared/chats", "through a folder that both computers reach"),
            ("stvc sync me@host:chats.git --dry-run", "what would come and go"),
            ("stvc sync", "again with where it last was"),
        ],
    ),
    ("stats", &[("stvc stats", "what takes how much")]),
    (
        "forget",
        &[
            ("stvc forget --keep-last 10 --keep-daily 30 --dry-run", "what would go"),
            ("stvc forget \"Tide Office\" --keep-within 7d", "only of one chat"),
        ],
    ),
    (
        "erase",
        &[
            ("stvc erase \"Secret garden\" --dry-run", "what would go, and which backups have it"),
            ("stvc erase \"Secret garden\"", "remove it for good, after asking"),
        ],
    ),
    ("gc", &[("stvc gc", "make the store small")]),
    (
        "undo",
        &[
            ("stvc undo", "take the last command back"),
            ("stvc undo 12", "a certain one, as `stvc operations` lists it"),
        ],
    ),
    ("operations", &[("stvc operations -n 5", "what was done last")]),
    (
        "watch",
        &[
            ("stvc watch", "a snapshot after every save, until Ctrl-C"),
            ("stvc watch --install", "have it started at every login"),
        ],
    ),
    (
        "extension",
        &[
            ("stvc extension install", "put it into SillyTavern's page"),
            ("stvc extension", "what is there, and whether the watch runs"),
        ],
    ),
    (
        "view",
        &[
            ("stvc view", "all timelines in the browser, to look at"),
            ("stvc view \"Tide Office\" --write", "its map, with ways to bring states back"),
            (
                "stvc view \"Tide Office\" --out story.html",
                "a page of its own, for keeping or for a friend",
            ),
        ],
    ),
    (
        "config",
        &[
            ("stvc config", "what is set"),
            ("stvc config pager less", "set something"),
            ("stvc config --unset pager", "and no more"),
        ],
    ),
    (
        "completions",
        &[
            ("stvc completions bash > ~/.local/share/bash-completion/completions/stvc", "for bash"),
            ("stvc completions fish > ~/.config/fish/completions/stvc.fish", "for fish"),
        ],
    ),
    ("man", &[("stvc man ~/.local/share/man/man1", "a page for each command")]),
    ("demo", &[("stvc demo", "see it all on a sample library")]),
];

const SHORT: &str = "`--help` tells more, and the options that all commands have: --data, --user, --store, --json, --quiet, --date and others.";

/// Adds the examples to the help of each command.
pub fn add_to(all: clap::Command) -> clap::Command {
    all.mut_subcommands(|command| {
        let of = EXAMPLES.iter().find(|(of, _)| *of == command.get_name());
        with_examples(command, of.map_or(&[], |(_, list)| list))
    })
}

/// Returns the name of a command as the table has it.
pub fn name_of(command: &str) -> Option<&'static str> {
    EXAMPLES.iter().map(|(of, _)| *of).find(|of| *of == command)
}

fn with_examples(command: clap::Command, examples: &[Example]) -> clap::Command {
    let mut text = String::from(if examples.len() == 1 { "Example:" } else { "Examples:" });
    for (line, what) in examples {
        text.push_str(&format!("\n  {line}\n      {what}"));
    }
    let prose = command.get_after_help().map(|prose| format!("{prose}\n\n")).unwrap_or_default();
    command.after_help(format!("{text}\n\n{SHORT}")).after_long_help(format!("{prose}{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command_line::CommandLine;

    /// Words as a shell would split them.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap_or_default();
        let pieces = line.split('"').enumerate();
        pieces
            .flat_map(|(n, piece)| match n % 2 {
                0 => piece.split_whitespace().map(str::to_owned).collect(),
                _ => vec![piece.to_owned()],
            })
            .collect()
    }

    /// Its own description alone must not make anything else of a line than all of them do.
    #[test]
    fn a_line_is_read_as_with_all_commands_at_hand() {
        let listed = EXAMPLES.iter().flat_map(|(_, list)| list.iter().map(|(line, _)| *line));
        let odd = [
            "stvc --user log snapshot",
            "stvc snapshot --data log -- log",
            "stvc --store=log log log --json",
            "stvc log --version",
            "stvc help log",
            "stvc log snapshot tag",
            "stvc snpashot log",
            "stvc",
        ];
        for line in listed.chain(odd) {
            let typed: Vec<_> = words(line).into_iter().map(Into::into).collect();
            let told = |read: Result<CommandLine, clap::Error>| match read {
                Ok(args) => format!("{args:?}"),
                Err(error) => error.to_string(),
            };
            let with_all = || told(CommandLine::read_with(CommandLine::described(), &typed));
            // "2 weeks ago" is another second if the clock moves on between two readings.
            let (before, read, after) = (with_all(), told(CommandLine::read(&typed)), with_all());
            if read != after {
                assert_eq!(read, before, "{line}");
            }
        }
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let whole = CommandLine::described();
        for name in whole.get_subcommands().map(clap::Command::get_name) {
            assert!(EXAMPLES.iter().any(|(of, list)| *of == name && !list.is_empty()), "{name}");
        }
        for (name, examples) in EXAMPLES {
            for (line, _) in *examples {
                let typed = words(line);
                assert_eq!(&typed[1], name);
                let parsed = CommandLine::described().try_get_matches_from(&typed);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
