//! WebDAV: Apache with mod_dav over HTTPS, and `rclone serve webdav`. S3: `rclone serve s3`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stvc::storages::{Credentials, Error};
use tempfile::TempDir;

use crate::contract::{Many, PATH, assert_contract, names};
use crate::servers::{Certificates, Process, Rclone, certificates, free_port, run, wait_for};
use crate::{login, open, require};

struct Apache {
    port: u16,
    certificates: Certificates,
    process: Option<Process>,
    folder: TempDir,
}

const PROGRAMS: [&str; 2] = ["/usr/sbin/apache2", "/usr/sbin/httpd"];
const MODULES: [&str; 2] = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules"];

impl Apache {
    fn start() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let certificates = certificates(folder.path())?;
        let (_, modules) = Self::program()?;
        // If the tests run as root, Apache becomes another user.
        let open =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        open(folder.path());
        for name in ["data", "locks"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            open(&folder.path().join(name));
        }
        let hash = run(Command::new("openssl").args(["passwd", "-apr1", "right"]));
        fs::write(folder.path().join("users"), format!("me@example.com:{hash}")).unwrap();
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

    fn resume(&mut self) {
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

    fn login(&self) -> Credentials {
        let certificate = Some(self.certificates.authority.clone());
        Credentials { certificate, ..login("me@example.com", "right") }
    }

    fn address(&self, path: &str) -> String {
        format!("webdav://localhost:{}/{path}", self.port)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

#[test]
fn apache_keeps_the_contract() {
    let Some(apache) = require(Apache::start()) else { return };
    // The folders of the address do not exist yet.
    let storage = open(&apache.address(PATH), &apache.login());
    assert_contract(&*storage, Many::Write);
    let path = apache.data().join("聊天 记录/🌊 & 100%/Ünï/many/0001");
    assert_eq!(fs::read(path).unwrap(), b"0001");
}

#[test]
fn files_of_others_in_a_webdav_folder_are_left_out() {
    let Some(apache) = require(Apache::start()) else { return };
    let storage = open(&apache.address(""), &apache.login());
    for name in [".stfolder", "聊天.txt", "a (1)", "a.tmp", ".davfs.tmp123", "x.sync-conflict-2-A"]
    {
        fs::write(apache.data().join(name), "x").unwrap();
    }
    fs::create_dir(apache.data().join("我的 folder")).unwrap();
    fs::write(apache.data().join("我的 folder/a"), "x").unwrap();
    fs::write(apache.data().join("good"), "x").unwrap();
    assert_eq!(names(&*storage, ""), [("good".to_owned(), 1)]);
}

#[test]
fn wrong_logins_and_unknown_certificates_are_told_apart() {
    let Some(apache) = require(Apache::start()) else { return };
    let address = apache.address("");
    let refused = |login: &Credentials| {
        let storage = open(&address, login);
        let calls = [
            storage.list("").unwrap_err(),
            storage.read("a", 1).unwrap_err(),
            storage.write("a", b"a").unwrap_err(),
            storage.delete("a").unwrap_err(),
        ];
        let codes: Vec<_> = calls.iter().map(Error::code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] == pair[1]), "{codes:?}");
        let text = format!("{} {}", calls[0], calls[0].hint().unwrap());
        assert!(!text.contains("wrong"), "{text}");
        codes[0]
    };
    let right = apache.login();
    let wrong = Credentials { password: login("", "wrong").password, ..right.clone() };
    assert_eq!(refused(&wrong), "storage-wrong-password");
    let none = Credentials { password: None, ..right.clone() };
    assert_eq!(refused(&none), "storage-no-password");
    let unknown = Credentials { certificate: None, ..right.clone() };
    assert_eq!(refused(&unknown), "storage-certificate");
    // The certificate of the server itself, without its authority.
    let own =
        Credentials { certificate: Some(apache.certificates.server.clone()), ..right.clone() };
    open(&address, &own).write("a", b"a").unwrap();
    // Another name of the server.
    let storage = open(&format!("webdav://127.0.0.2:{}/", apache.port), &right);
    let error = storage.list("").unwrap_err();
    assert_eq!(error.code(), "storage-unreachable", "{error}");
    // The user name in the address.
    let user = Credentials { user: None, ..right };
    let address = format!("webdav://me@example.com@localhost:{}/", apache.port);
    assert_eq!(open(&address, &user).read("a", 1).unwrap(), b"a");
}

#[test]
fn storage_continues_after_its_server_was_gone() {
    let Some(mut apache) = require(Apache::start()) else { return };
    let storage = open(&apache.address("a"), &apache.login());
    storage.write("b", b"1").unwrap();
    apache.process = None;
    for _ in 0..2 {
        let error = storage.write("c", b"2").unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
        assert!(error.is_temporary());
    }
    apache.resume();
    storage.write("c", b"2").unwrap();
    assert_eq!(names(&*storage, ""), [("b".to_owned(), 1), ("c".to_owned(), 1)]);
}

#[test]
fn unknown_host_and_closed_port_are_told_apart() {
    let none = Credentials::default();
    let error = open("webdav://no-such-host.invalid/", &none).list("").unwrap_err();
    assert!(matches!(error, Error::UnknownHost { .. }), "{error:?}");
    let port = free_port();
    for address in [
        format!("webdav://127.0.0.1:{port}/"),
        format!("webdav+http://127.0.0.1:{port}/"),
        format!("s3://bucket?endpoint=http://127.0.0.1:{port}"),
    ] {
        let error = open(&address, &login("a", "b")).list("").unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    }
}

#[test]
fn webdav_server_of_rclone_keeps_the_contract() {
    let Some(rclone) = require(Rclone::new()) else { return };
    let root = rclone.folder().join("root");
    fs::create_dir(&root).unwrap();
    let port = free_port();
    let options = ["--user", "me", "--pass", "right"];
    let _server = rclone.serve("webdav", &root, port, &options);
    let address = format!("webdav+http://me@127.0.0.1:{port}/{PATH}");
    let right = Credentials { user: None, ..login("", "right") };
    assert_contract(&*open(&address, &right), Many::Write);
    let error = open(&address, &login("me", "wrong")).list("").unwrap_err();
    assert!(matches!(error, Error::WrongPassword { .. }), "{error:?}");
    // Without TLS on the port.
    let error = open(&format!("webdav://127.0.0.1:{port}/"), &right).list("").unwrap_err();
    assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
}

#[test]
fn s3_server_of_rclone_keeps_the_contract() {
    let Some(rclone) = require(Rclone::new()) else { return };
    let root = rclone.folder().join("root");
    fs::create_dir_all(root.join("chats")).unwrap();
    let port = free_port();
    let options = ["--auth-key", "KEY,right"];
    let _server = rclone.serve("s3", &root, port, &options);
    let address =
        |bucket: &str| format!("s3://{bucket}/{PATH}?endpoint=http://127.0.0.1:{port}&region=eu");
    let right = login("KEY", "right");
    assert_contract(&*open(&address("chats"), &right), Many::Write);
    for wrong in [login("KEY", "wrong"), login("OTHER", "right")] {
        let error = open(&address("chats"), &wrong).list("").unwrap_err();
        assert!(matches!(error, Error::WrongPassword { .. }), "{error:?}");
    }
    let error = open(&address("none"), &right).list("").unwrap_err();
    assert!(matches!(error, Error::NoSuchPlace { .. }), "{error:?}");
    let error = open(&address("none"), &right).write("a", b"a").unwrap_err();
    assert!(matches!(error, Error::NoSuchPlace { .. }), "{error:?}");
}
