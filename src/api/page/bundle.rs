//! The modules of the page as one script, for one request and for a page in a file, where modules
//! cannot be loaded. A module becomes a function that is called once and returns its exports. An
//! import is therefore a value, not a binding: modules export functions, classes and constants.

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

/// Returns the type and the text of the file at a path.
pub fn at(path: &str) -> Option<(&'static str, &'static str)> {
    let path = match path {
        "/" => "/index.html",
        "/page.js" => return Some((JS, script())),
        module if module.ends_with(".js") => return None,
        path => path,
    };
    find(path).map(|asset| (asset.kind, asset.text))
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

/// Returns the lines of a module, with each import joined into one: the formatter splits long ones.
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

/// `import { a, b } from "./c.js";`
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

    /// What the bundle takes for granted.
    #[test]
    fn modules_import_in_one_statement_and_export_what_does_not_change() {
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
    fn import_that_spans_lines_is_read() {
        let text = "import {\n  a,\n  b,\n} from \"./c.js\";\nconst d = 1;\n";
        let module = Asset { path: "/e.js", kind: JS, text };
        assert_eq!(lines(&module), ["import { a, b, } from \"./c.js\";", "const d = 1;"]);
        let names = imports(&module).collect::<Vec<_>>();
        assert_eq!(names, [("{ a, b, }".to_owned(), "/c.js".to_owned())]);
    }

    #[test]
    fn every_module_comes_once_and_after_what_it_imports() {
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
