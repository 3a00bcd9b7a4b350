//! Examples for the help of each command: examples.txt has each with its meaning below it.

const EXAMPLES: &str = include_str!("examples.txt");

const SHORT: &str = "`--help` tells more, and the options that all commands have: --data, --user, --store, --json, --quiet, --date and others.";

/// Returns the examples, each with the name of its command and its meaning.
fn examples() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let mut lines = EXAMPLES.lines();
    std::iter::from_fn(move || {
        let (line, meaning) = (lines.next()?, lines.next()?);
        Some((line.split(' ').nth(1)?, line, meaning.trim_start()))
    })
}

pub fn add_to(all: clap::Command) -> clap::Command {
    all.mut_subcommands(|command| {
        let own: Vec<_> = examples().filter(|(name, ..)| *name == command.get_name()).collect();
        let mut text = String::from(if own.len() == 1 { "Example:" } else { "Examples:" });
        for (_, line, meaning) in own {
            text.push_str(&format!("\n  {line}\n      {meaning}"));
        }
        let prose = command.get_after_help().map(|prose| format!("{prose}\n\n"));
        let long = format!("{}{text}", prose.unwrap_or_default());
        command.after_help(format!("{text}\n\n{SHORT}")).after_long_help(long)
    })
}

/// Returns the name of a command for as long as the program runs.
pub fn name_of(command: &str) -> Option<&'static str> {
    examples().map(|(name, ..)| name).find(|name| *name == command)
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
        let listed = examples().map(|(_, line, _)| line);
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
            assert_eq!(name_of(name), Some(name));
        }
        for (_, line, _) in examples() {
            let parsed = CommandLine::described().try_get_matches_from(words(line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
