//! Ending a server ends what it started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_util::sync::CancellationToken;
use upstream::containment::ContainmentStep;
use upstream::process::{Exit, Grace, spawn, sweep};
use upstream::{ConnectOptions, ConnectionLimits};

use super::forest::{LIMIT, SHORT, TestForest, first_line, helpers, ladder_here, shim};
use crate::app::fixture;

/// A grace that a test would not live to see the end of.
const FOREVER: Duration = Duration::from_secs(3600);

/// What each step promises to hold.
fn kinds(step: ContainmentStep) -> &'static [&'static str] {
    match step {
        ContainmentStep::Group => &["tree", "daemon"],
        _ => &["tree", "daemon", "comet"],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_trap28_every_step_ends_the_whole_tree() {
    for &step in ladder_here().await.works() {
        for kind in kinds(step) {
            let tree = TestForest::new();
            let process = tree.grow(step, kind, &[]).await;
            assert_eq!(process.containment(), step);
            assert_eq!(
                process.end(Grace::default()).await,
                Exit::Code(3),
                "{step} {kind}"
            );
            tree.assert_gone(&format!("{step} {kind} after end"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_every_step_kills_what_ignores_stdin_and_sigterm() {
    for &step in ladder_here().await.works() {
        for kind in kinds(step) {
            let tree = TestForest::new();
            let process = tree.grow(step, kind, &["--deaf"]).await;
            assert_eq!(process.end(SHORT).await, Exit::Signal(9), "{step} {kind}");
            tree.assert_gone(&format!("{step} {kind} after a deaf end"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_a_dropped_process_takes_its_tree_along() {
    for &step in ladder_here().await.works() {
        for kind in kinds(step) {
            let tree = TestForest::new();
            drop(tree.grow(step, kind, &["--deaf"]).await);
            tree.await_gone(Instant::now(), &format!("{step} {kind} after drop"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_an_end_that_is_given_up_still_kills() {
    let tree = TestForest::new();
    let step = ladder_here().await.works()[0];
    let process = tree.grow(step, "daemon", &["--deaf"]).await;
    let end = process.end(Grace {
        eof: LIMIT,
        term: LIMIT,
    });
    assert!(
        tokio::time::timeout(Duration::from_millis(50), end)
            .await
            .is_err()
    );
    tree.await_gone(Instant::now(), "after an end that was dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_a_server_that_exits_by_itself_leaves_nothing() {
    for &step in ladder_here().await.works() {
        for kind in kinds(step) {
            let tree = TestForest::new();
            let mut process = tree.grow(step, kind, &[]).await;
            drop(process.stdin.take());
            let exit = tokio::time::timeout(LIMIT, process.exited()).await;
            assert_eq!(exit, Ok(Exit::Code(3)), "{step} {kind}");
            assert_eq!(process.exited().await, Exit::Code(3), "asked again");
            tree.await_gone(Instant::now(), &format!("{step} {kind} after its own exit"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_an_obedient_server_ends_at_once() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let process = spawn(&tree.command(step, "cat", &[])).await.unwrap();
        // The test would never end if a grace were waited for.
        let grace = Grace {
            eof: FOREVER,
            term: FOREVER,
        };
        let ended = tokio::time::timeout(LIMIT, process.end(grace)).await;
        assert_eq!(ended, Ok(Exit::Code(0)), "{step}");
    }
}

/// Some servers stay for the answer to a question, whatever their stdin says.
#[tokio::test(flavor = "multi_thread")]
async fn a3_a_stop_answers_what_the_server_has_asked() {
    let target = config::Target::Stdio {
        command: fixture(),
        args: ["--era", "legacy", "--ask-roots", "0"]
            .map(Into::into)
            .into(),
        env: Default::default(),
        cwd: None,
    };
    let launch = config::expand(&config::ServerSpec::new(target), &|_| None).unwrap();
    let options = ConnectOptions {
        title: "one that asks".into(),
        era: config::EraChoice::Legacy,
        remembered: None,
        containment: config::Containment::Auto,
        privileges: config::Privileges::Drop,
        hidden: Vec::new(),
        project: std::env::temp_dir(),
        base_env: Arc::default(),
        instance: TestForest::new().name.clone(),
        shim: shim().to_path_buf(),
        limits: ConnectionLimits {
            eof_grace: FOREVER,
            term_grace: FOREVER,
            ..ConnectionLimits::default()
        },
        log: Arc::new(|_, _| {}),
        capabilities: upstream::no_capabilities(),
        redactor: Arc::default(),
        asking: Arc::default(),
    };
    let stop = CancellationToken::new();
    let (link, _connection) = upstream::connect(&launch, &options, &stop).await.unwrap();
    // Asked, and left where it is.
    crate::app::eventually("a question", || !link.inbound.is_empty()).await;
    let ended = tokio::time::timeout(LIMIT, link.end()).await;
    ended.expect("the server ends without waiting for a grace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_sigterm_reaches_the_server_and_its_children() {
    let script = "trap 'kill $!; wait; exit 7' TERM; sleep 1000 & echo ready; \
                  while :; do sleep 0.01; done";
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let mut process = spawn(&tree.command(step, "sh", &["-c", script]))
            .await
            .unwrap();
        assert_eq!(first_line(&mut process).await, "ready");
        let grace = Grace {
            eof: Duration::from_millis(50),
            term: LIMIT,
        };
        assert_eq!(process.end(grace).await, Exit::Code(7), "{step}");
        tree.assert_gone(&format!("{step} after SIGTERM"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_a_death_is_noticed_and_told() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let mut process = tree.grow(step, "tree", &[]).await;
        // Asking and giving up loses nothing.
        assert!(
            tokio::time::timeout(Duration::from_millis(5), process.exited())
                .await
                .is_err()
        );
        kill(Pid::from_raw(process.pid().cast_signed()), Signal::SIGABRT).unwrap();
        let exit = tokio::time::timeout(LIMIT, process.exited()).await.unwrap();
        assert_eq!(exit.to_string(), "signal 6 (SIGABRT)", "{step}");
        process.end(Grace::default()).await;
        tree.assert_gone(&format!("{step} after SIGABRT"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_a_killed_helper_leaves_nothing() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let mut process = tree.grow(step, "daemon", &["--deaf"]).await;
        let [helper] = helpers(&tree.name)[..] else {
            panic!("{step}: not one helper");
        };
        kill(Pid::from_raw(helper), Signal::SIGKILL).unwrap();
        let exit = tokio::time::timeout(LIMIT, process.exited()).await;
        assert_eq!(exit, Ok(Exit::HelperKilled), "{step}");
        process.end(SHORT).await;
        tree.assert_gone(&format!("{step} after its helper was killed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_a_stopped_helper_is_noticed_and_goes_on() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let process = tree.grow(step, "tree", &["--deaf"]).await;
        let [helper] = helpers(&tree.name)[..] else {
            panic!("{step}: not one helper");
        };
        kill(Pid::from_raw(helper), Signal::SIGSTOP).unwrap();
        // It ends the server as ever, which it could not while it is stopped.
        assert_eq!(process.end(SHORT).await, Exit::Signal(9), "{step}");
        tree.assert_gone(&format!("{step} after its helper was stopped"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_one_server_does_not_keep_another_alive() {
    let step = ladder_here().await.works()[0];
    let (first, second) = (TestForest::new(), TestForest::new());
    let one = first.grow(step, "daemon", &["--deaf"]).await;
    // Started while the first one's lifeline is open: must not inherit it.
    let two = second.grow(step, "daemon", &[]).await;
    drop(one);
    first.await_gone(Instant::now(), "the first, with the second alive");
    assert!(!second.alive().is_empty(), "the second is untouched");
    two.end(SHORT).await;
    second.assert_gone("the second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_a_restart_sweeps_what_a_lost_helper_left() {
    let tree = TestForest::new();
    let process = tree
        .grow(ContainmentStep::Group, "daemon", &["--deaf"])
        .await;
    let other = TestForest::new();
    let bystander = other.grow(ContainmentStep::Group, "daemon", &[]).await;
    // The helper and its owner at once: nobody is left to clean up.
    let [helper] = helpers(&tree.name)[..] else {
        panic!("not one helper");
    };
    std::mem::forget(process);
    kill(Pid::from_raw(helper), Signal::SIGKILL).unwrap();
    let deadline = Instant::now() + LIMIT;
    while tree.alive().len() > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(tree.alive().len(), 1, "the daemon is left");
    assert!(sweep(&tree.name) >= 1);
    tree.assert_gone("after the sweep");
    assert!(
        !other.alive().is_empty(),
        "another instance is not ours to sweep"
    );
    bystander.end(SHORT).await;
}
