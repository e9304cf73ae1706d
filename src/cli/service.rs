//! `portway service`: Portway as a service of systemd, for one user or for the
//! whole machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::files;
use super::terminal::{Terminal, note};
use config::settings::DEFAULT_LISTEN;

/// The units of the machine's packages, which are also those of `--system`.
const SYSTEM_SERVICE: &str = include_str!("../../packaging/portway.service");
const SYSTEM_SOCKET: &str = include_str!("../../packaging/portway.socket");
/// The address in `SYSTEM_SOCKET`, and the command in `SYSTEM_SERVICE`.
const PACKAGED_ADDRESS: &str = "127.0.0.1:7420";
const PACKAGED: &str = "/usr/bin/portway serve --project /etc/portway --data-dir /var/lib/portway";

#[derive(Debug, Args)]
pub struct ServiceArgs {
    #[command(subcommand)]
    action: ServiceAction,
}

#[derive(Debug, Subcommand)]
enum ServiceAction {
    /// Write the units, and start the service now and at each boot or login
    Install(InstallServiceArgs),
    /// Show the state of the service
    Status(ServiceScope),
    /// Stop the service and remove its units; data is kept
    Remove(ServiceScope),
}

#[derive(Debug, Args)]
struct InstallServiceArgs {
    #[command(flatten)]
    scope: ServiceScope,
    /// Directory of .mcp.json [default: the working directory; with --system /etc/portway]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "IP:PORT", default_value_t = SocketAddr::from(DEFAULT_LISTEN))]
    listen: SocketAddr,
    /// Only print the units
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct ServiceScope {
    /// For the whole machine, as the user portway; needs root
    #[arg(long)]
    system: bool,
}

pub(super) async fn main(args: &ServiceArgs, environment: &Environment) -> CommandResult {
    let mut out = Terminal::new(environment);
    match &args.action {
        ServiceAction::Install(args) => {
            let units = Units::of(&args.scope, environment)?;
            let texts = units.texts(args)?;
            if args.dry_run {
                for (path, text) in texts {
                    out.line(&format!("# {}\n{text}", path.display()));
                }
                return out.done(true);
            }
            units.install(&texts)?;
            out.line(&format!("Portway listens on http://{}", args.listen));
            out.line(&format!("its log: {}", units.journal()));
        }
        ServiceAction::Status(scope) => {
            let units = Units::of(scope, environment)?;
            let active = units.is_active()?;
            out.line(if active { "running" } else { "not running" });
            out.line(&format!("its log: {}", units.journal()));
            return out.done(active);
        }
        ServiceAction::Remove(scope) => {
            Units::of(scope, environment)?.remove()?;
            out.line("the service is removed; its data is kept");
        }
    }
    out.done(true)
}

/// The units of one scope.
struct Units {
    system: bool,
    directory: PathBuf,
}

impl Units {
    fn of(scope: &ServiceScope, environment: &Environment) -> CliResult<Units> {
        let variable = |name: &str| environment.get(name).filter(|text| !text.is_empty());
        let directory = match (scope.system, variable("XDG_CONFIG_HOME"), variable("HOME")) {
            (true, ..) => PathBuf::from("/etc/systemd/system"),
            (false, Some(config), _) => Path::new(config).join("systemd/user"),
            (false, None, Some(home)) => Path::new(home).join(".config/systemd/user"),
            (false, None, None) => {
                return Err(Failure::usage(
                    "HOME is not set: where are the user's units?",
                ));
            }
        };
        Ok(Units {
            system: scope.system,
            directory,
        })
    }

    /// The path and the text of the socket and of the service.
    fn texts(&self, args: &InstallServiceArgs) -> CliResult<[(PathBuf, String); 2]> {
        let program = std::env::current_exe().map_err(Failure::other)?;
        let program = quoted(&program)?;
        let socket = SYSTEM_SOCKET.replace(PACKAGED_ADDRESS, &args.listen.to_string());
        let service = if self.system {
            let project = args.project.as_deref().unwrap_or(Path::new("/etc/portway"));
            let project = quoted(project)?;
            let command =
                format!("{program} serve --project {project} --data-dir /var/lib/portway");
            SYSTEM_SERVICE.replace(PACKAGED, &command).replace(
                "ReadWritePaths=/etc/portway",
                &format!("ReadWritePaths={project}"),
            )
        } else {
            let project = files::project(args.project.as_deref().unwrap_or(Path::new(".")))?;
            user_service(&program, &quoted(&project)?)
        };
        Ok([
            (self.directory.join("portway.socket"), socket),
            (self.directory.join("portway.service"), service),
        ])
    }

