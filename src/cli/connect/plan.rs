//! The options of `portway connect`: which gateway, which credential, and
//! whether a gateway may be started.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::watch;
use url::Url;

use super::ConnectArgs;
use super::gateway_link::settled;
use crate::cli::Environment;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::{ENTRY_KEY, Remote, RemoteArgs, below, endpoint};
use crate::cli::terminal::note;
use config::settings::Settings;
use config::{Redactor, Secret};
use upstream::Endpoint;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// More than the default limit of a gateway.
const LONGEST_LINE: usize = 16 << 20;

pub(super) struct ConnectPlan {
    remote: RemoteArgs,
    pub environment: Environment,
    pub project: PathBuf,
    pub directory: PathBuf,
    /// Whether the user named `directory`.
    pub names_directory: bool,
    settings: Settings,
    place: EndpointChoice,
    /// The user gave the address; the data directory does not matter.
    pub fixed: bool,
    pub may_start: bool,
    pub linger: Duration,
    pub longest_line: usize,
}

/// The endpoint, and what selects tools there.
#[derive(Default)]
struct EndpointChoice {
    /// The key of an entry, which has its own tools only.
    key: Option<Secret>,
    server: Option<String>,
    filter: Option<String>,
}

/// A gateway that has been found.
pub(super) struct GatewayAddress {
    pub url: String,
    /// The endpoint for messages.
    pub endpoint: Endpoint,
    /// The health endpoint; requested without credentials.
    pub health: Endpoint,
    /// Identifies one start of the gateway.
    pub stamp: Option<(u64, SystemTime)>,
    /// Whether requests carry a credential.
    pub credential: bool,
    /// True once its servers have connected or failed, or the wait is over.
    pub ready: watch::Receiver<bool>,
}

impl GatewayAddress {
    /// The gateway and its servers may have just been started: many clients
    /// list the tools only once, and should not do so too early.
    pub(super) fn awaited(mut self) -> GatewayAddress {
        let (sender, ready) = watch::channel(false);
        let health = self.health.clone();
        tokio::spawn(async move {
            settled(&health).await;
            sender.send_replace(true);
        });
        self.ready = ready;
        self
    }
}

impl ConnectPlan {
    pub(super) fn new(args: &ConnectArgs, environment: &Environment) -> CliResult<ConnectPlan> {
        let settings = args.remote.settings(environment)?;
        let explicit = args.remote.url.is_some() || environment.contains_key("PORTWAY_URL");
        if !explicit && !settings.project.is_dir() {
            let project = settings.project.display();
            return Err(Failure::usage(format!(
                "--project: {project} is no directory"
            )));
        }
        let place = place(args, environment)?;
        let longest_line = settings.limits.max_body.max(LONGEST_LINE);
        Ok(ConnectPlan {
            remote: args.remote.clone(),
            environment: environment.clone(),
            project: settings.project.clone(),
            names_directory: settings.names_data_dir,
            directory: settings.data_dir.clone(),
            settings,
            place,
            longest_line,
            fixed: explicit,
            may_start: !explicit && !args.no_start,
            linger: args.linger,
        })
    }

    /// Whether the data directory can be used, or may be created.
    pub(super) fn has_directory(&self) -> bool {
        let believed = || self.directory.is_dir() && store::is_trusted(&self.settings).is_ok();
        self.may_start || (!self.fixed && believed())
    }

    /// Claims the data directory, or returns why it cannot be used.
    pub(super) fn claim(&self) -> CliResult<()> {
        let notes = store::claim(&self.settings).map_err(|error| self.no_directory(&error))?;
        notes.iter().for_each(|text| note(text));
        Ok(())
    }

    /// A desktop client starts the bridge in any directory, hence the hint.
    pub(super) fn no_directory(&self, error: &store::StoreError) -> Failure {
        Failure::other(format!(
            "{error}\nname the directory of your .mcp.json with --project"
        ))
    }

    /// The error when no gateway runs and none may be started.
    pub(super) async fn nobody(&self) -> Failure {
        let remote = match Remote::new(&self.remote, &self.environment) {
            Ok(remote) => remote,
            Err(failure) => return failure,
        };
        let absent = remote.not_here().await;
        absent.unwrap_or_else(|| Failure::unreachable(remote.url(), "none is running"))
    }

