//! The stores beside each other: what one answers, the other does.

use serde_json::{Value, json};

use super::{BOUND, ENTRIES, OLD, Storage, TOOLS};
use crate::app::App;

/// What differs by nature: secrets, what follows from them, and moments.
const OWN: [&str; 8] = [
    "api_key",
    "url",
    "hint",
    "created_at",
    "updated_at",
    "last_used_at",
    "id",
    "mcp_instance_id",
];

fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let own = OWN.contains(&name.as_str()) && !member.is_null();
                *member = match own {
                    true => json!("…"),
                    false => plain(member.take()),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
        _ => {}
    }
    value
}

/// Asks for things that work and things that do not, and tells what came.
async fn story(app: &App) -> Vec<(String, u16, Value)> {
    let read = app.new_tool("read").await;
    let write = app.new_tool("write").await;
    let entry = app.new_entry("agent", &[read]).await["id"]
        .as_i64()
        .unwrap();
    let one = format!("{ENTRIES}/{entry}");
    let binding = format!("{one}/bindings/{read}");
    let asked = [
        (
            "POST",
            TOOLS.to_owned(),
            json!({"name": "a b", "server": "", "more": 1}),
        ),
        (
            "PATCH",
            format!("{TOOLS}/{write}"),
            json!({"description": "writes"}),
        ),
        (
            "POST",
            format!("{one}/bindings"),
            json!({"tool_id": write, "status": 0}),
        ),
        // Two of one name, by a binding and by a new name.
        ("PATCH", format!("{TOOLS}/{write}"), json!({"name": "read"})),
        (
            "POST",
            BOUND.to_owned(),
            json!({"name": "x", "bindings": [{"tool_id": 999_999}]}),
        ),
        (
            "PATCH",
            one.clone(),
            json!({"status": 0, "exposes": {"resources": ["fixture"]}, "allow_missing": true}),
        ),
        ("PATCH", binding.clone(), json!({"status": false})),
        (
            "GET",
            format!("{one}/tools?include_disabled=true"),
            Value::Null,
        ),
        ("GET", format!("{one}/tools"), Value::Null),
        ("DELETE", binding.clone(), Value::Null),
        ("DELETE", binding, Value::Null),
        ("POST", format!("{one}/rotate_key"), json!({})),
        (
            "POST",
            OLD.to_owned(),
            json!({"name": "old", "status": 1, "table_id": 7}),
        ),
        ("GET", OLD.to_owned(), Value::Null),
        ("GET", format!("{ENTRIES}?skip=0&limit=1"), Value::Null),
        ("GET", format!("{TOOLS}?skip=1&limit=1"), Value::Null),
        ("DELETE", one.clone(), Value::Null),
        ("GET", one, Value::Null),
        ("GET", ENTRIES.to_owned(), Value::Null),
    ];
    let mut told = Vec::new();
    for (method, path, body) in asked {
        let body = (!body.is_null()).then(|| body.to_string());
        let answer = app.send(method, &path, body).await;
        told.push((
            format!("{method} {path}"),
            answer.status,
            plain(answer.body),
        ));
    }
    told
}

#[tokio::test]
async fn f2_both_stores_answer_alike() {
    let (file, database) = (Storage::Json.start().await, Storage::Supabase.start().await);
    let (one, other) = (story(&file).await, story(&database).await);
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    let statuses: Vec<u16> = one.iter().map(|(_, status, _)| *status).collect();
    let expected = [
        422, 200, 201, 422, 404, 200, 200, 200, 200, 204, 404, 200, 201, 200, 200, 200, 204, 404,
        200,
    ];
    assert_eq!(statuses, expected);
}
