//! SPEC C2-C4, C8 over stdio: eras and their oddities, lists, containment.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::app::{App, fixture, fixtures, pid, setup};
use crate::process::forest::ladder_here;

#[tokio::test]
async fn c2_the_era_is_found_by_probing_and_can_be_set() {
    let mut servers = serde_json::Map::new();
    let mut expected = Vec::new();
    for (speaks, choice, found) in [
        ("both", "auto", "modern"),
        ("legacy", "auto", "legacy"),
        ("modern", "auto", "modern"),
        ("both", "legacy", "legacy"),
        ("both", "modern", "modern"),
        ("legacy", "legacy", "legacy"),
        ("modern", "modern", "modern"),
    ] {
        let name = format!("{speaks}-{choice}");
        let server = json!({"command": fixture(), "args": ["--era", speaks], "era": choice});
        servers.insert(name.clone(), server);
        expected.push((name, found));
    }
    let app = setup().mcp(json!({ "mcpServers": servers })).start().await;
    for (name, era) in expected {
        let record = app.until_status(&name, "connected").await;
        assert_eq!(record["era"], era, "{name}");
        let version = if era == "modern" {
            "2026-07-28"
        } else {
            "2025-11-25"
        };
        assert_eq!(record["protocolVersion"], version, "{name}");
        assert_eq!(record["serverInfo"]["name"], "fixture", "{name}");
        assert!(record["toolCount"].as_u64().unwrap() > 10, "{name}");
    }
}

#[tokio::test]
async fn c2_every_legacy_revision_is_spoken() {
    let versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let args = versions.map(|version| ["--era", "legacy", "--legacy-version", version]);
    let servers: Vec<(&str, &[&str])> = args.iter().map(|args| (args[3], &args[..])).collect();
    let app = setup().mcp(fixtures(&servers)).start().await;
    for version in versions {
        let record = app.until_status(version, "connected").await;
        assert_eq!(record["protocolVersion"], version);
    }
}

#[tokio::test]
async fn c2_the_wrong_era_is_an_error_that_says_so() {
    let server = |speaks: &str, era: &str| json!({"command": fixture(), "args": ["--era", speaks], "era": era});
    let app = setup()
        .mcp(json!({"mcpServers": {
            "old": server("legacy", "modern"),
            "new": server("modern", "legacy"),
        }}))
        .start()
        .await;
    for (name, part) in [("old", "2026-07-28"), ("new", "handshake was refused")] {
        let record = app.until_status(name, "error").await;
        let error = record["error"].as_str().unwrap();
        assert!(error.contains(part), "{name}: {error}");
    }
}

#[tokio::test]
async fn c2_trap05_odd_answers_to_the_probe_all_lead_to_a_connection() {
    let legacy = |flag: &'static str| vec!["--era", "legacy", flag];
    let odd = [
        ("exit", legacy("--exit-on-discover")),
        ("silent", legacy("--silent-discover")),
        ("empty", legacy("--discover-empty")),
        ("foreign", legacy("--foreign-id")),
        ("noise", legacy("--noise")),
        ("both-silent", vec!["--silent-discover"]),
        ("both-empty", vec!["--discover-empty"]),
        ("both-late", vec!["--late", "3000"]),
    ];
    let servers: Vec<(&str, &[&str])> = odd.iter().map(|(name, args)| (*name, &args[..])).collect();
    let app = setup().mcp(fixtures(&servers)).start().await;
    for (name, _) in &odd {
        let record = app.until_status(name, "connected").await;
        // Who is merely late is asked both ways and taken at the better word.
        let era = if *name == "both-late" {
            "modern"
        } else {
            "legacy"
        };
        let found = record["era"].as_str().unwrap();
        assert!(found == era || *name == "both-late", "{name}: {found}");
        assert!(record["toolCount"].as_u64().unwrap() > 10, "{name}");
        assert_eq!(record["restarts"], 0, "{name}");
    }
}

#[tokio::test]
async fn c2_trap05_a_server_that_exits_on_the_probe_costs_one_spawn_and_is_remembered() {
    let args = &[
        "--era",
        "legacy",
        "--exit-on-discover",
        "--instance-file",
        "starts",
    ];
    let app = setup().mcp(fixtures(&[("one", args)])).start().await;
    let starts = || {
        let text = std::fs::read_to_string(app.path("starts")).unwrap();
        text.lines().count()
    };
    let up = app.until_status("one", "connected").await;
    assert_eq!(starts(), 2);
    let log = app.lines("one").await;
    assert!(
        log.iter().any(|line| line.contains("old handshake")),
        "{log:?}"
    );
    // Restarted by itself, it is asked in the way it understands.
    kill(Pid::from_raw(pid(&up) as i32), Signal::SIGKILL).unwrap();
    app.until("one", |record| {
        record["status"] == "connected" && record["pid"] != up["pid"]
    })
    .await;
    assert_eq!(starts(), 3);
}

#[tokio::test]
async fn c2_a_server_that_answers_nothing_we_asked_is_given_up() {
    let app = setup()
        .mcp(fixtures(&[("one", &["--foreign-id=all"])]))
        .env("PORTWAY_CONNECT_TIMEOUT", "1s")
        .start()
        .await;
    let record = app.until_status("one", "error").await;
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("no answer to the handshake"), "{error}");
    let log = app.lines("one").await;
    assert!(
        log.iter().any(|line| line.contains("nothing we asked")),
        "{log:?}"
    );
}

