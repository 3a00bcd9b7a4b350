//! Garage, a distributed S3 server: three nodes on loopback, of which one is killed during a sync.
//!
//! The tests build Garage once (`equipment.rs`), which takes some minutes. So only the nightly
//! tests run them: `cargo test --locked --test remotes -- --ignored`.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use stvc::storages::{Error, Storage};
use tempfile::TempDir;

use crate::common::devices::chats_and_lorebooks;
use crate::common::{Answer, Sandbox, answer, assert_same, assert_valid, text};
use crate::contract::{Many, PATH, assert_contract, names};
use crate::servers::{Process, free_port, run, wait_for};
use crate::{equipment, login, open, require};

const NODES: usize = 3;
const LIMIT: Duration = Duration::from_secs(120);

struct Node {
    folder: PathBuf,
    rpc_port: u16,
    s3_port: u16,
    process: Option<Process>,
}

/// Nodes that each have all objects, and a bucket `chats`.
struct Garage {
    program: PathBuf,
    nodes: Vec<Node>,
    key: String,
    secret: String,
    _folder: TempDir,
}

impl Garage {
    fn start() -> Result<Self, String> {
        let program = equipment::garage()?;
        let folder = tempfile::tempdir().unwrap();
        let node = |n: usize| {
            let folder = folder.path().join(n.to_string());
            fs::create_dir(&folder).unwrap();
            Node { folder, rpc_port: free_port(), s3_port: free_port(), process: None }
        };
        let nodes = (0..NODES).map(node).collect();
        let (key, secret) = (String::new(), String::new());
        let mut garage = Self { program, nodes, key, secret, _folder: folder };
        for n in 0..NODES {
            garage.configure(n);
            garage.resume(n);
        }
        let ids: Vec<_> = (0..NODES).map(|n| garage.ask(n, &["node", "id", "-q"])).collect();
        for (n, id) in ids.iter().map(|id| id.trim()).enumerate() {
            if n > 0 {
                garage.ask(0, &["node", "connect", id]);
            }
            let zone = format!("zone{n}");
            let (id, _) = id.split_once('@').unwrap();
            garage.ask(0, &["layout", "assign", id, "-z", &zone, "-c", "1GB"]);
        }
        garage.ask(0, &["layout", "apply", "--version", "1"]);
        garage.wait_until_healthy();
        let key = garage.ask(0, &["json-api", "CreateKey", "{\"name\":\"stvc\"}"]);
        let key: Value = serde_json::from_str(&key).unwrap();
        garage.key = key["accessKeyId"].as_str().unwrap().to_owned();
        garage.secret = key["secretAccessKey"].as_str().unwrap().to_owned();
        garage.ask(0, &["bucket", "create", "chats"]);
        garage.ask(0, &["bucket", "allow", "--read", "--write", "chats", "--key", &garage.key]);
        Ok(garage)
    }

    fn configure(&self, node: usize) {
        let Node { folder, rpc_port, s3_port, .. } = &self.nodes[node];
        let (secret, dir) = ("0a".repeat(32), folder.display());
        let config = format!(
            "metadata_dir = \"{dir}/meta\"\ndata_dir = \"{dir}/data\"\ndb_engine = \"lmdb\"\n\
             replication_factor = {NODES}\nrpc_secret = \"{secret}\"\n\
             rpc_bind_addr = \"127.0.0.1:{rpc_port}\"\nrpc_public_addr = \"127.0.0.1:{rpc_port}\"\n\
             [s3_api]\ns3_region = \"garage\"\napi_bind_addr = \"127.0.0.1:{s3_port}\"\n"
        );
        fs::write(folder.join("config.toml"), config).unwrap();
    }

