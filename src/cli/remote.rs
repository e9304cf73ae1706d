//! The HTTP client for the running gateway, shared by the other commands.

mod address;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use clap::Args;
use http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use serde_json::Value;
use url::Url;

use self::address::{base, check_holder, is_local};
pub(super) use self::address::{below, endpoint, reached, segment};
use super::Environment;
use super::failure::{CliResult, Failure};
use super::terminal::Terminal;
use config::Secret;
use config::settings::{ServeOptions, Settings};
use store::Holder;
use upstream::{Headers, HttpClient, ResponseBody, SendError};

/// The default limit for a request and its response.
const PATIENCE: Duration = Duration::from_secs(30);
/// The limit for a check whether a gateway answers at all.
const GLANCE: Duration = Duration::from_secs(2);
/// The limit for a response, or one message of it.
pub(super) const LARGEST: usize = 64 * 1024 * 1024;
pub(super) const BOTH: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The variable in which `portway connect` and clients find an entry's key.
pub(super) const ENTRY_KEY: &str = "PORTWAY_ENTRY_KEY";

/// Which Portway is meant, and where its token is.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RemoteArgs {
    /// Address of the running Portway [default: that of the project's]
    /// [env: PORTWAY_URL]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Directory of the project [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Directory of its state [default: data in the project] [env: PORTWAY_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Of every command that asks the running Portway something.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct AskArgs {
    /// Print only JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

impl AskArgs {
    /// The gateway to ask, and the output for its answer.
    pub(super) fn open(&self, environment: &Environment) -> CliResult<(Remote, Terminal)> {
        let remote = Remote::new(&self.remote, environment)?;
        Ok((remote, Terminal::new(environment)))
    }
}

/// The address of a gateway, whether one runs there or not.
#[derive(Clone)]
pub(super) struct Remote {
    base: Url,
    /// The token for requests to this address.
    token: Option<Secret>,
    /// The token from the environment, whichever gateway it is for.
    given_token: Option<Secret>,
    http: HttpClient,
    source: AddressSource,
}

/// How the address became known.
#[derive(Clone)]
enum AddressSource {
    /// The user gave it.
    Given,
    /// The data directory named it, and had this stamp at that time.
    Published(PathBuf, Option<(u64, SystemTime)>),
    /// It is the default, and no gateway holds the data directory: a gateway
    /// that answers there belongs to another project.
    Absent(PathBuf),
    /// It is the default, because the data directory's holder has not published
    /// its address.
    Unpublished(PathBuf),
}

impl Remote {
    pub(super) fn new(args: &RemoteArgs, environment: &Environment) -> CliResult<Remote> {
        let settings = args.settings(environment)?;
        // Read first: a later start must not be taken for this one.
        let stamp = store::address_stamp(&settings.data_dir);
        let given = args.url.as_ref().or(environment.get("PORTWAY_URL"));
        // If the lock cannot be read, any process could hold it.
        let nobody = matches!(store::holder(&settings.data_dir), Ok(Holder::Nobody));
        let trusted = store::is_trusted(&settings);
        if let (None, false, Err(reason)) = (given, nobody, &trusted) {
            return Err(Failure::Untrusted(reason.clone()));
        }
        let in_use = trusted.is_ok() && store::is_in_use(&settings.data_dir);
        let known = store::known_address(&settings.data_dir).filter(|_| in_use);
        if let (None, Some(url)) = (given, &known) {
            check_holder(&settings.data_dir, url)?;
        }
        let text = given.or(known.as_ref()).cloned();
        let text = text.unwrap_or_else(|| reached(settings.listen));
        let base = base(&text)?;
        let given_token = settings.admin_token.clone();
        // A program that happens to have the default port gets no token, and
        // the token of this machine is not sent to another one.
        let token = match settings.admin_token {
            _ if given.is_none() && known.is_none() => None,
            Some(token) => Some(token),
            None if is_local(&base) && trusted.is_ok() => {
                store::known_admin_token(&settings.data_dir)
            }
            None => None,
        };
        let http = HttpClient::new(&base).map_err(Failure::other)?;
        let directory = settings.data_dir;
        let source = match (given, known) {
            (Some(_), _) => AddressSource::Given,
            (None, Some(_)) => AddressSource::Published(directory, stamp),
            (None, None) if nobody => AddressSource::Absent(directory),
            (None, None) => AddressSource::Unpublished(directory),
        };
        Ok(Remote {
            base,
            token,
            given_token,
            http,
            source,
        })
    }

