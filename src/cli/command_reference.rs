//! `docs/cli.md`, made from what clap knows.

use super::command_line::CommandLine;

/// The whole reference as Markdown.
fn reference() -> String {
    let mut root = CommandLine::described().term_width(100);
    root.build();
    let mut text = String::from(
        "# The commands\n\nMade from the program's own help; a test keeps it so. \
         Exit codes: 0 done, also when there was nothing to do; 1 failed; 2 wrong usage; 3 some done and some not; \
         4 refused by a rule, nothing changed; 10 no store; 11 locked by another process; 130 interrupted. \
         `diff --exit-code` as git: 1 if something changed. `search` as grep: 1 if nothing was found.\n",
    );
    text.push_str(&section("stvc", &mut root));
    let names: Vec<_> =
        root.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names.iter().filter(|name| *name != "help") {
        if let Some(command) = root.find_subcommand_mut(name) {
            text.push_str(&section(&format!("stvc {name}"), command));
        }
    }
    text
}

fn section(title: &str, command: &mut clap::Command) -> String {
    let help = command.render_long_help().to_string();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    format!("\n## {title}\n\n```text\n{}\n```\n", help.join("\n").trim())
}

/// `UPDATE_DOCS=1 cargo test reference` writes it anew.
#[test]
fn the_command_reference_is_what_the_program_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");
    let made = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == made, "docs/cli.md is out of date; run UPDATE_DOCS=1 cargo test reference");
}
