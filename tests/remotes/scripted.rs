//! Servers that misbehave.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stvc::storages::{Address, Credentials, Error, Limit, Options, Storage};

use crate::contract::names;
use crate::{login, options};

/// A request: its method, path and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: String,
    pub body: Vec<u8>,
}

/// A server whose answers a test chooses. Each answer closes its connection.
pub struct Server {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (seen, stop, answer) = (Arc::clone(&requests), Arc::clone(&stopped), Arc::new(answer));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut connection = connection.unwrap();
                    let Some(request) = read_request(&mut connection) else { return };
                    seen.lock().unwrap().push(request.clone());
                    answer(&request, &mut connection);
                });
            }
        });
        Self { port, requests, stopped }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    fn webdav(&self, options: Options) -> Box<dyn Storage> {
        let address = format!("webdav+http://127.0.0.1:{}/dav", self.port);
        let address = Address::parse(&address).unwrap();
        stvc::storages::open(&address, &login("me", "right"), options).unwrap()
    }

    fn s3(&self) -> Box<dyn Storage> {
        let address = format!("s3://chats/dav?endpoint=http://127.0.0.1:{}", self.port);
        let address = Address::parse(&address).unwrap();
        stvc::storages::open(&address, &login("KEY", "right"), options()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn read_request(connection: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let lower = line.trim().to_lowercase();
        if lower.is_empty() {
            break;
        }
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        headers += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body })
}

pub fn send(connection: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    let _ = connection.write_all(head.as_bytes());
    let _ = connection.write_all(body.as_bytes());
}

/// Answers every request with one status.
pub fn always(status: &'static str, headers: &'static str, body: &'static str) -> Server {
    Server::start(move |_, connection| send(connection, status, headers, body))
}

fn multistatus(hrefs: &[&str]) -> String {
    let entry = |href: &&str| {
        let folder = if href.ends_with('/') { "<D:collection/>" } else { "" };
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop>\
             <D:resourcetype>{folder}</D:resourcetype>\
             <D:getcontentlength>5</D:getcontentlength></D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    };
    let entries: String = hrefs.iter().map(entry).collect();
    format!("<D:multistatus xmlns:D=\"DAV:\">{entries}</D:multistatus>")
}

#[test]
fn statuses_become_errors_with_a_hint() {
    for (status, code) in [
        ("401 Unauthorized", "storage-wrong-password"),
        ("403 Forbidden", "storage-forbidden"),
        ("407 Proxy Authentication Required", "storage-proxy-login"),
        ("413 Content Too Large", "storage-upload-limit"),
        ("429 Too Many Requests", "storage-rate-limited"),
        ("507 Insufficient Storage", "storage-full"),
        ("405 Method Not Allowed", "storage-wrong-server"),
        ("302 Found", "storage-redirected"),
        ("500 Internal Server Error", "storage-failed"),
        ("418 I'm a teapot", "storage-failed"),
    ] {
        let server = always(status, "", "");
        let storage = server.webdav(options());
        for error in [storage.write("a", b"1").unwrap_err(), storage.list("").unwrap_err()] {
            assert_eq!(error.code(), code, "{status}: {error}");
            let text = format!("{error}. {}", error.hint().unwrap());
            assert!(!text.contains("right"), "{text}");
        }
    }
}

#[test]
fn codes_of_s3_become_errors() {
    for (status, body, code) in [
        ("403 Forbidden", "<Error><Code>RequestTimeTooSkewed</Code></Error>", "storage-clock"),
        ("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>", "storage-forbidden"),
        (
            "403 Forbidden",
            "<Error><Code>SignatureDoesNotMatch</Code></Error>",
            "storage-wrong-password",
        ),
        ("503 Slow Down", "<Error><Code>SlowDown</Code></Error>", "storage-rate-limited"),
        ("507 Full", "<Error><Code>XMinioStorageFull</Code></Error>", "storage-full"),
        ("404 Not Found", "<Error><Code>NoSuchBucket</Code></Error>", "storage-no-such-place"),
        ("301 Moved", "<Error><Code>PermanentRedirect</Code></Error>", "storage-wrong-region"),
    ] {
        let server = always(status, "", body);
        let storage = server.s3();
        let errors = [
            storage.list("").unwrap_err(),
            storage.read("a", 1).unwrap_err(),
            storage.write("a", b"1").unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.code(), code, "{body}: {error:?}");
        }
    }
}

