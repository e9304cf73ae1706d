//! `portway migrate`.

use serde_json::{Value, json};

use super::*;

on_each_store!(
    e9_old_records_become_entries_with_the_same_key,
    e9_a_migration_of_nothing_is_told,
);

/// Exit code, stdout and stderr of a command in the same surroundings.
pub(super) async fn portway(setup: &Setup, args: &[&str]) -> (i32, String, String) {
    let mut command = setup.command();
    let plain = tokio::process::Command::new(env!("CARGO_BIN_EXE_portway"));
    let given = std::mem::replace(&mut command, plain);
    let envs = given.as_std().get_envs();
    command
        .args(args)
        .env_clear()
        .envs(envs.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(setup.path())
        .kill_on_drop(true);
    let output = tokio::time::timeout(crate::app::PATIENCE, command.output());
    let output = output.await.expect("it ends in time").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The setup of a Portway that has ended in order.
async fn ended(mut app: App) -> Setup {
    app.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(app.ended().await, Some(0));
    app.setup
}

async fn e9_old_records_become_entries_with_the_same_key(storage: Storage) {
    let app = storage.start().await;
    app.new_entry("there before", &[]).await;
    let known =
        json!({"name": "own.name", "server": "files", "tool": "read", "allow_missing": true});
    app.post(TOOLS, known).await.expect(201);
    let with_tools = json!({
        "name": "with tools", "table_id": 1,
        "register_tools": ["files:read", "files:write", "git:write", "no colon", 7],
    });
    let old = app.post(OLD, with_tools).await.expect(201);
    let off = app.post(OLD, json!({"name": "off", "status": 0})).await;
    let off = off.expect(201);
    let key = text(&old["api_key"]);

    if storage == Storage::Json {
        let (code, said, complaint) = portway(&app.setup, &["migrate"]).await;
        assert_eq!((code, said.as_str()), (1, ""), "{complaint}");
        let words = format!("is in use by another Portway (process {})", app.pid());
        assert!(complaint.contains(&words), "{complaint}");
        assert!(complaint.contains("stop it first"), "{complaint}");
    }
    let setup = ended(app).await;
    let (code, said, complaint) = portway(&setup, &["migrate", "--dry-run"]).await;
    assert_eq!(code, 0, "{complaint}");
    assert!(said.contains("nothing has been changed"), "{said}");
    let (code, said, _) = portway(&setup, &["migrate", "--dry-run", "--json"]).await;
    let foreseen: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &foreseen["dry_run"]), (0, &json!(true)));
    let expected = |id: [Value; 2]| {
        json!([
            {"mcp_instance_id": old["mcp_instance_id"], "name": "with tools", "id": id[0], "tools": 2},
            {"mcp_instance_id": off["mcp_instance_id"], "name": "off", "id": id[1], "tools": 0},
        ])
    };
    assert_eq!(foreseen["migrated"], expected([Value::Null, Value::Null]));

    let (code, said, complaint) = portway(&setup, &["migrate", "--json"]).await;
    assert_eq!(code, 0, "{complaint}");
    let done: Value = serde_json::from_str(&said).unwrap();
    let ids = [0, 1].map(|at| done["migrated"][at]["id"].clone());
    assert_eq!(
        done,
        json!({"dry_run": false, "migrated": expected(ids.clone())})
    );
    for output in [&said, &complaint] {
        assert!(!output.contains(key));
    }

    let app = setup.start().await;
    assert_eq!(app.total(OLD).await, 0);
    assert_eq!(app.total(ENTRIES).await, 3);
    refused(app.get(&format!("{OLD}{key}")).await, 404, "NOT_FOUND");
    let entry = app.get(&format!("{ENTRIES}/{}", ids[0])).await.expect(200);
    assert_eq!(
        (&entry["name"], &entry["status"]),
        (&json!("with tools"), &json!(true))
    );
    assert_eq!(entry["key"]["hint"], old["key"]["hint"]);
    let path = format!("{OLD}{key}/tools");
    let tools = app.request("GET", &path, None, &[]).await.expect(200);
    assert_eq!(each(&tools, "name"), ["own.name", "write"]);
    assert_eq!(each(&tools, "server"), ["files", "files"]);
    let off = app.get(&format!("{ENTRIES}/{}", ids[1])).await.expect(200);
    assert_eq!(off["status"], false);
}

async fn e9_a_migration_of_nothing_is_told(storage: Storage) {
    let app = storage.start().await;
    let setup = ended(app).await;
    for args in [&["migrate"][..], &["migrate", "--dry-run"]] {
        let (code, said, _) = portway(&setup, args).await;
        assert_eq!((code, said.as_str()), (0, "nothing to migrate\n"));
    }
    let (code, said, _) = portway(&setup, &["migrate", "--json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, said), (0, json!({"dry_run": false, "migrated": []})));
    let (code, _, complaint) = portway(&setup, &["migrate", "--now"]).await;
    assert_eq!(code, 2, "{complaint}");
    if storage == Storage::Json {
        let elsewhere = ["migrate", "--data-dir", "nowhere"];
        let (code, _, complaint) = portway(&setup, &elsewhere).await;
        assert_eq!(code, 2, "{complaint}");
        assert!(complaint.contains("nowhere"), "{complaint}");
        assert!(!setup.path().join("nowhere").exists());
    }
}
