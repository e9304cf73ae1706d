use serde_json::{Value, json};

use super::*;

on_each_store!(
    e2_tools_are_made_listed_changed_and_deleted,
    k6_lists_are_paged_with_their_total,
    e5_a_tool_is_not_renamed_into_a_clash,
    k6_what_is_not_there_is_404,
    k3_records_need_a_credential,
);

async fn e2_tools_are_made_listed_changed_and_deleted(storage: Storage) {
    let app = storage.start().await;
    let body = json!({
        "name": "read", "description": "Reads a file.\nCarefully.", "server": "files", "tool": "read_file",
        "allow_missing": true,
    });
    let answer = app.post(TOOLS, body).await;
    let place = answer.headers["location"].to_str().unwrap().to_owned();
    let made = answer.expect(201);
    let id = number(&made["id"]);
    assert_eq!(place, format!("{TOOLS}/{id}"));
    for (member, value) in [
        ("name", json!("read")),
        ("description", json!("Reads a file.\nCarefully.")),
        ("server", json!("files")),
        ("tool", json!("read_file")),
        ("user_id", json!("admin")),
    ] {
        assert_eq!(made[member], value, "{made}");
    }
    assert!(text(&made["created_at"]).ends_with('Z'));
    assert_eq!(app.get(&place).await.expect(200), made);

    let renamed = app.patched(&place, json!({"name": "read.v2"})).await;
    let renamed = renamed.expect(200);
    assert_eq!(renamed["name"], "read.v2");
    assert_eq!(renamed["description"], made["description"]);
    let bare = app.patched(&place, json!({"description": null})).await;
    assert_eq!(bare.expect(200)["description"], Value::Null);
    let moved = json!({"server": "other files", "tool": "read/file ü", "description": "x", "allow_missing": true});
    let moved = app.patched(&place, moved).await.expect(200);
    assert_eq!(
        (&moved["server"], &moved["tool"], &moved["name"]),
        (
            &json!("other files"),
            &json!("read/file ü"),
            &json!("read.v2")
        )
    );
    assert_eq!(app.patched(&place, json!({})).await.expect(200), moved);

    let app = app.again().await;
    assert_eq!(app.get(&place).await.expect(200), moved);
    assert_eq!(app.deleted(&place).await.status, 204);
    refused(app.deleted(&place).await, 404, "NOT_FOUND");
    refused(app.get(&place).await, 404, "NOT_FOUND");
    assert_eq!(app.total(TOOLS).await, 0);
}

async fn k6_lists_are_paged_with_their_total(storage: Storage) {
    let app = storage.start().await;
    for n in 0..7 {
        app.new_tool(&format!("t{n}")).await;
        app.new_entry(&format!("e{n}"), &[]).await;
        let old = app.post(OLD, json!({"name": format!("o{n}")})).await;
        old.expect(201);
    }
    for (path, letter) in [(TOOLS, "t"), (ENTRIES, "e"), (OLD, "o")] {
        let names = |from: usize, to: usize| -> Vec<Value> {
            (from..to).map(|n| json!(format!("{letter}{n}"))).collect()
        };
        for (query, from, to) in [
            ("", 0, 7),
            ("?skip=0&limit=3", 0, 3),
            ("?skip=3&limit=3", 3, 6),
            ("?limit=3&skip=6", 6, 7),
            ("?skip=7", 0, 0),
            ("?skip=9223372036854775807", 0, 0),
            ("?skip=2", 2, 7),
            ("?limit=1000", 0, 7),
            ("?limit=0", 0, 0),
        ] {
            let listed = app.get(&format!("{path}{query}")).await.expect(200);
            assert_eq!(each(&listed, "name"), names(from, to), "{path}{query}");
            assert_eq!(listed["total"], 7, "{path}{query}");
        }
        for (query, field) in [
            ("?limit=1001", "limit"),
            ("?limit=-1", "limit"),
            ("?limit=x", "limit"),
            ("?skip=-1", "skip"),
            ("?skip=1.5", "skip"),
            ("?skip=9223372036854775808", "skip"),
        ] {
            let answer = app.get(&format!("{path}{query}")).await;
            assert_eq!(wrong_fields(answer), [field], "{path}{query}");
        }
    }
}

