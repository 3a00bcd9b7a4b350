//! WebDAV servers and S3 buckets, through Apache OpenDAL.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use opendal::layers::{ConcurrentLimitLayer, RetryLayer};
use opendal::services::{S3 as S3Builder, Webdav};
use opendal::{EntryMode, ErrorKind, HttpTransporter, OperationContext, Operator};
use tokio::runtime::{Builder, Handle, Runtime};

use super::address::{BucketStyle, S3, Server, WebDav};
use super::failure::{Failure, Protocol, Subject};
use super::http::{CALL, Call, Transport};
use super::request_rate::{Limit, RequestRate};
use super::{
    Address, Credentials, Error, LONGEST_LIST, LONGEST_OBJECT, Listed, Options, Result, Storage,
    object_name, tls,
};

/// Many small servers allow few connections.
const CONNECTIONS: usize = 4;
/// Length in bytes from which an object is not sent to a folder that may not exist.
const LONG: usize = 64 << 10;
/// Number of times that other requests may create a part of the same path first.
const LOST_RACES: usize = 5;

/// A WebDAV server or an S3 bucket.
pub struct OpenDal {
    place: String,
    host: String,
    protocol: Protocol,
    has_password: bool,
    options: Options,
    operator: Operator,
    /// Folders of a WebDAV server that exist.
    folders: Mutex<BTreeSet<String>>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

/// Parts of a storage that errors name, or that depend on the protocol.
struct Named {
    place: String,
    host: String,
    /// The prefix of all keys in a bucket.
    root: String,
    protocol: Protocol,
    has_password: bool,
}

impl OpenDal {
    pub fn webdav(address: &WebDav, login: &Credentials, options: Options) -> Result<Self> {
        let server = &address.server;
        let path = address.path.join("/");
        // The path is not part of the endpoint, because servers escape it in different ways.
        let mut builder = Webdav::default()
            .endpoint(&server_url(server)?)
            .root(&format!("/{path}/"))
            // Costs a request for each object. A missing folder is created when it is needed.
            .disable_create_dir(true);
        let user = address.user.as_ref().or(login.user.as_ref());
        if let (Some(user), Some(password)) = (user, &login.password) {
            builder = builder.username(user).password(password.text());
        }
        let has_password = user.is_some() && login.password.is_some();
        let place = Address::WebDav(address.clone()).to_string();
        let protocol = Protocol::WebDav;
        let opened = Operator::new(builder).map_err(|error| failed(&place, &error))?;
        let (host, root) = (server.to_string(), String::new());
        let named = Named { place, host, root, protocol, has_password };
        Self::new(named, login, options, opened)
    }

    pub fn s3(address: &S3, login: &Credentials, options: Options) -> Result<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let region = address
            .region
            .clone()
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            // Most servers other than Amazon's ignore the region.
            .unwrap_or_else(|| "us-east-1".into());
        let mut builder = S3Builder::default()
            .bucket(&address.bucket)
            .root(&format!("/{}/", address.prefix.join("/")))
            .region(&region)
            // Asks an address that only Amazon's machines have, and waits for an answer.
            .disable_ec2_metadata();
        if let Some(endpoint) = &address.endpoint {
            builder = builder.endpoint(&server_url(endpoint)?);
        }
        if address.style == BucketStyle::Virtual {
            builder = builder.enable_virtual_host_style();
        }
        let user = address.user.as_ref().or(login.user.as_ref());
        if let (Some(user), Some(password)) = (user, &login.password) {
            builder = builder.access_key_id(user).secret_access_key(password.text());
            if let Some(token) = &login.session_token {
                builder = builder.session_token(token.text());
            }
        }
        let host = match &address.endpoint {
            Some(endpoint) => endpoint.to_string(),
            None => variable("AWS_ENDPOINT_URL")
                .and_then(|url| Some(reqwest::Url::parse(&url).ok()?.host_str()?.to_owned()))
                .unwrap_or_else(|| "Amazon S3".into()),
        };
        let place = Address::S3(address.clone()).to_string();
        let opened = Operator::new(builder).map_err(|error| failed(&place, &error))?;
        let root = address.prefix.iter().map(|part| format!("{part}/")).collect();
        // The keys may be in the files of AWS, which OpenDAL reads when they are needed.
        let (protocol, has_password) = (Protocol::S3, true);
        let named = Named { place, host, root, protocol, has_password };
        Self::new(named, login, options, opened)
    }

