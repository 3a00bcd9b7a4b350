//! The groups in which `stvc --help` lists the commands.

use std::fmt::Write;

/// The commands of each group, in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    ("Every day", &["snapshot", "watch", "status", "tag"]),
    ("Look back", &["timelines", "log", "show", "diff", "search", "lore", "view"]),
    ("Restore", &["restore", "fork", "undo", "operations", "reconstruct"]),
    ("Several devices and backup", &["backup", "import", "sync", "remote", "merge"]),
    ("Upkeep", &["doctor", "check", "stats", "forget", "erase", "gc"]),
    ("In SillyTavern", &["extension"]),
    ("Setup", &["setup", "init", "config", "demo", "completions", "man", "help"]),
];

/// Adds the grouped list of commands to the help, in place of clap's single list.
pub fn add_to(command: clap::Command) -> clap::Command {
    let styles = command.get_styles().clone();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{heading}{title}:{heading:#}");
        for name in *names {
            let summary = summary(&command, name);
            let _ = writeln!(groups, "  {literal}{name:<11}{literal:#}  {summary}");
        }
        groups.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         {heading}Options:{heading:#}\n{{options}}{{after-help}}"
    ))
}

fn summary(command: &clap::Command, name: &str) -> String {
    match command.find_subcommand(name).and_then(clap::Command::get_about) {
        Some(about) => about.to_string(),
        // clap adds the command `help` only when it parses the command line.
        None => "Print this help, or the help of a command".into(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::command_line::CommandLine;

    #[test]
    fn every_command_is_in_one_group() {
        let command = CommandLine::command();
        let mut all: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.push("help");
        all.sort_unstable();
        let mut grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn summaries_fit_into_80_columns() {
        let command = CommandLine::command();
        let summaries = command.get_subcommands().map(|it| summary(&command, it.get_name()));
        let long: Vec<_> = summaries.filter(|summary| summary.chars().count() > 65).collect();
        assert!(long.is_empty(), "{long:?}");
    }
}
