use serde_json::value::RawValue;

use super::*;
use crate::{Notification, ServerRequest, event_queue};

fn call<'a>(whose: &'a Arc<str>) -> UpstreamCall<'a> {
    UpstreamCall {
        events: Some(event_queue(8).0),
        whose: Some(whose),
        ..UpstreamCall::new("tools/call", Duration::from_secs(1))
    }
}

fn question() -> CallEvent {
    let id = RawValue::from_string("1".into()).unwrap();
    let (outbox, _) = tokio::sync::mpsc::channel(1);
    CallEvent::Request(ServerRequest::new(&id, "roots/list", None, outbox.into()))
}

fn progress() -> CallEvent {
    CallEvent::Notification(Notification {
        method: "notifications/progress".into(),
        params: None,
    })
}

#[tokio::test]
async fn c7_what_is_asked_while_somebody_subscribes_is_not_yet_clear() {
    let pending = PendingRequests::new();
    let whose = "a".into();
    let _call = pending.expect(1, &call(&whose)).unwrap();
    let limit = Duration::from_secs(1);
    let ping = pending
        .expect(2, &UpstreamCall::new("ping", limit))
        .unwrap();
    assert_eq!(pending.candidates().sole(), Some(1));
    let subscribe = UpstreamCall::new("resources/subscribe", limit);
    let subscribe = pending.expect(3, &subscribe).unwrap();
    let mut both = pending.candidates();
    assert_eq!((both.calls.len(), both.mixed), (2, true));
    drop((subscribe, ping));
    pending.keep_running(&mut both);
    assert_eq!(both.sole(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn c7_a_call_that_waits_for_its_answer_is_not_asked_for_another() {
    let pending = PendingRequests::new();
    let (one, two) = ("a".into(), "b".into());
    let (events, mut asked) = event_queue(8);
    let first = UpstreamCall {
        events: Some(events),
        ..call(&one)
    };
    let _first = pending.expect(1, &first).unwrap();
    pending.event(1, question());
    let open = asked.try_recv().unwrap();
    let _second = pending.expect(2, &call(&one)).unwrap();
    // Asked together with the first question, it may still be the first call's.
    assert_eq!(pending.candidates().calls.len(), 2);
    tokio::time::advance(TOGETHER).await;
    assert_eq!(pending.candidates().sole(), Some(2));
    assert_eq!(pending.questioned(), 1);
    // With another client's call in flight the question is ambiguous.
    let third = pending.expect(3, &call(&two)).unwrap();
    let mixed = pending.candidates();
    assert_eq!((mixed.calls.len(), mixed.mixed), (3, true));
    drop(third);
    // After the answer the call may ask again.
    drop(open);
    assert_eq!(pending.candidates().calls.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c7_a_call_that_was_given_up_may_still_ask_for_a_moment() {
    let pending = PendingRequests::new();
    let whose = "a".into();
    let _one = pending.expect(1, &call(&whose)).unwrap();
    let two = pending.expect(2, &call(&whose)).unwrap();
    pending.give_up(2);
    drop(two);
    assert_eq!(pending.candidates().calls.len(), 2);
    tokio::time::advance(LINGERS).await;
    assert_eq!(pending.candidates().sole(), Some(1));
    // It can still cause a question much later, unless it has ended.
    let other = "b".into();
    let three = pending.expect(3, &call(&other)).unwrap();
    pending.give_up(3);
    drop(three);
    tokio::time::advance(LINGERS).await;
    let mut both = pending.candidates();
    assert_eq!((both.calls.len(), both.mixed), (2, true));
    pending.resolve(3, Err(UpstreamError::Draining));
    pending.keep_running(&mut both);
    assert_eq!(both.sole(), Some(1));
}

#[tokio::test]
async fn i2_a_question_is_not_lost_among_reports() {
    let pending = PendingRequests::new();
    let (events, mut queue) = event_queue(8);
    let call = UpstreamCall {
        events: Some(events),
        ..UpstreamCall::new("tools/call", Duration::from_secs(1))
    };
    let _call = pending.expect(1, &call).unwrap();
    for _ in 0..20 {
        pending.event(1, progress());
    }
    let id = RawValue::from_string("1".into()).unwrap();
    let (outbox, _answers) = tokio::sync::mpsc::channel(1);
    let request = ServerRequest::new(&id, "roots/list", None, outbox.into());
    pending.event(1, CallEvent::Request(request));
    let all = std::iter::from_fn(|| queue.try_recv());
    let asked = all.filter(|event| matches!(event, CallEvent::Request(_)));
    assert_eq!(asked.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_request_ends_at_its_own_limit() {
    let pending = PendingRequests::new();
    let start = Instant::now();
    let seconds = |seconds| UpstreamCall::new("ping", Duration::from_secs(seconds));
    let mut long = pending.expect(1, &seconds(30)).unwrap();
    let mut short = pending.expect(2, &seconds(5)).unwrap();
    let mut answered = pending.expect(3, &seconds(5)).unwrap();
    pending.resolve(3, Err(UpstreamError::Draining));
    let timeout = |answer| matches!(answer, Err(UpstreamError::Timeout { .. }));
    assert!(timeout(short.wait().await));
    assert_eq!(start.elapsed().as_secs(), 5);
    assert!(!timeout(answered.wait().await));
    // It is still in the table, for the attribution of what it causes.
    assert!(pending.event(2, progress()) && !pending.event(3, progress()));
    assert!(timeout(long.wait().await));
    assert_eq!(start.elapsed().as_secs(), 30);
    drop((long, short, answered));
    let mut next = pending.expect(4, &seconds(5)).unwrap();
    assert!(timeout(next.wait().await));
    assert_eq!(start.elapsed().as_secs(), 35);
}

#[tokio::test(start_paused = true)]
async fn progress_restarts_a_limit_and_a_question_pauses_it() {
    let pending = PendingRequests::new();
    let start = Instant::now();
    let (events, mut queue) = event_queue(8);
    let call = UpstreamCall {
        events: Some(events),
        ..UpstreamCall::new("tools/call", Duration::from_secs(5))
    };
    let mut request = pending.expect(1, &call).unwrap();
    let server = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        pending.event(1, progress());
        tokio::time::sleep(Duration::from_secs(4)).await;
        pending.event(1, question());
        tokio::time::sleep(Duration::from_secs(60)).await;
        while queue.try_recv().is_some() {}
    };
    let (answer, ()) = tokio::join!(request.wait(), server);
    assert!(matches!(answer, Err(UpstreamError::Timeout { .. })));
    assert_eq!(start.elapsed().as_secs(), 4 + 4 + 60 + 5);
}
