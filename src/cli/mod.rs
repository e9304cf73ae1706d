//! The command line. It only parses arguments; [`Settings`] validates them.
//!
//! [`Settings`]: config::settings::Settings

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use config::Secret;
use config::settings::{ServeOptions, VARIABLES, duration};
use failure::run;

mod background;
mod call;
mod clients;
mod completions;
mod connect;
mod demo;
mod doctor;
mod entries;
mod failure;
mod files;
mod import;
mod install;
mod lab;
mod logs;
mod memory;
mod migrate;
mod remote;
mod serve;
mod servers;
mod service;
mod systemd;
mod terminal;
mod token;
mod tools;
mod upgrade;
mod when;

/// The environment variables of the program.
type Environment = BTreeMap<String, String>;

/// The version, with the commit that it was built from and its date.
const VERSION: &str = env!("PORTWAY_VERSION");

/// The exit code for a wrong argument or setting.
pub const BAD_USE: u8 = 2;

/// Runs, watches and connects MCP servers and exposes their tools.
#[derive(Debug, Parser)]
#[command(name = "portway", version = VERSION, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway (the default command)
    Serve(ServeArgs),
    /// Run a project with two small servers, to try Portway without anything else
    Demo(demo::DemoArgs),
    /// Be one of the servers of the demonstration
    #[command(hide = true)]
    DemoServer(demo::DemoServerArgs),
    /// Run Portway as a service of systemd
    Service(service::ServiceArgs),
    /// List the servers and their status
    Ls(servers::LsArgs),
    /// Add a server: a command or a URL
    Add(servers::AddArgs),
    /// Remove servers
    Rm(servers::RemoveServerArgs),
    /// Start servers
    Start(servers::ActArgs),
    /// Stop servers
    Stop(servers::ActArgs),
    /// Stop servers and start them again
    Restart(servers::ActArgs),
    /// Show a server's recent log
    Logs(logs::LogsArgs),
    /// List the tools of all servers
    Tools(tools::ToolsArgs),
    /// Call a tool
    Call(call::CallArgs),
    /// Create, list and change entries: endpoints with their own key and tools
    Entries(entries::EntriesArgs),
    /// Replace the admin token
    Token(token::TokenArgs),
    /// List the browsers that are signed in to the console, and sign them out
    Sessions(token::SessionsArgs),
    /// Speak MCP on stdin and stdout, for clients that can only start a command
    Connect(connect::ConnectArgs),
    /// Import servers from another client's file
    Import(import::ImportArgs),
    /// Add Portway to a client's settings
    Install(install::InstallArgs),
    /// Remove Portway from a client's settings
    Uninstall(install::UninstallArgs),
    /// Find problems of this installation and show how to fix them
    Doctor(doctor::DoctorArgs),
    /// Test a server and report its behaviour
    Lab(lab::LabArgs),
    /// Check the configuration files; exits with 1 if something is wrong
    Check(files::CheckArgs),
    /// Show what a changed .mcp.json would do to the servers
    Plan(files::PlanArgs),
    /// Convert records of the old API into entries with the same keys
    Migrate(migrate::MigrateArgs),
    /// Compare this version with the newest one in an index that you name
    Upgrade(upgrade::UpgradeArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual, or write its pages into a directory
    Man(completions::ManArgs),
}

impl Command {
    /// Runs the command; returns its exit code.
    pub fn run(self, environment: Environment) -> ExitCode {
        let env = &environment;
        match self {
            Command::Serve(args) => serve::main(args, environment),
            Command::Demo(args) => demo::main(args, environment),
            Command::DemoServer(args) => run(demo::serve_one(&args)),
            Command::Service(args) => run(service::main(&args, env)),
            Command::Ls(args) => run(servers::ls(&args, env)),
            Command::Add(args) => run(servers::add(&args, env)),
            Command::Rm(args) => run(servers::rm(&args, env)),
            Command::Start(args) => run(servers::act(&args, env, "start", "connected")),
            Command::Stop(args) => run(servers::act(&args, env, "stop", "disconnected")),
            Command::Restart(args) => run(servers::act(&args, env, "restart", "connected")),
            Command::Logs(args) => run(logs::main(&args, env)),
            Command::Tools(args) => run(tools::main(&args, env)),
            Command::Call(args) => run(call::main(&args, env)),
            Command::Entries(args) => run(entries::main(&args, env)),
            Command::Token(args) => run(token::token(&args, env)),
            Command::Sessions(args) => run(token::sessions(&args, env)),
            Command::Connect(args) => run(connect::main(&args, env)),
            Command::Import(args) => run(import::main(&args, env)),
            Command::Install(args) => run(install::install(&args, env)),
            Command::Uninstall(args) => run(install::uninstall(&args, env)),
            Command::Doctor(args) => run(doctor::main(&args, env)),
            Command::Lab(args) => run(lab::main(&args, env)),
            Command::Check(args) => run(files::check(&args, env)),
            Command::Plan(args) => run(files::plan(&args, env)),
            Command::Migrate(args) => run(migrate::main(&args, env)),
            Command::Upgrade(args) => run(upgrade::main(&args, env)),
            Command::Completions(args) => run(completions::main(&args, env)),
            Command::Man(args) => run(completions::man(&args, env)),
        }
    }
}

