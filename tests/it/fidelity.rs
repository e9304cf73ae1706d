//! SPEC D3: what a client and a server say to each other arrives as it was
//! written, in all four cells of eras: numbers by their spelling, members in
//! their order, whatever they are called.
//!
//! Only what is ours changes: the envelope in `_meta`, the progress token, what
//! a modern result says of itself, the name of a tool on the endpoint of all
//! servers, and blanks between tokens.

mod generate;
mod members;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use crate::app::{App, PATIENCE, example, setup};
use crate::mcp_front::{FrontRequest, LegacyClient, MODERN, X, legacy, post};
use generate::{FidelityCase, case};
use members::{differ, member, members, squeezed, without};

const ENVELOPE: [&str; 5] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "progressToken",
];
const STAMPS: [&str; 1] = ["io.modelcontextprotocol/serverInfo"];

/// A client of one era, before a server of one era.
struct EraPair<'a> {
    app: &'a App,
    /// None: a modern client.
    session: Option<LegacyClient<'a>>,
    /// The same at the endpoint of all servers.
    shared: Option<LegacyClient<'a>>,
    modern_server: bool,
}

/// What came back: the messages before the answer, and the answer.
struct ReceivedAnswer {
    before: Vec<String>,
    answer: String,
}

impl EraPair<'_> {
    async fn ask(&self, case: &FidelityCase) -> ReceivedAnswer {
        let name = if case.shared { "mcp_x_echo" } else { "echo" };
        let path = if case.shared { "/mcp" } else { X };
        let session = if case.shared {
            &self.shared
        } else {
            &self.session
        };
        let params = case.params(name, session.is_none());
        let method = "tools/call";
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let request = post(self.app, path, body);
        let request: FrontRequest<'_> = match session {
            Some(session) => request.header("mcp-session-id", &session.session),
            None => request
                .header("mcp-protocol-version", MODERN)
                .header("mcp-method", method)
                .header("mcp-name", name),
        };
        let mut talk = request.send().await;
        let mut heard = Vec::new();
        if talk.is_stream() {
            while let Some(event) = talk.event().await {
                if event.is_message() {
                    heard.push(String::from_utf8(event.data.to_vec()).unwrap());
                }
            }
        } else {
            heard.push(talk.text().await);
        }
        let answer = heard.pop().expect("an answer");
        ReceivedAnswer {
            before: heard,
            answer,
        }
    }

    async fn check(&self, case: &FidelityCase) -> Result<(), TestCaseError> {
        let heard = self.ask(case).await;
        let fail = |what: String| TestCaseError::fail(format!("{what}\n{}", heard.answer));
        case.expect_progress(&heard.before).map_err(&fail)?;
        if let Some(data) = &case.error {
            let error = member(&heard.answer, "error").ok_or_else(|| fail("no error".into()))?;
            let got = member(error, "data").unwrap_or_default();
            return same("error.data", data, got).map_err(&fail);
        }
        let result = member(&heard.answer, "result").ok_or_else(|| fail("no result".into()))?;
        let result = without(result, &["resultType"], "_meta", &STAMPS);
        let expected = without(&case.answer(), &[], "_meta", &STAMPS);
        let (content, rest): (Vec<_>, Vec<_>) = result
            .into_iter()
            .partition(|(key, _)| key == "\"content\"");
        if let Some(what) = differ(&expected, &rest) {
            return Err(fail(format!("the result: {what}")));
        }
        let content = content.first().ok_or_else(|| fail("no content".into()))?;
        let arrived = self.arrived(&content.1).map_err(&fail)?;
        self.expect_arrived(case, &arrived).map_err(&fail)
    }

    /// The params as the server got them; the block they came back in is as the
    /// server wrote it.
    fn arrived(&self, content: &str) -> Result<String, String> {
        let blocks: Vec<&RawValue> = serde_json::from_str(content).map_err(|e| e.to_string())?;
        let written = member(blocks[0].get(), "text").ok_or("no text")?;
        let text: String = serde_json::from_str(written).map_err(|e| e.to_string())?;
        same("the block", &serde_json::to_string(&text).unwrap(), written)?;
        Ok(text)
    }

    fn expect_arrived(&self, case: &FidelityCase, arrived: &str) -> Result<(), String> {
        let sent = case.params("echo", self.session.is_none());
        let expected = without(&sent, &[], "_meta", &ENVELOPE);
        let got = without(arrived, &[], "_meta", &ENVELOPE);
        if let Some(what) = differ(&expected, &got) {
            return Err(format!("the params: {what}"));
        }
        let meta = member(arrived, "_meta").unwrap_or("{}");
        for key in &ENVELOPE[..3] {
            let there = member(meta, key).is_some();
            if there != self.modern_server {
                return Err(format!("{key} in {meta}"));
            }
        }
        match self.session.is_none() && self.modern_server {
            true => {
                let told = member(meta, ENVELOPE[2]).unwrap_or_default();
                same("capabilities", &case.capabilities(), told)
            }
            false => Ok(()),
        }
    }
}

