//! A story to read: text for a terminal or a file, Markdown, or a page for the browser.

use super::wording::clean;
use clap::ValueEnum;
use stvc::api::security_policy;
use stvc::verbs::read::SpokenMessage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Markdown,
    Html,
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
        Format::Html => html(message, style),
    });
    match style.format {
        Format::Text => told.collect::<Vec<_>>().join("\n"),
        Format::Markdown => {
            format!("# {}\n\n{}", one_line(title), told.collect::<Vec<_>>().join("\n"))
        }
        Format::Html => {
            format!("{}{}</body>\n</html>\n", page_head(title), told.collect::<String>())
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

fn html(message: &SpokenMessage, style: &Style) -> String {
    let class = match (message.is_user, message.is_hidden) {
        (_, true) => "hidden",
        (true, _) => "user",
        _ => "character",
    };
    let heading = heading(message, style);
    let mut out = format!("<article class=\"{class}\" id=\"m{}\">\n", message.number);
    if !heading.is_empty() {
        out += &format!("<h2>{}</h2>\n", escaped(&heading));
    }
    for (what, text) in parts(message, style) {
        let body: String = paragraphs(text);
        match what {
            Some(what) => {
                let what = escaped(&what);
                out += &format!("<details><summary>{what}</summary>\n{body}</details>\n");
            }
            None => out += &body,
        }
    }
    out + "</article>\n"
}

fn paragraphs(text: &str) -> String {
    let lines = lines(text);
    let paragraphs = lines.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    let told = paragraphs.map(|paragraph| {
        format!("<p>{}</p>\n", escaped(paragraph.trim_matches('\n')).replace('\n', "<br>\n"))
    });
    told.collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn page_head(title: &str) -> String {
    let title = escaped(&one_line(title));
    format!(
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n",
        security_policy::READING
    )
}

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 1.05rem/1.6 Georgia, serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
h2 { font: bold 0.85rem sans-serif; margin: 1.6rem 0 0; opacity: 0.75; }
.hidden { opacity: 0.6; }
.user p { font-style: italic; }
";

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
        for format in [Format::Text, Format::Markdown, Format::Html] {
            let told = tell("A <i> title", &[message()], &style(format, true));
            assert!(!told.contains('\u{1b}') && !told.contains('\u{202e}'), "{told}");
        }
        let page = tell("A <i> title", &[message()], &style(Format::Html, true));
        assert!(!page.contains("<script>") && !page.contains("<i>") && !page.contains("<b>"));
        assert!(page.contains("One &amp; two.<br>\n&lt;script&gt;"), "{page}");
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