#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1:7420] [env: PORTWAY_LISTEN]
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Directory of .mcp.json and .kode.json [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Directory for state [default: data in the project] [env: PORTWAY_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Require no token; loopback addresses only. Anyone who reaches the port can run commands
    #[arg(long)]
    no_auth: bool,
    /// How to write the log to stderr: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// For `portway connect`: in the background, and for so many seconds
    /// after the last of its clients has gone
    #[arg(long, value_name = "SECONDS", value_parser = seconds, hide = true)]
    until_idle: Option<Duration>,
    /// Start it and be done
    #[arg(long, hide = true, requires = "until_idle")]
    detach: bool,
    /// Make a first call to the servers of `portway demo`
    #[arg(skip)]
    demo: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map_or_else(|| duration(text), Ok)
}

/// Accepts any text, so that clap's errors never repeat a secret.
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

impl Cli {
    /// The parsed command line, or clap's own output instead (help, version, or
    /// an error).
    pub fn try_parse_args<I, T>(args: I) -> Result<Cli, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        let mut args: Vec<std::ffi::OsString> = args.into_iter().map(Into::into).collect();
        if let Some(at) = servers::bare_command(&args) {
            args.insert(at, "--".into());
        }
        Cli::from_arg_matches(&whole_command().try_get_matches_from(args)?)
    }

    pub fn asked(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

/// The exit codes that scripts may rely on.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure: a server did not start, a tool reported an error, or the name is unknown
  2  invalid argument or setting
  3  no Portway is running for this project, or it does not respond
  4  token missing or refused
";

/// The command line, with help that the derive macros cannot express.
fn whole_command() -> clap::Command {
    let variables = variables();
    Cli::command()
        .after_help(format!("{EXIT_CODES}\n{variables}"))
        .mut_subcommand("serve", |serve| serve.after_help(variables))
}

fn variables() -> String {
    let rows = VARIABLES.lines().map(|row| format!("  {row}\n"));
    format!("Environment:\n{}", rows.collect::<String>())
}

impl From<ServeArgs> for ServeOptions {
    fn from(args: ServeArgs) -> ServeOptions {
        ServeOptions {
            listen: args.listen,
            project: args.project,
            data_dir: args.data_dir,
            no_auth: args.no_auth,
            log_format: args.log_format,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> ServeOptions {
        let cli = Cli::try_parse_args([&["portway"], args].concat()).unwrap();
        match cli.asked() {
            Command::Serve(args) => args.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn k1_portway_alone_is_portway_serve() {
        for args in [
            &["--listen", "127.0.0.1:0"][..],
            &["serve", "--listen", "127.0.0.1:0"],
        ] {
            assert_eq!(
                options(args).listen.as_deref(),
                Some("127.0.0.1:0"),
                "{args:?}"
            );
        }
        assert!(options(&[]).listen.is_none());
        let all = [
            "--project", "p", "--data-dir", "d", "--no-auth", "--log-format", "json",
        ];
        let given = options(&all);
        assert!(given.no_auth);
        assert_eq!(given.project, Some("p".into()));
        assert_eq!(given.log_format.as_deref(), Some("json"));
    }

    #[test]
    fn k1_an_unknown_option_is_named() {
        let error = Cli::try_parse_args(["portway", "--lissten", "x"]).unwrap_err();
        assert!(error.to_string().contains("--lissten"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn k1_help_lists_every_variable_and_version_is_told() {
        for args in [&["portway", "--help"][..], &["portway", "serve", "--help"]] {
            let help = Cli::try_parse_args(args).unwrap_err().to_string();
            for name in config::settings::variable_names() {
                assert!(help.contains(name), "{name} is not in {help}");
            }
        }
        let version = Cli::try_parse_args(["portway", "--version"])
            .unwrap_err()
            .to_string();
        assert!(version.starts_with(concat!("portway ", env!("CARGO_PKG_VERSION"))));
    }

    #[test]
    fn k7_a_bare_number_counts_seconds() {
        for (text, millis) in [("3", 3000), ("0.5", 500), ("3s", 3000), ("2m", 120_000)] {
            assert_eq!(seconds(text).unwrap().as_millis(), millis, "{text}");
        }
        assert!(seconds("soon").unwrap_err().contains("30s"));
        assert!(seconds("-1").is_err());
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
