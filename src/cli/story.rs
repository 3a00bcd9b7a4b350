//! `stvc show --message` and `--text`: prints messages as plain text or Markdown.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::ValueEnum;

use super::error::Result;
use super::output::{Output, dim};
use super::wording::{clean, count, name};
use stvc::snapshots::Time;
use stvc::verbs::read::{Options, SpokenMessage};
use stvc::{Workspace, verbs};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Markdown,
}

#[derive(Debug, Default, clap::Args)]
pub struct StoryArgs {
    /// Print the story in this format
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Include messages that are hidden from the prompt
    #[arg(long)]
    hidden: bool,

    /// Show when each message was sent
    #[arg(long)]
    dates: bool,

    /// Omit the names of the speakers
    #[arg(long)]
    no_names: bool,

    /// Include all swipes
    #[arg(long)]
    swipes: bool,

    /// Include the model's reasoning
    #[arg(long)]
    reasoning: bool,

    /// Write the story to this file, which must not exist
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl StoryArgs {
    pub fn is_any(&self) -> bool {
        let flags = [self.hidden, self.dates, self.no_names, self.swipes, self.reasoning];
        flags.contains(&true) || self.format.is_some() || self.output.is_some()
    }
}

pub fn run(
    snapshot: &str,
    messages: Option<RangeInclusive<usize>>,
    args: &StoryArgs,
    workspace: &Workspace,
    out: &mut Output,
) -> Result<u8> {
    // With `--message`, each message is printed with its number and date.
    let numbers = messages.is_some();
    let options = Options { snapshot: snapshot.to_owned(), messages, with_hidden: args.hidden };
    let report = verbs::read::read(workspace, &options)?;
    let (clock, zone) = (out.clock, report.snapshot.time);
    let date = |message: &SpokenMessage| {
        let said = message.said.filter(|_| args.dates || numbers)?;
        Some(clock.date(Time { seconds: said, ..zone }))
    };
    let style = Style { args, numbers, date: &date };
    let story = style.story(&name(&report.snapshot.timeline), &report.messages);
    if let Some(path) = &args.output {
        verbs::read::write(path, story.as_bytes())?;
    }
    let text = |out: &mut Output| {
        match &args.output {
            Some(path) => {
                let (many, path) = (count(report.messages.len(), "message"), path.display());
                out.say(format!("{many} written to {}.", clean(&path.to_string())));
            }
            None => out.text(&story),
        }
        if report.hidden > 0 {
            let many = count(report.hidden, "hidden message");
            out.warn(&dim(format!("{many} omitted; use --hidden to include hidden messages")));
        }
        out.broken(&report.broken);
    };
    Ok(out.answer(&report, text))
}

struct Style<'a> {
    args: &'a StoryArgs,
    numbers: bool,
    date: &'a dyn Fn(&SpokenMessage) -> Option<String>,
}

impl Style<'_> {
    fn story(&self, title: &str, messages: &[SpokenMessage]) -> String {
        match self.args.format.unwrap_or_default() {
            Format::Text => messages.iter().map(|it| self.text(it)).collect::<Vec<_>>().join("\n"),
            Format::Markdown => {
                let rendered: Vec<_> = messages.iter().map(|it| self.markdown(it)).collect();
                format!("# {}\n\n{}", clean(title), rendered.join("\n"))
            }
        }
    }

    /// Returns the heading of a message: `#12 Mira (2026-11-01 18:30, hidden)`.
    fn heading(&self, message: &SpokenMessage) -> String {
        let number = self.numbers.then(|| format!("#{}", message.number));
        let is_named = !self.args.no_names && !message.name.is_empty();
        let name = is_named.then(|| clean(&message.name));
        let hidden = message.is_hidden.then(|| "hidden".to_owned());
        let facts: Vec<_> = (self.date)(message).into_iter().chain(hidden).collect();
        let facts = (!facts.is_empty()).then(|| format!("({})", facts.join(", ")));
        [number, name, facts].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the text of a message and the other requested parts, each with its title. The text
    /// has no title.
    fn parts(&self, message: &SpokenMessage) -> Vec<(Option<String>, String)> {
        let lines = |text: &str| text.lines().map(clean).collect::<Vec<_>>().join("\n");
        let mut parts = Vec::new();
        if let Some(reasoning) = message.reasoning.as_deref().filter(|_| self.args.reasoning) {
            parts.push((Some("reasoning".to_owned()), lines(reasoning)));
        }
        parts.push((None, lines(&message.text)));
        if self.args.swipes && message.swipes.len() > 1 {
            for (n, swipe) in message.swipes.iter().enumerate() {
                let shown = if message.shown == Some(n) { ", shown" } else { "" };
                let title = format!("swipe {} of {}{shown}", n + 1, message.swipes.len());
                parts.push((Some(title), lines(swipe)));
            }
        }
        parts
    }

    fn text(&self, message: &SpokenMessage) -> String {
        let heading = self.heading(message);
        let mut out = if heading.is_empty() { String::new() } else { format!("{heading}\n") };
        for (title, text) in self.parts(message) {
            out += &title.map(|title| format!("[{title}]\n")).unwrap_or_default();
            out += &format!("{text}\n");
        }
        out
    }

    fn markdown(&self, message: &SpokenMessage) -> String {
        let heading = self.heading(message);
        let mut out = if heading.is_empty() { String::new() } else { format!("**{heading}**\n\n") };
        for (title, text) in self.parts(message) {
            out += &match title {
                Some(title) => {
                    let quoted: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
                    format!("*{title}*\n\n{}\n\n", quoted.join("\n"))
                }
                None => format!("{text}\n\n"),
            };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> SpokenMessage {
        SpokenMessage {
            number: 4,
            name: "Mira <b>".into(),
            is_user: false,
            is_hidden: true,
            said: None,
            text: "One & two.\n<script>alert(1)</script>\n\n\u{202e}Three\u{1b}[31m".into(),
            swipes: vec!["One".into(), "Other".into()],
            shown: Some(1),
            reasoning: Some("Hm.".into()),
            ..SpokenMessage::default()
        }
    }

    #[test]
    fn control_characters_of_messages_are_not_printed() {
        for format in [Format::Text, Format::Markdown] {
            let args = StoryArgs { format: Some(format), swipes: true, ..StoryArgs::default() };
            let style = Style { args: &args, numbers: true, date: &|_| None };
            let rendered = style.story("A <i> title", &[message()]);
            assert!(!rendered.contains('\u{1b}') && !rendered.contains('\u{202e}'), "{rendered}");
        }
    }

    #[test]
    fn story_prints_only_the_requested_parts() {
        let plain = StoryArgs { no_names: true, ..StoryArgs::default() };
        let plain = Style { args: &plain, numbers: false, date: &|_| None };
        let shown = SpokenMessage { is_hidden: false, text: "Just this.".into(), ..message() };
        assert_eq!(plain.story("t", &[shown]), "Just this.\n");
        let all = StoryArgs { swipes: true, reasoning: true, ..StoryArgs::default() };
        let all = Style { args: &all, numbers: true, date: &|_| Some("today".into()) };
        let all = all.story("t", &[message()]);
        assert!(all.starts_with("#4 Mira <b> (today, hidden)\n[reasoning]\nHm.\n"), "{all}");
        assert!(all.contains("[swipe 2 of 2, shown]\nOther\n"), "{all}");
    }
}
