//! The layers of docs/architecture.md, compared with the imports of the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::rust_files;

/// Utility modules that every module may import. Each may import those before it.
const TOOLS: &[&str] = &[
    "exit",
    "file_lock",
    "file_names",
    "parallel",
    "progress",
    "real_path",
    "regular",
    "settings",
    "similar",
    "system_clock",
    "words",
    "folder",
    "durable",
    "hint",
    "fuzz_equipment",
];

/// May import everything: the library, the program, the list of fuzz targets, and the
/// simulation of devices, which is a test.
const ROOTS: &[&str] = &["lib", "main", "fuzzing", "simulation"];

/// The layers, lowest first, and the modules of each. A module may import utilities and modules of
/// lower layers; of its own layer, only those in [`BESIDE`].
const FLOORS: &[&[&str]] = &[
    &["st", "store", "storage", "auto_recap::written"],
    &["archive", "auto_recap::stored"],
    &["rules", "auto_recap"],
    &["history"],
    &["engine"],
    &["verbs"],
    &["json_output", "watch"],
    &["api"],
    &["cli"],
];

/// The module of a SillyTavern extension has one part per layer; the layer's own module and that
/// part may import each other.
const BESIDE: &[(&str, &str)] =
    &[("st", "auto_recap::written"), ("archive", "auto_recap::stored"), ("rules", "auto_recap")];

/// Rules must not know how values are stored, and the two front ends must not know each other.
const NEVER: &[(&str, &str)] = &[("rules", "store"), ("auto_recap", "store"), ("api", "watch")];

/// Returns the top-level module of a module, and its layer.
fn room_of(module: &[String]) -> Option<(&'static str, usize)> {
    let path = module.join("::");
    FLOORS.iter().enumerate().find_map(|(floor, rooms)| {
        let is_in = |room: &&&str| path == **room || path.starts_with(&format!("{room}::"));
        rooms.iter().find(is_in).map(|room| (*room, floor))
    })
}

fn may_import(room: &str, floor: usize, to: &[String]) -> bool {
    if TOOLS.contains(&to[0].as_str()) {
        return true;
    }
    let Some((other, below)) = room_of(to) else { return false };
    let beside = BESIDE.contains(&(room, other)) || BESIDE.contains(&(other, room));
    other == room || beside || (below < floor && !NEVER.contains(&(room, other)))
}

#[test]
fn modules_import_only_from_lower_layers() {
    let sources = Sources::read();
    let mut seen = 0;
    for (module, imports) in &sources.imports {
        let room = module.first().unwrap().as_str();
        if ROOTS.contains(&room) || TOOLS.contains(&room) {
            let before = TOOLS.split(|tool| *tool == room).next().unwrap_or_default();
            let may = |to: &str| to == room || before.contains(&to) && TOOLS.contains(&room);
            assert!(
                ROOTS.contains(&room) || imports.iter().all(|to| may(to[0].as_str())),
                "{room}"
            );
            continue;
        }
        let (room, floor) =
            room_of(module).unwrap_or_else(|| panic!("{} is no room", module.join("::")));
        for to in imports {
            seen += 1;
            let (from, name) = (module.join("::"), to.join("::"));
            assert!(may_import(room, floor, to), "{from} imports {name}");
        }
    }
    assert!(seen > 500, "the test reads no imports any more");
}

/// Code that two verbs share belongs to the engine or the history.
#[test]
fn no_verb_imports_a_verb() {
    for (module, imports) in Sources::read().imports {
        let [room, verb, ..] = module.as_slice() else { continue };
        for to in imports.iter().filter(|to| room == "verbs" && to[0] == "verbs") {
            let own = to.get(1) == Some(verb) || to.get(1).is_none_or(|to| to == "error");
            assert!(own, "{} imports {}", module.join("::"), to.join("::"));
        }
    }
}

