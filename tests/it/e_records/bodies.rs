//! Wrong bodies, one by one: what is named, and that nothing comes of them.

use serde_json::{Value, json};

use super::*;

on_each_store!(
    g3_a_wrong_body_names_every_field,
    g3_a_wrong_change_names_the_field_and_changes_nothing,
    g3_what_is_no_json_object_is_told,
);

async fn g3_a_wrong_body_names_every_field(storage: Storage) {
    let app = storage.start().await;
    let tool = |member: &str, value: Value| {
        let mut body = json!({"name": "t", "server": "s", "tool": "x", "allow_missing": true});
        body[member] = value;
        body.to_string()
    };
    let entry = |member: &str, value: Value| {
        let mut body = json!({"name": "e"});
        body[member] = value;
        body.to_string()
    };
    let with = |bindings: Value| json!({"name": "e", "bindings": bindings}).to_string();
    let table: Vec<(&str, String, &[&str])> = vec![
        (TOOLS, "{}".into(), &["name", "server", "tool"]),
        (
            TOOLS,
            r#"{"name":"a b","server":"/","tool":"","colour":1,"description":5}"#.into(),
            &["name", "description", "server", "tool", "colour"],
        ),
        (TOOLS, tool("name", json!("")), &["name"]),
        (TOOLS, tool("name", json!("ü")), &["name"]),
        (TOOLS, tool("name", json!("a:b")), &["name"]),
        (TOOLS, tool("name", json!("a".repeat(129))), &["name"]),
        (TOOLS, tool("name", json!(5)), &["name"]),
        (TOOLS, tool("name", Value::Null), &["name"]),
        (TOOLS, tool("server", json!("-s")), &["server"]),
        (TOOLS, tool("server", json!(["s"])), &["server"]),
        (TOOLS, tool("tool", json!("a\nb")), &["tool"]),
        (TOOLS, tool("tool", json!("a".repeat(513))), &["tool"]),
        (TOOLS, tool("description", json!("\u{1}")), &["description"]),
        (
            TOOLS,
            tool("description", json!("a".repeat(16385))),
            &["description"],
        ),
        (TOOLS, tool("id", json!(7)), &["id"]),
        (TOOLS, tool("user_id", json!("root")), &["user_id"]),
        (
            TOOLS,
            r#"{"name":"t","name":"u","server":"s","tool":"x"}"#.into(),
            &["name"],
        ),
        (ENTRIES, "{}".into(), &["name"]),
        (ENTRIES, entry("name", json!(" ")), &["name"]),
        (ENTRIES, entry("name", json!("a\u{7f}")), &["name"]),
        (ENTRIES, entry("name", json!("ü".repeat(201))), &["name"]),
        (ENTRIES, entry("status", json!(2)), &["status"]),
        (ENTRIES, entry("status", json!("1")), &["status"]),
        (ENTRIES, entry("status", json!(1.0)), &["status"]),
        (ENTRIES, entry("bindings", json!([])), &["bindings"]),
        (ENTRIES, entry("api_key", json!("pwk_mine")), &["api_key"]),
        (ENTRIES, entry("exposes", json!([])), &["exposes"]),
        (
            ENTRIES,
            entry(
                "exposes",
                json!({"resources": "s", "prompts": ["s", 1], "tools": []}),
            ),
            &["exposes.resources", "exposes.prompts[1]", "exposes.tools"],
        ),
        (
            ENTRIES,
            entry("expires_at", json!("tomorrow")),
            &["expires_at"],
        ),
        (ENTRIES, entry("expires_at", json!(1)), &["expires_at"]),
        (
            ENTRIES,
            entry("expires_at", json!("2020-01-01T00:00:00Z")),
            &["expires_at"],
        ),
        (BOUND, "{}".into(), &["bindings", "name"]),
        (BOUND, with(json!({})), &["bindings"]),
        (BOUND, with(Value::Null), &["bindings"]),
        (
            BOUND,
            with(
                json!([1, {"tool_id": -1}, {"tool_id": 1.5}, {"tool_id": "0"}, {"tool_id": "+1"},
                {"tool_id": null}, {"tool_id": 1, "status": "x", "name": "t"}, {"tool_id": 1, "status": null}]),
            ),
            &[
                "bindings[0]",
                "bindings[1].tool_id",
                "bindings[2].tool_id",
                "bindings[3].tool_id",
                "bindings[4].tool_id",
                "bindings[5].tool_id",
                "bindings[6].status",
                "bindings[6].name",
                "bindings[7].status",
            ],
        ),
        (
            BOUND,
            r#"{"name":"e","bindings":[{"tool_id":1,"tool_id":2}]}"#.into(),
            &["bindings[0].tool_id"],
        ),
        (
            BOUND,
            with(json!(vec![json!({"tool_id": 1}); 1001])),
            &["bindings"],
        ),
        (OLD, "{}".into(), &["name"]),
        (OLD, entry("status", json!(-1)), &["status"]),
        (OLD, entry("api_key", json!("mine")), &["api_key"]),
        (OLD, entry("user_id", json!(1.5)), &["user_id"]),
        (OLD, r#"{"name":"e","x":1,"x":2}"#.into(), &["x"]),
        (
            OLD,
            r#"{"name":"e","x":{"y":["\u0000"]}}"#.into(),
            &["x.y[0]"],
        ),
    ];
    for (path, body, fields) in table {
        let answer = app.send("POST", path, Some(body.clone())).await;
        assert_eq!(answer.status, 422, "{path} {body}: {}", answer.text);
        assert_eq!(wrong_fields(answer), fields, "{path} {body}");
    }
    for path in [TOOLS, ENTRIES, OLD] {
        assert_eq!(app.total(path).await, 0, "{path}");
    }
}

async fn g3_a_wrong_change_names_the_field_and_changes_nothing(storage: Storage) {
    let app = storage.start().await;
    let tool = format!("{TOOLS}/{}", app.new_tool("t").await);
    let made = app.new_entry("e", &[app.new_tool("u").await]).await;
    let entry = format!("{ENTRIES}/{}", made["id"]);
    let old = app.post(OLD, json!({"name": "o"})).await.expect(201);
    let old = format!("{OLD}{}", text(&old["api_key"]));
    let before = [&tool, &entry, &old];
    let mut kept = Vec::new();
    for path in before {
        kept.push(app.get(path).await.expect(200));
    }
    let bindings = format!("{entry}/bindings");
    let rotate = format!("{entry}/rotate_key");
    let binding = format!("{bindings}/{}", 2);
    let table: Vec<(&str, &str, Value, &[&str])> = vec![
        (
            "PATCH",
            &tool,
            json!({"name": null, "server": ""}),
            &["name", "server"],
        ),
        (
            "PATCH",
            &tool,
            json!({"tool": null, "extra": 1}),
            &["tool", "extra"],
        ),
        (
            "PATCH",
            &tool,
            json!({"description": ["x"]}),
            &["description"],
        ),
        (
            "PATCH",
            &entry,
            json!({"name": "", "status": null}),
            &["name", "status"],
        ),
        (
            "PATCH",
            &entry,
            json!({"name": "x", "exposes": 1}),
            &["exposes"],
        ),
        ("PATCH", &entry, json!({"expires_at": "x"}), &["expires_at"]),
        ("PATCH", &entry, json!({"api_key": "x"}), &["api_key"]),
        ("PATCH", &binding, json!({}), &["status"]),
        (
            "PATCH",
            &binding,
            json!({"status": 7, "x": 1}),
            &["status", "x"],
        ),
        ("POST", &bindings, json!({}), &["tool_id"]),
        (
            "POST",
            &bindings,
            json!({"bindings": [], "tool_id": 1}),
            &["tool_id"],
        ),
        (
            "POST",
            &rotate,
            json!({"expires_at": "2020-01-01T00:00:00Z"}),
            &["expires_at"],
        ),
        ("POST", &rotate, json!({"api_key": "mine"}), &["api_key"]),
        ("PUT", &old, json!({"name": "x", "status": 5}), &["status"]),
        ("PUT", &old, json!({"api_key": "12345678"}), &["api_key"]),
    ];
    for (method, path, body, fields) in table {
        let answer = app.send(method, path, Some(body.to_string())).await;
        assert_eq!(
            answer.status, 422,
            "{method} {path} {body}: {}",
            answer.text
        );
        assert_eq!(wrong_fields(answer), fields, "{method} {path} {body}");
    }
    for (path, kept) in before.iter().zip(kept) {
        assert_eq!(app.get(path).await.expect(200), kept);
    }
}

async fn g3_what_is_no_json_object_is_told(storage: Storage) {
    let app = storage.start().await;
    for path in [TOOLS, ENTRIES, BOUND, OLD, "/api/v1/mcp"] {
        for (body, status) in [
            ("", 400),
            ("{", 400),
            ("{} {}", 400),
            ("[]", 422),
            ("\"x\"", 422),
        ] {
            let answer = app.send("POST", path, Some(body.to_owned())).await;
            // An empty body has no type to be wrong.
            assert_eq!(answer.status, status, "{path} {body:?}: {}", answer.text);
        }
        let deep = format!("{{\"name\":{}1{}}}", "[".repeat(100), "]".repeat(100));
        let answer = app.send("POST", path, Some(deep)).await;
        refused(answer, 400, "BAD_REQUEST");
    }
}
