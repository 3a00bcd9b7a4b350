//! Starts servers on loopback.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A process that is killed on drop.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Apache ends its processes when it is asked to.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        for _ in 0..100 {
            if self.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until a server accepts connections. Fails with its log.
#[track_caller]
pub fn wait_for(port: u16, process: &mut Process, log: &Path) {
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = process.0.try_wait().unwrap();
        let log = || fs::read_to_string(log).unwrap_or_default();
        assert!(ended.is_none(), "the server ended: {}", log());
        assert!(begin.elapsed() < Duration::from_secs(30), "no connection: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The certificate of a server for `localhost` and 127.0.0.1, and that of its authority.
pub struct Certificates {
    pub authority: PathBuf,
    pub server: PathBuf,
    pub key: PathBuf,
}

/// The first and the last time at which a certificate is valid.
pub type Validity = [&'static str; 2];
pub const VALID: Validity = ["20240101000000Z", "20490101000000Z"];

/// How `openssl ca` issues certificates.
const AUTHORITY: &str = "[ca]\ndefault_ca = tests\n[tests]\ndatabase = index\nnew_certs_dir = .\n\
                         rand_serial = yes\ndefault_md = sha256\npolicy = policy\n\
                         [policy]\ncommonName = supplied\n";

/// Creates certificates. Fails if openssl is missing.
pub fn certificates(folder: &Path, [first, last]: Validity) -> Result<Certificates, String> {
    let version = Command::new("openssl").arg("version").output();
    version.map_err(|error| format!("openssl was not found: {error}"))?;
    let path = |name: &str| folder.join(name);
    let openssl =
        |arguments: &[&str]| run(Command::new("openssl").args(arguments).current_dir(folder));
    fs::write(path("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
    let new = ["req", "-newkey", "rsa:2048", "-nodes", "-days", "30"];
    openssl(
        &[&new[..], &["-x509", "-subj", "/CN=Tests", "-keyout", "ca.key", "-out", "ca.pem"]]
            .concat(),
    );
    openssl(&[
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-keyout",
        "server.key",
        "-out",
        "server.csr",
    ]);
    fs::write(path("authority"), AUTHORITY).unwrap();
    fs::write(path("index"), "").unwrap();
    let issue = ["ca", "-batch", "-notext", "-config", "authority", "-cert", "ca.pem"];
    let request = ["-keyfile", "ca.key", "-in", "server.csr", "-out", "server.pem"];
    let limits = ["-extfile", "names", "-startdate", first, "-enddate", last];
    openssl(&[&issue[..], &request, &limits].concat());
    Ok(Certificates {
        authority: path("ca.pem"),
        server: path("server.pem"),
        key: path("server.key"),
    })
}

/// rclone with a configuration of its own.
pub struct Rclone {
    program: PathBuf,
    folder: TempDir,
}

impl Rclone {
    /// Returns rclone; fetches it if necessary.
    pub fn new() -> Result<Self, String> {
        let program = crate::equipment::rclone()?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rclone.conf"), "").unwrap();
        Ok(Self { program, folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("RCLONE_CONFIG", self.folder().join("rclone.conf"));
        command
    }

    /// Adds a remote to the configuration.
    pub fn configure(&self, name: &str, options: &[&str]) {
        run(self
            .command()
            .args(["config", "create", "--obscure", "--non-interactive", name])
            .args(options));
    }

    /// Returns a program that runs rclone with this configuration.
    pub fn wrapper(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder().join("rclone");
        let config = self.folder().join("rclone.conf");
        let script = format!(
            "#!/bin/sh\nexport RCLONE_CONFIG='{}'\nexec '{}' \"$@\"\n",
            config.display(),
            self.program.display()
        );
        // A file that is open for writing cannot be executed, also not in a process forked
        // meanwhile.
        let temporary = self.folder().join("rclone.new");
        fs::write(&temporary, script).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(temporary, &path).unwrap();
        path
    }

    /// Runs `rclone serve` with a folder.
    pub fn serve(&self, protocol: &str, root: &Path, port: u16, options: &[&str]) -> Process {
        let log = self.folder().join("log");
        let file = File::create(&log).unwrap();
        let mut process = Process(
            self.command()
                .args(["serve", protocol, "--addr", &format!("127.0.0.1:{port}")])
                .args(options)
                .arg(root)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(file)
                .spawn()
                .unwrap(),
        );
        wait_for(port, &mut process, &log);
        process
    }
}
