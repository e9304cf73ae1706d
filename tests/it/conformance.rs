//! The official conformance suite, through Portway. `tests/tools/conformance` runs it and
//! says what counts as passed; what it may fail is listed there with its reason.

use std::time::Duration;

use serde_json::Value;

use crate::tools;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const LIMIT: Duration = Duration::from_secs(600);

/// Runs one cell; per suite: scenarios passed, scenarios run, checks that succeeded.
async fn cell(name: &str) -> Vec<(String, [u64; 3])> {
    let args = ["--portway", env!("CARGO_BIN_EXE_portway"), name];
    let ran = tools::node("conformance/run.mjs", &args, LIMIT).await;
    assert!(ran.ok, "{}", ran.stderr);
    println!("{}", ran.stderr.trim_end());
    let rows: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let figures = |row: &Value| {
        let suite = row["suite"].as_str().unwrap().to_owned();
        let figures = ["passed", "of", "checks"].map(|field| row[field].as_u64().unwrap());
        (suite, figures)
    };
    rows.iter().map(figures).collect()
}

fn legacy(checks: u64) -> (String, [u64; 3]) {
    (LEGACY.into(), [33, 33, checks])
}

fn modern() -> (String, [u64; 3]) {
    (MODERN.into(), [40, 40, 152])
}

/// What a server may do and Portway does not: answer a list with a stream, and close a
/// stream to have the client come back.
const OPTIONAL: u64 = 2;

fn relayed() -> (String, [u64; 3]) {
    legacy(84 - OPTIONAL)
}

async fn client_leg(name: &str) {
    let passed: Vec<_> = cell(name).await.iter().map(|row| row.1).collect();
    let passed: Vec<_> = passed.iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(passed, [(5, 5), (8, 8)]);
}

#[tokio::test]
async fn conformance_upstream_alone_reaches_the_ceiling() {
    assert_eq!(cell("direct").await, [legacy(84), modern()]);
}

#[tokio::test]
async fn conformance_driver_alone_passes_the_client_leg() {
    client_leg("client-direct").await;
}

#[tokio::test]
async fn k4_conformance_both_eras_over_http() {
    assert_eq!(cell("both-http").await, [relayed(), modern()]);
}

#[tokio::test]
async fn k4_conformance_both_eras_over_stdio() {
    assert_eq!(cell("both-stdio").await, [relayed(), modern()]);
}

/// One scenario needs what only the upstream could say: that a call needs a capability which
/// the client lacks (-32021). `expected-failures.yaml` explains it.
#[tokio::test]
async fn i2_conformance_modern_client_legacy_server_over_http() {
    let but_one = (MODERN.to_owned(), [39, 40, 150]);
    assert_eq!(cell("modern-to-legacy-http").await, [but_one]);
}

#[tokio::test]
async fn i2_conformance_modern_client_legacy_server_over_stdio() {
    assert_eq!(cell("modern-to-legacy-stdio").await, [modern()]);
}

#[tokio::test]
async fn i2_conformance_legacy_client_modern_server_over_http() {
    assert_eq!(cell("legacy-to-modern-http").await, [relayed()]);
}

#[tokio::test]
async fn i2_conformance_legacy_client_modern_server_over_stdio() {
    assert_eq!(cell("legacy-to-modern-stdio").await, [relayed()]);
}

#[tokio::test]
async fn c2_conformance_as_a_client() {
    client_leg("client").await;
}
