//! `portway serve`: runs the gateway, and prints its address and its servers.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::Environment;
use super::background::{self, LogFile};
use super::remote::{Remote, RemoteArgs, reached};
use super::terminal::{Cell, Table, Terminal, Tint, clip_inside, in_one_line};
use super::{BAD_USE, ServeArgs, demo, import, memory, systemd};
use crate::app::{self, App};
use config::settings::{LogFormat, ServeOptions, Settings};
use fleet::registry::Registry;
use fleet::{Fleet, ServerView, Status};
use store::{Holder, StoreErrorKind};
use upstream::process;

/// How long the table waits for slow servers.
const TABLE_WAIT: Duration = Duration::from_secs(20);
/// How long the link to the console waits for them.
const LINKS_WAIT: Duration = Duration::from_secs(3);
/// How long connections wait for them after a restart with a socket of systemd.
const HANDED_WAIT: Duration = Duration::from_secs(10);
const TABLE_PAUSE: Duration = Duration::from_millis(50);

/// Columns of an error in the table; the API returns the whole error.
const ROW_DETAIL: usize = 200;

/// Runs the command; returns its exit code.
pub(super) fn main(args: ServeArgs, environment: Environment) -> ExitCode {
    if args.detach {
        return ended(background::start_again().map_err(Into::into));
    }
    let (idle, demo) = (args.until_idle, args.demo);
    if idle.is_some() {
        background::detach();
    }
    // Before there are threads: both read and clear variables of the process.
    let handed = systemd::handed_listener();
    let environment = systemd::without_own(environment);
    let settings = match settings(args.into(), idle.is_some(), &environment) {
        Ok(settings) => settings,
        Err(error) => {
            // The error begins with the setting's name, or SPEC F1's words.
            let _ = writeln!(std::io::stderr(), "{error:#}");
            return ExitCode::from(BAD_USE);
        }
    };
    process::raise_descriptor_limit();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_park(memory::give_back)
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| {
            let handed = handed.context("the socket of systemd cannot be used")?;
            let start = ServeStart { handed, idle, demo };
            // In a worker, which `give_back` reaches, not in this thread.
            let done = runtime.spawn(run(settings, start, environment));
            runtime.block_on(done).context("the gateway panicked")?
        });
    ended(outcome)
}

/// How the gateway was started.
struct ServeStart {
    /// A listener that stays open when this process ends.
    handed: Option<std::net::TcpListener>,
    idle: Option<Duration>,
    demo: bool,
}

fn ended(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "portway: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn settings(
    options: ServeOptions,
    background: bool,
    environment: &Environment,
) -> anyhow::Result<Settings> {
    let cwd = std::env::current_dir().context("the working directory cannot be read")?;
    let mut settings = Settings::load(options, environment, cwd)?;
    let project = &settings.project;
    settings.project = project
        .canonicalize()
        .with_context(|| format!("--project: {}", project.display()))?;
    if background {
        // Before anything is written there, including the log.
        let notes = store::claim(&settings)?;
        log_to_file(&settings)?;
        for note in notes {
            tracing::warn!("{note}");
        }
    } else {
        log_to_stderr(&settings)?;
    }
    for unknown in &settings.unknown {
        tracing::warn!("{unknown}");
    }
    Ok(settings)
}

fn log_filter(settings: &Settings) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(&settings.log_filter)
        .context("RUST_LOG: is not a log filter, such as info or portway=debug")
}

fn log_to_file(settings: &Settings) -> anyhow::Result<()> {
    let file = LogFile::open(&settings.data_dir)?;
    tracing_subscriber::fmt()
        .with_env_filter(log_filter(settings)?)
        .log_internal_errors(false)
        .with_writer(Arc::new(file))
        .with_ansi(false)
        .init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}

