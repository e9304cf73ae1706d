use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value, json};

use super::{painted, path_of, text, told};
use crate::cli::Environment;
use crate::cli::failure::{CliResult, CommandResult, Failure};
use crate::cli::remote::{AskArgs, Remote};
use crate::cli::secret;
use crate::cli::terminal::{in_one_line, note};
use config::Secret;
use config::settings::duration;

/// Longer than Portway's own default limit for a start, after which it reports
/// the error.
const WAIT: Duration = Duration::from_secs(75);
const PAUSE: Duration = Duration::from_millis(150);
const SOON: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(
    override_usage = "portway add [OPTIONS] NAME [--] COMMAND [ARGS]...\n       \
                      portway add [OPTIONS] NAME URL [OPTIONS]"
)]
pub struct AddArgs {
    /// Name of the server
    name: String,
    /// Address of a remote server
    #[arg(value_name = "URL")]
    place: Option<String>,
    /// An environment variable of the command; ${VAR} is filled in at its
    /// start, which keeps secrets out of the file
    #[arg(long, value_name = "NAME=VALUE", value_parser = secret)]
    env: Vec<Secret>,
    /// A header of every request to the URL, also as "Name: value"
    #[arg(long, value_name = "NAME=VALUE", value_parser = secret)]
    header: Vec<Secret>,
    /// Working directory of the command [default: the project]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Time limit of one call, such as 30s or 2m [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// The URL speaks the old HTTP+SSE
    #[arg(long)]
    sse: bool,
    /// Do not start it
    #[arg(long)]
    no_start: bool,
    /// Return without waiting for the connection
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    ask: AskArgs,
    /// Command and arguments of a local server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The index of a command given without `--`: the first word after the name
/// that is neither an option of `add` nor a URL.
pub(crate) fn bare_command(args: &[OsString]) -> Option<usize> {
    if args.get(1).is_none_or(|verb| verb != "add") || args.iter().any(|arg| arg == "--") {
        return None;
    }
    let begins = |at: &usize| {
        let word = args[*at].to_string_lossy();
        if word.starts_with('-') || is_url(&word) {
            return false;
        }
        let escape = [OsString::from("--"), args[*at].clone()];
        let parsed = AddArgs::augment_args(clap::Command::new("add"))
            .try_get_matches_from(args[1..*at].iter().chain(&escape));
        parsed.is_ok_and(|found| !found.contains_id("place"))
    };
    (3..args.len()).find(begins)
}

pub(crate) async fn add(args: &AddArgs, environment: &Environment) -> CommandResult {
    let definition = definition(args)?;
    let (remote, mut out) = args.ask.open(environment)?;
    let mut record = remote.post("/api/mcp/servers", &definition).await?;
    let waits = !args.no_start && !args.no_wait;
    if waits {
        record = settled(&remote, record).await?;
    }
    let fits = !waits || record["status"] == "connected";
    let name = in_one_line(text(&record, "name"));
    if args.ask.json {
        out.json(&record);
    } else if fits {
        let status = painted(&record, &out);
        let source = in_one_line(text(&record, "source"));
        out.line(&format!("{name}: added to {source}, {status}"));
    }
    if !fits {
        note(&format!("{name}: {}", told(&record)));
        note(&format!(
            "it stays in {}; see `portway logs {name}`, or take it out with `portway rm {name}`",
            text(&record, "source")
        ));
    }
    out.done(fits)
}

/// The record once the server has connected or failed, or when the wait is
/// over.
async fn settled(remote: &Remote, mut record: Value) -> CliResult<Value> {
    let path = path_of(text(&record, "id"));
    let started = Instant::now();
    let mut patient = !std::io::stderr().is_terminal();
    while record["status"] == "connecting" && started.elapsed() < WAIT {
        // A user who waits for a download needs a sign of progress.
        if !patient && started.elapsed() > SOON {
            patient = true;
            note("it is being started; Ctrl-C leaves it to itself");
        }
        tokio::time::sleep(PAUSE).await;
        record = remote.get(&path).await?;
    }
    Ok(record)
}

fn definition(args: &AddArgs) -> CliResult<Value> {
    let mut fields = json!({"name": args.name});
    match (&args.place, args.command.split_first()) {
        (None, Some((command, rest))) => {
            if !args.header.is_empty() || args.sse {
                return Err(Failure::usage("--header and --sse are for a URL"));
            }
            fields["command"] = json!(command);
            fields["args"] = json!(rest);
            fields["env"] = pairs("--env", &args.env, variable)?;
            if let Some(cwd) = &args.cwd {
                fields["cwd"] = json!(absolute(cwd));
            }
        }
        (Some(url), None) if is_url(url) => {
            if !args.env.is_empty() || args.cwd.is_some() {
                return Err(Failure::usage("--env and --cwd are for a command"));
            }
            fields["type"] = json!(if args.sse { "sse" } else { "http" });
            fields["url"] = json!(url);
            fields["headers"] = pairs("--header", &args.header, header)?;
        }
        _ => {
            let name = &args.name;
            return Err(Failure::usage(format!(
                "say what it is: `portway add {name} -- COMMAND ARGS`, \
                 or `portway add {name} https://…`"
            )));
        }
    }
    if let Some(timeout) = args.timeout {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        fields["timeout"] = json!(millis);
    }
    if args.no_start {
        fields["autoStart"] = json!(false);
    }
    Ok(fields)
}

fn is_url(text: &str) -> bool {
    // `${HOST}/mcp` becomes a URL when it is expanded.
    text.starts_with("https://") || text.starts_with("http://") || text.starts_with("${")
}

/// A relative path is relative to this directory, but Portway runs elsewhere.
fn absolute(dir: &str) -> String {
    if dir.starts_with("${") {
        return dir.to_owned();
    }
    let path = std::path::absolute(Path::new(dir));
    path.map_or_else(|_| dir.to_owned(), |path| path.display().to_string())
}

fn variable(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, _)| !name.is_empty())
}

