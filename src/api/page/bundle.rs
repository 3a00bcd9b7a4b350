//! Bundles the viewer's JavaScript modules into one script, because a page that was opened from a
//! file cannot load modules. Each module becomes a function that is called once and returns the
//! module's exports. An import copies a value and is not updated later. Therefore modules export
//! only functions, classes and constants.

use std::sync::OnceLock;

use super::assets::{ASSETS, Asset, JS};

const MAIN: &str = "/main.js";

pub fn script() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let mut done = Vec::new();
        let mut script = String::new();
        add(MAIN, &mut done, &mut script);
        script
    })
}

/// Returns the content type and the text of the viewer's file at `path`.
pub fn at(path: &str) -> Option<(&'static str, &'static str)> {
    let path = match path {
        "/" => "/index.html",
        "/page.js" => return Some((JS, script())),
        module if module.ends_with(".js") => return None,
        path => path,
    };
    find(path).map(|asset| (asset.kind, asset.text))
}

/// Returns the text of one of the viewer's modules.
pub fn module(name: &str) -> &'static str {
    find(&format!("/{name}")).map_or("", |asset| asset.text)
}

fn add(path: &str, done: &mut Vec<String>, script: &mut String) {
    if done.iter().any(|other| other == path) {
        return;
    }
    done.push(path.to_owned());
    let Some(module) = find(path) else { return };
    for (_, from) in imports(module) {
        add(&from, done, script);
    }
    let mut exports = Vec::new();
    let mut body = String::new();
    for line in lines(module) {
        let line = match import(&line) {
            Some((names, from)) => format!("const {names} = {};", variable(&from)),
            None => match line.strip_prefix("export ") {
                Some(exported) => {
                    exports.extend(name(exported));
                    exported.to_owned()
                }
                None => line,
            },
        };
        body.push_str(&line);
        body.push('\n');
    }
    match path {
        MAIN => script.push_str(&body),
        _ => script.push_str(&format!(
            "const {} = (() => {{\n{body}return {{ {} }};\n}})();\n",
            variable(path),
            exports.join(", ")
        )),
    }
}

fn imports(module: &Asset) -> impl Iterator<Item = (String, String)> {
    lines(module).into_iter().filter_map(|line| import(&line))
}

/// Returns the lines of a module. An import that the formatter has split over several lines becomes
/// one line.
fn lines(module: &Asset) -> Vec<String> {
    let is_open = |line: &&mut String| line.starts_with("import ") && !line.ends_with(';');
    let mut lines: Vec<String> = Vec::new();
    for line in module.text.lines() {
        match lines.last_mut().filter(is_open) {
            Some(import) => import.extend([" ", line.trim()]),
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Parses `import { a, b } from "./c.js";`. Returns the names and the path.
fn import(line: &str) -> Option<(String, String)> {
    let (names, from) = line.strip_prefix("import ")?.split_once(" from \"./")?;
    Some((names.to_owned(), format!("/{}", from.strip_suffix("\";")?)))
}

fn variable(path: &str) -> String {
    format!("of_{}", path.trim_start_matches('/').trim_end_matches(".js"))
}

fn name(declaration: &str) -> Option<String> {
    let after = declaration.trim_start_matches("async ");
    let after = ["function ", "class ", "const "].iter().find_map(|it| after.strip_prefix(it))?;
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_' || *c == '$';
    Some(after.chars().take_while(is_part).collect())
}

fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

pub fn text(path: &str) -> &'static str {
    find(path).map_or("", |asset| asset.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules() -> impl Iterator<Item = &'static Asset> {
        ASSETS.iter().filter(|asset| asset.path.ends_with(".js"))
    }

    /// Checks the assumptions that the bundler makes about the modules.
    #[test]
    fn modules_use_only_imports_and_exports_that_the_bundler_supports() {
        for module in modules() {
            for line in lines(module) {
                assert!(!line.starts_with("export let"), "{}: {line}", module.path);
                assert!(!line.starts_with("export {"), "{}: {line}", module.path);
                assert_eq!(line.starts_with("import "), import(&line).is_some(), "{line}");
                if let Some(exported) = line.strip_prefix("export ") {
                    assert!(name(exported).is_some_and(|it| !it.is_empty()), "{line}");
                }
                assert!(!line.contains("</script"), "{}: {line}", module.path);
            }
            for (_, from) in imports(module) {
                assert!(find(&from).is_some(), "{} imports {from}", module.path);
            }
        }
    }

    #[test]
    fn import_that_spans_several_lines_is_parsed() {
        let text = "import {\n  a,\n  b,\n} from \"./c.js\";\nconst d = 1;\n";
        let module = Asset { path: "/e.js", kind: JS, text };
        assert_eq!(lines(&module), ["import { a, b, } from \"./c.js\";", "const d = 1;"]);
        let names = imports(&module).collect::<Vec<_>>();
        assert_eq!(names, [("{ a, b, }".to_owned(), "/c.js".to_owned())]);
    }

    #[test]
    fn script_contains_every_module_once_before_its_first_use() {
        let script = script();
        for module in modules().filter(|module| module.path != MAIN) {
            let begins = format!("const {} = (() => {{", variable(module.path));
            assert_eq!(script.matches(&begins).count(), 1, "{}", module.path);
            let uses = format!("}} = {};", variable(module.path));
            let first = script.find(&uses);
            assert!(first.is_none_or(|first| script.find(&begins) < Some(first)));
        }
    }
}
