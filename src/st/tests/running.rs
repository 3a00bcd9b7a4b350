use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::st::running::{Running, data_folders, running_in};
use crate::st::{FoundLibrary, Surroundings};

/// A folder with process folders as in `/proc`, an installation of SillyTavern, and a library.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(machine.path("st/data/default-user")).unwrap();
        fs::create_dir_all(machine.path("elsewhere/default-user")).unwrap();
        fs::create_dir_all(machine.path("proc/self")).unwrap();
        fs::write(machine.path("st/package.json"), r#"{"name": "sillytavern"}"#).unwrap();
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn process(&self, id: u32, cwd: &str, root: &Path, arguments: &[&str], environment: &[&str]) {
        let folder = self.path(&format!("proc/{id}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cmdline"), arguments.join("\0") + "\0").unwrap();
        fs::write(folder.join("environ"), environment.join("\0") + "\0").unwrap();
        symlink(self.path(cwd), folder.join("cwd")).unwrap();
        symlink(root, folder.join("root")).unwrap();
    }

    fn runs(&self, library: &str) -> Option<u32> {
        match running_in(&self.path("proc"), &self.path(library)) {
            Running::Seen { process, .. } => Some(process),
            _ => None,
        }
    }
}

const ROOT: &str = "/";

#[test]
fn server_is_found_only_for_its_own_library() {
    let machine = Machine::new();
    assert_eq!(machine.runs("st/data/default-user"), None);
    machine.process(12, "st", Path::new(ROOT), &["node", "server.js"], &[]);
    assert_eq!(machine.runs("st/data/default-user"), Some(12));
    assert_eq!(machine.runs("elsewhere/default-user"), None);
    assert_eq!(machine.runs("not/there"), None);
}

#[test]
fn other_processes_in_the_server_folder_are_ignored() {
    let machine = Machine::new();
    machine.process(12, "st", Path::new(ROOT), &["bash"], &[]);
    machine.process(13, "st", Path::new(ROOT), &["vim", "server.js"], &[]);
    machine.process(14, "st", Path::new(ROOT), &["node", "other.js"], &[]);
    machine.process(15, "elsewhere", Path::new(ROOT), &["node", "server.js"], &[]);
    fs::create_dir_all(machine.path("proc/16")).unwrap();
    assert_eq!(machine.runs("st/data/default-user"), None);
}

#[test]
fn data_folder_is_found_from_options_environment_and_config() {
    let elsewhere = |machine: &Machine| machine.path("elsewhere").to_str().unwrap().to_owned();
    let server = "/some/where/server.js";
    for way in 0..5 {
        let machine = Machine::new();
        let folder = elsewhere(&machine);
        let equals = format!("--dataRoot={folder}");
        let variable = format!("SILLYTAVERN_DATAROOT={folder}");
        let (arguments, environment): (Vec<&str>, Vec<&str>) = match way {
            0 => (vec!["/usr/bin/node", server, "--dataRoot", &folder], vec![]),
            1 => (vec!["node", server, &equals], vec!["SILLYTAVERN_DATAROOT=/no/where"]),
            2 => (vec!["node", server], vec!["A=b", &variable]),
            3 => (vec!["bun", server], vec![]),
            _ => (vec!["node", server, "--configPath", "other.yaml"], vec![]),
        };
        let config = if way == 4 { "st/other.yaml" } else { "st/config.yaml" };
        let line = format!("port: 8000\ndataRoot: \"{folder}\" # here\n");
        fs::write(machine.path(config), if way < 3 { "dataRoot: ./data" } else { &line }).unwrap();
        machine.process(7, "st", Path::new(ROOT), &arguments, &environment);
        assert_eq!(machine.runs("elsewhere/default-user"), Some(7), "way {way}");
        assert_eq!(machine.runs("st/data/default-user"), None, "way {way}");
    }
}

#[test]
fn server_in_a_container_is_found_by_its_mounted_folder() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("container/home")).unwrap();
    symlink(machine.path("elsewhere"), machine.path("container/home/data")).unwrap();
    let arguments = ["node", "server.js", "--dataRoot", "/home/data"];
    machine.process(9, "st", &machine.path("container"), &arguments, &[]);
    assert_eq!(machine.runs("elsewhere/default-user"), Some(9));
}

