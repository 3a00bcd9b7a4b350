//! Workload (j): requests, bytes and memory of a remote, beside restic and rclone. All use the same
//! servers on loopback, through a proxy that counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::library::Library;
use crate::measure::{Cost, rotated_order, run, time_and_memory, wall};
use crate::proxy::{Proxy, Traffic};
use crate::remote_steps::{Quantity, Step};
use crate::servers::{Rclone, free_port};
use crate::sheet::{Measure, Sheet};
use crate::tools::{self, Place, Stvc, Tool};
use crate::value::Value;
use crate::workloads::{Many, Workload};

pub struct Remotes {
    pub chats: u64,
    pub megabytes: usize,
    /// Saves of one message. stvc merges its packs after 32.
    pub saves: usize,
    /// Syncs with nothing new.
    pub repetitions: usize,
}

/// The columns of stvc.
pub const STVC: [&str; 2] = ["stvc, WebDAV", "stvc, S3"];

/// A tool with one remote. Commands of steps that it does not have are empty lists.
trait Client {
    fn name(&self) -> &'static str;
    /// Stores a save on the device, before it is sent. It is not measured.
    fn store(&self) {}
    /// The library of the new device.
    fn restored(&self) -> PathBuf;
    fn commands(&self, step: Step) -> Vec<Command>;
}

struct StvcRemote {
    name: &'static str,
    here: Stvc,
    there: Stvc,
    address: String,
    passphrase: PathBuf,
}

impl StvcRemote {
    fn new(name: &'static str, home: PathBuf, library: &Path, address: String) -> Self {
        let there = Library::new(&home.join("device/library"));
        fs::create_dir_all(there.root.join("chats")).expect("make a library");
        let passphrase = home.join("passphrase");
        fs::write(&passphrase, "bench").expect("write the passphrase");
        let there = Place { library: there.root, home: home.join("device") };
        let here = Place { library: library.to_owned(), home };
        Self { name, here: Stvc::new(here), there: Stvc::new(there), address, passphrase }
    }

    fn add(&self, device: &Stvc) -> Command {
        let mut add = device.command(&["remote", "add", &self.address]);
        add.arg("--passphrase-file").arg(&self.passphrase);
        add
    }
}

impl Client for StvcRemote {
    fn name(&self) -> &'static str {
        self.name
    }

    fn store(&self) {
        self.here.save().into_iter().for_each(run);
    }

    fn restored(&self) -> PathBuf {
        self.there.place().library.clone()
    }

    fn commands(&self, step: Step) -> Vec<Command> {
        let mut command = match step {
            Step::Create => self.add(&self.here),
            Step::First | Step::Save | Step::Nothing => self.here.command(&["sync", &self.address]),
            Step::Join => self.add(&self.there),
            Step::Restore => self.there.command(&["sync", &self.address]),
        };
        command.env("STVC_REMOTE_USER", KEY).env("STVC_REMOTE_PASSWORD", SECRET);
        vec![command]
    }
}

struct Restic {
    name: &'static str,
    home: PathBuf,
    library: PathBuf,
    address: String,
}

impl Client for Restic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn restored(&self) -> PathBuf {
        self.home.join("device/library")
    }

    fn commands(&self, step: Step) -> Vec<Command> {
        let mut command = Command::new("restic");
        command.env("RESTIC_PASSWORD", "bench").env("RESTIC_REPOSITORY", &self.address);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.arg("--quiet").current_dir(&self.library);
        let mut cache = self.home.join("cache");
        match step {
            // Version 2 of the format compresses.
            Step::Create => command.args(["init", "--repository-version", "2"]),
            Step::First | Step::Save | Step::Nothing => command.args(["backup", "."]),
            Step::Join => return Vec::new(),
            Step::Restore => {
                cache = self.home.join("device/cache");
                command.args(["restore", "latest", "--target"]).arg(self.restored())
            }
        };
        command.env("RESTIC_CACHE_DIR", cache);
        vec![command]
    }
}

struct RcloneSync<'r> {
    name: &'static str,
    rclone: &'r Rclone,
    home: PathBuf,
    library: PathBuf,
    /// A remote of rclone's configuration, and a folder in it.
    address: &'static str,
}

impl Client for RcloneSync<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn restored(&self) -> PathBuf {
        self.home.join("device/library")
    }

    fn commands(&self, step: Step) -> Vec<Command> {
        let mut command = self.rclone.command();
        command.arg("sync");
        match step {
            Step::Create | Step::Join => return Vec::new(),
            Step::First | Step::Save | Step::Nothing => {
                command.arg(&self.library).arg(self.address)
            }
            Step::Restore => command.arg(self.address).arg(self.restored()),
        };
        vec![command]
    }
}

/// The access key of the S3 server; the other servers ask for none.
const KEY: &str = "bench";
const SECRET: &str = "a-secret-of-the-bench";