    /// Whether the data directory named the address.
    pub(super) fn is_at_home(&self) -> bool {
        matches!(self.source, AddressSource::Published(..))
    }

    /// Whether no gateway runs for this project, and no address was given.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.source, AddressSource::Absent(_))
    }

    /// The error for `is_absent`.
    pub(super) async fn not_here(&self) -> Option<Failure> {
        let AddressSource::Absent(directory) = &self.source else {
            return None;
        };
        let directory = directory.clone();
        let other = self.health().await.ok().map(|_| self.url().to_owned());
        Some(Failure::NotHere { directory, other })
    }

    /// The health of the gateway. Sends no credential.
    pub(super) async fn health(&self) -> CliResult<Value> {
        let uri = self.uri("/healthz")?;
        let answer = async {
            let sent = self
                .http
                .send(&Method::GET, &uri, &Headers::default(), &[])
                .await;
            let response = sent.map_err(|error| self.unreachable(&error))?;
            let health = self.read(response).await?;
            let known = matches!(health["status"].as_str(), Some("ok" | "degraded"));
            if !known || !health["version"].is_string() {
                return Err(self.stranger());
            }
            Ok(health)
        };
        self.within(GLANCE, answer).await
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    /// Without a trailing slash.
    pub(super) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    pub(super) fn token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// The token to write into a client's file, even if it is not sent here.
    pub(super) fn known_token(&self) -> Option<&Secret> {
        self.token.as_ref().or(self.given_token.as_ref())
    }

    pub(super) async fn get(&self, path: &str) -> CliResult<Value> {
        self.ask(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> CliResult<Value> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Sends one request and reads its JSON; null if there is none.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> CliResult<Value> {
        self.ask_within(PATIENCE, method, path, body).await
    }

    /// As [`Remote::ask`], with a limit of its own.
    pub(super) async fn ask_within(
        &self,
        limit: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> CliResult<Value> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let answer = async {
            let sent = self.send(method, path, Headers::new(), body.into());
            let response = sent.await?;
            let status = response.status();
            let answer = self.read(response).await?;
            if !status.is_success() {
                return Err(Failure::refused(status, &answer));
            }
            Ok(answer)
        };
        self.within(limit, answer).await
    }

    fn uri(&self, path: &str) -> CliResult<Uri> {
        Uri::try_from(format!("{}{path}", self.url()))
            .map_err(|error| Failure::usage(format!("cannot be asked for: {error}")))
    }

    /// Sends a request with the credential; a refused credential is an error.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        mut headers: Headers,
        body: Bytes,
    ) -> CliResult<Response<ResponseBody>> {
        let uri = self.uri(path)?;
        headers.add(&header::ACCEPT, &BOTH);
        if !body.is_empty() {
            headers.add(&header::CONTENT_TYPE, &JSON);
        }
        if let Some(token) = &self.token
            && !headers.add_text(
                &header::AUTHORIZATION,
                &format!("Bearer {}", token.expose()),
            )
        {
            return Err(Failure::usage("the token has characters that none has"));
        }
        if let Some(failure) = self.not_here().await {
            return Err(failure);
        }
        match &self.source {
            AddressSource::Unpublished(directory) => {
                return Err(Failure::Untrusted(format!(
                    "a process has {}, and its address cannot be read there: it may be starting; \
                     else name the address with --url or PORTWAY_URL",
                    directory.display()
                )));
            }
            // Another program may have the address by now, and requests carry
            // the token.
            AddressSource::Published(directory, stamp)
                if store::address_stamp(directory) != *stamp || !store::is_in_use(directory) =>
            {
                return Err(Failure::unreachable(self.url(), "it has ended"));
            }
            _ => {}
        }
        let sent = self.http.send(&method, &uri, &headers, &body).await;
        let response = sent.map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::Denied {
                url: self.url().to_owned(),
                given: self.token.is_some(),
            }),
            _ => Ok(response),
        }
    }

    async fn read(&self, response: Response<ResponseBody>) -> CliResult<Value> {
        let bytes = self.bytes(response).await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| self.stranger())
    }

    /// The body of a response, unparsed.
    pub(super) async fn bytes(&self, response: Response<ResponseBody>) -> CliResult<Bytes> {
        let body = response.into_body().collect(LARGEST).await;
        body.map_err(|error| Failure::unreachable(self.url(), error))
    }

    pub(super) fn stranger(&self) -> Failure {
        let what = "something answers there, but it is no Portway";
        Failure::unreachable(self.url(), what)
    }

    fn unreachable(&self, error: &SendError) -> Failure {
        Failure::unreachable(self.url(), error.root_cause())
    }

    async fn within(
        &self,
        limit: Duration,
        answer: impl Future<Output = CliResult<Value>>,
    ) -> CliResult<Value> {
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                let what = format!("no answer within {} s", limit.as_secs());
                Err(Failure::unreachable(self.url(), what))
            }
        }
    }
}