pub(super) fn log_to_stderr(settings: &Settings) -> anyhow::Result<()> {
    let filter = log_filter(settings)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // They would go to stderr, and a closed stderr would end the process.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match settings.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

/// Runs until a signal; a second one ends everything at once.
async fn run(
    settings: Settings,
    start: ServeStart,
    environment: Environment,
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let stays = start.handed.is_some();
    let listener = match start.handed {
        Some(handed) => TcpListener::from_std(handed)?,
        None => {
            let fixed = start.idle.is_none() && !start.demo;
            let fixed = fixed || environment.contains_key("PORTWAY_LISTEN");
            match background::listen(&settings, fixed).await {
                Ok(listener) => listener,
                Err(error) => return Err(cannot_listen(&settings, &environment, error).await),
            }
        }
    };
    let address = listener.local_addr()?;
    if settings.no_auth && !address.ip().is_loopback() {
        anyhow::bail!("--no-auth: the socket of systemd ({address}) is not loopback");
    }
    if !address.ip().is_loopback() {
        tracing::warn!(
            "listening on {address}, which is not loopback: put TLS in front of it, \
             the admin token travels in the clear otherwise"
        );
    }
    if settings.no_auth {
        tracing::warn!("--no-auth: whoever reaches {address} may run commands as this user");
    }
    let greeting = Greeting {
        address,
        token_file: settings.data_dir.join("admin_token").display().to_string(),
        own_token: settings.admin_token.is_some(),
        no_auth: settings.no_auth,
        project: settings.project.clone(),
        demo: start.demo,
        out: Terminal::new(&environment),
        environment: environment.clone(),
    };
    let data_dir = settings.data_dir.clone();
    let app = App::start(settings, &environment).await?;
    if let Some(limit) = start.idle {
        let (directory, stop) = (data_dir.clone(), stop.clone());
        tokio::spawn(async move { background::until_unused(&directory, limit, stop).await });
    }
    // For the other commands; without it they need `--url`.
    let url = reached(address);
    if let Err(error) = store::tell_address(&data_dir, &url) {
        tracing::warn!("{error}");
    }
    if stays {
        // Clients that notice no restart must find the tools they know.
        let settled = settled(&app.registry, &app.fleet);
        let _ = tokio::time::timeout(HANDED_WAIT, settled).await;
    }
    // The socket already queues connections; they are served from here on.
    say(&format!("portway listening on http://{address}\n"));
    systemd::tell_ready();
    tokio::spawn(memory::wake_workers());
    reload_on_signal(app.registry.clone(), stop.clone())?;
    let (registry, fleet) = (app.registry.clone(), app.fleet.clone());
    let token = app.admin_token.clone();
    let table = tokio::spawn(async move {
        greeting.tell(&registry, &fleet, token.expose()).await;
    });
    let outcome = app.serve(listener, stays, stop).await;
    table.abort();
    store::forget_address(&data_dir, &url);
    outcome
}

async fn cannot_listen(
    settings: &Settings,
    environment: &Environment,
    error: std::io::Error,
) -> anyhow::Error {
    let taken = error.kind() == std::io::ErrorKind::AddrInUse;
    // The usual reason is a second start.
    if let (true, Ok(Holder::Process(pid))) = (taken, store::holder(&settings.data_dir)) {
        let directory = settings.data_dir.clone();
        return StoreErrorKind::Locked { directory, pid }.into();
    }
    let listen = settings.listen;
    let mut text = format!("cannot listen on {listen} (--listen, PORTWAY_LISTEN): {error}");
    if taken {
        let there = RemoteArgs {
            url: Some(reached(listen)),
            ..RemoteArgs::default()
        };
        text += match Remote::new(&there, environment) {
            Ok(there) if there.health().await.is_ok() => "; another project's Portway is there",
            _ => "; another program is there",
        };
        text += ": take a free port with `portway --listen 127.0.0.1:0`";
    }
    anyhow::Error::msg(text)
}

/// A closed stdout is no reason to stop serving.
pub(super) fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

/// Prints in a thread of its own: the parent process may have read only the
/// first line, and then the write blocks for ever.
fn aside(text: String) {
    std::thread::spawn(move || say(&text));
}

fn stop_on_signal(stop: CancellationToken) -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let mut asked = 0;
        loop {
            let name = tokio::select! {
                Some(()) = term.recv() => "SIGTERM",
                Some(()) = interrupt.recv() => "SIGINT",
                else => return,
            };
            asked += 1;
            if asked > 1 {
                // Exiting closes every lifeline, which kills the trees.
                tracing::warn!("{name} again: ending at once");
                std::process::exit(130);
            }
            tracing::info!("{name}: finishing calls in flight, then ending every server");
            systemd::tell_stopping();
            stop.cancel();
        }
    });
    Ok(())
}