async fn e5_a_tool_is_not_renamed_into_a_clash(storage: Storage) {
    let app = storage.start().await;
    let (a, b) = (app.new_tool("a").await, app.new_tool("b").await);
    let free = app.new_tool("c").await;
    app.new_entry("e", &[a, b]).await;
    let clash = app
        .patched(&format!("{TOOLS}/{b}"), json!({"name": "a"}))
        .await;
    let error = refused(clash, 422, "VALIDATION_ERROR");
    assert!(text(&error["message"]).contains("\"a\""), "{error}");
    let kept = app.get(&format!("{TOOLS}/{b}")).await.expect(200);
    assert_eq!(kept["name"], "b");
    // Two of one name are fine as long as no entry has both.
    let path = format!("{TOOLS}/{free}");
    let renamed = app.patched(&path, json!({"name": "a"})).await;
    assert_eq!(renamed.expect(200)["name"], "a");
}

async fn k6_what_is_not_there_is_404(storage: Storage) {
    let app = storage.start().await;
    let tool = app.new_tool("t").await;
    let entry = number(&app.new_entry("e", &[]).await["id"]);
    let ids = [
        "999",
        "0",
        "-1",
        "x",
        "1x",
        "1.0",
        "99999999999999999999",
        "%C3%BC",
    ];
    let status = || Some(json!({"status": true}).to_string());
    for id in ids {
        for (method, path, body) in [
            ("GET", format!("{TOOLS}/{id}"), None),
            ("PATCH", format!("{TOOLS}/{id}"), Some("{}".into())),
            ("DELETE", format!("{TOOLS}/{id}"), None),
            ("GET", format!("{ENTRIES}/{id}"), None),
            ("PATCH", format!("{ENTRIES}/{id}"), Some("{}".into())),
            ("DELETE", format!("{ENTRIES}/{id}"), None),
            ("POST", format!("{ENTRIES}/{id}/rotate_key"), None),
            ("GET", format!("{ENTRIES}/{id}/tools"), None),
            ("GET", format!("{ENTRIES}/{id}/bindings"), None),
            (
                "POST",
                format!("{ENTRIES}/{id}/bindings"),
                Some(json!({"tool_id": tool}).to_string()),
            ),
            ("PATCH", format!("{ENTRIES}/{id}/bindings/{tool}"), status()),
            ("DELETE", format!("{ENTRIES}/{id}/bindings/{tool}"), None),
            (
                "PATCH",
                format!("{ENTRIES}/{entry}/bindings/{id}"),
                status(),
            ),
            ("DELETE", format!("{ENTRIES}/{entry}/bindings/{id}"), None),
            ("GET", format!("{OLD}{id}"), None),
            ("PUT", format!("{OLD}{id}"), Some("{}".into())),
            ("DELETE", format!("{OLD}{id}"), None),
            ("GET", format!("{OLD}{id}/tools"), None),
        ] {
            let answer = app.send(method, &path, body).await;
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text);
            refused(answer, 404, "NOT_FOUND");
        }
    }
}

async fn k3_records_need_a_credential(storage: Storage) {
    let app = storage.start().await;
    let made = app.new_entry("e", &[]).await;
    let key = text(&made["api_key"]);
    for (method, path) in [
        ("GET", TOOLS.to_owned()),
        ("POST", TOOLS.to_owned()),
        ("GET", format!("{TOOLS}/1")),
        ("GET", ENTRIES.to_owned()),
        ("POST", BOUND.to_owned()),
        ("GET", format!("{ENTRIES}/1")),
        ("GET", format!("{ENTRIES}/1/tools")),
        ("POST", format!("{ENTRIES}/1/rotate_key")),
        ("GET", OLD.to_owned()),
        ("GET", "/api/v1/mcp".to_owned()),
        ("DELETE", format!("{OLD}{key}")),
        ("POST", format!("{OLD}{key}/tools")),
    ] {
        let body = (method == "POST").then(|| "{}".to_owned());
        let answer = app.request(method, &path, body, &[]).await;
        assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
    }
}
