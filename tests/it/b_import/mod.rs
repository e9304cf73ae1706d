//! Other clients' files: servers brought along, Portway handed over.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

mod imported;
mod installed;
mod preview;
mod untouched;

/// A home, a project and the program.
struct ImportHome {
    dir: TempDir,
    environment: Vec<(String, String)>,
}

struct CommandRun {
    code: i32,
    out: String,
    err: String,
}

impl ImportHome {
    fn new() -> ImportHome {
        let dir = tempfile::tempdir().unwrap();
        for name in ["project", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        ImportHome {
            dir,
            environment: Vec::new(),
        }
    }

    fn env(mut self, name: &str, value: &str) -> ImportHome {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> CommandRun {
        let output = Command::new(env!("CARGO_BIN_EXE_portway"))
            .args(args)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        CommandRun {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What was kept aside of the files of a directory, the oldest first.
    fn backups(&self, directory: &str) -> Vec<String> {
        let kept = format!("{directory}/.portway-backups");
        let mut names = self.list(&kept);
        names.retain(|name| name != ".gitignore");
        let path = |name: String| format!("{kept}/{name}");
        names.into_iter().map(path).collect()
    }

    /// The names of what lies in a directory.
    fn list(&self, name: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(name)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl CommandRun {
    #[track_caller]
    fn ok(self) -> CommandRun {
        self.exits(0)
    }

    #[track_caller]
    fn exits(self, code: i32) -> CommandRun {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> CommandRun {
        let all = format!("{}{}", self.out, self.err);
        assert!(all.contains(text), "{text:?} is not in: {all}");
        self
    }

    #[track_caller]
    fn hides(self, secret: &str) -> CommandRun {
        let all = format!("{}{}", self.out, self.err);
        assert!(!all.contains(secret), "{secret:?} is in: {all}");
        self
    }

    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }
}
