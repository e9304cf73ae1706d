//! Builds the components, connects them to each other, and defines the order of
//! the shutdown.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use config::Secret;
use config::settings::Settings;
use fleet::registry::{self, Registry, RegistryError, SourceFiles};
use fleet::{AskingServer, Fleet, FleetConfig, Publisher};
use gateway::control::Control;
use gateway::servers::ServerManager;
use gateway::{Gateway, Seal, Sessions, UserServers};
use portway_http::{
    Access, AdminApi, AdminToken, Api, EdgeLimits, Guard, HostPolicy, KeyIssuer, LiveApi, McpApi,
    RecordsApi, ServersApi, SessionLimits, ToolsApi, Users,
};
use store::Store;
use store::memory::{Budget, default_budget};
use upstream::{containment, process};

/// Servers known to send requests to clients, waiting to be recorded.
const SEEN: usize = 64;
/// When the start is over, on most machines.
const AFTER_START: Duration = Duration::from_secs(2);
/// How long a connection may stay idle before it is closed for a restart.
const LINGER: Duration = Duration::from_secs(1);

/// The components, connected and running.
pub struct App {
    pub registry: Arc<Registry>,
    pub store: Arc<Store>,
    pub fleet: Fleet,
    pub admin_token: Secret,
    gateway: Arc<Gateway>,
    budget: Arc<Budget>,
    /// Cancelling it ends the streams of all clients.
    closing: CancellationToken,
    keys: Arc<KeyIssuer>,
    session_secret: Secret,
    settings: Settings,
    fleet_task: JoinHandle<()>,
    fleet_stop: CancellationToken,
}

impl App {
    /// Opens the store, reads the files, and starts the fleet. Does not wait
    /// for any server.
    pub async fn start(
        settings: Settings,
        environment: &BTreeMap<String, String>,
    ) -> anyhow::Result<App> {
        let shim = process::own_binary().context("cannot find this program's own file")?;
        // The helpers that try each containment run while the store is opened.
        tokio::spawn(tell_containment(shim.clone()));
        for note in store::claim(&settings)? {
            tracing::warn!("{note}");
        }
        let store = open_store(&settings).await?;
        let admin_token = store::admin_token(&settings.data_dir, settings.admin_token.as_ref())?;
        let secret = store::session_secret(&settings.data_dir, settings.secret.as_ref())?;
        let instance = store::instance_id(&settings.data_dir)?.to_string();
        // Only now: holding the lock proves that their parent process is gone.
        let leftovers = instance.clone();
        let sweep = tokio::task::spawn_blocking(move || process::sweep(&leftovers));
        let home = environment.get("HOME").map(Into::into);
        let files = SourceFiles::new(settings.project.clone(), home);
        let registry = Registry::open(files, store.clone(), settings.data_dir.clone());
        let (swept, registry) = tokio::join!(sweep, registry);
        let registry = Arc::new(registry?);
        let swept = swept.context("cannot look for processes of an earlier run")?;
        if swept > 0 {
            tracing::warn!("ended {swept} processes that an earlier run left behind");
        }
        let (asked, seen) = mpsc::channel(SEEN);
        tokio::spawn(remember_asking(registry.clone(), seen));
        let surroundings = Arc::new(FleetConfig {
            project: settings.project.clone(),
            variables: environment.clone().into_iter().collect(),
            base_env: Arc::new(environment.clone().into_iter().collect()),
            hidden: store::hidden_directories(&settings),
            instance,
            shim,
            limits: upstream::ConnectionLimits {
                message: settings.limits.max_line,
                response: settings.limits.max_response,
                connect: settings.limits.connect,
                eof_grace: settings.limits.stop_grace,
                term_grace: settings.limits.stop_grace,
                ..upstream::ConnectionLimits::default()
            },
            health_interval: settings.limits.health_interval,
            capabilities: gateway::all_capabilities(),
            asked,
        });
        let (publisher, fleet) = Publisher::new();
        let fleet_stop = CancellationToken::new();
        let work = fleet::run(
            registry.watch(),
            surroundings,
            publisher,
            fleet_stop.clone(),
        );
        tokio::spawn(registry::follow(registry.clone(), fleet_stop.clone()));
        let seal = Arc::new(Seal::new(&secret));
        let closing = CancellationToken::new();
        let servers = ServerManager {
            registry: registry.clone(),
            fleet: fleet.clone(),
        };
        let control = settings.self_control.then(|| Control::new(servers));
        let users = UserServers::new(settings.user_servers.as_deref(), registry.filters());
        let logins = settings.supabase_url.is_some() || settings.supabase_jwt_secret.is_some();
        if logins && users.is_unlisted() {
            tracing::warn!(
                "every user may bind the tools of every server: list those that are open to \
                 users in SUPABASE_USER_SERVERS or in userServers of .portway.json"
            );
        }
        let gateway = Gateway::new(
            fleet.clone(),
            store.clone(),
            users,
            control.map(Arc::new),
            Sessions::new(seal.clone()),
            seal,
            closing.clone(),
        );
        let budget = Budget::new(settings.limits.memory.unwrap_or_else(default_budget));
        let gateway = gateway.with_budget(budget.clone());
        Ok(App {
            registry,
            store,
            fleet,
            admin_token,
            gateway: Arc::new(gateway),
            budget,
            closing,
            keys: Arc::new(KeyIssuer::new(&secret)),
            session_secret: secret,
            settings,
            fleet_task: tokio::spawn(work),
            fleet_stop,
        })
    }