/// A module can be read without the modules that import it.
#[test]
fn modules_have_no_import_cycles() {
    let sources = Sources::read();
    let mut circles = Vec::new();
    for from in sources.imports.keys() {
        // The shortest cycle.
        let mut ways = vec![vec![from.clone()]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.first().cloned() {
            ways.remove(0);
            for to in sources.imports.get(way.last().unwrap()).into_iter().flatten() {
                if to == from {
                    let names: Vec<_> = way.iter().map(|module| module.join("::")).collect();
                    circles.push(names.join(" → "));
                    ways.clear();
                    break;
                }
                if seen.insert(to.clone()) {
                    ways.push(way.iter().chain([to]).cloned().collect());
                }
            }
        }
    }
    assert!(circles.is_empty(), "these lead back to where they begin:\n{}", circles.join("\n"));
}

#[test]
fn only_the_store_module_uses_the_git_library() {
    let src = src();
    for file in rust_files(&src) {
        let inside = file.starts_with(src.join("store"));
        let text = fs::read_to_string(&file).unwrap();
        assert!(inside || !text.contains("gix::"), "{} uses gix", file.display());
    }
}

/// Keys that only ST-Auto-Recap writes.
const AUTO_RECAP: &[&str] = &[
    "auto_recap_memory",
    "auto_summarize_memory",
    "auto_recap_running_scene_recaps",
    "auto_recap_checkpoint_state",
    "auto_lorebooks",
    "autoLorebooks",
    "lorebookName",
    "ctiveLorebookEntries",
    "checkpoint_lorebook_map",
    "scene_recap_",
    "\"auto_recap\"",
    "\"scene_break",
    "__operation_queue",
    "\"_registry_",
    "z-AutoLB-",
];

/// Support for another extension must fit beside it. Texts of findings may name the keys that users
/// see on disk.
#[test]
fn auto_recap_keys_stay_in_its_module() {
    let src = src();
    let of_room = fs::read_to_string(src.join("auto_recap/written/scene.rs")).unwrap();
    assert!(AUTO_RECAP.iter().any(|key| of_room.contains(key)));
    for file in rust_files(&src) {
        let inside = file.starts_with(src.join("auto_recap")) || file.ends_with("catalogue.rs");
        if inside || file.iter().any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let code = without_comments_and_tests(&fs::read_to_string(&file).unwrap());
        for key in AUTO_RECAP {
            assert!(!code.contains(key), "{} knows {key}", file.display());
        }
    }
}

/// Other front ends use the library too: command line, terminal and texts for people belong to the
/// program.
#[test]
fn library_has_no_command_line_code() {
    let src = src();
    for file in rust_files(&src) {
        let inside = file.starts_with(src.join("cli"));
        let text = fs::read_to_string(&file).unwrap();
        for name in ["clap::", "indicatif::", "anstream::", "anstyle::"] {
            assert!(inside || !text.contains(name), "{} uses {name}", file.display());
        }
        // The lines of `--json` are types.
        assert!(!inside || !text.contains("json!("), "{} makes objects by hand", file.display());
    }
}

/// An unreadable folder must not look empty, so one module lists the library. Exempt are the store,
/// folders of the system, and files of the extension.
#[test]
fn library_folders_are_listed_in_one_module() {
    let src = src();
    let elsewhere = [
        "store",
        "storage",
        "simulation",
        "api",
        "engine/copies",
        "st/folder.rs",
        "st/running.rs",
        "durable.rs",
    ];
    for file in rust_files(&src) {
        let is_elsewhere = elsewhere.iter().any(|place| file.starts_with(src.join(place)));
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let of_tests = ["tests", "fuzzing", "fuzzing.rs", "fuzz_equipment.rs"];
        let is_test =
            file.components().any(|part| of_tests.iter().any(|name| part.as_os_str() == *name));
        let lists = code.contains("read_dir(") && !is_test;
        assert!(is_elsewhere || !lists, "{} lists a folder by itself", file.display());
    }
}

type Module = Vec<String>;

/// All modules, and the modules that each uses.
struct Sources {
    imports: BTreeMap<Module, BTreeSet<Module>>,
}

impl Sources {
    fn read() -> Self {
        let src = src();
        let mut texts = BTreeMap::new();
        for file in rust_files(&src) {
            let mut module: Module = file
                .strip_prefix(&src)
                .unwrap()
                .with_extension("")
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            if module.last().is_some_and(|last| last == "mod") {
                module.pop();
            }
            let text = fs::read_to_string(&file).unwrap();
            texts.insert(module, without_comments_and_tests(&text));
        }
        // Re-exports.
        let mut handed_on = BTreeMap::new();
        for (module, text) in &texts {
            for path in uses(text, true) {
                let full = absolute(module, &path, &texts);
                if let Some(name) = full.as_ref().and_then(|full| full.last()).cloned() {
                    handed_on.insert((module.clone(), name), full.unwrap());
                }
            }
        }
        let mut imports = BTreeMap::new();
        for (module, text) in &texts {
            let mut found = BTreeSet::new();
            for path in uses(text, false) {
                let Some(full) = absolute(module, &path, &texts) else { continue };
                let home = home_of(&full, &texts, &handed_on);
                if !home.is_empty() && home != *module {
                    found.insert(home);
                }
            }
            imports.insert(module.clone(), found);
        }
        Self { imports }
    }
}

/// Returns the module that defines the item at this path.
fn home_of(
    path: &[String],
    texts: &BTreeMap<Module, String>,
    handed_on: &BTreeMap<(Module, String), Module>,
) -> Module {
    let mut path = path.to_vec();
    for _ in 0..6 {
        let Some(length) = (1..=path.len()).rev().find(|n| texts.contains_key(&path[..*n])) else {
            return Module::new();
        };
        let module = path[..length].to_vec();
        let item = path.get(length).cloned();
        match item.and_then(|item| handed_on.get(&(module.clone(), item))) {
            Some(full) => path = full.iter().chain(&path[length + 1..]).cloned().collect(),
            None => return module,
        }
    }
    Module::new()
}

/// Resolves a path in a module from the crate's root; `None` if it is outside the crate.
fn absolute(module: &Module, path: &str, texts: &BTreeMap<Module, String>) -> Option<Module> {
    let mut parts: Vec<_> = path.split("::").map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "self") {
        parts.pop();
    }
    let mut base = module.clone();
    match parts.first()?.as_str() {
        "crate" | "stvc" => return Some(parts.split_off(1)),
        "self" => return Some(base.into_iter().chain(parts.split_off(1)).collect()),
        "super" => {
            while parts.first().is_some_and(|first| first == "super") {
                parts.remove(0);
                base.pop();
            }
        }
        first => {
            let child: Module = base.iter().cloned().chain([first.to_owned()]).collect();
            texts.get(&child)?;
        }
    }
    Some(base.into_iter().chain(parts).collect())
}