/// Not all servers say why they refuse a request whose time is wrong.
#[test]
fn wrong_clock_is_recognised_by_the_time_of_an_s3_server() {
    for status in ["400 Bad Request", "403 Forbidden"] {
        let body = "<Error><Code>AccessDenied</Code></Error>";
        let server = always(status, "Date: Thu, 19 Nov 2020 10:10:10 GMT\r\n", body);
        let error = server.s3().list("").unwrap_err();
        assert_eq!(error.code(), "storage-clock", "{error}");
        assert!(error.to_string().contains("there it is 2020-11-19 10:10 UTC"), "{error}");
        assert!(error.hint().unwrap().to_string().contains("set the clock"));
    }
}

#[test]
fn requests_never_go_to_another_server() {
    let other = always("200 OK", "", "secret");
    let target = format!("http://127.0.0.1:{}/dav/packs/a", other.port);
    let location = format!("Location: {target}\r\n");
    let server = Server::start(move |_, connection| send(connection, "307 Moved", &location, ""));
    for storage in [server.webdav(options()), server.s3()] {
        let error = storage.read("packs/a", 100).unwrap_err();
        assert!(matches!(error, Error::Redirected { .. }), "{error:?}");
        assert!(error.to_string().contains(&target), "{error}");
        assert!(storage.write("packs/a", b"1").is_err());
        assert!(storage.list("").is_err());
    }
    // Entries and pages of a list that are on another server.
    let hrefs = multistatus(&["/dav/", &target]);
    let link = format!("Link: <{target}>; rel=\"next\"\r\n");
    let pages = Arc::new(AtomicBool::new(false));
    let with_pages = Arc::clone(&pages);
    let server = Server::start(move |request, connection| {
        let link = if with_pages.load(Ordering::Relaxed) { &*link } else { "" };
        match request.path.as_str() {
            "/dav/" => send(connection, "207 Multi-Status", link, &hrefs),
            _ => send(connection, "404 Not Found", "", ""),
        }
    });
    let storage = server.webdav(options());
    assert_eq!(names(&*storage, ""), []);
    pages.store(true, Ordering::Relaxed);
    assert!(matches!(storage.list("").unwrap_err(), Error::WrongServer { .. }));
    assert_eq!(other.requests(), []);
}

#[test]
fn hostile_names_in_lists_are_left_out() {
    let hrefs = multistatus(&[
        "/dav/",
        "/dav/good",
        "/dav/../secret",
        "/dav/%2e%2e/secret",
        "/dav/a%2F..%2F..%2Fb",
        "/etc/passwd",
        "file:///etc/passwd",
        "/dav/..%5C..%5Cx",
        "/dav/.hidden",
        "/dav/CON",
        "/dav/a%0Ab",
        "/dav/../dav/",
        "/dav/%2e%2e/",
    ]);
    let server =
        Server::start(move |_, connection| send(connection, "207 Multi-Status", "", &hrefs));
    assert_eq!(names(&*server.webdav(options()), ""), [("good".to_owned(), 5)]);
    assert_eq!(server.requests().len(), 1);
    let keys = ["dav/good", "dav/../secret", "../x", "/etc/passwd", "dav//a", "dav/.hidden"];
    let contents: String = keys
        .map(|key| {
            format!(
                "<Contents><Key>{key}</Key><Size>5</Size><ETag>e</ETag>\
                 <LastModified>2026-11-19T10:10:10.000Z</LastModified></Contents>"
            )
        })
        .concat();
    let list =
        format!("<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>");
    let server = Server::start(move |_, connection| send(connection, "200 OK", "", &list));
    assert_eq!(names(&*server.s3(), ""), [("good".to_owned(), 5)]);
}

