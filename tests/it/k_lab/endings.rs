//! How servers end, and that nothing of them stays, however the lab ends.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::{Lab, hold};
use crate::app::eventually;
use crate::process::forest::ladder_here;
use upstream::containment::ContainmentStep;

#[tokio::test]
async fn k7_lab_tells_how_a_server_ends() {
    hold(&[
        (
            &[],
            &["--ignore-eof"],
            &[
                ("end.eof", "warn", "lives on"),
                ("end.term", "ok", "SIGTERM"),
            ],
        ),
        (
            &[],
            &["--ignore-term"],
            &[
                ("end.eof", "ok", "exit code 0"),
                ("end.term", "warn", "lives on"),
            ],
        ),
        (
            &[],
            &["--ignore-term", "--ignore-eof"],
            &[("end.kill", "warn", "neither")],
        ),
        (
            &[],
            &["--era", "legacy", "--ask-roots", "350"],
            &[("end.eof", "ok", "exit code 0")],
        ),
        (
            &[],
            &["--ask-at-eof"],
            &[("end.eof", "note", "asked for roots/list")],
        ),
    ])
    .await;
}

#[tokio::test]
async fn k7_lab_counts_what_a_server_leaves_behind() {
    for (kind, word) in [
        ("tree", "leaves 2 processes behind"),
        ("daemon", "cut loose from it"),
    ] {
        let lab = Lab::of_fixture(&[], &["--fork", kind]);
        let told = lab.run().await;
        let found = told.expect("end.orphans", "warn");
        assert!(found.contains(word), "{kind}: {found}");
        assert!(told.json["facts"]["orphans"].as_u64() >= Some(1));
        assert_eq!(told.code, 0, "{}", told.text);
    }
}

#[tokio::test]
async fn k7_lab_finds_who_does_not_work_in_a_namespace() {
    let works = ladder_here().await.works();
    if !crate::needs::has(
        works.contains(&ContainmentStep::Namespace),
        "pid-namespaces",
    ) {
        return;
    }
    let told = Lab::of_fixture(&[], &["--refuse-namespace"]).run().await;
    assert_eq!(told.code, 1, "{}", told.text);
    told.expect("containment", "warn");
    assert_eq!(told.setting("containment"), &json!("subreaper"));
}

/// Those that will not go by themselves are the ones to be sure of.
#[tokio::test]
async fn k7_lab_killed_by_sigkill_leaves_nothing() {
    let beat = tempfile::tempdir().unwrap();
    let heartbeat = beat.path().join("heartbeat");
    let flags = [
        "--hang-init",
        "--ignore-eof",
        "--ignore-term",
        "--fork",
        "daemon",
        "--fork",
        "tree",
        "--heartbeat",
        heartbeat.to_str().unwrap(),
    ];
    let lab = Lab::of_fixture(&[], &flags);
    let mut child = lab.command().spawn().unwrap();
    let pid = child.id().unwrap();
    eventually("its tree is up", || {
        std::fs::metadata(&heartbeat).is_ok_and(|found| found.len() > 0) && lab.left(pid).len() > 3
    })
    .await;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
    child.wait().await.unwrap();
    eventually("nothing is left", || lab.left(pid).is_empty()).await;
}

/// Out of time is no way to escape either.
#[tokio::test]
async fn k7_lab_out_of_time_says_so_and_leaves_nothing() {
    let flags = ["--ignore-eof", "--ignore-term", "--fork", "daemon"];
    let lab = Lab::of_fixture(&["--timeout", "5", "--call", "hang", "{}"], &flags);
    let told = lab.run().await;
    assert_eq!(told.json["complete"], false, "{}", told.text);
    told.expect("time", "warn");
    // The call that hangs breaks its use.
    assert_eq!(told.code, 1);
    let told = Lab::of_fixture(&["--timeout", "5"], &["--late", "60000"])
        .run()
        .await;
    assert_eq!(told.code, 1, "{}", told.text);
}
