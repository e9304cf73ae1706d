//! The access to sessions, and the state that stays in memory.

mod streams;

use std::time::Duration;

use serde_json::value::RawValue;

use super::*;
use crate::seal::{Seal, SealPurpose};
use config::Secret;
use wire::LEGACY;

fn sessions() -> Sessions {
    with_secret("a secret of thirty-two characters")
}

fn with_secret(secret: &str) -> Sessions {
    Sessions::new(Arc::new(Seal::new(&Secret::new(secret))))
}

fn caller(principal: &str, scope: Scope) -> Caller {
    Caller {
        principal: principal.into(),
        scope,
    }
}

fn admin() -> Caller {
    caller("admin", Scope::Everything { filter: None })
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn open(sessions: &Sessions, caller: &Caller) -> String {
    sessions.open(caller, LEGACY[0], &raw("{}"))
}

fn live(sessions: &Sessions) -> Arc<Session> {
    let id = open(sessions, &admin());
    sessions.find(&admin(), &id).unwrap()
}

#[tokio::test]
async fn t_d2_a_session_is_its_owners_alone() {
    let sessions = sessions();
    let filter = |name: &str| Scope::Everything {
        filter: Some(name.into()),
    };
    let owners = [
        admin(),
        caller("entry:1", Scope::Everything { filter: None }),
        caller("entry:2", Scope::Everything { filter: None }),
        caller("admin", filter("a")),
        caller("admin", filter("b")),
        caller("admin", Scope::server("a".into())),
        caller("admin", Scope::server("b".into())),
    ];
    for (at, owner) in owners.iter().enumerate() {
        let id = open(&sessions, owner);
        // Before it is in memory, and after.
        for _ in 0..2 {
            for (other, stranger) in owners.iter().enumerate() {
                let found = sessions.find(stranger, &id).map(|_| ());
                let ended = match other == at {
                    true => Err(NoSession::Unknown),
                    false => sessions.end(stranger, &id),
                };
                assert_eq!(found.is_ok(), other == at, "{owner:?} {stranger:?}");
                assert_eq!(ended, Err(NoSession::Unknown));
            }
        }
        assert!(sessions.find(owner, &id).is_ok());
    }
}

#[tokio::test]
async fn t_d2_ids_cannot_be_made_up() {
    let sessions = sessions();
    let id = open(&sessions, &admin());
    assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
    for at in 0..id.len() {
        let mut other = id.clone();
        let with = if &id[at..=at] == "A" { "B" } else { "A" };
        other.replace_range(at..=at, with);
        assert!(sessions.find(&admin(), &other).is_err(), "{at}");
        assert!(sessions.find(&admin(), &id[..at]).is_err(), "{at}");
    }
    for odd in ["", "x", "é", "null", &"A".repeat(5000)] {
        assert!(sessions.find(&admin(), odd).is_err());
    }
    let text = sessions
        .seal()
        .seal(SealPurpose::RequestState, "admin", b"x");
    assert!(sessions.find(&admin(), &text).is_err());
    assert_eq!(sessions.load(), (0, 0), "nothing was allocated for any");
}

#[tokio::test]
async fn a_session_survives_a_restart_and_moves_between_replicas() {
    let (one, other) = (sessions(), sessions());
    let capabilities = raw(r#"{"elicitation":{"form":{}}}"#);
    let id = one.open(&admin(), "2025-06-18", &capabilities);
    let there = other.find(&admin(), &id).unwrap();
    assert_eq!(there.version, "2025-06-18");
    assert_eq!(there.capabilities.get(), capabilities.get());
    let here = one.find(&admin(), &id).unwrap();
    assert_eq!(here.key(), there.key());
    let foreign = with_secret("another secret of 32 characters!");
    assert!(foreign.find(&admin(), &id).is_err());
}

#[tokio::test]
async fn an_ended_session_stays_ended() {
    let sessions = sessions();
    let id = open(&sessions, &admin());
    let session = sessions.find(&admin(), &id).unwrap();
    let running = session.begin(&raw("1")).unwrap();
    let answer = session.ask("roots/list", None).answer;
    assert_eq!(sessions.end(&admin(), &id), Ok(()));
    running.cancelled().await;
    assert!(answer.await.is_err());
    assert!(session.ended().is_cancelled());
    assert!(session.begin(&raw("2")).is_none());
    assert_eq!(sessions.end(&admin(), &id), Err(NoSession::Unknown));
    assert!(sessions.find(&admin(), &id).is_err());
    assert_eq!(sessions.load().0, 0);
    // One that was never used can be ended, too.
    let unused = open(&sessions, &admin());
    assert_eq!(sessions.end(&admin(), &unused), Ok(()));
    assert!(sessions.find(&admin(), &unused).is_err());
}

#[tokio::test]
async fn t_f6_opening_costs_nothing_and_using_is_bounded() {
    let sessions = sessions();
    let ids: Vec<_> = (0..20_000).map(|_| open(&sessions, &admin())).collect();
    assert_eq!(sessions.load(), (0, 0));
    for id in &ids {
        assert!(sessions.find(&admin(), id).is_ok());
    }
    let (used, _) = sessions.load();
    assert!(used <= 8192, "{used} are in memory");
    // Those that gave way are still sessions.
    assert!(sessions.find(&admin(), &ids[0]).is_ok());
    let other = caller("entry:1", Scope::Everything { filter: None });
    assert!(sessions.find(&other, &open(&sessions, &other)).is_ok());
}

#[tokio::test]
async fn t_f6_busy_sessions_are_not_pushed_out() {
    let sessions = sessions();
    let mut running = Vec::new();
    loop {
        let id = open(&sessions, &admin());
        match sessions.find(&admin(), &id) {
            Ok(session) => running.push(session.begin(&raw("1")).unwrap()),
            Err(refused) => {
                assert_eq!(refused, NoSession::Full);
                break;
            }
        }
    }
    assert_eq!(running.len(), 8192);
    running.pop();
    assert!(sessions.find(&admin(), &open(&sessions, &admin())).is_ok());
}

#[tokio::test(start_paused = true)]
async fn t_f6_idle_sessions_leave_memory() {
    let sessions = Arc::new(sessions());
    let tending = sessions.clone();
    let tending = tokio::spawn(async move { tending.tend().await });
    let id = open(&sessions, &admin());
    let session = sessions.find(&admin(), &id).unwrap();
    session.set_level(LogLevel::Error);
    let busy = live(&sessions);
    let _running = busy.begin(&raw("1")).unwrap();
    tokio::time::sleep(Duration::from_secs(29 * 60)).await;
    assert_eq!(sessions.load().0, 2);
    tokio::time::sleep(Duration::from_secs(2 * 60)).await;
    assert_eq!(sessions.load().0, 1);
    assert!(session.ended().is_cancelled());
    assert!(!busy.ended().is_cancelled());
    assert!(sessions.find(&admin(), &id).is_ok());
    tending.abort();
}

#[tokio::test(start_paused = true)]
async fn t_f6_a_session_of_which_nothing_is_lost_leaves_memory_soon() {
    let sessions = Arc::new(sessions());
    let tending = sessions.clone();
    let tending = tokio::spawn(async move { tending.tend().await });
    let minute = || tokio::time::sleep(Duration::from_secs(60));
    let id = open(&sessions, &admin());
    let session = sessions.find(&admin(), &id).unwrap();
    let reader = session.own().read();
    minute().await;
    assert_eq!(sessions.load().0, 1, "its stream is open");
    drop(reader);
    minute().await;
    assert_eq!(sessions.load().0, 0);
    assert!(session.ended().is_cancelled());
    // State that its id does not hold keeps it.
    let asks = live(&sessions);
    let _open = asks.ask("roots/list", None);
    live(&sessions).set_level(LogLevel::Error);
    live(&sessions).send("unread".into());
    let served = live(&sessions).ended().clone();
    minute().await;
    assert_eq!(sessions.load().0, 4);
    assert!(!served.is_cancelled());
    assert!(sessions.find(&admin(), &id).is_ok(), "it comes back");
    tending.abort();
}

#[tokio::test]
async fn t_d1_only_what_was_asked_can_be_answered() {
    let sessions = sessions();
    let (one, other) = (live(&sessions), live(&sessions));
    let ClientQuestion {
        message, answer, ..
    } = one.ask("roots/list", Some(&raw(r#"{"a":1}"#)));
    let text = std::str::from_utf8(&message).unwrap();
    assert!(text.ends_with(r#""method":"roots/list","params":{"a":1}}"#));
    let asked: serde_json::Value = serde_json::from_slice(&message).unwrap();
    let id = asked["id"].as_u64().unwrap();
    assert!(id < 1 << 53);
    let says = || Ok(raw(r#"{"roots":[]}"#));
    assert!(!one.answer(&raw(&format!("\"{id}\"")), says()));
    assert!(!one.answer(&raw(&format!("{id}.0")), says()));
    assert!(!one.answer(&raw(&(id ^ 1).to_string()), says()));
    assert!(!one.answer(&raw("null"), says()));
    assert!(!other.answer(&raw(&id.to_string()), says()));
    assert!(one.answer(&raw(&id.to_string()), says()));
    assert!(!one.answer(&raw(&id.to_string()), says()), "once");
    assert_eq!(answer.await.unwrap().unwrap().get(), r#"{"roots":[]}"#);
    // A question without a waiting task is forgotten.
    let ClientQuestion {
        message, answer, ..
    } = one.ask("roots/list", None);
    drop(answer);
    let asked: serde_json::Value = serde_json::from_slice(&message).unwrap();
    assert!(!one.answer(&raw(&asked["id"].to_string()), says()));
}

#[tokio::test]
async fn a_client_cannot_be_asked_without_end() {
    let session = live(&sessions());
    let open: Vec<_> = (0..MAX_ASKED)
        .map(|_| session.ask("roots/list", None))
        .collect();
    let refused = session.ask("roots/list", None);
    assert!(refused.answer.await.unwrap().is_err());
    drop(open);
    let mut waiting = session.ask("roots/list", None);
    assert!(waiting.answer.try_recv().is_err());
}

#[tokio::test]
async fn requests_are_cancelled_by_the_id_the_client_gave() {
    let session = live(&sessions());
    let number = session.begin(&raw("1")).unwrap();
    let text = session.begin(&raw("\"1\"")).unwrap();
    session.cancel(&raw("\"1\""));
    text.cancelled().await;
    assert!(!number.cancelled.is_cancelled());
    // The id is reused while the request runs: the later request gets it.
    let again = session.begin(&raw("1")).unwrap();
    drop(number);
    session.cancel(&raw("1"));
    again.cancelled().await;
    session.cancel(&raw("99"));
    let many: Vec<_> = (0..MAX_RUNNING)
        .map(|id| session.begin(&raw(&id.to_string())).unwrap())
        .collect();
    assert!(session.begin(&raw("\"more\"")).is_none());
    drop(many);
    assert!(session.begin(&raw("\"more\"")).is_some());
    assert!(!session.is_busy());
}