    /// Serves on `listener` until `stop`, then shuts down in order: requests in
    /// flight, the registry, every server in parallel.
    ///
    /// `stays`: another process keeps the socket open for the next start, so that
    /// clients lose nothing if their connections end with a response.
    pub async fn serve(
        self,
        listener: TcpListener,
        stays: bool,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let address = listener.local_addr()?;
        let mut limits = EdgeLimits::from(&self.settings.limits);
        limits.linger = if stays { LINGER } else { Duration::ZERO };
        let limits = limits.within(process::descriptor_limit());
        let gateway = self.gateway.clone();
        let site = self.site(address, &gateway, &stop)?;
        let (closing, stopped) = (self.closing.clone(), stop.clone());
        tokio::spawn(async move {
            stopped.cancelled().await;
            closing.cancel();
        });
        let sessions = gateway.sessions.clone();
        let tended = tokio::spawn(async move { sessions.tend().await });
        let revoked = tokio::spawn(async move { gateway.end_revoked().await });
        portway_http::serve(listener, site, limits, stop).await;
        tended.abort();
        revoked.abort();
        self.end().await
    }

    /// For programs that embed Portway: the access that their own clients have,
    /// over HTTP or not.
    pub fn gateway(&self) -> Arc<Gateway> {
        self.gateway.clone()
    }

    /// Ends all servers in parallel, and returns when all are gone.
    /// [`App::serve`] does the same at its end.
    pub async fn end(self) -> anyhow::Result<()> {
        self.closing.cancel();
        self.registry.close().await;
        self.fleet_stop.cancel();
        self.fleet_task
            .await
            .context("the fleet did not end well")?;
        Ok(())
    }

