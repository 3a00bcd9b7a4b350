//! Examples in the help of each command. In examples.txt, each example is followed by a line that
//! explains it.

const EXAMPLES: &str = include_str!("examples.txt");

const SHORT: &str = "Use `--help` for details and for the options of all commands: --data, --user, --store, --json, --quiet, --date and others.";

/// Returns each example with the name of its command and its explanation.
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

/// Returns the name of a command as a static string.
pub fn name_of(command: &str) -> Option<&'static str> {
    examples().map(|(name, ..)| name).find(|name| *name == command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command_line::CommandLine;

    /// Splits a line into words, as a shell would.
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

    /// A command line must have the same meaning whether it is parsed with all definitions or only
    /// with that of its command.
    #[test]
    fn command_line_parses_equally_with_one_or_all_commands_defined() {
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
            // A date such as "2 weeks ago" changes if the clock advances between two parses.
            let (before, read, after) = (with_all(), told(CommandLine::read(&typed)), with_all());
            if read != after {
                assert_eq!(read, before, "{line}");
            }
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
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