async fn count(app: &App, name: &str, what: &str) -> usize {
    let path = format!("/api/mcp/servers/{name}/{what}");
    app.get(&path).await.expect(200).as_array().unwrap().len()
}

#[tokio::test]
async fn c3_all_pages_of_all_lists_are_read() {
    let app = setup()
        .mcp(fixtures(&[
            ("whole", &["--tools", "50"]),
            ("pages", &["--tools", "50", "--page", "3"]),
            (
                "legacy",
                &["--tools", "50", "--page", "1", "--era", "legacy"],
            ),
        ]))
        .start()
        .await;
    for name in ["whole", "pages", "legacy"] {
        app.until_status(name, "connected").await;
    }
    for what in ["tools", "resources", "prompts"] {
        let path = |name: &str| format!("/api/mcp/servers/{name}/{what}");
        let whole = count(&app, "whole", what).await;
        assert!(whole > 1, "{what}");
        for name in ["pages", "legacy"] {
            assert_eq!(count(&app, name, what).await, whole, "{name} {what}");
        }
        assert_eq!(app.get(&path("whole")).await.status, 200);
    }
    assert!(app.tools("legacy").await.contains(&"extra_0049".to_owned()));
}

#[tokio::test]
async fn c3_a_changed_list_is_read_again_in_both_eras() {
    for era in ["legacy", "modern"] {
        let app = setup()
            .mcp(fixtures(&[("one", &["--era", era, "--toggle-on-usr1"])]))
            .start()
            .await;
        let before = app.until_status("one", "connected").await;
        let tools = before["toolCount"].as_u64().unwrap();
        let toggle = || kill(Pid::from_raw(pid(&before) as i32), Signal::SIGUSR1).unwrap();
        toggle();
        let more = |record: &Value| record["toolCount"] == tools + 1;
        let after = app.until("one", more).await;
        assert!(
            app.tools("one").await.contains(&"toggled".to_owned()),
            "{era}"
        );
        assert_eq!(
            (&after["pid"], &after["since"]),
            (&before["pid"], &before["since"]),
            "{era}: no reconnect"
        );
        toggle();
        app.until("one", |record| record["toolCount"] == tools)
            .await;
        assert!(
            !app.tools("one").await.contains(&"toggled".to_owned()),
            "{era}"
        );
    }
}

#[tokio::test]
async fn c4_a_failing_tool_list_is_an_error_and_exposes_nothing() {
    let app = setup()
        .mcp(fixtures(&[("fails", &["--tools-error"]), ("good", &[])]))
        .start()
        .await;
    let record = app.until_status("fails", "error").await;
    let error = record["error"].as_str().unwrap();
    for part in ["tools/list", "the tools are on strike", "-32603"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(record["toolCount"], 0);
    assert!(app.tools("fails").await.is_empty());
    assert_eq!(count(&app, "fails", "resources").await, 0);
    app.until_status("good", "connected").await;
}

#[tokio::test]
async fn c4_a_server_without_tools_is_fine() {
    for era in ["legacy", "modern"] {
        let app = setup()
            .mcp(fixtures(&[("one", &["--no-tools", "--era", era])]))
            .start()
            .await;
        let record = app.until_status("one", "connected").await;
        assert_eq!(
            (&record["toolCount"], &record["error"]),
            (&json!(0), &Value::Null)
        );
        assert!(app.tools("one").await.is_empty());
        assert!(count(&app, "one", "prompts").await > 0);
    }
}

#[tokio::test]
async fn c8_containment_can_be_chosen_and_is_shown() {
    let ladder = ladder_here().await;
    let mut servers = serde_json::Map::new();
    servers.insert("auto".into(), json!({"command": fixture()}));
    for step in ladder.works() {
        let server = json!({"command": fixture(), "containment": step.as_str()});
        servers.insert(step.to_string(), server);
    }
    for (step, _) in ladder.refused() {
        let server = json!({"command": fixture(), "containment": step.as_str()});
        servers.insert(step.to_string(), server);
    }
    let app = setup().mcp(json!({ "mcpServers": servers })).start().await;
    let auto = app.until_status("auto", "connected").await;
    assert_eq!(auto["containment"], ladder.works()[0].as_str());
    assert_eq!(auto["config"]["containment"], "auto");
    for step in ladder.works() {
        let record = app.until_status(step.as_str(), "connected").await;
        assert_eq!(record["containment"], step.as_str());
        assert_eq!(record["config"]["containment"], step.as_str());
    }
    for (step, _) in ladder.refused() {
        let record = app.until_status(step.as_str(), "error").await;
        let error = record["error"].as_str().unwrap();
        assert!(error.contains("does not work here"), "{error}");
    }
    let wrong = app
        .patch("auto", json!({"containment": "jail"}))
        .await
        .expect(422);
    let told = &wrong["error"]["details"][0];
    assert_eq!(told["field"], "containment");
    assert!(
        told["message"].as_str().unwrap().contains("namespace"),
        "{told}"
    );
    // Changed while it runs: in force with the next process.
    let weakest = ladder.works().last().unwrap().as_str();
    app.patch("auto", json!({"containment": weakest}))
        .await
        .expect(200);
    app.until("auto", |record| record["containment"] == weakest)
        .await;
}
