use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, cut, fork_point, name, recap, short, size};
use super::{args, restore};
use stvc::engine::Workspace;
use stvc::lines::answers::Answer;
use stvc::st::User;
use stvc::verbs;

/// `3 chats, character Mira, all chats`.
fn users(users: &[User]) -> String {
    let chats = users.iter().filter(|user| matches!(user, User::Chat(_) | User::Group(_))).count();
    let mut told: Vec<_> = (chats > 0).then(|| count(chats as u64, "chat")).into_iter().collect();
    told.extend(users.iter().filter_map(|user| match user {
        User::Chat(_) | User::Group(_) => None,
        User::AllChats => Some("all chats".to_owned()),
        User::Character(name) | User::Card(name) => Some(format!("character {}", clean(name))),
        User::Persona(name) if name.is_empty() => Some("the persona".to_owned()),
        User::Persona(name) => Some(format!("persona {}", clean(name))),
    }));
    told.join(", ")
}

pub fn run(args: &args::Show, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::show::show(workspace, &args.snapshot)?;
    if out.is_json() {
        return Ok(out.answer(&report));
    }
    let snapshot = &report.snapshot;
    let field =
        |key: &str, value: String| format!("{} {value}", paint(LOOK.dim, format!("{key:<10}")));
    out.line(field("snapshot", paint(LOOK.id, snapshot.id)));
    out.line(field("timeline", paint(LOOK.name, name(&snapshot.timeline))));
    if report.timeline != snapshot.timeline {
        out.line(field("now", paint(LOOK.name, name(&report.timeline))));
    }
    out.line(field("taken", out.clock(workspace).both(snapshot.time)));
    out.line(field("subject", clean(&snapshot.subject)));
    if !report.tags.is_empty() {
        let tags: Vec<_> = report.tags.iter().map(|tag| paint(LOOK.tag, clean(tag))).collect();
        out.line(field("tags", tags.join(", ")));
    }
    out.line(field("kind", clean(snapshot.kind.as_str())));
    if let Some(source) = &snapshot.source {
        out.line(field("from", clean(source)));
    }
    out.line(field("content", format!("b3:{}", snapshot.content)));
    for parent in &snapshot.parents {
        let fork = snapshot.fork_at.map(|at| format!(" ({})", fork_point(at)));
        out.line(field("follows", format!("{parent}{}", fork.unwrap_or_default())));
    }
    match report.at {
        Some(at) if report.origin.is_some() => {
            let told = format!("as it was at message #{at}; no snapshot was taken then");
            out.line(field("at", told));
        }
        _ if snapshot.timeline.is_chat() => {
            out.line(field("messages", snapshot.messages.to_string()));
        }
        _ => {}
    }
    for file in &report.manifest.files {
        out.line(field(
            file.role.as_str(),
            format!("{} ({})", clean(&file.path), size(file.bytes)),
        ));
    }
    if let Some(book) = &report.book {
        let taken = out.clock(workspace).both(book.time);
        let told = format!("changed after that: snapshot {}, taken {taken}", short(book.id));
        out.line(field("", told));
    }
    if let Some(state) = &report.manifest.checkpoint {
        out.line(field("recap", recap(state)));
        if !state.queue_was_empty {
            let active = count(state.active_operations, "operation");
            out.line(field("queue", format!("{active} waited in it when this was taken")));
        }
    }
    if !report.used_by.is_empty() {
        out.line(field("used by", users(&report.used_by)));
    }
    let room = out.columns().saturating_sub(8);
    if !report.card.is_empty() {
        out.line("");
        for (key, text) in &report.card {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let told = cut(&clean(&text), room.saturating_sub(20).max(20));
            out.line(format!("  {}  {told}", paint(LOOK.dim, format!("{key:<26}"))));
        }
    }
    if !report.entries.is_empty() {
        out.line("");
        let many = report.entries.len();
        let entries = if many == 1 { "entry" } else { "entries" };
        out.line(format!("{many} lorebook {entries}:"));
        for (key, title) in report.entries.iter().take(20) {
            out.line(format!("  {:>4}  {}", clean(key), cut(&clean(title), room)));
        }
        if report.entries.len() > 20 {
            out.line(format!("        … and {} more", report.entries.len() - 20));
        }
    }
    if !report.last_messages.is_empty() {
        out.line("");
        out.line("It ends with:");
        for (number, message) in &report.last_messages {
            let text = cut(&clean(&message.text), room * 2);
            out.line(format!(
                "  {} {}: {text}",
                paint(LOOK.dim, format!("#{number}")),
                paint(LOOK.name, clean(&message.name))
            ));
        }
    }
    if let Some(origin) = &report.origin {
        out.line("");
        restore::made(origin, out);
    }
    out.findings(&report.findings);
    Ok(report.exit())
}
