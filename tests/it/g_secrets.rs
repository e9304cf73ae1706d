//! SPEC G3, B2: secrets never appear in an answer or a log. Every place a
//! secret can stand in gets a canary; then everything is asked, in every way
//! that goes well or wrong, and read.

use serde_json::{Value, json};

use crate::app::{App, TOKEN, fixture, setup};

const CANARY: &str = "c4nary";

fn canary(place: &str) -> String {
    format!("{CANARY}-{place}-0123456789")
}

/// A server for every place, working and failing.
fn definitions() -> Value {
    let env = json!({"TOKEN": canary("env"), "FROM_VAR": "${CANARY_ENV}"});
    let script = format!("env >&2; echo $TOKEN; exec '{}'", fixture());
    let dies = "echo \"bad token $TOKEN\" >&2; exit 3";
    json!({"mcpServers": {
        "works": {"command": "sh", "args": ["-c", script], "env": env},
        "dies": {"command": "sh", "args": ["-c", dies], "env": env},
        "missing": {"command": "${CANARY_COMMAND}", "args": ["--token", canary("arg"),
            format!("--api-key={}", canary("flag")), "${CANARY_ARG}",
            format!("postgres://someone:{}@127.0.0.1/db", canary("dsn"))], "env": env},
        "nowhere": {"command": fixture(), "env": env, "cwd": "/no/such/dir"},
        "unset": {"command": fixture(), "env": {"A": "${CANARY_UNSET}", "B": canary("unset")}},
        "remote": {
            "url": format!("http://user:{}@127.0.0.1:1/mcp?api_key={}", canary("password"), canary("query")),
            "headers": {"Authorization": format!("Bearer {}", canary("header")), "X-Var": "${CANARY_HEADER}"},
        },
        "remote-var": {"url": "http://127.0.0.1:1/${CANARY_PATH}?x=${CANARY_QUERY}"},
        "sse": {"type": "sse", "url": format!("http://{}@127.0.0.1:1/sse", canary("user-token"))},
    }})
}

const VARIABLES: [&str; 6] = ["ENV", "COMMAND", "ARG", "HEADER", "PATH", "QUERY"];

#[tokio::test]
async fn g3_no_secret_is_in_any_answer_or_log() {
    let mut start = setup().mcp(definitions()).env("RUST_LOG", "trace");
    for name in VARIABLES {
        let name = format!("CANARY_{name}");
        start = start.env(&name, &canary(&name.to_lowercase()));
    }
    let app = start.start().await;
    app.until_status("works", "connected").await;
    for name in [
        "dies", "missing", "nowhere", "unset", "remote", "remote-var", "sse",
    ] {
        app.until(name, |record| record["error"].is_string()).await;
    }
    let mut said = Vec::new();
    ask_everything(&app, &mut said).await;
    change_everything(&app, &mut said).await;
    for (request, answer) in &said {
        assert!(!answer.contains(CANARY), "{request}: {answer}");
        assert!(!answer.contains(TOKEN), "{request}: {answer}");
    }
    let covered = said.iter().filter(|(_, answer)| answer.contains("***"));
    assert!(covered.count() > 10, "the answers do show definitions");

    // The environment of the servers is not the log's business either.
    let setup_text = app.said();
    let log = app.log();
    assert!(
        log.contains("server works is connected"),
        "there is a log: {log}"
    );
    for (place, text) in [("stderr", log), ("stdout", setup_text)] {
        for secret in [CANARY, TOKEN] {
            let lines: Vec<&str> = text.lines().filter(|line| line.contains(secret)).collect();
            assert!(lines.is_empty(), "{place}: {lines:#?}");
        }
    }
    // But in force, and in the file.
    let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
    assert!(
        file.contains(&canary("env")) && !file.contains("***"),
        "{file}"
    );
    assert!(file.contains("${CANARY_ENV}"), "{file}");
}

async fn ask_everything(app: &App, said: &mut Vec<(String, String)>) {
    let mut paths = vec![
        "/".to_owned(),
        "/healthz".to_owned(),
        "/api/mcp/servers".to_owned(),
        "/api/mcp/sources".to_owned(),
    ];
    for record in app.list().await {
        let base = format!("/api/mcp/servers/{}", record["id"].as_str().unwrap());
        for what in ["", "/tools", "/resources", "/prompts", "/logs?limit=1000"] {
            paths.push(format!("{base}{what}"));
        }
    }
    for path in paths {
        let answer = app.get(&path).await;
        said.push((format!("GET {path}"), answer.text));
    }
}

async fn change_everything(app: &App, said: &mut Vec<(String, String)>) {
    let mut note = |request: &str, answer: crate::app::HttpAnswer| {
        said.push((format!("{request} {}", answer.status), answer.text));
    };
    for record in app.list().await {
        let name = record["name"].as_str().unwrap();
        let path = format!("/api/mcp/servers/{name}");
        let wrong = json!({"timeout": 0, "env": {"A": canary("wrong")}, "headers": {"A": "\n"}});
        note("wrong PATCH", app.patch(name, wrong).await);
        note("PATCH", app.patch(name, json!({"timeout": 12345})).await);
        let back = record["config"].to_string();
        note("PUT", app.send("PUT", &path, Some(back)).await);
        for verb in ["restart", "stop", "start"] {
            let answer = app.send("POST", &format!("{path}/{verb}"), None).await;
            note(verb, answer);
        }
    }
    let fresh = json!({"name": "fresh", "command": fixture(),
        "args": ["--password", canary("new-arg")], "env": {"A": canary("new-env")}});
    note("POST", app.post("/api/mcp/servers", fresh.clone()).await);
    note("POST again", app.post("/api/mcp/servers", fresh).await);
    let wrong = json!({"name": canary("name").repeat(9), "command": [5], "env": {"A": [canary("list")]},
        "url": canary("url")});
    // Names of things are no secrets; their values are.
    let answer = app.post("/api/mcp/servers", wrong).await;
    assert_eq!(answer.status, 422);
    note("wrong POST", answer);
    let broken = format!("{{\"env\": {{\"A\": \"{}\" oops", canary("broken"));
    let answer = app.send("POST", "/api/mcp/servers", Some(broken)).await;
    assert_eq!(answer.status, 400);
    note("broken POST", answer);
    note("plan", app.post("/api/mcp/plan", definitions()).await);
    note("DELETE", app.delete("fresh").await);
}
