//! SPEC B4: four layers of files, one list of servers.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, eventually, setup};

fn servers(servers: Value) -> Value {
    json!({ "mcpServers": servers })
}

async fn sources(app: &App) -> Vec<Value> {
    let sources = app.get("/api/mcp/sources").await.expect(200);
    sources.as_array().unwrap().clone()
}

/// All four layers, each with one server of its own and one it shares.
async fn layered() -> App {
    let app = setup();
    let home = app.path().join("home");
    let project = app.path().canonicalize().unwrap();
    std::fs::create_dir(&home).unwrap();
    let off = |name: &str| json!({"command": name, "enabled": false});
    let global = json!({
        "theme": "dark",
        "mcpServers": {"global": off("g"), "all": off("g"), "pair": off("g")},
        "projects": {
            project.display().to_string(): {
                "history": ["x"],
                "mcpServers": {"section": off("s"), "all": off("s"), "pair": off("s"),
                               "broken": {"command": 7}},
            },
            "/somewhere/else": {"mcpServers": {"elsewhere": off("e")}},
        },
    });
    let global = serde_json::to_vec_pretty(&global).unwrap();
    std::fs::write(home.join(".kode.json"), global).unwrap();
    let kode = servers(json!({"project": off("p"), "all": off("p")}));
    app.env("HOME", home.to_str().unwrap())
        .file(".kode.json", kode.to_string())
        .mcp(servers(json!({"mcp": off("m"), "all": off("m")})))
        .start()
        .await
}

#[tokio::test]
async fn b4_the_layers_override_each_other_and_what_is_shadowed_is_said() {
    let app = layered().await;
    let root = app.path("").canonicalize().unwrap();
    let (mcp, kode) = (root.join(".mcp.json"), root.join(".kode.json"));
    let global = app.path("home/.kode.json");
    let path = |path: &Path| json!(path.display().to_string());
    for (name, command, source, shadows) in [
        ("global", "g", &global, vec![]),
        ("section", "s", &global, vec![]),
        ("pair", "s", &global, vec![&global]),
        ("project", "p", &kode, vec![]),
        ("mcp", "m", &mcp, vec![]),
        ("all", "m", &mcp, vec![&kode, &global, &global]),
    ] {
        let record = app.server(name).await;
        assert_eq!(record["config"]["command"], command, "{name}");
        assert_eq!(record["source"], path(source), "{name}");
        let told: Vec<Value> = shadows.iter().map(|one| path(one)).collect();
        let said = record["shadows"].as_array().cloned().unwrap_or_default();
        assert_eq!(said, told, "{name}");
    }
    app.get("/api/mcp/servers/elsewhere").await.expect(404);

    let told: Vec<(Value, Value, Value)> = sources(&app)
        .await
        .into_iter()
        .flat_map(|source| {
            let servers = source["servers"].as_array().unwrap().clone();
            servers.into_iter().map(move |server| {
                let (name, by) = (server["name"].clone(), server["shadowedBy"].clone());
                (source["kind"].clone(), name, by)
            })
        })
        .collect();
    for (kind, name, by) in [
        ("mcp", "all", Value::Null),
        ("kode-project", "all", path(&mcp)),
        ("kode-global-project", "all", path(&mcp)),
        ("kode-global", "all", path(&mcp)),
        ("kode-global", "pair", path(&global)),
        ("kode-global-project", "pair", Value::Null),
        ("kode-global-project", "broken", Value::Null),
    ] {
        let row = (json!(kind), json!(name), by);
        assert!(told.contains(&row), "{row:?} in {told:#?}");
    }
    let said = format!(
        "\"all\" of {} is shadowed by {}",
        kode.display(),
        mcp.display()
    );
    eventually("the log says so", || app.log().contains(&said)).await;
    let said = format!("is shadowed by {} (its section", global.display());
    eventually("the log says so", || app.log().contains(&said)).await;
}

