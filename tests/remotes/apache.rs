//! Apache with mod_dav over HTTPS, with a password.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::servers::{
    Certificates, Process, VALID, Validity, certificates, free_port, run, wait_for,
};

pub const USER: &str = "me@example.com";
pub const PASSWORD: &str = "right";

pub struct Apache {
    pub port: u16,
    pub certificates: Certificates,
    process: Option<Process>,
    folder: TempDir,
}

const PROGRAMS: [&str; 2] = ["/usr/sbin/apache2", "/usr/sbin/httpd"];
const MODULES: [&str; 2] = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules"];

impl Apache {
    pub fn start() -> Result<Self, String> {
        Self::start_with(VALID)
    }

    /// Starts Apache with a certificate that is valid from the first to the second time.
    pub fn start_with(validity: Validity) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let certificates = certificates(folder.path(), validity)?;
        let (_, modules) = Self::program()?;
        // If the tests run as root, Apache becomes another user.
        let open =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        open(folder.path());
        for name in ["data", "locks"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            open(&folder.path().join(name));
        }
        let hash = run(Command::new("openssl").args(["passwd", "-apr1", PASSWORD]));
        fs::write(folder.path().join("users"), format!("{USER}:{hash}")).unwrap();
        let port = free_port();
        let load = [
            "mpm_event",
            "authn_core",
            "authn_file",
            "authz_core",
            "authz_user",
            "auth_basic",
            "dav",
            "dav_fs",
            "ssl",
        ];
        let mut config = String::new();
        for name in load {
            let file = format!("{modules}/mod_{name}.so");
            // A module may be part of the program.
            if Path::new(&file).exists() {
                config += &format!("LoadModule {name}_module {file}\n");
            }
        }
        let dir = folder.path().display();
        config += &format!(
            "ServerRoot {dir}\nServerName localhost\nPidFile {dir}/pid\nErrorLog {dir}/log\n\
             Listen 127.0.0.1:{port}\nDavLockDB {dir}/locks/db\nDocumentRoot {dir}/data\n\
             <IfModule unixd_module>\nUser www-data\nGroup www-data\n</IfModule>\n\
             SSLEngine on\nSSLCertificateFile {}\nSSLCertificateKeyFile {}\n\
             <Directory {dir}/data>\nDav On\nAuthType Basic\nAuthName Chats\n\
             AuthUserFile {dir}/users\nRequire valid-user\n</Directory>\n",
            certificates.server.display(),
            certificates.key.display(),
        );
        fs::write(folder.path().join("config"), config).unwrap();
        let mut apache = Self { port, certificates, process: None, folder };
        apache.resume();
        Ok(apache)
    }

    fn program() -> Result<(&'static str, &'static str), String> {
        let program = PROGRAMS.into_iter().find(|path| Path::new(path).exists());
        let modules =
            MODULES.into_iter().find(|path| Path::new(path).join("mod_dav_fs.so").exists());
        program.zip(modules).ok_or_else(|| {
            "Apache with mod_dav was not found; install it (Debian: `apt-get install apache2-bin`)"
                .into()
        })
    }

    pub fn resume(&mut self) {
        let (program, _) = Self::program().unwrap();
        let log = self.folder.path().join("log");
        let child = Command::new(program)
            .args(["-DFOREGROUND", "-f"])
            .arg(self.folder.path().join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut process = Process(child.unwrap());
        wait_for(self.port, &mut process, &log);
        self.process = Some(process);
    }

    pub fn stop(&mut self) {
        self.process = None;
    }

    pub fn address(&self, path: &str) -> String {
        format!("webdav://localhost:{}/{path}", self.port)
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}
