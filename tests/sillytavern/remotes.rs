//! After a disk failure, a new SillyTavern has everything that a remote contains, whatever the kind
//! of its storage. The servers run on loopback.

use std::fs;
use std::path::Path;

use crate::apache::{Apache, PASSWORD, USER};
use crate::common::{Answer, Sandbox, answer, text};
use crate::disk_failure::{assert_everything_restored, create_stories};
use crate::servers::{Process, Rclone, free_port};
use crate::session::{Session, with_retries};

/// A storage, and the environment variables with its login.
struct Place {
    address: String,
    environment: Vec<(&'static str, String)>,
}

impl Place {
    fn stvc(&self, sandbox: &Sandbox, passphrase: &Path, arguments: &[&str]) -> Answer {
        let secret = ["--passphrase-file", text(passphrase)];
        let mut command = sandbox.command(&[arguments, &secret].concat());
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        answer(command.env_remove("SOURCE_DATE_EPOCH").envs(environment).output().unwrap())
    }
}

struct Servers {
    apache: Apache,
    rclone: Rclone,
    s3: (u16, Process),
}

impl Servers {
    fn start() -> Result<Self, String> {
        let rclone = Rclone::new()?;
        let (port, root) = (free_port(), rclone.folder().join("buckets"));
        fs::create_dir_all(root.join("chats")).unwrap();
        let server = rclone.serve("s3", &root, port, &["--auth-key", "KEY,right"]);
        let secret = format!("remote={}", rclone.folder().join("secret").display());
        rclone.configure("secret", &["crypt", &secret, "password=a long password"]);
        Ok(Self { apache: Apache::start()?, rclone, s3: (port, server) })
    }

    /// Returns a place of each kind of storage.
    fn places(&self) -> Vec<Place> {
        let login = |user: &str, password: &str| {
            vec![
                ("STVC_REMOTE_USER", user.to_owned()),
                ("STVC_REMOTE_PASSWORD", password.to_owned()),
            ]
        };
        let folder = self.rclone.folder().join("Syncthing");
        fs::create_dir_all(&folder).unwrap();
        let mut dav = login(USER, PASSWORD);
        let authority = self.apache.certificates.authority.display().to_string();
        dav.push(("STVC_REMOTE_CERTIFICATE", authority));
        let program = self.rclone.wrapper();
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let s3 = format!("s3://chats/st?endpoint=http://127.0.0.1:{}&region=eu", self.s3.0);
        let place = |address: String, environment| Place { address, environment };
        vec![
            place(text(&folder).to_owned(), Vec::new()),
            place(s3, login("KEY", "right")),
            place(self.apache.address("我的聊天"), dav),
            place("rclone:secret:聊天".to_owned(), vec![("PATH", path)]),
        ]
    }
}

#[test]
fn req_100_every_kind_of_remote_restores_everything_into_a_new_sillytavern_1_19() {
    with_retries(|| {
        let servers = match Servers::start() {
            Ok(servers) => servers,
            Err(why) => {
                let required = std::env::var_os("STVC_REQUIRE_SILLYTAVERN").is_some();
                assert!(!required, "{why}");
                return eprintln!("\nSKIPPED, not tested with servers: {why}\n");
            }
        };
        let Some((session, chats)) = create_stories("1.19.0", "remotes-before") else { return };
        let places = servers.places();
        let passphrase = session.sandbox.folder().join("passphrase");
        fs::write(&passphrase, "correct horse\n").unwrap();
        for place in &places {
            place.stvc(&session.sandbox, &passphrase, &["remote", "add", &place.address]).exits(0);
            place.stvc(&session.sandbox, &passphrase, &["sync", &place.address]).exits(0);
        }
        let expected = stories(&session.sandbox);
        let restore = |place: &Place, sandbox: &Sandbox| {
            fs::create_dir(sandbox.library()).unwrap();
            let import = ["--data", ".", "import", &place.address, "--restore"];
            place.stvc(sandbox, &passphrase, &import).exits(0);
        };
        for place in &places {
            let fresh = Sandbox::without_library();
            restore(place, &fresh);
            let restored = stories(&fresh);
            let paths = expected.keys().chain(restored.keys());
            let differing: Vec<_> =
                paths.filter(|path| restored.get(*path) != expected.get(*path)).collect();
            assert!(differing.is_empty(), "{}: {differing:?}", place.address);
        }
        let opened = Session::open_prepared("remotes", "1.19.0", |sandbox| {
            restore(&places[places.len() - 1], sandbox);
        });
        assert_everything_restored(&mut opened.unwrap(), &chats);
    });
}

/// Returns the chats, lorebooks and character cards in a library, without the sprites of
/// characters, which no snapshot contains.
fn stories(sandbox: &Sandbox) -> crate::session::Files {
    let is_story = |path: &String| {
        let folders = ["chats/", "group chats/", "groups/", "worlds/", "characters/"];
        let is_sprite = path.starts_with("characters/") && path.matches('/').count() == 2;
        folders.iter().any(|folder| path.starts_with(folder)) && !is_sprite
    };
    let files = sandbox.files();
    files.into_iter().filter(|(path, _)| is_story(path)).collect()
}