/// Returns the paths of `use` declarations, or of re-exports, and paths in the code.
fn uses(text: &str, public: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = String::new();
    let mut rest = text;
    while let Some(line_end) = rest.find('\n') {
        let line = rest[..line_end].trim_start();
        let declared = line.strip_prefix("use ").map(|_| false).or_else(|| {
            let words = line.strip_prefix("pub")?;
            let words = words
                .strip_prefix('(')
                .map_or(words, |rest| rest.split_once(')').map_or(words, |(_, words)| words));
            words.trim_start().starts_with("use ").then_some(true)
        });
        match declared {
            Some(is_public) => {
                let end = rest.find(';').unwrap_or(rest.len());
                let tree = rest[..end].split_once("use ").unwrap().1;
                if is_public == public {
                    expand("", tree, &mut found);
                }
                rest = rest[end..].split_once('\n').map_or("", |(_, rest)| rest);
            }
            None => {
                code.push_str(&rest[..=line_end]);
                rest = &rest[line_end + 1..];
            }
        }
    }
    if !public {
        for start in ["crate::", "stvc::", "super::"] {
            for (at, _) in code.match_indices(start) {
                let before = code[..at].chars().next_back();
                if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                    let path: String = code[at..].chars().take_while(|c| is_path(*c)).collect();
                    found.push(path.trim_end_matches(':').to_owned());
                }
            }
        }
    }
    found
}

/// Expands a tree such as `a::{b, c::{self, d as e}}` into paths.
fn expand(before: &str, tree: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((start, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap().trim();
        if !path.is_empty() {
            found.push(format!("{before}{path}"));
        }
        return;
    };
    let before = format!("{before}{}", start.trim());
    let group = &group[..group.rfind('}').unwrap()];
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&before, &group[begin..at], found);
                begin = at + 1;
            }
            _ => {}
        }
    }
    expand(&before, &group[begin..], found);
}

fn without_comments_and_tests(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let code = |line: &str| line.split("//").next().unwrap().to_owned();
    text.lines().map(|line| code(line) + "\n").collect()
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}
