//! The measured stvc program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value as Json;

use crate::root;

/// Returns the path of the program. The first call builds it with the release profile in the
/// benchmark's target folder, whose dependencies it shares.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(build);
    &PROGRAM
}

fn build() -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--bin", "stvc"]);
    cargo.arg("--message-format=json-render-diagnostics").current_dir(root());
    let own = std::env::current_exe().expect("find the benchmark's own program");
    let target = own.parent().and_then(Path::parent).expect("the folder of the build");
    cargo.arg("--target-dir").arg(target);
    let output = cargo.stderr(Stdio::inherit()).output().expect("start cargo");
    assert!(output.status.success(), "stvc could not be built");
    let messages = output.stdout.split(|byte| *byte == b'\n');
    messages
        .filter_map(|message| serde_json::from_slice::<Json>(message).ok())
        .find_map(|message| message["executable"].as_str().map(str::to_owned))
        .expect("cargo names the program that it built")
}