    fn install(&self, texts: &[(PathBuf, String)]) -> CliResult<()> {
        // Before anything is written: without systemd the units are of no use.
        self.systemctl(&["show-environment"])?;
        if self.system {
            make_account()?;
        }
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| Failure::of_path(&self.directory, error))?;
        for (path, text) in texts {
            std::fs::write(path, text).map_err(|error| Failure::of_path(path, error))?;
        }
        self.systemctl(&["daemon-reload"])?;
        self.systemctl(&["enable", "portway.socket", "portway.service"])?;
        self.systemctl(&["restart", "portway.socket", "portway.service"])?;
        if !self.system {
            note("it ends with your last login; `loginctl enable-linger` keeps it running");
        }
        Ok(())
    }

    fn remove(&self) -> CliResult<()> {
        self.systemctl(&["disable", "--now", "portway.service", "portway.socket"])?;
        for name in ["portway.service", "portway.socket"] {
            let path = self.directory.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::of_path(&path, error));
                }
                _ => {}
            }
        }
        self.systemctl(&["daemon-reload"])
    }

    fn is_active(&self) -> CliResult<bool> {
        let status = self
            .command(&["is-active", "--quiet", "portway.service"])
            .status();
        Ok(status.map_err(no_systemd)?.success())
    }

    fn journal(&self) -> &'static str {
        match self.system {
            true => "journalctl -u portway",
            false => "journalctl --user -u portway",
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        if !self.system {
            command.arg("--user");
        }
        command.args(args);
        command
    }

    fn systemctl(&self, args: &[&str]) -> CliResult<()> {
        let output = self.command(args).output().map_err(no_systemd)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let text = format!("systemctl {}: {}", args.join(" "), said.trim());
        Err(Failure::other(text))
    }
}

fn no_systemd(error: std::io::Error) -> Failure {
    Failure::other(format!(
        "systemctl: {error}; `portway service install --dry-run` prints the units"
    ))
}

/// The account of the system service, if it is missing.
fn make_account() -> CliResult<()> {
    let args = [
        "--system",
        "--user-group",
        "--home-dir",
        "/var/lib/portway",
        "--shell",
        "/usr/sbin/nologin",
        "portway",
    ];
    match Command::new("useradd").args(args).output() {
        // 9: there is such an account already.
        Ok(output) if output.status.success() || output.status.code() == Some(9) => Ok(()),
        Ok(output) => Err(Failure::other(String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(Failure::other(format!("useradd: {error}"))),
    }
}

/// The service of one user. It runs with that user's rights, as `portway` in a
/// terminal does.
fn user_service(program: &str, project: &str) -> String {
    format!(
        "[Unit]
Description=Portway, a gateway for MCP servers
Documentation=man:portway(1)
After=portway.socket
Requires=portway.socket

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} serve --project {project}
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={project}
Restart=on-failure
RestartSec=2
WatchdogSec=30
TimeoutStopSec=60
KillMode=mixed
Delegate=yes

[Install]
WantedBy=default.target
"
    )
}

/// A path as a word of a unit: `%` and `$` have a meaning there.
fn quoted(path: &Path) -> CliResult<String> {
    let bad = |byte: u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\\' | b'\'');
    let text = path
        .to_str()
        .filter(|text| !text.bytes().any(bad))
        .ok_or_else(|| Failure::of_path(path, "a unit of systemd cannot hold this path"))?;
    let text = text.replace('%', "%%").replace('$', "$$");
    Ok(match text.contains(' ') {
        true => format!("\"{text}\""),
        false => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u1_the_packaged_unit_has_the_command_that_is_replaced() {
        assert!(SYSTEM_SERVICE.contains(&format!("ExecStart={PACKAGED}\n")));
        assert!(SYSTEM_SERVICE.contains("\nReadWritePaths=/etc/portway\n"));
        assert!(SYSTEM_SOCKET.contains(&format!("ListenStream={PACKAGED_ADDRESS}\n")));
    }

    #[test]
    fn u1_paths_are_words_of_a_unit() {
        let word = |path: &str| quoted(Path::new(path)).ok();
        assert_eq!(word("/a b/%i$x").as_deref(), Some("\"/a b/%%i$$x\""));
        assert_eq!(word("/srv/p").as_deref(), Some("/srv/p"));
        assert_eq!(word("/a\nb"), None);
        assert_eq!(word("/a\"b"), None);
    }
}
