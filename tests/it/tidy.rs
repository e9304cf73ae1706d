//! House rules that the compiler cannot check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 450;
/// Type names that more than one crate defines.
const MOST_SHARED_NAMES: usize = 40;

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
    for dir in ["src", "crates", "tests", "bench", "examples"] {
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
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/running.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    for name in config::settings::variable_names() {
        assert!(manual.contains(&format!("`{name}`")), "{name} is missing");
    }
}

/// The crate, or the program of its own, that a file belongs to.
fn owner(path: &Path) -> String {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    let first = parts.next().unwrap_or_default();
    match &*first {
        "crates" | "tests" | "examples" => {
            format!("{first}/{}", parts.next().unwrap_or_default())
        }
        _ => first.into_owned(),
    }
}

/// The name of the type that a line of code defines, associated types left out.
fn defined_type(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => code,
    };
    let (keyword, rest) = code.trim_start().split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
        || keyword == "type" && !line.starts_with(' ');
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (is_type && name.starts_with(|c: char| c.is_uppercase())).then_some(name)
}

#[test]
fn tidy_a_type_name_means_one_thing() {
    let mut places: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
    for (path, text) in all() {
        for name in text.lines().filter_map(defined_type) {
            let place = (owner(&path), path.clone());
            places.entry(name.to_owned()).or_default().push(place);
        }
    }
    places.retain(|_, places| places.len() > 1);
    let line = |(name, places): (&String, &Vec<(String, PathBuf)>)| {
        let paths: Vec<String> = places
            .iter()
            .map(|(_, p)| p.display().to_string())
            .collect();
        format!("{name}: {}", paths.join(", "))
    };
    let in_one_crate = |(_, places): &(&String, &Vec<(String, PathBuf)>)| {
        let owners: BTreeSet<&String> = places.iter().map(|(owner, _)| owner).collect();
        owners.len() < places.len()
    };
    let twice: Vec<String> = places.iter().filter(in_one_crate).map(line).collect();
    assert!(
        twice.is_empty(),
        "defined twice in one crate; put the subject before one of the names:\n{}",
        twice.join("\n")
    );
    let shared: Vec<String> = places.iter().map(line).collect();
    assert!(
        shared.len() <= MOST_SHARED_NAMES,
        "{} type names are defined in more than one crate, at most {MOST_SHARED_NAMES} may be; \
         rename the one you added after its subject:\n{}",
        shared.len(),
        shared.join("\n")
    );
}
