//! Failures on the way to a server, with the program: a proxy that does not connect, and a clock or
//! certificate that is wrong. Each is one sentence with the next step.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::apache::{Apache, PASSWORD, USER};
use crate::require;
use crate::scripted::{Server, always, send};
use crate::servers::free_port;

/// Runs `stvc remote add`, and returns its error.
fn refused(address: &str, variables: &[(&str, &str)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("default-user");
    fs::create_dir_all(library.join("chats")).unwrap();
    fs::write(library.join("settings.json"), "{}").unwrap();
    fs::write(folder.path().join("passphrase"), "correct horse\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_stvc"))
        .args(["--json", "remote", "add", address, "--passphrase-file", "../passphrase"])
        .current_dir(&library)
        .env_clear()
        .env("HOME", folder.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut lines = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["type"] == "error").unwrap_or_else(|| panic!("{stdout}"))
}

/// Asserts that an error is one sentence, and that its message and hint contain these texts.
#[track_caller]
fn assert_error(error: &Value, code: &str, message: &str, hint: &str) {
    let text = |field: &str| error[field].as_str().unwrap_or_default();
    assert_eq!(text("code"), code, "{error}");
    assert!(text("message").contains(message), "{error}");
    assert!(!text("message").contains(['\n', '\u{1b}']), "{error}");
    assert!(text("hint").contains(hint), "{error}");
}

const ADDRESSES: [(&str, &str); 3] = [
    ("webdav+http://storage.invalid/chats", "HTTP_PROXY"),
    ("webdav://storage.invalid/chats", "HTTPS_PROXY"),
    ("s3://chats?endpoint=https://storage.invalid", "ALL_PROXY"),
];
const KEYS: [(&str, &str); 2] =
    [("STVC_REMOTE_USER", "me"), ("STVC_REMOTE_PASSWORD", "right-password")];

#[test]
fn closed_port_of_a_proxy_is_reported() {
    let proxy = format!("127.0.0.1:{}", free_port());
    for (address, variable) in ADDRESSES {
        let url = format!("http://someone:proxy-password@{proxy}");
        let error = refused(address, &[&KEYS[..], &[(variable, &url)]].concat());
        let message = format!("cannot connect to storage.invalid through the proxy {proxy}: ");
        assert_error(&error, "storage-proxy", &message, "check HTTPS_PROXY");
        assert!(error["message"].as_str().unwrap().contains("refused"), "{error}");
        assert!(!error.to_string().contains("-password"), "{error}");
    }
}

#[test]
fn proxy_whose_name_is_unknown_is_not_taken_for_the_server() {
    for (address, variable) in ADDRESSES {
        let proxy = [(variable, "http://proxy.invalid:3128")];
        let error = refused(address, &[&KEYS[..], &proxy].concat());
        let message = "the proxy proxy.invalid:3128: no server has the name of the proxy";
        assert_error(&error, "storage-proxy", message, "check HTTPS_PROXY");
    }
}

#[test]
fn proxy_that_wants_a_login_is_reported() {
    let proxy = always("407 Proxy Authentication Required", "Proxy-Authenticate: Basic\r\n", "");
    let url = format!("http://127.0.0.1:{}", proxy.port);
    for (address, variable) in ADDRESSES {
        let error = refused(address, &[&KEYS[..], &[(variable, &url)]].concat());
        let message =
            format!("the proxy 127.0.0.1:{} requires a user name and password", proxy.port);
        assert_error(&error, "storage-proxy-login", &message, "http://USER:PASSWORD@HOST:PORT");
    }
}

#[test]
fn proxy_that_does_not_connect_is_reported() {
    for status in ["502 Bad Gateway", "403 Forbidden", "504 Gateway Timeout"] {
        let proxy = always(status, "X-Squid-Error: ERR_CANNOT_FORWARD 0\r\n", "<html>");
        let url = format!("http://127.0.0.1:{}", proxy.port);
        for (address, variable) in ADDRESSES {
            let error = refused(address, &[&KEYS[..], &[(variable, &url)]].concat());
            let message = format!(
                "cannot connect to storage.invalid through the proxy 127.0.0.1:{}: ",
                proxy.port
            );
            assert_error(&error, "storage-proxy", &message, "set NO_PROXY");
        }
        let methods: Vec<_> = proxy.requests().into_iter().map(|it| it.method).collect();
        assert_eq!(methods, ["PROPFIND", "CONNECT", "CONNECT"], "{status}");
    }
}

/// A proxy would connect to itself, and learn the password.
#[test]
fn no_proxy_is_used_for_this_machine() {
    let proxy = always("502 Bad Gateway", "", "");
    let url = format!("http://127.0.0.1:{}", proxy.port);
    let server = Server::start(|_, connection| send(connection, "507 Insufficient", "", ""));
    let port = server.port;
    for address in [
        format!("webdav+http://127.0.0.1:{port}/chats"),
        format!("webdav+http://localhost:{port}/chats"),
        format!("s3://chats?endpoint=http://127.0.0.1:{port}"),
    ] {
        let error = refused(&address, &[&KEYS[..], &[("ALL_PROXY", &url)]].concat());
        assert_error(&error, "storage-full", "is full", "get more space");
    }
    // Another machine, which the user excepts.
    let except = [("ALL_PROXY", &*url), ("NO_PROXY", "storage.invalid")];
    let error = refused("webdav+http://storage.invalid/chats", &except);
    assert_error(&error, "storage-unknown-host", "storage.invalid", "check the address");
    assert!(proxy.requests().is_empty());
}

#[test]
fn certificate_that_is_not_valid_now_points_to_the_clock() {
    for (validity, code, message, hint) in [
        (
            ["20200101000000Z", "20210201120000Z"],
            "storage-certificate-expired",
            "the certificate of localhost:PORT has expired: it was valid until 2021-02-01 12:00 UTC",
            "check the clock of this device; if it is right, renew the certificate",
        ),
        (
            ["20480301120000Z", "20490101000000Z"],
            "storage-clock",
            "that of localhost:PORT differ: its certificate is valid from 2048-03-01 12:00 UTC",
            "set the clock of this device",
        ),
    ] {
        let Some(apache) = require(Apache::start_with(validity)) else { return };
        let certificate = apache.certificates.authority.to_str().unwrap();
        let login = [
            ("STVC_REMOTE_USER", USER),
            ("STVC_REMOTE_PASSWORD", PASSWORD),
            ("STVC_REMOTE_CERTIFICATE", certificate),
        ];
        let message = message.replace("PORT", &apache.port.to_string());
        assert_error(&refused(&apache.address("chats"), &login), code, &message, hint);
    }
}
