//! House rules that are tests: which room may look into which, and that a
//! file stays readable in one go.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Each room and what it may use. The order is the direction: a room uses
/// only rooms above it.
const ROOMS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("memory", &[]),
    ("config", &[]),
    ("store", &["memory", "config"]),
    ("registry", &["config", "store"]),
    ("upstream", &["wire", "config"]),
    ("fleet", &["wire", "config", "registry", "upstream"]),
    (
        "gateway",
        &[
            "wire", "memory", "config", "store", "registry", "fleet", "upstream",
        ],
    ),
    (
        "http",
        &[
            "wire", "memory", "config", "store", "registry", "fleet", "gateway",
        ],
    ),
    ("library", &["config"]),
    ("copilot", &["wire", "gateway", "http"]),
];

const LONGEST_FILE: usize = 450;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

fn all() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for dir in ["src", "tests", "examples"] {
        sources(&root.join(dir), &mut found);
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root).unwrap().to_owned(), text)
    };
    found.into_iter().map(read).collect()
}

/// The room of a file under `src`, if it is in one.
fn room(path: &Path) -> Option<String> {
    let inside = path.strip_prefix("src").ok()?;
    let first = inside.iter().next()?.to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

#[test]
fn tidy_rooms_look_only_where_they_may() {
    let names: BTreeSet<&str> = ROOMS.iter().map(|(name, _)| *name).collect();
    let mut faults = Vec::new();
    for (path, text) in all() {
        let Some(room) = room(&path) else { continue };
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for part in code.split("crate::").skip(1) {
                let used: String = part
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let foreign = names.contains(used.as_str()) || used == "app" || used == "cli";
                if foreign && used != room && !allowed.contains(&used.as_str()) {
                    faults.push(format!(
                        "{}:{}: {room} uses {used}",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "rooms out of order:\n{}",
        faults.join("\n")
    );
}

#[test]
fn tidy_files_are_read_in_one_go() {
    let long: Vec<String> = all()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > LONGEST_FILE)
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(
        long.is_empty(),
        "too long for one reading:\n{}",
        long.join("\n")
    );
}

#[test]
fn tidy_no_vague_rooms() {
    let vague = [
        "utils", "util", "common", "helpers", "manager", "types", "misc",
    ];
    for (path, _) in all() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(!vague.contains(&stem), "{}: say what it is", path.display());
    }
}

#[test]
fn tidy_the_manual_knows_every_setting() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/running.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    for (name, _) in portway::config::settings::VARIABLES {
        assert!(manual.contains(&format!("`{name}`")), "{name} is missing");
    }
}
