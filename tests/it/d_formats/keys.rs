use serde_json::json;

use super::*;
use crate::e_records::{ENTRIES, Storage, on_each_store, text as string};
use crate::e_served::with_fixtures;

on_each_store!(
    d10_a_key_shows_its_entrys_tools_and_no_others,
    d10_names_of_an_entry_fit_what_a_vendor_takes
);

/// What the holder of a key gets.
async fn with_key(app: &App, key: &str, path: &str, body: Option<Value>) -> HttpAnswer {
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.map(|body| body.to_string());
    let bearer = format!("Bearer {key}");
    let answer = app
        .request(method, path, body.clone(), &[("authorization", &bearer)])
        .await;
    let again = app.request(method, path, body, &[("x-api-key", key)]).await;
    assert_eq!((answer.status, &answer.body), (again.status, &again.body));
    answer
}

async fn d10_a_key_shows_its_entrys_tools_and_no_others(storage: Storage) {
    let app = with_fixtures(storage, &[("one", &[]), ("two", &[])]).await;
    let (say, sum) = (
        app.tool_of("say", "one", "echo").await,
        app.tool_of("sum", "two", "add").await,
    );
    let entry = app.new_entry("mine", &[say]).await;
    let other = app.new_entry("other", &[sum]).await;
    let key = string(&entry["api_key"]);
    for format in FORMATS {
        let path = format!("{LIST}?format={format}");
        let list = with_key(&app, key, &path, None).await;
        let list = list.expect(200);
        assert_eq!(names(&list), ["say"]);
        assert!(!list.to_string().contains("one"), "no server: {list}");
        // The same to the admin.
        let query = format!("format={format}&entry={}", entry["id"]);
        assert_eq!(app.formatted(&query).await, list);
        let query = format!("format={format}&entry=mine");
        assert_eq!(app.formatted(&query).await, list);

        let query = format!("format={format}");
        let hi = json!({"arguments": {"text": "hi"}});
        let said = with_key(&app, key, &at("say", &query), Some(hi.clone())).await;
        assert_eq!(text(format, &said.expect(200)), "hi");
        for hidden in ["sum", "mcp_one_echo", "one:echo", "two:add", "echo"] {
            let answer = with_key(&app, key, &at(hidden, &query), Some(hi.clone())).await;
            assert!(!answer.text.contains("did you mean"), "{}", answer.text);
            is_no_tool(format, hidden, answer);
        }
        let query = format!("format={format}&entry={}", other["id"]);
        let sums = json!({"arguments": {"a": 1, "b": 2}});
        let answer = app.post(&at("sum", &query), sums).await.expect(200);
        assert!(text(format, &answer).contains("3"), "{answer}");
    }
    // A name is enough while it is one entry's.
    let twin = app.new_entry("other", &[]).await;
    let unclear = app.get(&format!("{LIST}?entry=other")).await;
    let unclear = refused(unclear, 409, "CONFLICT");
    let number = twin["id"].to_string();
    assert!(string(&unclear["message"]).contains(&number), "{unclear}");
    let place = format!("{ENTRIES}/{}", twin["id"]);
    assert_eq!(app.deleted(&place).await.status, 204);
    assert_eq!(names(&app.formatted("entry=other").await), ["sum"]);
    // A number is no name.
    app.new_entry("999", &[]).await;
    let answer = app.get(&format!("{LIST}?entry=999")).await;
    refused(answer, 404, "NOT_FOUND");
    // Nobody names an entry but the admin, and these are the only two paths.
    for id in [&entry["id"], &other["id"]] {
        let path = format!("{LIST}?entry={id}");
        refused(with_key(&app, key, &path, None).await, 403, "FORBIDDEN");
    }
    let bearer = format!("Bearer {key}");
    for path in [
        "/api/mcp/servers",
        "/api/mcp/activity",
        "/api/openapi.json",
        "/api/mcp/servers/one/tools",
    ] {
        let headers = [("authorization", bearer.as_str())];
        let answer = app.request("GET", path, None, &headers).await;
        refused(answer, 403, "FORBIDDEN");
    }
    // What is taken away is gone at once, from the lists that were made too.
    let place = format!("{ENTRIES}/{}/bindings/{say}", entry["id"]);
    assert_eq!(app.deleted(&place).await.status, 204);
    let list = with_key(&app, key, &format!("{LIST}?format=openai"), None).await;
    assert!(names(&list.expect(200)).is_empty());
    let place = format!("{ENTRIES}/{}", entry["id"]);
    app.patched(&place, json!({"status": false}))
        .await
        .expect(200);
    let list = with_key(&app, key, LIST, None).await;
    refused(list, 401, "UNAUTHORIZED");
    let closed = app.get(&format!("{LIST}?entry={}", entry["id"])).await;
    refused(closed, 404, "NOT_FOUND");
    assert!(!app.log().contains(key), "no key in the log");
}

async fn d10_names_of_an_entry_fit_what_a_vendor_takes(storage: Storage) {
    let app = with_fixtures(storage, &[("one", &[])]).await;
    let long = format!("read.{}", "x".repeat(100));
    let tool = app.tool_of(&long, "one", "echo").await;
    let entry = app.new_entry("mine", &[tool]).await;
    let key = string(&entry["api_key"]);
    let list = with_key(&app, key, LIST, None).await.expect(200);
    assert_eq!(names(&list), [&long]);
    for format in ["openai", "anthropic", "copilot"] {
        let path = format!("{LIST}?format={format}");
        let list = with_key(&app, key, &path, None).await.expect(200);
        let fitted = names(&list)[0].to_owned();
        assert!(fitted.len() <= 64 && !fitted.contains('.'), "{fitted}");
        for name in [&fitted, &long] {
            let path = at(name, &format!("format={format}"));
            let body =
                json!({"id": "1", "function": {"name": fitted, "arguments": "{\"text\":\"hi\"}"}});
            let answer = with_key(&app, key, &path, Some(body)).await;
            assert_eq!(text(format, &answer.expect(200)), "hi");
        }
        // Away with its server, but not forgotten.
        app.act("one", "stop").await;
        for name in [&fitted, &long] {
            let path = at(name, &format!("format={format}"));
            let answer = with_key(&app, key, &path, Some(json!({}))).await;
            let answer = answer.expect(200);
            assert!(failed(format, &answer), "{answer}");
            assert!(text(format, &answer).contains("not available"), "{answer}");
            assert!(!answer.to_string().contains("\"one\""), "{answer}");
        }
        app.act("one", "start").await;
    }
}
