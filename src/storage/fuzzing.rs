//! Fuzz targets for the lists of servers. Each target panics if its invariant does not hold.
//! `src/fuzzing` lists the targets.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::CONTENT_LENGTH;
use hyper::{Request, Response};
use opendal::{Buffer, HttpBody, HttpTransport, HttpTransporter, OperationContext};

use super::failure::Failure;
use super::opendal::OpenDal;
use super::{
    Address, Credentials, LONGEST_LIST, Options, Password, Storage, object_name, s3_list,
    webdav_list,
};
use crate::file_names;

/// The folder of all objects, as servers write it.
const ROOT: &str = "聊天/";
const PREFIX: &str = "devices/";
/// A list that refers to more pages is as endless as one that refers to itself.
const MOST_REQUESTS: usize = 8;

/// A server that answers all requests with one list.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<(Vec<u8>, usize)>>);

impl HttpTransport for Server {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let wrong = |why: &str| Failure::WrongServer(why.into()).into_opendal();
        let list = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.1 += 1;
            if state.1 > MOST_REQUESTS {
                return Err(wrong("too many requests"));
            }
            state.0.clone()
        };
        let (status, answer) = if request.method() == "PROPFIND" {
            let folder = file_names::undo(request.uri().path());
            let entries = webdav_list::parse(&list, &folder).map_err(wrong)?;
            (207, webdav_list::write(&entries, &folder))
        } else {
            (200, s3_list::clean(&list, ROOT).map_err(wrong)?)
        };
        let response = Response::builder().status(status).header(CONTENT_LENGTH, answer.len());
        let body = futures_util::stream::iter([Ok(Buffer::from(answer))]);
        Ok(response.body(HttpBody::new(body, None)).expect("the answer is valid"))
    }
}

thread_local! {
    static SERVER: Server = Server::default();
    // Reading the certificates of the system takes longer than an input.
    static WEBDAV: OpenDal = open(&format!("webdav://storage.invalid/dav/{ROOT}"));
    static S3: OpenDal = open(&format!("s3://chats/{ROOT}?endpoint=https://storage.invalid"));
}

fn open(address: &str) -> OpenDal {
    let password = Some(Password::new("right"));
    let login = Credentials { user: Some("me".into()), password, ..Credentials::default() };
    let options = Options { retries: 0, ..Options::default() };
    let opened = match Address::parse(address).expect("the address is valid") {
        Address::WebDav(address) => OpenDal::webdav(&address, &login, options),
        Address::S3(address) => OpenDal::s3(&address, &login, options),
        _ => unreachable!("it is the address of a server"),
    };
    let transport = HttpTransporter::new(SERVER.with(Server::clone));
    let context = OperationContext::new().with_http_transport(transport);
    opened.expect("it opens").with_context(context)
}

/// Checks that all listed objects are below [`PREFIX`] and have valid names, and that there are
/// not more than the list has bytes for.
fn assert_listed(data: &[u8], storage: &OpenDal) {
    SERVER.with(|server| {
        *server.0.lock().unwrap_or_else(PoisonError::into_inner) = (data.to_vec(), 0);
    });
    let Ok(listed) = storage.list(PREFIX) else { return };
    for listed in &listed {
        assert!(object_name::is_valid(&listed.name), "{}", listed.name);
        assert!(listed.name.starts_with(PREFIX), "{}", listed.name);
    }
    assert!(listed.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(listed.len() <= (data.len() * MOST_REQUESTS).min(LONGEST_LIST));
}

/// Checks that the entries of a WebDAV list are names in the folder, that OpenDAL reads the entries
/// that were written for it, and that only valid objects below the prefix are listed.
pub(crate) fn webdav_list(data: &[u8]) {
    let _ = webdav_list::next_page(&String::from_utf8_lossy(data));
    let folder = format!("/dav/{ROOT}{PREFIX}");
    if let Ok(entries) = webdav_list::parse(data, folder.as_bytes()) {
        for entry in &entries {
            assert!(!entry.name.contains(['/', '\\', '\0']), "{}", entry.name);
            assert!(!matches!(&*entry.name, "." | ".."), "{}", entry.name);
        }
        assert!(entries.len() <= data.len().min(LONGEST_LIST));
        let written = webdav_list::write(&entries, folder.as_bytes());
        let written = String::from_utf8(written).expect("a list is text");
        let written = written.replacen("<multistatus>", "<multistatus xmlns=\"DAV:\">", 1);
        let again = webdav_list::parse(written.as_bytes(), folder.as_bytes());
        assert_eq!(again.as_ref(), Ok(&entries));
    }
    WEBDAV.with(|storage| assert_listed(data, storage));
}

/// Checks that a cleaned S3 list has only keys below the root, that it is cleaned to itself, and
/// that only valid objects below the prefix are listed.
pub(crate) fn s3_list(data: &[u8]) {
    if let Ok(cleaned) = s3_list::clean(data, ROOT) {
        assert_eq!(s3_list::clean(&cleaned, ROOT).as_ref(), Ok(&cleaned));
        let text = String::from_utf8(cleaned).expect("a list is text");
        let keys = text.split("<Key>").skip(1);
        assert!(keys.clone().all(|key| key.starts_with(ROOT)), "{text}");
        assert!(keys.count() <= data.len().min(LONGEST_LIST));
    }
    S3.with(|storage| assert_listed(data, storage));
}
