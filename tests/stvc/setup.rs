//! `setup`: one command from nothing to protected chats, and back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use stvc::watch::{Host, ServiceManager, install};

use crate::common::services::Services;
use crate::common::{Answer, Sandbox, answer, chat, has_terminal, text, typed_on_terminal};

const CHAT: &str = "chats/Mira/one.jsonl";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, None));
    sandbox.write("chats/Juno/two.jsonl", chat("two", 3, None));
    sandbox
}

/// Returns the screen with placeholders for the folder and the unit.
fn screen(sandbox: &Sandbox, answer: &Answer) -> String {
    let printed = format!("{}{}", answer.stdout, answer.stderr);
    let printed = printed.replace(text(sandbox.folder()), "HOME");
    regex::Regex::new("[0-9a-f]{8}").unwrap().replace_all(&printed, "UNIT").into_owned()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn setup_protects_a_library_and_repairs_what_is_missing() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    let first = services.stvc(&["setup", "--yes"]).exits(0);
    assert_snapshot!(screen(&sandbox, &first), @"
    SillyTavern: HOME/default-user
      2 characters, 2 chats
    stvc setup will
      create the first snapshots, in HOME/default-user/.stvc
      install the extension for SillyTavern's page
      start the watch now, and keep it running, also while logged out (systemd)
    done     snapshot   2 snapshots created
    done     extension  HOME/default-user/extensions/stvc
    done     watch      running, and started at every login (systemd)
    absent   backup     no regular backup; add one with `stvc setup --backup PLACE`
    Reload SillyTavern's page (F5) to load the extension.
    ");
    assert_eq!(
        services.calls(),
        [
            "systemctl --user daemon-reload",
            "systemctl --user enable --now UNIT",
            "loginctl enable-linger"
        ]
    );
    assert!(services.is_watched());
    sandbox.save(CHAT, chat("one", 5, None));
    wait_for("the watch creates a snapshot", || sandbox.snapshot_ids().len() > 2);

    // Nothing is missing.
    let second = services.stvc(&["setup"]).exits(0);
    assert_snapshot!(screen(&sandbox, &second), @"
    SillyTavern: HOME/default-user
      2 characters, 2 chats
    Everything is set up.
    present  snapshot   the store is HOME/default-user/.stvc
    present  extension  HOME/default-user/extensions/stvc
    present  watch      running, and started at every login
    absent   backup     no regular backup; add one with `stvc setup --backup PLACE`
    ");
    assert_eq!(services.calls(), [""; 0]);

    services.kill_watch();
    fs::remove_file(sandbox.path("extensions/stvc/index.js")).unwrap();
    let repaired = services.stvc(&["--json", "setup", "--yes"]).exits(0);
    let states: Vec<_> = repaired
        .of_type("step")
        .iter()
        .map(|step| format!("{} {}", step["step"], step["state"]).replace('"', ""))
        .collect();
    assert_eq!(states, ["extension done", "watch done", "snapshot present", "backup absent"]);
    assert!(services.is_watched());
    assert!(sandbox.path("extensions/stvc/index.js").exists());
}

#[test]
fn repair_keeps_the_options_of_the_watch() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    services.stvc(&["watch", "--install", "--poll", "6s"]).exits(0);
    services.kill_watch();
    services.stvc(&["setup", "--yes"]).exits(0);
    assert!(services.is_watched());
    let units = fs::read_dir(sandbox.folder().join(".config/systemd/user")).unwrap();
    let [unit] = units.map(|it| it.unwrap().path()).collect::<Vec<_>>().try_into().unwrap();
    assert!(fs::read_to_string(unit).unwrap().contains("\"--poll\" \"6s\""));
}

#[test]
fn setup_remove_leaves_only_the_store() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    let before = sandbox.files();
    services.stvc(&["setup", "--yes"]).exits(0);
    services.calls();
    let planned = services.stvc(&["setup", "--remove", "--dry-run"]).exits(0);
    assert!(planned.stdout.contains("Nothing was changed."), "{planned:?}");
    services.stvc(&["setup", "--remove"]).exits(2);
    assert!(services.is_watched());
    let removed = services.stvc(&["setup", "--remove", "--yes"]).exits(0);
    assert_snapshot!(screen(&sandbox, &removed), @"
    SillyTavern: HOME/default-user
      2 characters, 2 chats
    stvc setup --remove will
      stop the watch, and do not start it at login any more
      remove the extension from SillyTavern's page
    Snapshots and backups are kept.
    removed  watch      stopped, and not started at login any more
      If no other service needs to run while you are logged out:
        loginctl disable-linger
    removed  extension  HOME/default-user/extensions/stvc
    ");
    assert_eq!(
        services.calls(),
        ["systemctl --user disable --now UNIT", "systemctl --user daemon-reload"]
    );
    assert!(!services.is_watched());
    assert_eq!(fs::read_dir(sandbox.folder().join(".config/systemd/user")).unwrap().count(), 0);
    let mut after = sandbox.files();
    after.retain(|path, _| !path.starts_with(".stvc"));
    assert_eq!(after, before);
    assert_eq!(sandbox.snapshot_ids().len(), 2);
    let again = services.stvc(&["setup", "--remove", "--yes"]).exits(0);
    assert!(again.stdout.contains("it was not installed"), "{again:?}");
}

#[test]
fn setup_without_consent_shows_the_plan_and_changes_nothing() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    let before = sandbox.files();
    let refused = services.stvc(&["setup"]).exits(2);
    assert_snapshot!(screen(&sandbox, &refused), @"
    SillyTavern: HOME/default-user
      2 characters, 2 chats
    stvc setup will
      create the first snapshots, in HOME/default-user/.stvc
      install the extension for SillyTavern's page
      start the watch now, and keep it running, also while logged out (systemd)
    error: the setup needs your consent, and there is no terminal to ask on
    hint: run the command again with `--yes`. Nothing was changed
    ");
    let planned = services.stvc(&["--json", "setup", "--dry-run", "--backup", "/x"]).exits(0);
    let steps: Vec<_> = planned.of_type("step").iter().map(|it| it["state"].clone()).collect();
    assert_eq!(steps, ["planned"; 4]);
    let found = planned.of_type("found");
    assert_eq!((&found[0]["chats"], &found[0]["characters"]), (&2.into(), &2.into()));
    assert_eq!(found[0]["chosen"], true);
    assert_eq!(sandbox.files(), before);
    assert_eq!(services.calls(), [""; 0]);
}

#[test]
fn setup_refuses_a_program_in_a_cache() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    let cache = sandbox.folder().join(".npm/_npx/3f5a/node_modules/stvc");
    fs::create_dir_all(&cache).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_stvc"), cache.join("stvc")).unwrap();
    let refused = [["setup", "--yes"], ["watch", "--install"]].map(|arguments| {
        let mut command = Command::new(cache.join("stvc"));
        command.args(arguments).current_dir(sandbox.library()).env_clear();
        command.env("HOME", sandbox.folder()).env("PATH", services.path());
        screen(&sandbox, &answer(command.output().unwrap()).exits(4))
    });
    assert_eq!(refused[0], refused[1]);
    assert_snapshot!(refused[0], @"
    error: HOME/.npm/_npx/3f5a/node_modules/stvc/stvc is in a temporary folder, so the watch could not be started from it later
    hint: install stvc, for example with `npm install -g stvc`; then run `stvc setup`. Nothing was changed
    ");
    assert!(!sandbox.store().exists());
    assert_eq!(services.calls(), [""; 0]);
}

#[test]
fn failed_step_does_not_stop_the_others() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    services.set("systemctl", "echo 'Failed to connect to bus: No medium found' >&2; exit 1");
    let partly = services.stvc(&["setup", "--yes"]).exits(3);
    assert_snapshot!(screen(&sandbox, &partly), @"
    SillyTavern: HOME/default-user
      2 characters, 2 chats
    stvc setup will
      create the first snapshots, in HOME/default-user/.stvc
      install the extension for SillyTavern's page
      start the watch now, and keep it running, also while logged out (systemd)
    done     snapshot   2 snapshots created
    done     extension  HOME/default-user/extensions/stvc
    failed   watch      systemctl: Failed to connect to bus: No medium found
      hint: run the commands below, or `stvc watch` in a terminal
      Start it now and at every login:
        systemctl --user daemon-reload
        systemctl --user enable --now stvc-watch-UNIT
        loginctl enable-linger
    absent   backup     no regular backup; add one with `stvc setup --backup PLACE`
    Reload SillyTavern's page (F5) to load the extension.
    ");
    assert_eq!(sandbox.snapshot_ids().len(), 2);
    assert!(sandbox.path("extensions/stvc/index.js").exists());
    // Lingering is optional.
    drop(services);
    let services = Services::new(&sandbox);
    services.set("loginctl", "echo 'Could not enable linger' >&2; exit 1");
    let done = services.stvc(&["setup", "--yes"]).exits(0);
    assert!(done.stdout.contains("  loginctl enable-linger"), "{done:?}");
    assert!(services.is_watched());
}

#[test]
fn setup_configures_regular_backups() {
    let mut sandbox = library();
    let place = sandbox.folder().join("drive/chats");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    {
        let services = Services::new(&sandbox);
        let arguments = ["setup", "--yes", "--backup", text(&place), "--schedule", "12h"];
        services.stvc(&arguments).exits(0);
        assert_eq!(crate::common::refs(&place), crate::common::refs(&sandbox.store()));
        let value = |key: &str| sandbox.stvc(&["config", key]).exits(0).stdout;
        assert_eq!(value("backup.destination"), format!("{}\n", place.display()));
        assert_eq!(value("backup.schedule"), "12h\n");
        let again = services.stvc(&["setup"]).exits(0);
        assert!(again.stdout.contains(&format!("{}, 12h", place.display())), "{again:?}");
        services.stvc(&["setup", "--yes", "--schedule", "soon"]).exits(2);
    }
    // A place that cannot be used is not configured.
    sandbox.wait(60);
    let other = library();
    let services = Services::new(&other);
    other.write("notes/mine.txt", "mine");
    let refused = services.stvc(&["setup", "--yes", "--backup", text(&other.path("notes"))]);
    assert!(refused.exits(3).stdout.contains("was not created by `stvc backup`"));
    assert_eq!(other.stvc(&["config", "backup.destination"]).exits(0).stdout, "not set\n");
}

#[test]
fn setup_asks_on_a_terminal() {
    if !has_terminal() {
        return;
    }
    let sandbox = library();
    let services = Services::new(&sandbox);
    let path = services.path();
    let variables = [("PATH", path.to_str().unwrap())];
    let place = sandbox.folder().join("drive");
    let arguments = ["setup", "--backup", text(&place)];
    let declined = typed_on_terminal(&sandbox, &arguments, &variables, "n\n").exits(0);
    assert!(declined.stdout.contains("Nothing was changed."), "{declined:?}");
    assert!(!sandbox.store().exists());
    let agreed = typed_on_terminal(&sandbox, &arguments, &variables, "y\ny\n").exits(0);
    assert_snapshot!(screen(&sandbox, &agreed), @"
    y
    y
    SillyTavern: HOME/default-user
      2 characters, 2 chats
    stvc setup will
      create the first snapshots, in HOME/default-user/.stvc
      install the extension for SillyTavern's page
      start the watch now, and keep it running, also while logged out (systemd)
      back up to HOME/drive, daily
    Continue? [Y/n] settings.json holds persona descriptions, tags and the choice of global lorebooks.
    It may hold the password of a proxy. API keys are in another file, which is never stored.
    Store settings.json, too? [y/N] done     settings   settings.json is stored from now on
    done     snapshot   3 snapshots created
    done     extension  HOME/default-user/extensions/stvc
    done     watch      running, and started at every login (systemd)
    done     backup     HOME/drive, daily
    Reload SillyTavern's page (F5) to load the extension.
    warning: HOME/drive: the backup is on the same disk as the store, so both are lost if that disk fails
      back up to another drive or to a git server, too
    ");
    let value = |key: &str| sandbox.stvc(&["config", key]).exits(0).stdout;
    assert_eq!(value("include.settings"), "true\n");
    let settings = sandbox.stvc(&["log", "settings.json"]).exits(0).stdout;
    assert!(settings.contains("settings"), "{settings}");
}

#[test]
fn setup_asks_for_a_backup_place() {
    if !has_terminal() {
        return;
    }
    let sandbox = library();
    let services = Services::new(&sandbox);
    let path = services.path();
    let variables = [("PATH", path.to_str().unwrap())];
    let place = sandbox.folder().join("drive");
    let typed = format!("\nn\nyes\n{}\nsometimes\nweekly\n", place.display());
    typed_on_terminal(&sandbox, &["setup"], &variables, &typed).exits(0);
    let value = |key: &str| sandbox.stvc(&["config", key]).exits(0).stdout;
    assert_eq!(value("include.settings"), "false\n");
    assert_eq!(value("backup.schedule"), "weekly\n");
    assert_eq!(crate::common::refs(&place), crate::common::refs(&sandbox.store()));
}

#[test]
fn setup_keeps_the_configured_decision_about_settings() {
    for decision in ["true", "false"] {
        let sandbox = library();
        let services = Services::new(&sandbox);
        let value = || sandbox.stvc(&["config", "include.settings"]).exits(0).stdout;
        services.stvc(&["setup", "--yes"]).exits(0);
        assert_eq!(value(), "not set\n");
        sandbox.stvc(&["config", "include.settings", decision]).exits(0);
        services.stvc(&["setup", "--yes"]).exits(0);
        if has_terminal() {
            let path = services.path();
            let variables = [("PATH", path.to_str().unwrap())];
            let asked = typed_on_terminal(&sandbox, &["setup"], &variables, "\n").exits(0);
            let printed = format!("{}{}", asked.stdout, asked.stderr);
            assert!(printed.contains("Where should they be backed up?"), "{printed}");
            assert!(!printed.contains("settings.json"), "{printed}");
        }
        services.stvc(&["setup", "--remove", "--yes"]).exits(0);
        assert_eq!(value(), format!("{decision}\n"));
    }
}

/// The search covers the real system, too, which may have other libraries.
#[test]
fn setup_finds_sillytavern_in_the_home_folder() {
    let sandbox = library();
    let install = sandbox.folder().join("Documents/SillyTavern-1.19");
    crate::common::copy_folder(&sandbox.library(), &install.join("data/default-user"));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = sandbox.command(&["--json", "setup", "--dry-run"]);
    let found = answer(command.current_dir(elsewhere.path()).output().unwrap());
    assert!(matches!(found.code, 0 | 2), "{found:?}");
    let libraries: Vec<_> =
        found.of_type("found").iter().map(|line| line["library"].clone()).collect();
    assert!(libraries.contains(&text(&install.join("data/default-user")).into()), "{libraries:?}");
}

fn host(services: &Services<'_>, manager: ServiceManager) -> Host {
    let home = services.sandbox.folder().to_owned();
    let configuration = Some(home.join(".config"));
    Host { manager, home: Some(home), configuration, path: Some(services.path()) }
}

#[track_caller]
fn installs_and_uninstalls(manager: ServiceManager, start: &[&str], stop: &[&str]) {
    let sandbox = library();
    let services = Services::new(&sandbox);
    let (workspace, host) = (sandbox.workspace(), host(&services, manager));
    let program = Path::new(env!("CARGO_BIN_EXE_stvc"));
    let installed = install::install(&workspace, &host, program, None).unwrap();
    assert_eq!(installed.failure, None);
    assert!(installed.changed && installed.running && services.is_watched());
    assert!(install::is_installed(&workspace, &host, program).unwrap());
    let unit = installed.unit.display().to_string();
    let unit = regex::Regex::new("[0-9a-f]{8}").unwrap().replace(&unit, "").into_owned();
    let unit = unit.replace("stvc-watch-", "UNIT");
    let with_unit = |calls: &[&str]| -> Vec<String> {
        calls.iter().map(|call| call.replace("FILE", &unit)).collect()
    };
    assert_eq!(services.calls(), with_unit(start));
    // A second run changes nothing.
    let again = install::install(&workspace, &host, program, None).unwrap();
    assert!(!again.changed && again.running);
    assert_eq!(services.calls(), [""; 0]);
    let removed = install::uninstall(&workspace, &host).unwrap();
    assert!(removed.failure.is_none() && removed.changed && !installed.unit.exists());
    assert_eq!(services.calls(), with_unit(stop));
    wait_for("the watch ends", || !services.is_watched());
}

#[test]
fn watch_is_installed_with_launchd() {
    installs_and_uninstalls(
        ServiceManager::Launchd,
        &["launchctl load -w FILE"],
        &["launchctl unload -w FILE"],
    );
}

#[test]
fn watch_is_installed_with_the_task_scheduler() {
    installs_and_uninstalls(
        ServiceManager::TaskScheduler,
        &["schtasks /Create /F /TN UNIT /XML FILE", "schtasks /Run /TN UNIT"],
        &["schtasks /End /TN UNIT", "schtasks /Delete /F /TN UNIT"],
    );
}

/// The script starts a program of Termux, which is missing here, so the test replaces it.
#[test]
fn watch_is_installed_with_termux_boot() {
    let sandbox = library();
    let services = Services::new(&sandbox);
    services.set("termux-wake-lock", "");
    let (workspace, host) = (sandbox.workspace(), host(&services, ServiceManager::Termux));
    let program = Path::new(env!("CARGO_BIN_EXE_stvc"));
    let installed = install::install(&workspace, &host, program, None).unwrap();
    assert_eq!(installed.failure, None);
    assert_eq!(services.calls(), ["termux-wake-lock "]);
    assert!(installed.unit.starts_with(sandbox.folder().join(".termux/boot")));
    assert!(services.is_watched());
    install::uninstall(&workspace, &host).unwrap();
    assert!(!installed.unit.exists());
    wait_for("the watch ends", || !services.is_watched());
}