#[tokio::test]
async fn b4_an_edit_goes_to_the_layer_that_holds_the_server() {
    let app = layered().await;
    let global = app.path("home/.kode.json");
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&global).unwrap()).unwrap() };
    let mut expected = read();
    let root = app.path("").canonicalize().unwrap().display().to_string();
    for (name, place) in [
        ("section", expected["projects"][&root]["mcpServers"].clone()),
        ("global", expected["mcpServers"].clone()),
    ] {
        assert!(place[name].is_object(), "{place}");
        app.patch(name, json!({"timeout": 77})).await.expect(200);
    }
    expected["projects"][&root]["mcpServers"]["section"]["timeout"] = json!(77);
    expected["mcpServers"]["global"]["timeout"] = json!(77);
    assert_eq!(read(), expected);

    // One by one the hidden definitions come forth.
    for command in ["p", "s", "g"] {
        assert_eq!(app.delete("all").await.status, 204);
        let record = app.server("all").await;
        assert_eq!(record["config"]["command"], command);
    }
    assert_eq!(app.delete("all").await.status, 204);
    app.get("/api/mcp/servers/all").await.expect(404);
}

/// Waits until the command of a server is the one given.
async fn runs(app: &App, name: &str, command: &str) {
    let start = Instant::now();
    loop {
        let answer = app.get(&format!("/api/mcp/servers/{name}")).await;
        if answer.body["config"]["command"] == command {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn b4_b6_each_layer_is_followed() {
    let app = layered().await;
    let project = app.path("").canonicalize().unwrap().display().to_string();
    let saved = |path: &str| -> Value {
        serde_json::from_slice(&std::fs::read(app.path(path)).unwrap()).unwrap()
    };
    let save = |path: &str, value: &Value| {
        let text = serde_json::to_string_pretty(value).unwrap();
        std::fs::write(app.path(path), text).unwrap();
    };
    let mut global = saved("home/.kode.json");
    global["mcpServers"]["global"]["command"] = json!("g2");
    save("home/.kode.json", &global);
    runs(&app, "global", "g2").await;
    global["projects"][&project]["mcpServers"]["section"]["command"] = json!("s2");
    save("home/.kode.json", &global);
    runs(&app, "section", "s2").await;
    let mut kode = saved(".kode.json");
    kode["mcpServers"]["project"]["command"] = json!("p2");
    save(".kode.json", &kode);
    runs(&app, "project", "p2").await;

    // One that is no longer hidden comes forth, and one that is goes.
    save(
        ".mcp.json",
        &servers(json!({"project": {"command": "m", "enabled": false}})),
    );
    runs(&app, "project", "m").await;
    runs(&app, "all", "p").await;
    // A file that appears late is followed like the others.
    std::fs::remove_file(app.path(".kode.json")).unwrap();
    std::fs::write(app.path(".kode.json"), "{}").unwrap();
    runs(&app, "all", "s").await;
}

#[tokio::test]
async fn b4_whoever_works_in_their_home_has_one_file_there() {
    for linked in [false, true] {
        let app = setup();
        let project = app.path().canonicalize().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let home = outside.path().join("home");
        std::os::unix::fs::symlink(&project, &home).unwrap();
        let off = |command: &str| json!({"command": command, "enabled": false});
        let file = json!({
            "mcpServers": {"own": off("own")},
            "projects": {project.display().to_string(): {"mcpServers": {"section": off("s")}}},
        });
        let home = if linked { &home } else { &project };
        let app = app
            .env("HOME", home.to_str().unwrap())
            .file(".kode.json", file.to_string())
            .start()
            .await;
        for (name, command) in [("own", "own"), ("section", "s")] {
            let record = app.server(name).await;
            assert_eq!(record["config"]["command"], command);
            assert_eq!(record["shadows"], Value::Null, "{linked}: {record:#}");
        }
        assert_eq!(sources(&app).await.len(), 2);
    }
}

#[tokio::test]
async fn b4_a_file_that_others_may_write_is_refused_until_they_may_not() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let app = setup().mcp(servers(json!({"one": {"command": "x", "enabled": false}})));
    mode(&app.path().join(".mcp.json"), 0o666);
    let app = app.start().await;
    app.get("/api/mcp/servers/one").await.expect(404);
    let source = &sources(&app).await[0];
    let error = source["error"].as_str().unwrap();
    assert!(
        error.contains("may be written by everyone (mode 666)"),
        "{error}"
    );
    assert!(error.contains("chmod go-w"), "{error}");
    assert!(app.log().contains("may be written by everyone"));
    let new = json!({"name": "two", "command": "x", "enabled": false});
    app.post("/api/mcp/servers", new).await.expect(409);
    mode(&app.path(".mcp.json"), 0o644);
    runs(&app, "one", "x").await;
}