#[test]
fn answers_without_an_end_are_refused() {
    let endless = |head: &'static str, part: &'static str| {
        Server::start(move |_, connection| {
            let _ = connection.write_all(head.as_bytes());
            let part = part.repeat(4096);
            while connection.write_all(part.as_bytes()).is_ok() {}
        })
    };
    let list = endless(
        "HTTP/1.1 207 Multi-Status\r\n\r\n<multistatus xmlns=\"DAV:\">",
        "<response><href>/dav/a</href></response>",
    );
    let begin = Instant::now();
    let error = list.webdav(options()).list("").unwrap_err();
    assert!(matches!(error, Error::WrongServer { .. } | Error::TooLarge { .. }), "{error:?}");
    let object = endless("HTTP/1.1 200 OK\r\n\r\n", "aaaaaaaa");
    let error = object.webdav(options()).read("a", 1000).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    let error = object.s3().list("").unwrap_err();
    assert!(matches!(error, Error::WrongServer { .. } | Error::TooLarge { .. }), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    // A list of folders that contain themselves.
    let folders = Server::start(|request, connection| {
        let list = multistatus(&[&request.path, &format!("{}a/", request.path)]);
        send(connection, "207 Multi-Status", "", &list);
    });
    assert_eq!(names(&*folders.webdav(options()), ""), []);
    assert!(folders.requests().len() < 20);
    // Folders with many folders, each of which has many folders.
    let deep = Server::start(|request, connection| {
        let folders: Vec<_> = (0..60_000).map(|n| format!("{}{n}/", request.path)).collect();
        let hrefs: Vec<_> = folders.iter().map(String::as_str).chain([&*request.path]).collect();
        send(connection, "207 Multi-Status", "", &multistatus(&hrefs));
    });
    let error = deep.webdav(options()).list("").unwrap_err();
    assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
    assert!(deep.requests().len() < 10, "{}", deep.requests().len());
    // Long pages.
    let long = Server::start(|request, connection| {
        let hrefs: Vec<_> = (0..60_000).map(|n| format!("/dav/{n}")).collect();
        let hrefs: Vec<_> = hrefs.iter().map(String::as_str).chain(["/dav/"]).collect();
        let link = format!("Link: <{}>; rel=\"next\"\r\n", request.path);
        send(connection, "207 Multi-Status", &link, &multistatus(&hrefs));
    });
    let error = long.webdav(options()).list("").unwrap_err();
    assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
    assert!(long.requests().len() < 10, "{}", long.requests().len());
    // Pages without an end.
    let pages = Server::start(|request, connection| {
        let link = format!("Link: <{}>; rel=\"next\"\r\n", request.path);
        send(connection, "207 Multi-Status", &link, &multistatus(&["/dav/"]));
    });
    let error = pages.webdav(options()).list("").unwrap_err();
    assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
}

/// 坚果云 lists 750 entries per page.
#[test]
fn all_pages_of_a_list_are_read() {
    let server = Server::start(|request, connection| {
        let number = request.path.split_once("?page=").map_or(0, |(_, page)| page.parse().unwrap());
        let hrefs: Vec<_> = (0..750).map(|n| format!("/dav/{}", number * 750 + n)).collect();
        let hrefs: Vec<_> = hrefs.iter().map(String::as_str).chain(["/dav/"]).collect();
        let link = format!("Link: </dav/?page={}>; rel=\"next\"\r\n", number + 1);
        let link = if number < 2 { &*link } else { "" };
        send(connection, "207 Multi-Status", link, &multistatus(&hrefs));
    });
    assert_eq!(names(&*server.webdav(options()), "").len(), 2250);
    assert_eq!(server.requests().len(), 3);
    let [first, _, last] = &server.requests()[..] else { panic!() };
    assert!(last.headers.to_lowercase().contains("authorization: basic"));
    assert_eq!(last.body, first.body);
}

#[test]
fn transfers_without_progress_fail_and_slow_ones_do_not() {
    let patience = Duration::from_millis(400);
    let options = Options { patience, retries: 0, ..options() };
    let silent = Server::start(|_, _| std::thread::sleep(Duration::from_secs(3)));
    let begin = Instant::now();
    let error = silent.webdav(options.clone()).read("a", 9).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(2));
    let slow = Server::start(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(150));
            let _ = connection.write_all(b"x");
        }
    });
    assert_eq!(slow.webdav(options.clone()).read("a", 9).unwrap(), b"xxxxxxxx");
    let half = Server::start(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nxxxx");
    });
    let error = half.webdav(options).read("a", 9).unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
}

#[test]
fn failures_of_a_moment_are_retried() {
    let failed = AtomicBool::new(false);
    let server = Server::start(move |request, connection| {
        if !failed.swap(true, Ordering::Relaxed) {
            send(connection, "502 Bad Gateway", "", "");
        } else if request.method == "PUT" {
            send(connection, "201 Created", "", "");
        }
    });
    server.webdav(options()).write("a", b"text").unwrap();
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"text", b"text"]);
    // A wrong password is not tried again: some servers block a user after a few attempts.
    let server = always("401 Unauthorized", "", "");
    assert!(server.webdav(options()).read("a", 9).is_err());
    assert_eq!(server.requests().len(), 1);
}