impl RemoteArgs {
    /// The settings that the gateway would use here.
    pub(super) fn settings(&self, environment: &Environment) -> CliResult<Settings> {
        let options = ServeOptions {
            project: self.project.clone(),
            data_dir: self.data_dir.clone(),
            ..ServeOptions::default()
        };
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::other(format!("the working directory: {error}")))?;
        Settings::load(options, environment, cwd).map_err(Failure::usage)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[tokio::test]
    async fn k7_the_kept_token_goes_to_our_own_portway_or_where_it_is_told() {
        let project = tempfile::tempdir().unwrap();
        let data = project.path().join("data");
        let home = project.path().join("home").display().to_string();
        let environment = BTreeMap::from([("HOME".to_owned(), home)]);
        let args = |url: Option<&str>| RemoteArgs {
            url: url.map(ToOwned::to_owned),
            project: Some(project.path().to_owned()),
            data_dir: None,
        };
        let remote = |url: Option<&str>| Remote::new(&args(url), &environment).unwrap();
        store::claim(&args(None).settings(&environment).unwrap()).unwrap();
        let store = store::Store::open_files(&data).unwrap().store;
        store::admin_token(&data, None).unwrap();
        let somebody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        somebody.set_nonblocking(true).unwrap();
        let ours = &format!("http://{}", somebody.local_addr().unwrap());
        store::tell_address(&data, ours).unwrap();
        let was = remote(None);
        assert_eq!(was.url(), ours);
        assert!(remote(None).token().is_some());
        assert!(remote(Some("http://localhost:7998")).token().is_some());
        assert!(remote(Some("https://portway.example")).token().is_none());

        // Killed: another program may have the port by now.
        drop(store);
        assert!(was.get("/healthz").await.is_err_and(|failure| {
            matches!(failure, Failure::Unreachable { reason, .. } if reason == "it has ended")
        }));
        let came = somebody.accept();
        assert!(came.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
        assert_eq!(remote(None).url(), "http://127.0.0.1:7420");
        assert!(remote(None).token().is_none());

        // The next gateway has the directory, but published no address yet.
        let _store = store::Store::open_files(&data).unwrap().store;
        assert_eq!(remote(None).url(), "http://127.0.0.1:7420");
        assert!(remote(None).token().is_none());
    }

    #[test]
    fn t_a_directory_that_came_with_a_project_names_no_address() {
        let project = tempfile::tempdir().unwrap();
        let data = project.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let evil = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", evil.local_addr().unwrap());
        std::fs::write(data.join("address"), &url).unwrap();
        std::fs::write(data.join("admin_token"), "x".repeat(40)).unwrap();
        std::fs::write(data.join("lock"), "1\n").unwrap();
        let locked = std::fs::File::open(data.join("lock")).unwrap();
        locked.lock().unwrap();
        let token = ("PORTWAY_ADMIN_TOKEN".to_owned(), "t".repeat(40));
        let environment = BTreeMap::from([token]);
        let args = |url: Option<&str>, data_dir: Option<&std::path::Path>| RemoteArgs {
            url: url.map(ToOwned::to_owned),
            project: Some(project.path().to_owned()),
            data_dir: data_dir.map(ToOwned::to_owned),
        };
        let refused = Remote::new(&args(None, None), &environment).err().unwrap();
        assert!(matches!(refused, Failure::Untrusted(_)), "{refused}");
        // Named, it is trusted; but the lock's holder is not at the address.
        let refused = Remote::new(&args(None, Some(&data)), &environment)
            .err()
            .unwrap();
        assert!(matches!(refused, Failure::Unreachable { .. }), "{refused}");
        // A link to a file that another process has locked is not a lock.
        std::fs::rename(data.join("lock"), project.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", data.join("lock")).unwrap();
        let refused = Remote::new(&args(None, None), &environment).err().unwrap();
        assert!(matches!(refused, Failure::Untrusted(_)), "{refused}");
        // The user's address wins, with the user's token and not the file's.
        let told = Remote::new(&args(Some(&url), None), &environment).unwrap();
        assert_eq!(told.token().unwrap().expose(), "t".repeat(40));
        let told = Remote::new(&args(Some(&url), None), &BTreeMap::new()).unwrap();
        assert!(told.token().is_none());
    }
}
