//! WebDAV: Apache with mod_dav over HTTPS, and `rclone serve webdav`. S3: `rclone serve s3`.

use std::fs;

use stvc::storages::{Credentials, Error};

use crate::apache::{Apache, PASSWORD, USER};
use crate::contract::{Many, PATH, assert_contract, names};
use crate::servers::{Rclone, free_port};
use crate::{login, open, require};

fn right(apache: &Apache) -> Credentials {
    let certificate = Some(apache.certificates.authority.clone());
    Credentials { certificate, ..login(USER, PASSWORD) }
}

#[test]
fn apache_keeps_the_contract() {
    let Some(apache) = require(Apache::start()) else { return };
    // The folders of the address do not exist yet.
    let storage = open(&apache.address(PATH), &right(&apache));
    assert_contract(&*storage, Many::Write);
    let path = apache.data().join("聊天 记录/🌊 & 100%/Ünï/many/0001");
    assert_eq!(fs::read(path).unwrap(), b"0001");
}

#[test]
fn files_of_others_in_a_webdav_folder_are_left_out() {
    let Some(apache) = require(Apache::start()) else { return };
    let storage = open(&apache.address(""), &right(&apache));
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
    let right = right(&apache);
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
    let storage = open(&apache.address("a"), &right(&apache));
    storage.write("b", b"1").unwrap();
    apache.stop();
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