/// Apache answers 403 if another request creates the folder at the same time.
#[test]
fn folder_that_another_request_creates_at_the_same_time_is_used() {
    let folders = Mutex::new(BTreeSet::from(["/".to_owned(), "/dav/".to_owned()]));
    let server = Server::start(move |request, connection| {
        let mut folders = folders.lock().unwrap();
        let has = |path: &str| folders.contains(path);
        let (parent, _) = request.path.trim_end_matches('/').rsplit_once('/').unwrap();
        match request.method.as_str() {
            "PROPFIND" if has(&request.path) => {
                send(connection, "207 Multi-Status", "", &multistatus(&[&request.path]));
            }
            "MKCOL" if has(&format!("{parent}/")) => {
                folders.insert(request.path.clone());
                send(connection, "403 Forbidden", "", "");
            }
            "PUT" if has(&format!("{parent}/")) => send(connection, "201 Created", "", ""),
            "PUT" => send(connection, "409 Conflict", "", ""),
            _ => send(connection, "404 Not Found", "", ""),
        }
    });
    server.webdav(options()).write("packs/a/b", b"text").unwrap();
    let forbidden = Server::start(|request, connection| match request.method.as_str() {
        "PUT" => send(connection, "409 Conflict", "", ""),
        "MKCOL" => send(connection, "403 Forbidden", "", ""),
        _ => send(connection, "404 Not Found", "", ""),
    });
    let error = forbidden.webdav(options()).write("packs/a", b"text").unwrap_err();
    assert!(matches!(error, Error::Forbidden { .. }), "{error:?}");
}

#[test]
fn server_decides_how_long_to_wait() {
    let blocked = AtomicBool::new(true);
    let server = Server::start(move |_, connection| {
        if blocked.swap(false, Ordering::Relaxed) {
            send(connection, "429 Too Many Requests", "Retry-After: 2\r\n", "");
        } else {
            send(connection, "200 OK", "", "1");
        }
    });
    let begin = Instant::now();
    assert_eq!(server.webdav(options()).read("a", 9).unwrap(), b"1");
    assert!(begin.elapsed() >= Duration::from_secs(2));
    let server = always("429 Too Many Requests", "Retry-After: 1800\r\n", "");
    let error = server.webdav(options()).read("a", 9).unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn each_call_sends_few_requests() {
    let server = Server::start(|request, connection| match request.method.as_str() {
        "PROPFIND" => send(connection, "207 Multi-Status", "", &multistatus(&["/dav/", "/dav/a"])),
        "GET" => send(connection, "200 OK", "", "12345"),
        _ => send(connection, "204 No Content", "", ""),
    });
    let storage = server.webdav(options());
    storage.list("").unwrap();
    storage.read("a", 9).unwrap();
    storage.write("a", b"1").unwrap();
    storage.delete("a").unwrap();
    let methods: Vec<_> = server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["PROPFIND", "GET", "PUT", "DELETE"]);
    let list = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
    let server = Server::start(move |request, connection| match request.method.as_str() {
        "GET" if request.path.contains("list-type") => send(connection, "200 OK", "", list),
        "GET" => send(connection, "200 OK", "", "12345"),
        _ => send(connection, "200 OK", "", ""),
    });
    let storage = server.s3();
    storage.list("").unwrap();
    storage.read("a", 9).unwrap();
    storage.write("a", b"1").unwrap();
    storage.delete("a").unwrap();
    let methods: Vec<_> = server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["GET", "GET", "PUT", "DELETE"]);
}

#[test]
fn limit_of_requests_spreads_them() {
    let server = always("200 OK", "", "1");
    let limit = Limit { requests: 20, within: Duration::from_secs(5) };
    let storage = server.webdav(Options { limit: Some(limit), ..options() });
    let begin = Instant::now();
    for _ in 0..10 {
        storage.read("a", 9).unwrap();
    }
    assert!(begin.elapsed() < Duration::from_secs(2));
    for _ in 0..4 {
        storage.read("a", 9).unwrap();
    }
    assert!(begin.elapsed() >= Duration::from_millis(1500));
}

#[test]
fn missing_keys_are_reported_before_a_request() {
    let server = always("200 OK", "", "");
    let address = format!("s3://chats?endpoint=http://127.0.0.1:{}", server.port);
    let address = Address::parse(&address).unwrap();
    let storage = stvc::storages::open(&address, &Credentials::default(), options()).unwrap();
    // The user of the tests may have keys in the files of AWS.
    if let Err(error) = storage.list("") {
        assert!(matches!(error, Error::NoPassword { .. } | Error::Failed { .. }), "{error:?}");
    }
}
