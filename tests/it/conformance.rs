//! The official conformance suite, through Portway. `tests/tools/conformance` runs it and
//! says what counts as passed; what it may fail is listed there with its reason.

use std::time::Duration;

use serde_json::Value;

use crate::tools;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const LIMIT: Duration = Duration::from_secs(600);

/// Runs one cell; per suite: revision, scenarios passed, scenarios run, checks that succeeded.
async fn cell(name: &str) -> Vec<(String, u64, u64, u64)> {
    let args = ["--portway", env!("CARGO_BIN_EXE_portway"), name];
    let ran = tools::node("conformance/run.mjs", &args, LIMIT).await;
    assert!(ran.ok, "{}", ran.stderr);
    let rows: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let number = |row: &Value, field: &str| row[field].as_u64().unwrap();
    let figures = |row: &Value| {
        (
            row["suite"].as_str().unwrap().to_owned(),
            number(row, "passed"),
            number(row, "of"),
            number(row, "checks"),
        )
    };
    println!("{}", ran.stderr.trim_end());
    rows.iter().map(figures).collect()
}

fn legacy() -> (String, u64, u64, u64) {
    (LEGACY.into(), 33, 33, 84)
}

fn modern() -> (String, u64, u64, u64) {
    (MODERN.into(), 40, 40, 152)
}

#[tokio::test]
async fn conformance_upstream_alone_reaches_the_ceiling() {
    assert_eq!(cell("direct").await, [legacy(), modern()]);
}

#[tokio::test]
async fn conformance_driver_alone_passes_the_client_leg() {
    let passed: Vec<_> = cell("client-direct").await;
    let passed: Vec<_> = passed.iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(passed, [(5, 5), (8, 8)]);
}

#[tokio::test]
async fn k4_conformance_both_eras_over_http() {
    assert_eq!(cell("both-http").await, [legacy(), modern()]);
}

#[tokio::test]
async fn k4_conformance_both_eras_over_stdio() {
    assert_eq!(cell("both-stdio").await, [legacy(), modern()]);
}

#[tokio::test]
async fn i2_conformance_modern_client_legacy_server_over_http() {
    assert_eq!(cell("modern-to-legacy-http").await, [modern()]);
}

#[tokio::test]
async fn i2_conformance_modern_client_legacy_server_over_stdio() {
    assert_eq!(cell("modern-to-legacy-stdio").await, [modern()]);
}

#[tokio::test]
async fn i2_conformance_legacy_client_modern_server_over_http() {
    assert_eq!(cell("legacy-to-modern-http").await, [legacy()]);
}

#[tokio::test]
async fn i2_conformance_legacy_client_modern_server_over_stdio() {
    assert_eq!(cell("legacy-to-modern-stdio").await, [legacy()]);
}

#[tokio::test]
async fn c2_conformance_as_a_client() {
    let passed: Vec<_> = cell("client").await;
    let passed: Vec<_> = passed.iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(passed, [(5, 5), (8, 8)]);
}