    fn new(
        named: Named,
        login: &Credentials,
        options: Options,
        operator: Operator,
    ) -> Result<Self> {
        let Named { place, host, root, protocol, has_password } = named;
        let failed = |why: String| Error::Failed { place: place.clone(), why };
        let name = host.rsplit_once(':').map_or(&*host, |(name, _)| name);
        let is_direct = is_loopback(name);
        let proxies = (!is_direct).then(Matcher::from_system);
        let mut client = reqwest::Client::builder();
        if is_direct {
            client = client.no_proxy();
        }
        let client = client
            .tls_backend_preconfigured(tls::configure(&host, login.certificate.as_deref())?)
            .user_agent(concat!("stvc/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(options.patience.min(Duration::from_secs(30)))
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let limit = options.limit.or_else(|| Limit::of_host(name));
        let rate = RequestRate::new(limit);
        let transport =
            Transport { client, proxies, protocol, root, rate, patience: options.patience };
        let context = OperationContext::new().with_http_transport(HttpTransporter::new(transport));
        // OpenDAL's layers for timeouts and throttling are not used: they count the time of a whole
        // upload, and bytes instead of requests. `Transport` limits both.
        let operator =
            operator.with_context(context).layer(ConcurrentLimitLayer::new(CONNECTIONS)).layer(
                RetryLayer::new()
                    .with_max_times(options.retries)
                    .with_min_delay(Duration::from_millis(500))
                    .with_max_delay(Duration::from_secs(20))
                    .with_jitter(),
            );
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let runtime = Some(runtime);
        let folders = Mutex::default();
        Ok(Self { place, host, protocol, has_password, options, operator, folders, runtime })
    }

    /// Sends the requests elsewhere.
    #[cfg(any(test, fuzzing))]
    pub fn with_context(mut self, context: OperationContext) -> Self {
        self.operator = self.operator.clone().with_context(context);
        self
    }

    /// Runs a call to its end.
    fn call<T: Send>(
        &self,
        name: &str,
        limit: u64,
        work: impl Future<Output = opendal::Result<T>> + Send,
    ) -> Result<T> {
        let call = Call { longest_object: limit, requests: AtomicU64::new(0) };
        let work = CALL.scope(call, work);
        let Some(runtime) = &self.runtime else {
            return Err(Error::Failed { place: self.place.clone(), why: "it is closed".into() });
        };
        // A thread of another runtime, such as that of the viewer, must not wait in this one.
        let done = if Handle::try_current().is_ok() {
            std::thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join())
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        } else {
            runtime.block_on(work)
        };
        done.map_err(|error| self.error(&error, name, limit))
    }

    fn error(&self, error: &opendal::Error, name: &str, limit: u64) -> Error {
        let (place, host) = (self.place.as_str(), self.host.as_str());
        if let Some(failure) = Failure::find(error) {
            return failure.into_error(&Subject {
                place,
                host,
                name,
                limit,
                has_password: self.has_password,
                patience: self.options.patience,
            });
        }
        match error.kind() {
            ErrorKind::NotFound if !name.is_empty() => {
                Error::NotFound { place: place.to_owned(), name: name.to_owned() }
            }
            // The signer found no key.
            ErrorKind::PermissionDenied => Error::NoPassword { host: host.to_owned() },
            _ if error.to_string().contains("credential") => {
                Error::NoPassword { host: host.to_owned() }
            }
            _ => failed(place, error),
        }
    }

    /// Lists a folder and its subfolders, with one request for each. `Depth: infinity` would need
    /// one in all, but many servers refuse or ignore it.
    async fn walk(&self, prefix: &str) -> opendal::Result<Vec<Listed>> {
        let mut found = Vec::new();
        let mut folders = vec![prefix.to_owned()];
        while let Some(folder) = folders.pop() {
            let path = if folder.is_empty() { "/" } else { &folder };
            for entry in self.operator.list(path).await? {
                let listed = entry.path();
                // The folder itself.
                let Some(rest) = listed.strip_prefix(&*folder).filter(|rest| !rest.is_empty())
                else {
                    continue;
                };
                let part = rest.trim_end_matches('/');
                let is_folder = entry.metadata().mode() == EntryMode::DIR;
                let name = format!("{folder}{part}");
                if !object_name::is_valid(&name) || part.contains('/') {
                    continue;
                }
                if is_folder {
                    folders.push(name + "/");
                } else {
                    found.push(Listed { name, bytes: entry.metadata().content_length() });
                }
            }
            too_long(found.len() + folders.len())?;
        }
        Ok(found)
    }

    /// Lists all objects of a bucket whose keys begin with the prefix.
    async fn scan(&self, prefix: &str) -> opendal::Result<Vec<Listed>> {
        use futures_util::TryStreamExt;
        let path = if prefix.is_empty() { "/" } else { prefix };
        let mut entries = self.operator.lister_with(path).recursive(true).await?;
        let mut found = Vec::new();
        while let Some(entry) = entries.try_next().await? {
            let name = entry.path();
            let is_file = entry.metadata().mode() == EntryMode::FILE;
            if is_file && name.starts_with(prefix) && object_name::is_valid(name) {
                let bytes = entry.metadata().content_length();
                found.push(Listed { name: name.to_owned(), bytes });
                too_long(found.len())?;
            }
        }
        Ok(found)
    }

    /// Creates a folder of a WebDAV server, and the folders around it.
    async fn create_folder(&self, folder: &str) -> opendal::Result<()> {
        let path = format!("{folder}/");
        // Apache answers 403 if another request creates one of these folders at the same time. Each
        // attempt creates those that are still missing.
        for _ in 0..LOST_RACES {
            match self.operator.create_dir(&path).await {
                Err(error) if matches!(Failure::find(&error), Some(Failure::Forbidden(_))) => {}
                done => return done,
            }
        }
        self.operator.create_dir(&path).await
    }

    /// Writes an object. A WebDAV server refuses it as long as its folder does not exist.
    async fn put(&self, name: &str, bytes: &[u8]) -> opendal::Result<()> {
        let write = || self.operator.write(name, bytes.to_vec());
        if self.protocol == Protocol::S3 {
            return write().await.map(drop);
        }
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_known = self.folders.lock().unwrap_or_else(PoisonError::into_inner).contains(folder);
        // The server may read all of a refused object, so a long one is sent to a known folder
        // only.
        if bytes.len() > LONG && !is_known {
            self.create_folder(folder).await?;
        }
        let missing = |error: &opendal::Error| Failure::find(error) == Some(Failure::NoFolder);
        match write().await {
            Err(error) if missing(&error) => {
                self.create_folder(folder).await?;
                write().await?;
            }
            done => drop(done?),
        }
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
        Ok(())
    }
}

impl Storage for OpenDal {
    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        object_name::check_prefix(prefix)?;
        let mut found = match self.protocol {
            Protocol::WebDav => self.call("", LONGEST_OBJECT, self.walk(prefix))?,
            Protocol::S3 => self.call("", LONGEST_OBJECT, self.scan(prefix))?,
        };
        found.sort();
        found.dedup_by(|one, other| one.name == other.name);
        Ok(found)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        object_name::check(name)?;
        let bytes = self.call(name, limit, self.operator.read(name))?.to_vec();
        if bytes.len() as u64 > limit {
            let (place, name) = (self.place.clone(), name.to_owned());
            return Err(Error::TooLarge { place, name, limit });
        }
        Ok(bytes)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        object_name::check(name)?;
        object_name::check_size(&self.place, name, bytes)?;
        self.call(name, LONGEST_OBJECT, self.put(name, bytes))
    }