    /// The gateway's address, by the current settings and data directory.
    pub(super) fn target(&self) -> CliResult<GatewayAddress> {
        // Read first: a later start must not be taken for this one.
        let stamp = store::address_stamp(&self.directory).filter(|_| !self.fixed);
        let remote = Remote::new(&self.remote, &self.environment)?;
        let base = remote.url();
        if !self.fixed && !remote.is_at_home() {
            return Err(Failure::unreachable(base, "it has not said where it is"));
        }
        let headers = self.headers(&remote)?;
        let make = |url: &Url, headers: &HeaderMap| {
            Endpoint::with(url, headers, Arc::new(Redactor::default())).map_err(Failure::other)
        };
        Ok(GatewayAddress {
            endpoint: make(&self.place.url(remote.base()), &headers)?,
            health: make(&below(remote.base(), &["healthz"]), &HeaderMap::new())?,
            url: base.to_owned(),
            stamp,
            credential: headers.contains_key(API_KEY) || remote.token().is_some(),
            ready: watch::channel(true).1,
        })
    }

    fn headers(&self, remote: &Remote) -> CliResult<HeaderMap> {
        let mut headers = HeaderMap::new();
        let agent = concat!("portway-connect/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        let (name, value) = match (&self.place.key, remote.token()) {
            (Some(key), _) => (API_KEY, key.expose().to_owned()),
            (_, Some(token)) => (header::AUTHORIZATION, format!("Bearer {}", token.expose())),
            (_, None) => return Ok(headers),
        };
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| Failure::usage("the key has characters that none has"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    /// The message for a refused credential.
    pub(super) fn denied(&self, target: &GatewayAddress) -> String {
        let url = &target.url;
        if self.place.key.is_some() {
            return format!(
                "the Portway at {url} does not take this key: check {ENTRY_KEY} (or --entry), \
                 and that the entry and its key still exist"
            );
        }
        let (url, given) = (url.clone(), target.credential);
        Failure::Denied { url, given }.to_string()
    }
}

fn place(args: &ConnectArgs, environment: &Environment) -> CliResult<EndpointChoice> {
    let from_environment = environment.get(ENTRY_KEY).filter(|key| !key.is_empty());
    let key = args.entry.clone();
    let key = key.or_else(|| from_environment.map(|key| Secret::new(key.trim())));
    match (&key, &args.server, &args.filter) {
        (Some(_), Some(_), _) => Err(mixed("--server")),
        (Some(_), _, Some(_)) => Err(mixed("--filter")),
        _ => Ok(EndpointChoice {
            key,
            server: args.server.clone(),
            filter: args.filter.clone(),
        }),
    }
}

fn mixed(option: &str) -> Failure {
    Failure::usage(format!(
        "{option}: an entry shows its own tools only; leave out {option} or the key ({ENTRY_KEY})"
    ))
}

impl EndpointChoice {
    fn url(&self, base: &Url) -> Url {
        let mut url = endpoint(base, self.server.as_deref());
        if let Some(name) = &self.filter {
            url.query_pairs_mut().append_pair("filter", name);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k5_each_place_has_its_address() {
        let base = Url::parse("http://h:1/base").unwrap();
        let url = |place: EndpointChoice| place.url(&base).to_string();
        assert_eq!(url(EndpointChoice::default()), "http://h:1/base/mcp");
        let everything = EndpointChoice {
            filter: Some("a b&c".to_owned()),
            ..EndpointChoice::default()
        };
        assert_eq!(url(everything), "http://h:1/base/mcp?filter=a+b%26c");
        let server = |filter: Option<&str>| EndpointChoice {
            key: None,
            server: Some("a/b ü".into()),
            filter: filter.map(Into::into),
        };
        let plain = "http://h:1/base/servers/a%2Fb%20%C3%BC/mcp";
        assert_eq!(url(server(None)), plain);
        assert_eq!(url(server(Some("f"))), format!("{plain}?filter=f"));
        let entry = EndpointChoice {
            key: Some(Secret::new("k")),
            ..EndpointChoice::default()
        };
        assert_eq!(url(entry), "http://h:1/base/mcp");
    }
}
