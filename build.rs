//! The version that `--version` prints: with the commit and its date, where the
//! sources are a checkout, or where a release says so.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PORTWAY_COMMIT");
    let commit = std::env::var("PORTWAY_COMMIT").ok().or_else(|| {
        // A crate from a registry names its commit in a file.
        if let Ok(text) = std::fs::read_to_string("COMMIT") {
            return Some(text.trim().to_owned());
        }
        // Not one of a repository above the sources.
        if !std::path::Path::new(".git").exists() {
            return None;
        }
        // Names the commit that is checked out, or the branch that does.
        for file in [".git/HEAD", ".git/logs/HEAD"] {
            println!("cargo:rerun-if-changed={file}");
        }
        let args = ["log", "-1", "--format=%h %cs", "--abbrev=9"];
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    });
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(commit) = commit.filter(|text| !text.is_empty()) {
        version += &format!(" ({commit})");
    }
    println!("cargo:rustc-env=PORTWAY_VERSION={version}");
}
