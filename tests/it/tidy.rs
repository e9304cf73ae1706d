//! House rules that the compiler cannot check.

use std::path::{Path, PathBuf};

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
    for dir in ["src", "crates", "tests", "examples"] {
        sources(&root.join(dir), &mut found);
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root).unwrap().to_owned(), text)
    };
    found.into_iter().map(read).collect()
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
fn tidy_no_vague_modules() {
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
    for (name, _) in config::settings::VARIABLES {
        assert!(manual.contains(&format!("`{name}`")), "{name} is missing");
    }
}
