//! SPEC A8, B6: what becomes of calls in flight when their server changes,
//! goes, or is stopped.

use fleet::{CallError, CallItem, Status};
use serde_json::json;
use upstream::UpstreamError;

use crate::app::{PATIENCE, eventually};
use crate::remote;
use crate::rooms::{Rooms, result, tool_call};

/// Long enough for a change to meet it, far below what anyone waits.
const SLOW: u64 = 900;

/// Whether a call failed for another reason than its time limit.
fn refused_at_once<T>(answer: &Result<T, CallError>) -> bool {
    let late =
        |error: &CallError| matches!(error, CallError::Upstream(UpstreamError::Timeout { .. }));
    answer.as_ref().is_err_and(|error| !late(error))
}

async fn slow(rooms: &Rooms) -> Result<String, CallError> {
    rooms.call("one", "sleep", json!({ "ms": SLOW })).await
}

#[tokio::test]
async fn b6_calls_in_flight_finish_when_their_server_is_taken_out() {
    let rooms = Rooms::open(&[("one", &[])]).await;
    rooms.follow();
    let edit = async {
        rooms.busy("one").await;
        std::fs::write(rooms.path(".mcp.json"), r#"{"mcpServers": {}}"#).unwrap();
        eventually("it is taken out", || rooms.registry.desired().is_empty()).await;
        let late = rooms.call("one", "echo", json!({"text": "x"})).await;
        assert!(refused_at_once(&late), "{late:?}");
    };
    let (answer, ()) = tokio::join!(slow(&rooms), edit);
    assert_eq!(answer.unwrap(), format!("slept {SLOW} ms"));
    rooms.fleet.removed("one", PATIENCE).await;
    assert!(rooms.fleet.snapshot().servers.is_empty());
    rooms.close().await;
}

#[tokio::test]
async fn b6_calls_in_flight_finish_when_their_server_is_switched_off_or_broken() {
    for edit in [r#""enabled": false"#, r#""timeout": "soon""#] {
        let rooms = Rooms::open(&[("one", &[])]).await;
        rooms.follow();
        let change = async {
            rooms.busy("one").await;
            let path = rooms.path(".mcp.json");
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace(r#""args":[]"#, &format!(r#""args":[],{edit}"#));
            std::fs::write(&path, text).unwrap();
        };
        let (answer, ()) = tokio::join!(slow(&rooms), change);
        assert_eq!(answer.unwrap(), format!("slept {SLOW} ms"), "{edit}");
        let down = |view: &fleet::ServerView| view.settled && !view.wanted.run;
        let view = rooms.fleet.wait("one", down, PATIENCE).await.unwrap();
        assert_ne!(view.state.status(), Status::Connected);
        rooms.close().await;
    }
}

/// The limit of a call starts anew with its progress, so it may be far longer
/// than that of its server.
#[tokio::test]
async fn a8_a_call_that_reports_progress_finishes_on_the_old_process() {
    let rooms = Rooms::open(&[("one", &["--exclusive", "lock"])]).await;
    rooms.patch("one", json!({"timeout": 1500})).await;
    let request = tool_call("one", "progress", json!({"steps": 16, "ms": 200}));
    let mut call = rooms.fleet.call(request);
    let first = call.next().await;
    assert!(matches!(first, CallItem::Notification(_)), "progress");
    let edit = rooms.patch("one", json!({"env": {"MODE": "new"}}));
    let (answer, ()) = tokio::join!(result(call), edit);
    let answer = answer.unwrap();
    assert!(answer.get().contains("16 steps"), "{answer}");
    rooms.connected("one").await;
    let mode = rooms.call("one", "env", json!({"name": "MODE"})).await;
    assert_eq!(mode.unwrap(), "new");
    assert_eq!(std::fs::read(rooms.path("lock")).unwrap(), b"");
    rooms.close().await;
}

#[tokio::test]
async fn a8_a_person_who_stops_or_restarts_waits_for_no_call() {
    for restart in [false, true] {
        let rooms = Rooms::open(&[("one", &[])]).await;
        let hangs = rooms.call("one", "hang", json!({}));
        let stop = async {
            rooms.busy("one").await;
            // Now it waits for the call, which would take its 30 s.
            rooms.patch("one", json!({"env": {"MODE": "new"}})).await;
            let wish = match restart {
                true => rooms.registry.restart("one"),
                false => rooms.registry.set_run("one", false),
            };
            let generation = wish.unwrap().generation;
            let settled =
                |view: &fleet::ServerView| view.settled && view.wanted.generation >= generation;
            let view = rooms.fleet.wait("one", settled, PATIENCE).await.unwrap();
            let connected = view.state.status() == Status::Connected;
            assert_eq!((view.settled, connected), (true, restart));
        };
        let (answer, ()) = tokio::join!(hangs, stop);
        assert!(refused_at_once(&answer), "{answer:?}");
        rooms.close().await;
    }
}

#[tokio::test]
async fn a8_portway_goes_down_without_waiting_for_a_hung_call() {
    let rooms = Rooms::open(&[("one", &[])]).await;
    let call = rooms.fleet.call(tool_call("one", "hang", json!({})));
    let hangs = tokio::spawn(async move { result(call).await.map(drop) });
    rooms.busy("one").await;
    rooms.close().await;
    let answer = hangs.await.unwrap();
    assert!(refused_at_once(&answer), "{answer:?}");
}

#[tokio::test]
async fn a8_calls_of_a_remote_server_finish_whatever_it_is_changed_to() {
    let server = remote::fixture(&["--http", "0"]).await;
    for change in [
        json!({"headers": {"X-A": "b"}}),
        json!({"url": "http://127.0.0.1:9/mcp"}),
        json!({"enabled": false}),
    ] {
        let rooms = Rooms::open(&[]).await;
        let one = json!({"url": server.url.clone()});
        let file = json!({"mcpServers": {"one": one}}).to_string();
        std::fs::write(rooms.path(".mcp.json"), file).unwrap();
        rooms.registry.reload().await.unwrap();
        rooms.connected("one").await;
        let edit = async {
            rooms.busy("one").await;
            rooms.patch("one", change.clone()).await;
        };
        let (answer, ()) = tokio::join!(slow(&rooms), edit);
        assert_eq!(answer.unwrap(), format!("slept {SLOW} ms"), "{change}");
        rooms.close().await;
    }
}
