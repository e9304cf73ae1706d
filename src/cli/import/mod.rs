//! `portway import`: adds the servers of another client to this project.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args};
use http::Method;

use super::Environment;
use super::clients::{self, ClientPaths};
use super::failure::{CliResult, CommandResult, Failure};
use super::files;
use super::remote::{Remote, RemoteArgs};
use super::terminal::{Terminal, confirm, note};
use config::import::{self, ClientApp, ImportDirs, ImportFile, ImportedServer};
use preview::{ImportSelection, Preview};
use target::ImportTarget;

mod preview;
mod target;

/// A gateway that answers at all does so within this time.
const GLANCE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["file", "from"])))]
pub struct ImportArgs {
    /// A client's file
    file: Option<PathBuf>,
    /// Read the files of this client, wherever it keeps them
    #[arg(long, value_name = "CLIENT", value_parser = clients::parser())]
    from: Option<ClientApp>,
    /// Format of FILE, if its name and content do not show it
    #[arg(long = "as", value_name = "CLIENT", value_parser = clients::parser(), conflicts_with = "from")]
    shape: Option<ClientApp>,
    /// Import this server only; may be given again
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Give a server another name; may be given again
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Replace servers of the same name that differ
    #[arg(long)]
    overwrite: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Exits with 1 when a selected server was not imported.
pub(super) async fn main(args: &ImportArgs, environment: &Environment) -> CommandResult {
    let selection = ImportSelection::read(&args.only, &args.rename, args.overwrite)?;
    let settings = args.remote.settings(environment)?;
    let project = files::project(&settings.project)?;
    let remote = Remote::new(&args.remote, environment)?;
    let read = read(args, environment, &project)?;
    let target = ImportTarget::find(&settings, &project, &remote).await?;
    let preview = Preview::new(read, &selection, &target, remote.url())?;
    let mut out = Terminal::new(environment);
    if args.json {
        out.json(&preview.json(!args.dry_run));
    } else {
        preview.print(&mut out);
    }
    if args.dry_run || preview.wanted().next().is_none() {
        return out.done(preview.is_complete());
    }
    if !confirm(&preview.question(&target), args.yes)? {
        note("nothing was imported");
        return out.done(false);
    }
    target.write(&preview, &remote).await?;
    if !args.json {
        out.line(&target.said(&preview));
        if let ImportTarget::File { .. } = target {
            out.line(&taken_up(&remote).await);
        }
    }
    out.done(preview.is_complete())
}

/// The servers of a client, and the files they come from.
struct ClientServers {
    client: ClientApp,
    files: Vec<PathBuf>,
    found: Vec<ImportedServer>,
    /// Files of the client that could not be read.
    broken: Vec<String>,
}

fn read(args: &ImportArgs, environment: &Environment, project: &Path) -> CliResult<ClientServers> {
    let places = ClientPaths::new(environment, project);
    let home = places.home().map(|home| home.display().to_string());
    let project = project.display().to_string();
    let around = ImportDirs {
        home: home.as_deref(),
        project: &project,
    };
    match (&args.file, args.from) {
        (Some(file), _) => read_file(file, args.shape, &around),
        (None, Some(client)) => read_client(client, &places, &around),
        (None, None) => Err(Failure::usage("name a FILE, or a client with --from")),
    }
}

fn read_file(
    file: &Path,
    shape: Option<ClientApp>,
    around: &ImportDirs<'_>,
) -> CliResult<ClientServers> {
    let refuse = if file.is_file() {
        Failure::other
    } else {
        Failure::usage
    };
    let text = text_of(file).map_err(refuse)?;
    // The directory helps to detect the client too.
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let client = shape.or_else(|| import::detect(&whole.display().to_string(), &text));
    let Some(client) = client else {
        return Err(Failure::usage(format!(
            "{}: cannot tell whose file this is; say it with --as CLIENT",
            file.display()
        )));
    };
    let parsed = parse(client, file, &text, around).map_err(Failure::other)?;
    Ok(ClientServers {
        client,
        files: vec![file.to_owned()],
        found: import::merge(client, vec![parsed], around),
        broken: Vec::new(),
    })
}

fn read_client(
    client: ClientApp,
    places: &ClientPaths<'_>,
    around: &ImportDirs<'_>,
) -> CliResult<ClientServers> {
    let looked = places.of(client);
    let (mut files, mut parsed, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for file in looked.iter().filter(|file| file.exists()) {
        let read = text_of(file).and_then(|text| parse(client, file, &text, around));
        match read {
            Ok(one) => {
                files.push(file.clone());
                parsed.push(one);
            }
            Err(complaint) => broken.push(complaint),
        }
    }
    if files.is_empty() {
        if broken.is_empty() {
            broken.push(format!(
                "there is no file of {}; these were looked for:",
                client.title()
            ));
            broken.extend(looked.iter().map(|file| format!("  {}", file.display())));
        }
        return Err(Failure::other(broken.join("\n")));
    }
    Ok(ClientServers {
        client,
        files,
        found: import::merge(client, parsed, around),
        broken,
    })
}

/// What a project without servers can do next; names the clients of this user
/// whose servers can be imported.
pub(super) fn first_steps(environment: &Environment, project: &Path) -> String {
    let places = ClientPaths::new(environment, project);
    let home = places.home().map(|home| home.display().to_string());
    let project = project.display().to_string();
    let around = ImportDirs {
        home: home.as_deref(),
        project: &project,
    };
    let mut steps = String::from("no servers yet\n");
    let mut step = |what: &str, command: &str| steps += &format!("  {what:<18}{command}\n");
    for client in ClientApp::ALL {
        let found = read_client(client, &places, &around).map_or(0, |read| read.found.len());
        if found > 0 {
            let servers = if found == 1 { "server" } else { "servers" };
            let command = format!(
                "portway import --from {:<16}({found} {servers} of {})",
                client.name(),
                client.title()
            );
            step("import", &command);
        }
    }
    step(
        "add one",
        "portway add NAME -- COMMAND, or write it into .mcp.json",
    );
    step("try without one", "portway demo");
    step(
        "connect a client",
        "portway install claude-code (or another: portway install --help)",
    );
    steps
}

/// The content of a file, or an error message.
fn text_of(file: &Path) -> Result<String, String> {
    files::client_file(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn parse(
    client: ClientApp,
    file: &Path,
    text: &str,
    around: &ImportDirs<'_>,
) -> Result<ImportFile, String> {
    import::parse(client, text, around).map_err(|problem| format!("{}: {problem}", file.display()))
}

async fn taken_up(remote: &Remote) -> String {
    let asked = remote.ask_within(GLANCE, Method::GET, "/healthz", None);
    match asked.await {
        Ok(_) => format!(
            "If the Portway at {} runs this project, it takes them up by itself.",
            remote.url()
        ),
        Err(_) => "No Portway runs here; `portway` starts it with them.".to_owned(),
    }
}