pub fn measure(dir: &Path, remotes: &Remotes) -> Option<Sheet> {
    let rclone = match Rclone::new() {
        Ok(rclone) => rclone,
        Err(why) => {
            eprintln!("(j) is left out: {why}");
            return None;
        }
    };
    let root = dir.join("server");
    // The folder of each server, and the bucket.
    ["webdav", "s3/bucket", "rest"].iter().for_each(|name| {
        fs::create_dir_all(root.join(name)).expect("make a folder for a server");
    });
    let keys = format!("{KEY},{SECRET}");
    let serve = |protocol: &str, folder: &str, options: &[&str]| {
        let port = free_port();
        let process = rclone.serve(protocol, &root.join(folder), port, options);
        (process, Proxy::start(port))
    };
    let (_webdav_server, webdav) = serve("webdav", "webdav", &[]);
    let (_s3_server, s3) = serve("s3", "s3", &["--auth-key", &keys]);
    let (_rest_server, rest) = serve("restic", "rest", &[]);
    let url = |proxy: &Proxy| format!("http://127.0.0.1:{}", proxy.port);
    rclone.configure("dav", &["webdav", "vendor=rclone", &format!("url={}", url(&webdav))]);
    let login = [format!("access_key_id={KEY}"), format!("secret_access_key={SECRET}")];
    let endpoint = format!("endpoint={}", url(&s3));
    rclone.configure("s3", &["s3", "provider=Rclone", &endpoint, &login[0], &login[1]]);

    let mut library = Library::new(&dir.join("library"));
    let place = |name: &str| {
        let home = dir.join(name);
        fs::create_dir_all(home.join("device/library")).expect("make a folder for a device");
        home
    };
    let at = &library.root;
    let address = format!("webdav+{}/stvc", url(&webdav));
    let stvc_webdav = StvcRemote::new(STVC[0], place("stvc-webdav"), at, address);
    let address = format!("s3://bucket/stvc?endpoint={}&region=us-east-1", url(&s3));
    let stvc_s3 = StvcRemote::new(STVC[1], place("stvc-s3"), at, address);
    let restic = |name, folder: &str, address| {
        let (home, library) = (place(folder), at.clone());
        Restic { name, home, library, address }
    };
    let sync = |name, folder: &str, address| {
        let (home, library) = (place(folder), at.clone());
        RcloneSync { name, rclone: &rclone, home, library, address }
    };
    let restic_rest = restic("restic, REST", "restic-rest", format!("rest:{}/", url(&rest)));
    let address = format!("s3:{}/bucket/restic", url(&s3));
    let restic_s3 = restic("restic, S3", "restic-s3", address);
    let sync_webdav = sync("rclone, WebDAV", "rclone-webdav", "dav:rclone");
    let sync_s3 = sync("rclone, S3", "rclone-s3", "s3:bucket/rclone");
    let mut clients: Vec<(&dyn Client, &Proxy)> = vec![
        (&stvc_webdav, &webdav),
        (&stvc_s3, &s3),
        (&restic_rest, &rest),
        (&restic_s3, &s3),
        (&sync_webdav, &webdav),
        (&sync_s3, &s3),
    ];
    clients.retain(|(client, _)| {
        let tool = client.name().split(',').next().unwrap_or_default();
        !tools::is_missing(tool) && tools::is_asked(tool)
    });
    let Remotes { chats, megabytes, saves, .. } = remotes;
    let title = format!("remotes: {chats} chats, {megabytes} MB, {saves} saves of one message");
    let names = clients.iter().map(|(client, _)| client.name()).collect();
    let mut sheet = Sheet::new('j', title, names);
    let mut many = Many::new(remotes.chats, remotes.megabytes);
    many.begin(&library);
    // Some tools treat a file that was modified in the last two seconds as changed.
    thread::sleep(Duration::from_millis(2100));
    let mut samples: Vec<Vec<(Step, Sample)>> = clients.iter().map(|_| Vec::new()).collect();
    for step in Step::ALL {
        let rounds = match step {
            Step::Save => remotes.saves,
            Step::Nothing => remotes.repetitions,
            Step::Create | Step::First | Step::Join | Step::Restore => 1,
        };
        for round in 0..rounds {
            if step == Step::Save {
                library.next_save();
                many.append_message(&library);
            }
            for n in rotated_order(round, clients.len()) {
                let (client, proxy) = clients[n];
                let commands = client.commands(step);
                if commands.is_empty() {
                    continue;
                }
                client.store();
                samples[n].push((step, Sample::measure(commands, proxy)));
            }
        }
    }
    sheet.largest = fs::metadata(library.root.join(many.chat().0)).expect("look at a chat").len();
    for ((client, _), samples) in clients.iter().zip(&samples) {
        let mut compare = Command::new("diff");
        compare.arg("-r").arg(library.root.join("chats")).arg(client.restored().join("chats"));
        run(compare);
        for step in Step::ALL {
            let of_step = samples.iter().filter(|(of, _)| *of == step);
            let of_step: Vec<_> = of_step.map(|(_, sample)| sample).collect();
            for (quantity, value) in Sample::summary(&of_step) {
                sheet.set(Measure::Remote(step, quantity), client.name(), value);
            }
        }
    }
    Some(sheet)
}

struct Sample {
    traffic: Traffic,
    cost: Cost,
    memory: Option<u64>,
}

impl Sample {
    fn measure(commands: Vec<Command>, proxy: &Proxy) -> Self {
        proxy.take();
        let (cost, memory) = time_and_memory(commands);
        Self { traffic: proxy.take(), cost, memory }
    }

    /// Returns the mean traffic, the median time and the highest memory use.
    fn summary(samples: &[&Self]) -> [(Quantity, Option<Value>); 5] {
        let mean = |of: fn(&Traffic) -> u64| {
            let sum: u64 = samples.iter().map(|sample| of(&sample.traffic)).sum();
            (!samples.is_empty()).then(|| sum as f64 / samples.len() as f64)
        };
        let bytes = |of| mean(of).map(|bytes| Value::Bytes(bytes as u64));
        let costs: Vec<_> = samples.iter().map(|sample| sample.cost).collect();
        let memory = samples.iter().filter_map(|sample| sample.memory).max();
        [
            (Quantity::Requests, mean(|traffic| traffic.requests).map(Value::Count)),
            (Quantity::Sent, bytes(|traffic| traffic.sent)),
            (Quantity::Received, bytes(|traffic| traffic.received)),
            (Quantity::Time, wall(&costs)),
            (Quantity::Memory, memory.map(Value::Bytes)),
        ]
    }
}
