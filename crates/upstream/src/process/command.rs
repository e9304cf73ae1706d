//! The command of a server, checked and prepared for the helper.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{MARKER, SpawnError, program};
use crate::containment::ContainmentStep;
use crate::shim::message::LaunchRequest;
use config::{Containment, Launch, LaunchTarget, Privileges, child_env};

/// The command to run. Holds secrets: [`fmt::Debug`] shows only the program.
#[derive(Clone)]
pub struct ProcessCommand {
    pub program: String,
    pub args: Vec<String>,
    /// The whole environment of the child, except for `MARKER`.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub containment: Containment,
    pub privileges: Privileges,
    /// Directories that are empty for the server, if it has a mount namespace:
    /// those with Portway's own keys. Absolute, without links.
    pub hidden: Vec<PathBuf>,
    /// Identifies this Portway (its data directory) for
    /// [`sweep`](super::sweep): 1 to 64 letters, digits, `-` or `_`.
    pub instance: String,
    /// A binary that calls `shim::run_if_asked` before all else: `own_binary`,
    /// outside tests.
    pub shim: PathBuf,
}

impl fmt::Debug for ProcessCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl ProcessCommand {
    /// The command of a definition, as the fleet runs it; `None` for a remote
    /// server. The caller sets the fields that are left empty.
    pub fn of(
        launch: &Launch,
        project: &Path,
        base_env: &[(String, String)],
        containment: Containment,
    ) -> Option<ProcessCommand> {
        let LaunchTarget::Stdio {
            command,
            args,
            env,
            cwd,
        } = &launch.target
        else {
            return None;
        };
        Some(ProcessCommand {
            program: command.clone(),
            args: args.clone(),
            env: child_env(base_env.iter().cloned(), env),
            cwd: cwd
                .as_ref()
                .map_or_else(|| project.to_owned(), |dir| project.join(dir)),
            containment,
            privileges: Privileges::default(),
            hidden: Vec::new(),
            instance: String::new(),
            shim: PathBuf::new(),
        })
    }

    /// Off the async threads: a PATH entry may be on a slow disk.
    pub async fn find_program(&self) -> Result<PathBuf, SpawnError> {
        let (program, cwd) = (self.program.clone(), self.cwd.clone());
        let path = self.env.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone());
        let look = move || {
            let bad_cwd = |reason: String| SpawnError::BadCwd {
                cwd: cwd.clone(),
                reason,
            };
            match std::fs::metadata(&cwd) {
                Ok(found) if found.is_dir() => program::resolve(&program, path.as_deref(), &cwd),
                Ok(_) => Err(bad_cwd("it is not a directory".into())),
                Err(error) => Err(bad_cwd(error.to_string())),
            }
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_else(|_| {
            Err(SpawnError::io("looking for the program")(
                io::ErrorKind::Other.into(),
            ))
        })
    }

    /// The command in the helper's format.
    pub(super) fn request(
        &self,
        step: ContainmentStep,
        path: &Path,
        marker: &str,
    ) -> Result<LaunchRequest, SpawnError> {
        if !is_instance(&self.instance) {
            return Err(SpawnError::Invalid { field: "instance" });
        }
        let text = |field: &'static str, bytes: &[u8]| {
            CString::new(bytes).map_err(|_| SpawnError::Invalid { field })
        };
        let file = |field, path: &Path| text(field, path.as_os_str().as_encoded_bytes());
        let mut args = vec![text("command", self.program.as_bytes())?];
        for arg in &self.args {
            args.push(text("args", arg.as_bytes())?);
        }
        let mut env = vec![text("instance", format!("{MARKER}={marker}").as_bytes())?];
        for (name, value) in self.env.iter().filter(|(name, _)| name != MARKER) {
            if name.is_empty() || name.contains('=') {
                return Err(SpawnError::Invalid { field: "env" });
            }
            env.push(text("env", format!("{name}={value}").as_bytes())?);
        }
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(SpawnError::io("finding the cwd"));
        let hidden = self.hidden.iter().map(|path| file("hidden", path));
        Ok(LaunchRequest {
            step,
            keep_privileges: self.privileges == Privileges::Keep,
            hidden: hidden.collect::<Result<_, _>>()?,
            marker: text("instance", marker.as_bytes())?,
            cwd: file("cwd", &absolute(&self.cwd)?)?,
            path: file("command", &absolute(path)?)?,
            args,
            env,
        })
    }
}

/// Whether the text is valid in an environment, as a directory name and as a
/// marker prefix.
pub(super) fn is_instance(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
}