/// SIGHUP reloads the files. In a terminal it means that the terminal is gone,
/// and the gateway ends with it.
fn reload_on_signal(registry: Arc<Registry>, stop: CancellationToken) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let attended = std::io::stdin().is_terminal();
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            if attended {
                tracing::info!("SIGHUP: the terminal is gone");
                stop.cancel();
                return;
            }
            systemd::tell_reloading();
            match registry.reload().await {
                Ok(()) => tracing::info!("SIGHUP: the files were read again"),
                Err(error) => tracing::error!("SIGHUP: the files were not read: {error}"),
            }
            systemd::tell_reloaded();
        }
    });
    Ok(())
}

struct Greeting {
    address: SocketAddr,
    token_file: String,
    own_token: bool,
    no_auth: bool,
    project: PathBuf,
    demo: bool,
    out: Terminal,
    environment: Environment,
}

impl Greeting {
    /// Prints, once the servers have settled, the table and the next steps.
    async fn tell(&self, registry: &Arc<Registry>, fleet: &Fleet, token: &str) {
        let mut settled = std::pin::pin!(settled(registry, fleet));
        let soon = tokio::time::timeout(LINKS_WAIT, settled.as_mut()).await;
        let links = self.links(token);
        if soon.is_err() {
            // A slow server must not delay the link to the console.
            aside(format!("\n{links}"));
            let _ = tokio::time::timeout(TABLE_WAIT, settled).await;
        }
        let table = match registry.desired().is_empty() {
            true => import::first_steps(&self.environment, &self.project),
            false => table(registry, fleet, &self.out),
        };
        let table = format!("\n{table}\n");
        aside(if soon.is_ok() { table + &links } else { table });
        if self.demo {
            demo::first_call(&self.project, &self.environment).await;
        }
    }

    fn links(&self, token: &str) -> String {
        let url = format!("http://{}", self.address);
        if self.no_auth {
            return format!("console  {url}/\nservers  curl {url}/api/mcp/servers\n");
        }
        let (name, value) = if self.own_token {
            let name = "PORTWAY_ADMIN_TOKEN";
            (name.to_owned(), format!("${name}"))
        } else {
            let file = &self.token_file;
            (format!("what is in {file}"), format!("$(cat '{file}')"))
        };
        // A token on a terminal is for the user there; in a file or a journal
        // it would be stored.
        let stored = format!("<{name}>");
        let token = if self.out.is_terminal() {
            token
        } else {
            &stored
        };
        let header = format!("-H \"Authorization: Bearer {value}\"");
        format!("console  {url}/?token={token}\nservers  curl {header} {url}/api/mcp/servers\n")
    }
}

/// Ready when every server has connected or failed.
async fn settled(registry: &Registry, fleet: &Fleet) {
    let mut snapshots = fleet.watch();
    while app::unsettled(registry, fleet) > 0 && snapshots.changed().await.is_ok() {
        // Not once for each of a thousand servers.
        tokio::time::sleep(TABLE_PAUSE).await;
    }
}

fn table(registry: &Registry, fleet: &Fleet, out: &Terminal) -> String {
    let snapshot = fleet.snapshot();
    let desired = registry.desired();
    let rows = desired.keys().map(|name| {
        let view = snapshot.servers.get(name);
        let (status, detail) = view.map_or(("connecting", String::new()), |view| row(view));
        (&**name, status, detail)
    });
    server_table(rows).to_text(out)
}

fn server_table<'n>(rows: impl Iterator<Item = (&'n str, &'static str, String)>) -> Table<3> {
    let mut table = Table::new(["server", "status", "tools"]);
    for (name, status, detail) in rows {
        table.row([
            name.into(),
            Cell::new(status, Tint::of_status(status)),
            Cell::with_end(&detail),
        ]);
    }
    table
}

/// The number of tools of a server, or why it has none.
fn row(view: &ServerView) -> (&'static str, String) {
    match view.state.status() {
        Status::Connected => ("connected", view.catalog.tools.len().to_string()),
        Status::Connecting => ("connecting", String::new()),
        Status::Disconnected => ("disconnected", String::new()),
        Status::Error => {
            let error = in_one_line(view.state.error().unwrap_or_default());
            ("error", clip_inside(&error, ROW_DETAIL))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k1_the_table_of_servers_aligns_wide_characters() {
        let rows = [
            ("文件系统", "connected", "12".to_owned()),
            ("git", "error", "no program\n\"git\"".to_owned()),
        ];
        let text = server_table(rows.into_iter()).to_text(&Terminal::plain());
        assert_eq!(
            text,
            "server    status     tools\n\
             文件系统  connected  12\n\
             git       error      no program | \"git\"\n"
        );
    }
}
