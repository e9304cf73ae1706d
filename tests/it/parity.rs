//! The same questions asked of a server directly and through Portway by an official
//! client: answers, questions back and what ran at the server are the same. The questions
//! are in `tests/tools/parity`; those left out of a cell say why there.

use std::time::Duration;

use serde_json::Value;

use crate::tools;

const LIMIT: Duration = Duration::from_secs(600);
/// At least this many questions per cell.
const ENOUGH: u64 = 90;

async fn same(cells: &[&str]) {
    let mut args = vec!["--portway", env!("CARGO_BIN_EXE_portway")];
    args.extend(cells);
    let ran = tools::node("parity/run.mjs", &args, LIMIT).await;
    assert!(ran.ok, "{}", ran.stderr);
    println!("{}", ran.stderr.trim_end());
    let rows: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(rows.len(), cells.len());
    for row in rows {
        assert_eq!(row["same"], row["of"], "{row:#}");
        assert!(row["of"].as_u64().unwrap() >= ENOUGH, "{row:#}");
    }
}

#[tokio::test]
async fn parity_of_the_server_with_itself() {
    same(&["direct-legacy", "direct-modern"]).await;
}

#[tokio::test]
async fn i2_parity_over_http() {
    let cells = [
        "legacy-2025-http",
        "modern-2026-http",
        "legacy-2026-http",
        "modern-2025-http",
    ];
    same(&cells).await;
}

#[tokio::test]
async fn i2_parity_over_stdio() {
    let cells = [
        "legacy-2025-stdio",
        "modern-2026-stdio",
        "legacy-2026-stdio",
        "modern-2025-stdio",
    ];
    same(&cells).await;
}

#[tokio::test]
async fn i2_parity_over_sse() {
    same(&["legacy-2025-sse", "modern-2025-sse"]).await;
}

#[tokio::test]
async fn k4_parity_on_the_shared_endpoint() {
    let cells = [
        "legacy-2025-http-shared",
        "modern-2026-http-shared",
        "legacy-2026-http-shared",
        "modern-2025-http-shared",
    ];
    same(&cells).await;
}