    fn command(&self, node: usize) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.nodes[node].folder.join("config.toml"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command of Garage that asks a running node.
    #[track_caller]
    fn ask(&self, node: usize, arguments: &[&str]) -> String {
        run(self.command(node).args(arguments))
    }

    fn resume(&mut self, node: usize) {
        let log = self.nodes[node].folder.join("log");
        let file = File::create(&log).unwrap();
        let server = self.command(node).arg("server").stdout(Stdio::null()).stderr(file).spawn();
        let mut process = Process(server.unwrap());
        wait_for(self.nodes[node].rpc_port, &mut process, &log);
        wait_for(self.nodes[node].s3_port, &mut process, &log);
        self.nodes[node].process = Some(process);
    }

    /// Kills a node without a chance to finish its work.
    fn kill(&mut self, node: usize) {
        let mut process = self.nodes[node].process.take().unwrap();
        process.0.kill().unwrap();
        process.0.wait().unwrap();
    }

    fn wait_until_healthy(&self) {
        let begin = Instant::now();
        loop {
            let health = self.ask(0, &["json-api", "GetClusterHealth"]);
            let health: Value = serde_json::from_str(&health).unwrap();
            if health["status"] == "healthy" {
                return;
            }
            assert!(begin.elapsed() < LIMIT, "{health}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Returns the address of a folder in the bucket, through one node.
    fn address(&self, node: usize, path: &str) -> String {
        let port = self.nodes[node].s3_port;
        format!("s3://chats/{path}?endpoint=http://127.0.0.1:{port}&region=garage")
    }

    fn storage(&self, node: usize, path: &str) -> Box<dyn Storage> {
        open(&self.address(node, path), &login(&self.key, &self.secret))
    }

    /// Builds a command of stvc with the login in its environment.
    fn stvc(&self, device: &Sandbox, arguments: &[&str]) -> Command {
        let passphrase = device.folder().join("passphrase");
        fs::write(&passphrase, "correct horse\n").unwrap();
        let secret = ["--passphrase-file", text(&passphrase)];
        let mut command = device.command(&[&["--json"], arguments, &secret].concat());
        command
            .env_remove("SOURCE_DATE_EPOCH")
            .env("AWS_ACCESS_KEY_ID", &self.key)
            .env("AWS_SECRET_ACCESS_KEY", &self.secret);
        command
    }

    fn run(&self, device: &Sandbox, arguments: &[&str]) -> Answer {
        answer(self.stvc(device, arguments).output().unwrap())
    }

    /// Starts a sync, kills nodes when a part of the upload is stored, and waits for the end.
    fn sync_and_kill(&mut self, device: &Sandbox, nodes: &[usize]) -> Answer {
        let observer = self.storage(1, "st");
        let before = names(&*observer, "packs/").len();
        let mut sync = self.stvc(device, &["sync"]);
        let mut sync = sync.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begin = Instant::now();
        while names(&*observer, "packs/").len() == before {
            assert!(begin.elapsed() < LIMIT, "nothing was uploaded");
        }
        nodes.iter().for_each(|node| self.kill(*node));
        assert!(sync.try_wait().unwrap().is_none(), "the sync had already ended");
        answer(sync.wait_with_output().unwrap())
    }
}

/// Writes chats whose text cannot be compressed, so that their upload takes several objects.
fn write_large_chats(device: &Sandbox, name: &str, count: u64) {
    let mut state = blake3::Hasher::new();
    state.update(name.as_bytes());
    let mut random = state.finalize_xof();
    for n in 0..count {
        let mut bytes = vec![0; 3 << 20];
        random.fill(&mut bytes);
        let mut text =
            r#"{"user_name":"You","character_name":"Mira","chat_metadata":{}}"#.to_owned();
        for part in bytes.chunks(6000) {
            let words = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, part);
            text += &format!("\n{{\"name\":\"Mira\",\"is_user\":false,\"mes\":\"{words}\"}}");
        }
        device.write(&format!("chats/Mira/{name} {n}.jsonl"), text);
    }
}

/// Asserts that a new device receives everything that this one has, byte for byte.
fn assert_new_device_has_everything(garage: &Garage, device: &Sandbox, node: usize) {
    let fresh = Sandbox::empty();
    garage.run(&fresh, &["import", &garage.address(node, "st"), "--restore"]).exits(0);
    assert_same(&chats_and_lorebooks(&fresh), &chats_and_lorebooks(device));
    assert_valid(&fresh);
}

#[test]
#[ignore = "builds Garage"]
fn garage_keeps_the_contract() {
    let Some(garage) = require(Garage::start()) else { return };
    assert_contract(&*garage.storage(0, PATH), Many::Write);
    // Another node has the same objects.
    assert_eq!(names(&*garage.storage(1, PATH), "many/").len(), 1000);
    let right = login(&garage.key, &garage.secret);
    for wrong in [login(&garage.key, "wrong"), login("GK0123456789abcdef01234567", "right")] {
        let error = open(&garage.address(0, ""), &wrong).list("").unwrap_err();
        assert!(matches!(error, Error::Forbidden { .. }), "{error:?}");
    }
    let none = garage.address(0, "").replace("chats", "none");
    let error = open(&none, &right).list("").unwrap_err();
    assert!(matches!(error, Error::NoSuchPlace { .. }), "{error:?}");
    let region = garage.address(0, "").replace("=garage", "=eu-1");
    let error = open(&region, &right).list("").unwrap_err();
    assert!(matches!(error, Error::WrongRegion { .. }), "{error:?}");
}

/// Kills nodes during the upload of a library, and brings them back. Returns the error of the sync,
/// which went through the first node.
fn nodes_fail_during_a_sync(nodes: &[usize]) -> Option<Value> {
    let mut garage = require(Garage::start())?;
    let device = Sandbox::empty();
    write_large_chats(&device, "first", 1);
    garage.run(&device, &["remote", "add", &garage.address(0, "st")]).exits(0);
    garage.run(&device, &["sync"]).exits(0);
    write_large_chats(&device, "later", 24);
    let files = chats_and_lorebooks(&device);
    let synced = garage.sync_and_kill(&device, nodes);
    assert_same(&chats_and_lorebooks(&device), &files);
    assert_valid(&device);
    if synced.code == 0 {
        // The other nodes are enough to read and to write.
        device.append("chats/Mira/first 0.jsonl", r#"{"name":"Mira","mes":"meanwhile"}"#);
        garage.run(&device, &["sync"]).exits(0);
        assert_new_device_has_everything(&garage, &device, 0);
    }
    nodes.iter().for_each(|node| garage.resume(*node));
    garage.wait_until_healthy();
    garage.run(&device, &["sync"]).exits(0);
    assert_new_device_has_everything(&garage, &device, nodes[0]);
    let errors = synced.of_type("error");
    assert_eq!(errors.len(), usize::from(synced.code != 0), "{synced:?}");
    Some(errors.into_iter().next().unwrap_or_default())
}

#[test]
#[ignore = "builds Garage"]
fn sync_succeeds_while_another_node_is_killed() {
    let Some(error) = nodes_fail_during_a_sync(&[2]) else { return };
    assert_eq!(error, Value::Null);
}

#[test]
#[ignore = "builds Garage"]
fn sync_continues_after_its_node_was_killed() {
    let Some(error) = nodes_fail_during_a_sync(&[0]) else { return };
    assert_eq!(error["code"], "storage-unreachable", "{error}");
}

#[test]
#[ignore = "builds Garage"]
fn sync_continues_after_most_nodes_were_killed() {
    let Some(error) = nodes_fail_during_a_sync(&[1, 2]) else { return };
    // The remaining node reports that it lacks the others, or ends the connection.
    let codes = ["storage-failed", "storage-unreachable"];
    assert!(codes.contains(&error["code"].as_str().unwrap_or_default()), "{error}");
}