/// `NAME=VALUE` or `Name: value`; a name contains neither sign.
pub(crate) fn header(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(['=', ':'])?;
    let name = name.trim();
    (!name.is_empty()).then(|| (name, value.trim()))
}

/// Splits options into pairs. Errors never repeat a value.
fn pairs(
    option: &str,
    given: &[Secret],
    split: fn(&str) -> Option<(&str, &str)>,
) -> CliResult<Value> {
    let mut pairs = Map::new();
    for pair in given {
        let Some((name, value)) = split(pair.expose()) else {
            return Err(Failure::usage(format!("{option}: must be NAME=VALUE")));
        };
        if pairs.insert(name.to_owned(), json!(value)).is_some() {
            return Err(Failure::usage(format!("{option}: {name} is given twice")));
        }
    }
    Ok(Value::Object(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_command_needs_no_dashes() {
        for (line, at) in [
            ("portway add mem npx -y pkg", Some(3)),
            ("portway add mem npx --json", Some(3)),
            ("portway add mem --env A=b --no-wait npx -y", Some(6)),
            ("portway add --timeout 3s mem npx", Some(5)),
            ("portway add --env A=b mem", None),
            ("portway add mem https://h/ --header A=b", None),
            ("portway add mem --header A=b https://h/", None),
            ("portway add mem https://h/ npx", None),
            ("portway add mem --no-wait -- npx -y", None),
            ("portway add mem --colour npx", None),
            ("portway ls mem npx", None),
            ("portway add", None),
        ] {
            let args: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(bare_command(&args), at, "{line}");
        }
    }

    #[test]
    fn k7_a_header_is_written_in_either_way() {
        for text in ["X-A=b: c=d", "X-A: b: c=d", " X-A :b: c=d "] {
            assert_eq!(header(text), Some(("X-A", "b: c=d")), "{text}");
        }
        assert!(header("=b").is_none() && header("alone").is_none());
    }
}
