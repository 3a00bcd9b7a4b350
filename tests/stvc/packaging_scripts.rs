//! packaging/build, packaging/npm/pack.mjs and packaging/try, with fakes of cargo and the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Answer, answer, skip};

const TARGET: &str = "x86_64-unknown-linux-musl";
const FAILING_TARGET: &str = "x86_64-apple-darwin";

/// Fake program for packaging/build and packaging/try.
const STVC: &str = r#"#!/bin/sh
case $1 in
  --version) echo "stvc VERSION (abc, x86_64-unknown-linux-musl)" ;;
  completions) echo "$2" ;;
  man) mkdir "$2"; for page in stvc stvc-snapshot stvc-restore stvc-demo; do echo "$page" >"$2/$page.1"; done ;;
  demo) echo "$ stvc restore" ;;
  *) exit 1 ;;
esac
"#;

/// Fake cargo that builds the native program only.
const CARGO: &str = r#"#!/bin/sh
case "$*" in *--target*) exit 1 ;; esac
mkdir -p target/release
cp stvc target/release/stvc
"#;

/// A copy of the packaging scripts with fakes of cargo, rustc and rustup.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project { folder: tempfile::tempdir().unwrap() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut copy = Command::new("cp");
        copy.current_dir(root).arg("-R");
        copy.args(["packaging", "Cargo.toml", "README.md", "CHANGELOG.md"]);
        copy.args(["LICENSE-MIT", "LICENSE-APACHE"]).arg(project.folder.path());
        answer(copy.output().unwrap()).exits(0);
        let rustc = format!("#!/bin/sh\necho 'host: {TARGET}'\n");
        let rustup = format!("#!/bin/sh\necho {FAILING_TARGET}\n");
        project.script("stvc", &STVC.replace("VERSION", env!("CARGO_PKG_VERSION")));
        project.script("bin/cargo", CARGO);
        project.script("bin/rustc", &rustc);
        project.script("bin/rustup", &rustup);
        project.script("packaging/licences", "#!/bin/sh\necho licences\n");
        project
    }

    /// Builds and packs the one target that works.
    fn packed() -> Option<Project> {
        if Command::new("npm").arg("--version").output().is_err() {
            skip("npm is not installed");
            return None;
        }
        let project = Project::new();
        project.run("packaging/build", &[TARGET]).exits(0);
        project.run("node", &["packaging/npm/pack.mjs"]).exits(0);
        Some(project)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn script(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path());
        command.env("PATH", path).env("STVC_COMMIT", "abc");
        command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTC");
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Answer {
        answer(self.command(program, args).output().unwrap())
    }

    fn try_here(&self) -> Answer {
        self.run("packaging/try", &["--here", "--no-cargo"])
    }

    fn dist(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("dist")).unwrap();
        let mut names: Vec<_> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn archive(target: &str) -> String {
    format!("stvc-{}-{target}.tar.gz", env!("CARGO_PKG_VERSION"))
}

/// Neither program nor archive of an earlier build may remain.
#[test]
fn build_removes_archives_of_targets_that_failed() {
    let project = Project::new();
    let earlier = format!("dist/{}", archive(FAILING_TARGET));
    project.script(&format!("target/{FAILING_TARGET}/release/stvc"), STVC);
    project.script(&earlier, "");
    project.run("packaging/build", &[TARGET, FAILING_TARGET]).exits(1);
    assert_eq!(project.dist(), ["SHA256SUMS".to_owned(), archive(TARGET)]);
    let sums = fs::read_to_string(project.path("dist/SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 1, "{sums}");
    assert!(sums.ends_with(&format!("  {}\n", archive(TARGET))), "{sums}");
}

#[test]
fn file_modes_do_not_change_the_archive() {
    let project = Project::new();
    project.script("bin/git", "#!/bin/sh\necho 1762600000\n");
    let sums = || {
        project.run("packaging/build", &[TARGET]).exits(0);
        fs::read_to_string(project.path("dist/SHA256SUMS")).unwrap()
    };
    let before = sums();
    let readme = project.path("README.md");
    fs::set_permissions(readme, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(sums(), before);
}

#[test]
fn packaged_programs_can_be_installed_and_run() {
    let Some(project) = Project::packed() else { return };
    let output = project.try_here().exits(0).stdout;
    for name in ["SHA256SUMS", "is complete", "runs", "packages agree", "stvc with stvc-linux-x64"]
    {
        let is_tried = output.lines().any(|line| line.starts_with("ok ") && line.contains(name));
        assert!(is_tried, "{name}: {output}");
    }
}

/// A published npm version is permanent, so a release must have every platform.
#[test]
fn release_packages_need_every_platform() {
    let Some(project) = Project::packed() else { return };
    let errors = project.run("node", &["packaging/npm/pack.mjs", "--all"]).exits(1).stderr;
    assert!(errors.contains("darwin-arm64") && !errors.contains("linux-x64"), "{errors}");
    // The packages of the previous run still exist.
    project.try_here().exits(0);
}

#[test]
fn try_script_fails_for_a_program_of_another_commit() {
    let Some(project) = Project::packed() else { return };
    let mut command = project.command("packaging/try", &["--here", "--no-cargo"]);
    let printed = answer(command.env("STVC_COMMIT", "def").output().unwrap()).exits(1).stdout;
    assert!(printed.contains("failed     npm: stvc with stvc-linux-x64"), "{printed}");
    assert!(printed.contains("(abc, x86_64-unknown-linux-musl)', not 'stvc"), "{printed}");
}

#[test]
fn try_script_fails_for_an_archive_that_differs_from_its_checksum() {
    let project = Project::new();
    project.run("packaging/build", &[TARGET]).exits(0);
    let sums = project.path("dist/SHA256SUMS");
    let changed = fs::read_to_string(&sums).unwrap().replacen(|c: char| c != '0', "0", 1);
    fs::write(sums, changed).unwrap();
    let output = project.try_here().exits(1).stdout;
    assert!(output.contains("failed     SHA256SUMS"), "{output}");
}

#[test]
fn try_script_fails_without_packages() {
    let project = Project::new();
    fs::create_dir(project.path("dist")).unwrap();
    let output = project.try_here().exits(1).stdout;
    assert!(
        output.contains("not tried  archives") && output.contains("not tried  npm"),
        "{output}"
    );
}

/// A renamed test would otherwise silently leave the sample, or no longer be skipped.
#[test]
fn packaging_test_names_existing_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = fs::read_to_string(root.join("packaging/test")).unwrap();
    let sample = script.split_once("sample=(\n").unwrap().1.split_once("\n  )").unwrap().0;
    let skipped =
        script.split("--skip ").skip(1).map(|rest| rest.split([' ', ')']).next().unwrap());
    let names: Vec<_> = sample.split_whitespace().chain(skipped).collect();
    assert!(names.len() > 12, "{names:?}");
    let mut sources = String::new();
    let mut open = vec![root.join("src"), root.join("tests/stvc")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "rs") {
            sources += &fs::read_to_string(path).unwrap();
        }
    }
    for name in names {
        let name = name.rsplit("::").next().unwrap();
        let exists = [format!("fn {name}"), format!("mod {name};")];
        assert!(exists.iter().any(|text| sources.contains(text)), "no test {name}");
    }
}