    fn delete(&self, name: &str) -> Result<()> {
        object_name::check(name)?;
        match self.call(name, LONGEST_OBJECT, self.operator.delete(name)) {
            Err(Error::NotFound { .. }) => Ok(()),
            done => done,
        }
    }
}

impl Drop for OpenDal {
    fn drop(&mut self) {
        // In a thread of another runtime, waiting for the end is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn too_long(entries: usize) -> opendal::Result<()> {
    if entries <= LONGEST_LIST {
        return Ok(());
    }
    Err(Failure::WrongServer(super::TOO_LONG.into()).into_opendal())
}

/// Returns whether a host is this machine. A proxy would connect to itself instead.
fn is_loopback(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    name == "localhost" || name.ends_with(".localhost") || address.parse().is_ok_and(is_loopback)
}

/// Returns the URL of a server. A name in another script is converted to ASCII.
fn server_url(server: &Server) -> Result<String> {
    let text = server.url();
    let url = reqwest::Url::parse(&text)
        .map_err(|_| Error::Address { address: text, why: "it does not name a valid server" })?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn failed(place: &str, error: &opendal::Error) -> Error {
    let message = crate::words::clean(error.message());
    let why =
        if message.is_empty() { format!("the request failed ({})", error.kind()) } else { message };
    Error::Failed { place: place.to_owned(), why }
}
