//! SillyTavern's server on loopback, with its own data folder.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::equipment::Equipment;

/// Runs the server until stdin is closed, then removes its data, so that a killed test leaves
/// nothing behind.
const RUN_UNTIL_STDIN_CLOSES: &str = r#"exec 3<&0; data=$1; shift; node server.js "$@" & server=$!; (cat <&3 >/dev/null; kill $server) & wait $server; rm -rf -- "$data""#;

pub struct Server {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Server {
    /// Starts the server and waits until it accepts connections. `settings` are environment
    /// variables that override its configuration.
    pub fn start(equipment: &Equipment, data: &Path, settings: &[(&str, &str)]) -> Self {
        fs::create_dir_all(data).unwrap();
        fs::create_dir_all(&equipment.webpack).unwrap();
        if !data.join("_webpack").exists() {
            std::os::unix::fs::symlink(&equipment.webpack, data.join("_webpack")).unwrap();
        }
        let config = data.join("config.yaml");
        if !config.exists() {
            fs::copy(equipment.sillytavern.join("default/config.yaml"), &config).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = data.join("server.log");
        let output = File::create(&log).unwrap();
        let child = Command::new("sh")
            .args(["-c", RUN_UNTIL_STDIN_CLOSES, "sh"])
            .arg(data)
            // 1.12 reads its configuration from its own folder, and has `--autorun` instead of
            // `--browserLaunchEnabled`.
            .current_dir(&equipment.sillytavern)
            .args(["--port", &port.to_string()])
            .args(["--browserLaunchEnabled", "false", "--autorun", "false"])
            .arg("--dataRoot")
            .arg(data)
            .arg("--configPath")
            .arg(config)
            .env("SILLYTAVERN_EXTENSIONS_AUTOUPDATE", "false")
            .env("SILLYTAVERN_EXTENSIONS_MODELS_AUTODOWNLOAD", "false")
            .env("SILLYTAVERN_ENABLEDOWNLOADABLETOKENIZERS", "false")
            .env("SILLYTAVERN_ENABLESERVERPLUGINSAUTOUPDATE", "false")
            .env("SILLYTAVERN_WHITELISTDOCKERHOSTS", "false")
            .env("SILLYTAVERN_LISTEN", "false")
            // SillyTavern backs up a chat at once, not while the next scenario runs.
            .env("SILLYTAVERN_BACKUPS_CHAT_THROTTLEINTERVAL", "0")
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut server = Self { child, port, log };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = server.child.try_wait().unwrap().is_some();
            if has_ended || begin.elapsed() > Duration::from_secs(180) {
                panic!("SillyTavern did not start:\n{}", server.last_log_lines());
            }
            sleep(Duration::from_millis(100));
        }
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub fn last_log_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
