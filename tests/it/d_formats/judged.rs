//! What a schema allows passes here too, whoever wrote the schema: another
//! validator says what is allowed.

use std::path::Path;

use gateway::format::{arguments, parameters};
use serde_json::value::to_raw_value;
use tokio::process::Command;

use super::*;
use crate::app::PATIENCE;
use crate::process::forest::rounds;
use crate::tools::{installed, judge, tests};

async fn run(verb: &str, file: &Path, count: usize) -> String {
    let mut python = Command::new(installed("python-schemathesis/bin/python"));
    python
        .arg(tests("tools/schemathesis/arguments.py"))
        .args([verb.as_ref(), file.as_os_str()])
        .arg(count.to_string());
    let ran = judge(python, PATIENCE * 5).await;
    assert!(ran.ok, "{}", ran.stderr);
    ran.stdout
}

/// Whether there are alternatives at the top, which are laid over each other
/// for models to see what each of them takes.
fn has_alternatives(root: &Value, schema: &Value, depth: usize) -> bool {
    if depth == 0 || ["anyOf", "oneOf"].iter().any(|one| !schema[one].is_null()) {
        return true;
    }
    let target = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    let target = target.and_then(|to| root.pointer(to));
    let all = schema["allOf"].as_array().into_iter().flatten();
    let mut below = all.chain(target);
    below.any(|below| has_alternatives(root, below, depth - 1))
}

#[tokio::test]
async fn d10_what_another_validator_allows_is_not_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cases.json");
    run("make", &file, rounds(1000, 50_000) as usize).await;
    let cases = std::fs::read(&file).unwrap();
    let mut cases: Vec<Value> = serde_json::from_slice(&cases).unwrap();
    assert!(cases.len() >= 1000, "{}", cases.len());
    for case in &cases {
        let checked = arguments::check(&case["schema"], &case["arguments"]);
        assert_eq!(checked, Ok(()), "{case}");
    }
    cases.retain(|case| !has_alternatives(&case["schema"], &case["schema"], 8));
    assert!(cases.len() >= 500, "{}", cases.len());
    for case in &mut cases {
        let schema = to_raw_value(&case["schema"]).unwrap();
        case["rewritten"] = parameters(Some(&schema)).schema.into();
        let looser = arguments::check(&case["rewritten"], &case["arguments"]);
        assert_eq!(looser, Ok(()), "{case}");
    }
    std::fs::write(&file, serde_json::to_vec(&cases).unwrap()).unwrap();
    let wrong = run("judge", &file, 0).await;
    assert!(wrong.is_empty(), "{wrong}");
}
