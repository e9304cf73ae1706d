//! `portway completions` and `portway man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::Environment;
use super::failure::{CommandResult, Failure};
use super::terminal::Terminal;
use super::whole_command;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell; `portway completions --help` says where it goes
    ///
    /// bash: portway completions bash > ~/.local/share/bash-completion/completions/portway
    /// zsh: portway completions zsh > "${fpath[1]}/_portway"
    /// fish: portway completions fish > ~/.config/fish/completions/portway.fish
    #[arg(verbatim_doc_comment)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page for each command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) async fn main(args: &CompletionsArgs, environment: &Environment) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole_command(), "portway", &mut script);
    let mut out = Terminal::new(environment);
    out.write(&script);
    out.done(true)
}

pub(super) async fn man(args: &ManArgs, environment: &Environment) -> CommandResult {
    let mut out = Terminal::new(environment);
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        let drawn = clap_mangen::Man::new(whole_command()).render(&mut page);
        drawn.map_err(|error| Failure::other(format!("cannot draw the page: {error}")))?;
        out.write(&page);
        return out.done(true);
    };
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(whole_command(), dir));
    written.map_err(|error| Failure::of_path(dir, error))?;
    out.done(true)
}
