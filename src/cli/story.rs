//! A story to read: text for a terminal or a file, or Markdown.

use super::wording::clean;
use clap::ValueEnum;
use stvc::verbs::read::SpokenMessage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Markdown,
}

/// When a message was said, in words.
pub type Date = dyn Fn(&SpokenMessage) -> Option<String>;

/// What of each message is told besides its text.
pub struct Style {
    pub format: Format,
    pub names: bool,
    pub numbers: bool,
    /// The date of a message, if that is wanted and known.
    pub date: Box<Date>,
    pub swipes: bool,
    pub reasoning: bool,
}

/// All of it as one text.
pub fn tell(title: &str, messages: &[SpokenMessage], style: &Style) -> String {
    let told = messages.iter().map(|message| match style.format {
        Format::Text => text(message, style),
        Format::Markdown => markdown(message, style),
    });
    match style.format {
        Format::Text => told.collect::<Vec<_>>().join("\n"),
        Format::Markdown => {
            format!("# {}\n\n{}", one_line(title), told.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn one_line(text: &str) -> String {
    clean(text)
}

/// Who and when: `#12 Mira (2026-11-01 18:30, hidden)`.
fn heading(message: &SpokenMessage, style: &Style) -> String {
    let number = style.numbers.then(|| format!("#{}", message.number));
    let name = (style.names && !message.name.is_empty()).then(|| one_line(&message.name));
    let mut facts: Vec<_> = (style.date)(message).into_iter().collect();
    facts.extend(message.is_hidden.then(|| "hidden".to_owned()));
    let facts = (!facts.is_empty()).then(|| format!("({})", facts.join(", ")));
    [number, name, facts].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The text, and what else is wanted of it, each with what it is.
fn parts<'m>(message: &'m SpokenMessage, style: &Style) -> Vec<(Option<String>, &'m str)> {
    let mut parts = Vec::new();
    if let Some(reasoning) = message.reasoning.as_deref().filter(|_| style.reasoning) {
        parts.push((Some("reasoning".to_owned()), reasoning));
    }
    parts.push((None, message.text.as_str()));
    if style.swipes && message.swipes.len() > 1 {
        for (n, swipe) in message.swipes.iter().enumerate() {
            let shown = if message.shown == Some(n) { ", shown" } else { "" };
            let what = format!("swipe {} of {}{shown}", n + 1, message.swipes.len());
            parts.push((Some(what), swipe));
        }
    }
    parts
}

/// Lines as they are, without what a terminal would obey.
fn lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

fn text(message: &SpokenMessage, style: &Style) -> String {
    let heading = heading(message, style);
    let mut out = if heading.is_empty() { String::new() } else { format!("{heading}\n") };
    for (what, text) in parts(message, style) {
        if let Some(what) = what {
            out += &format!("[{what}]\n");
        }
        out += &lines(text);
        out.push('\n');
    }
    out
}

fn markdown(message: &SpokenMessage, style: &Style) -> String {
    let heading = heading(message, style);
    let mut out = if heading.is_empty() { String::new() } else { format!("**{heading}**\n\n") };
    for (what, text) in parts(message, style) {
        match what {
            Some(what) => {
                let quoted: Vec<_> = lines(text).lines().map(|line| format!("> {line}")).collect();
                out += &format!("*{what}*\n\n{}\n\n", quoted.join("\n"));
            }
            None => out += &format!("{}\n\n", lines(text)),
        }
    }
    out
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
        }
    }

    fn style(format: Format, more: bool) -> Style {
        Style {
            format,
            names: true,
            numbers: true,
            date: Box::new(|_| Some("today".into())),
            swipes: more,
            reasoning: more,
        }
    }

    #[test]
    fn nothing_in_a_message_is_obeyed() {
        for format in [Format::Text, Format::Markdown] {
            let told = tell("A <i> title", &[message()], &style(format, true));
            assert!(!told.contains('\u{1b}') && !told.contains('\u{202e}'), "{told}");
        }
    }

    #[test]
    fn what_is_not_wanted_is_not_told() {
        let plain = Style {
            names: false,
            numbers: false,
            date: Box::new(|_| None),
            ..style(Format::Text, false)
        };
        let shown = SpokenMessage { is_hidden: false, text: "Just this.".into(), ..message() };
        assert_eq!(tell("t", &[shown], &plain), "Just this.\n");
        let all = tell("t", &[message()], &style(Format::Text, true));
        assert!(all.starts_with("#4 Mira <b> (today, hidden)\n[reasoning]\nHm.\n"), "{all}");
        assert!(all.contains("[swipe 2 of 2, shown]\nOther\n"), "{all}");
    }
}