fn same(what: &str, expected: &str, got: &str) -> Result<(), String> {
    let (expected, got) = (squeezed(expected), squeezed(got));
    match expected == got {
        true => Ok(()),
        false => Err(format!("{what}: {expected} became {got}")),
    }
}

/// `PORTWAY_SEED` repeats a run, `PROPTEST_CASES` makes it longer.
fn runner() -> TestRunner {
    let seed = std::env::var("PORTWAY_SEED").ok();
    let seed = seed.map_or_else(rand_seed, |text| text.parse().expect("a number"));
    println!("PORTWAY_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn rand_seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

fn cell(modern_client: bool, modern_server: bool) {
    let runtime = Runtime::new().unwrap();
    let era = if modern_server { "modern" } else { "legacy" };
    let server = serde_json::json!({"command": example("echo_raw"), "args": [era]});
    let mcp = serde_json::json!({"mcpServers": {"x": server}});
    let app = runtime.block_on(async {
        let app = setup().mcp(mcp).start().await;
        app.until_status("x", "connected").await;
        app
    });
    let open = |path| {
        let open = legacy(&app, path, "2025-11-25", serde_json::json!({}));
        runtime.block_on(async { tokio::time::timeout(PATIENCE, open).await.unwrap() })
    };
    let cell = EraPair {
        app: &app,
        session: (!modern_client).then(|| open(X)),
        shared: (!modern_client).then(|| open("/mcp")),
        modern_server,
    };
    let outcome = runner().run(&case(), |case| runtime.block_on(cell.check(&case)));
    if let Err(error) = outcome {
        panic!("{error}");
    }
    runtime.block_on(app.stop());
}

#[test]
fn d3_nothing_changes_from_a_legacy_client_to_a_legacy_server() {
    cell(false, false);
}

#[test]
fn d3_nothing_changes_from_a_legacy_client_to_a_modern_server() {
    cell(false, true);
}

#[test]
fn d3_nothing_changes_from_a_modern_client_to_a_legacy_server() {
    cell(true, false);
}

#[test]
fn d3_nothing_changes_from_a_modern_client_to_a_modern_server() {
    cell(true, true);
}

/// The judge itself: it sees what it is to see.
#[test]
fn d3_the_comparison_sees_spelling_and_order() {
    for (one, other) in [
        (r#"{"a":1}"#, r#"{"a":1.0}"#),
        (r#"{"a":100000}"#, r#"{"a":1e5}"#),
        (r#"{"a":"é"}"#, r#"{"a":"\u00e9"}"#),
        (r#"{"a":"/"}"#, r#"{"a":"\/"}"#),
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
        (r#"{"a":null}"#, r#"{}"#),
        (r#"{"a":{"b":1,"b":2}}"#, r#"{"a":{"b":2}}"#),
        (r#"{"a":" "}"#, r#"{"a":""}"#),
        (r#"{"_meta":{"x":1}}"#, r#"{"_meta":{"x":2}}"#),
    ] {
        let read = |text| without(text, &[], "_meta", &STAMPS);
        assert!(differ(&read(one), &read(other)).is_some(), "{one} {other}");
        assert_eq!(differ(&read(one), &read(one)), None);
    }
    let stamped = r#"{ "a" : [ 1 ] , "resultType":"complete", "_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#;
    let plain = without(stamped, &["resultType"], "_meta", &STAMPS);
    assert_eq!(differ(&members(r#"{"a":[1]}"#), &plain), None);
}