    fn site(
        &self,
        address: SocketAddr,
        gateway: &Arc<Gateway>,
        closing: &CancellationToken,
    ) -> anyhow::Result<portway_http::Site> {
        let settings = &self.settings;
        let users = Users::new(
            settings.supabase_url.as_ref(),
            settings.supabase_jwt_secret.as_ref(),
        )
        .context("SUPABASE_URL")?;
        let access = if settings.no_auth {
            Access::Open
        } else {
            let limits = SessionLimits {
                idle: settings.limits.session_idle,
                lifetime: settings.limits.session_lifetime,
            };
            let sessions = portway_http::ConsoleSessions::open(settings.data_dir.clone(), limits)?;
            let token = AdminToken::new(self.admin_token.clone());
            Access::Token(token.with_sessions(sessions))
        };
        let hosts = HostPolicy::new(
            address,
            settings.allowed_hosts.clone(),
            settings.allowed_origins.clone(),
        );
        let guard =
            Guard::new(access, hosts, settings.limits.max_body).with_budget(self.budget.clone());
        let guard = Arc::new(guard.with_keys(self.store.clone()).with_users(users));
        let relay = settings.mcp_service_url.as_ref().map(|service| {
            portway_http::Relay::new(service, settings.limits.max_response, closing.clone())
        });
        let relay = relay.transpose().context("MCP_SERVICE_URL")?;
        let mcp =
            McpApi::new(gateway.clone(), self.registry.clone(), closing.clone()).with_relay(relay);
        let api = Api {
            servers: ServersApi {
                managing: ServerManager {
                    registry: self.registry.clone(),
                    fleet: self.fleet.clone(),
                },
                tags: portway_http::Tags::new(&self.session_secret),
            },
            records: RecordsApi {
                store: self.store.clone(),
                keys: self.keys.clone(),
                desired: self.registry.watch(),
                gateway: gateway.clone(),
            },
            tools: ToolsApi {
                mcp: mcp.clone(),
                store: self.store.clone(),
            },
            live: LiveApi::start(
                self.registry.clone(),
                self.fleet.clone(),
                gateway.activity.clone(),
                self.store.changes(),
                gateway.renames(),
                closing.clone(),
            ),
            admin: AdminApi {
                guard: guard.clone(),
                data_dir: settings.data_dir.clone(),
                token_is_set: settings.admin_token.is_some(),
                rotating: Arc::default(),
            },
            registry: self.registry.clone(),
        };
        let (registry, fleet) = (self.registry.clone(), self.fleet.clone());
        // Readiness is never withdrawn: a server that is added later must not
        // take all the others out of service.
        let ready = AtomicBool::new(false);
        let unsettled = Arc::new(move || {
            if ready.load(Ordering::Relaxed) {
                return 0;
            }
            let left = unsettled(&registry, &fleet);
            ready.store(left == 0, Ordering::Relaxed);
            left
        });
        let store = self.store.clone();
        let vitals = portway_http::Vitals {
            unsettled,
            store_fault: Arc::new(move || store.trouble()),
        };
        let router = portway_http::router(
            guard.clone(),
            vitals,
            portway_http::Console::built_in(),
            api.router(),
        );
        Ok(portway_http::Site::new(router, guard, mcp))
    }
}

pub async fn open_store(settings: &Settings) -> anyhow::Result<Arc<Store>> {
    let opened = store::open(settings).await?;
    for warning in &opened.warnings {
        tracing::error!("{warning}");
    }
    Ok(Arc::new(opened.store))
}

/// The number of servers that should run and have neither connected nor failed.
pub fn unsettled(registry: &Registry, fleet: &Fleet) -> usize {
    let snapshot = fleet.snapshot();
    let settled = |name: &Arc<str>| {
        snapshot
            .servers
            .get(name)
            .is_some_and(|view| view.settled_once)
    };
    let desired = registry.desired();
    desired
        .values()
        .filter(|wanted| wanted.run && !settled(&wanted.name))
        .count()
}

/// Stores which servers send requests to clients, until the fleet has ended.
async fn remember_asking(registry: Arc<Registry>, mut seen: mpsc::Receiver<AskingServer>) {
    while let Some(AskingServer { name, fingerprint }) = seen.recv().await {
        match registry.remember_asking(&name, &fingerprint).await {
            Ok(()) | Err(RegistryError::Closed) => {}
            // The fleet learns it again after the next start.
            Err(error) => tracing::warn!(
                server = %name,
                "server {name} asks its clients things, which could not be remembered: {error}"
            ),
        }
    }
}

async fn tell_containment(shim: PathBuf) {
    // The servers come first: trying all steps costs as much as starting three.
    tokio::time::sleep(AFTER_START).await;
    match containment::ladder(&shim).await {
        Ok(ladder) => {
            let works: Vec<_> = ladder.works().iter().map(|step| step.as_str()).collect();
            tracing::info!("process trees are held by: {}", works.join(", "));
            for (step, reason) in ladder.refused() {
                tracing::debug!("containment {} does not work here: {reason}", step.as_str());
            }
        }
        Err(error) => tracing::warn!("process trees cannot be held safely here: {error}"),
    }
}