/// The server of a container has its own paths. Both mount the same device.
#[test]
fn data_folder_of_a_container_is_found_outside() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("volumes/st data/default-user/chats")).unwrap();
    fs::create_dir_all(machine.path("container/home/node")).unwrap();
    fs::create_dir_all(machine.path("proc/9")).unwrap();
    symlink(machine.path("volumes/st data"), machine.path("container/home/node/data")).unwrap();
    let arguments = ["node", "server.js", "--dataRoot", "/home/node/data"];
    machine.process(9, "st", &machine.path("container"), &arguments, &[]);
    assert_eq!(data_folders(&machine.path("proc")), []);
    let here = machine.0.path().display();
    let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 1 0:5 / /proc rw - proc proc rw\n";
    fs::write(machine.path("proc/self/mountinfo"), mounts).unwrap();
    let volume = format!(
        "99 90 0:40 / / rw - overlay overlay rw\n100 99 8:1 {here}/volumes/st\\040data /home/node/data rw - ext4 /dev/sda1 rw\n"
    );
    fs::write(machine.path("proc/9/mountinfo"), volume).unwrap();
    assert_eq!(data_folders(&machine.path("proc")), [(9, machine.path("volumes/st data"))]);
}

#[test]
fn libraries_are_found_in_running_servers_and_usual_places() {
    let machine = Machine::new();
    let surroundings = Surroundings {
        home: Some(machine.path("home")),
        data: vec![machine.path("data")],
        roots: vec![machine.path("root")],
        processes: Some(machine.path("proc")),
    };
    assert_eq!(surroundings.find_libraries(None), []);
    let libraries = [
        "home/Documents/SillyTavern-Launcher/SillyTavern/data/default-user",
        "home/git/sillytavern-staging/docker/data/default-user",
        "data/SillyTavern/default-user",
        "data/var/lib/proot-distro/installed-rootfs/debian/root/SillyTavern/data/default-user",
        "root/var/lib/docker/volumes/my_sillytavern_data/_data/default-user",
    ];
    for library in libraries {
        fs::create_dir_all(machine.path(library).join("chats")).unwrap();
        fs::write(machine.path(library).join("settings.json"), "{}").unwrap();
    }
    // Not libraries.
    fs::create_dir_all(machine.path("home/SillyTavern-Extras")).unwrap();
    fs::create_dir_all(machine.path("home/other/chats")).unwrap();
    fs::create_dir_all(machine.path("st/data/default-user/chats")).unwrap();
    machine.process(12, "st", Path::new(ROOT), &["node", "server.js"], &[]);
    let found = surroundings.find_libraries(None);
    let expected = |(process, path): (Option<u32>, &str)| FoundLibrary {
        root: fs::canonicalize(machine.path(path)).unwrap(),
        process,
    };
    let running = [(Some(12), "st/data/default-user")];
    let all = running.into_iter().chain(libraries.map(|path| (None, path))).map(expected);
    assert_eq!(found, all.collect::<Vec<_>>());
    // The other users of an install.
    fs::create_dir_all(machine.path("st/data/ann/chats")).unwrap();
    fs::write(machine.path("st/data/ann/settings.json"), "{}").unwrap();
    assert_eq!(surroundings.find_libraries(None).len(), libraries.len() + 2);
    assert_eq!(surroundings.find_libraries(Some("ann")), [expected((Some(12), "st/data/ann"))]);
}

#[test]
fn process_names_that_may_run_sillytavern_are_recognised() {
    use crate::st::running::elsewhere::may_run_it;
    for line in [
        "\"node.exe\",\"4120\",\"console\"",
        "/opt/homebrew/bin/node",
        "\"com.docker.backend.exe\"",
        "\"vmmemwsl\"",
    ] {
        assert!(may_run_it(line), "{line}");
    }
    for line in ["\"explorer.exe\",\"812\"", "/usr/sbin/notifyd", "stvc"] {
        assert!(!may_run_it(line), "{line}");
    }
}
