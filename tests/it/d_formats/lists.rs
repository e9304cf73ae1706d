use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::app::{TOKEN, fixtures};
use crate::e_records::wrong_fields;

#[tokio::test]
async fn d10_all_tools_are_listed_in_each_format() {
    let app = portway().await;
    let mut hashes = BTreeSet::new();
    let mut all = BTreeSet::new();
    for format in FORMATS {
        let list = app.formatted(&format!("format={format}")).await;
        assert_eq!(list["format"], format);
        hashes.insert(list["hash"].to_string());
        all.insert(names(&list).join(" "));
        for tool in list["tools"].as_array().unwrap() {
            let tool = named(tool);
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let name = tool["name"].as_str().unwrap();
            assert!(name.len() <= 64 && name.chars().all(fits), "{name}");
            assert!(tool["description"].is_string(), "{tool}");
            let schema = match format {
                "mcp" => &tool["inputSchema"],
                "anthropic" => &tool["input_schema"],
                _ => &tool["parameters"],
            };
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(
                format == "mcp" || schema["properties"].is_object(),
                "{tool}"
            );
        }
    }
    assert_eq!((hashes.len(), all.len()), (1, 1), "the same in each");
    let list = app.formatted("").await;
    assert_eq!(list["format"], "mcp");
    let tools = list["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "mcp_old_echo");
    let meta = &echo.unwrap()["_meta"];
    assert_eq!(meta["portway/server"], "old");
    assert_eq!(meta["portway/tool"], "echo");
    assert_eq!(meta["example.org/kind"], "fixture");
    let list = app.formatted("format=copilot").await;
    let tools = list["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "mcp_old_echo");
    let echo = echo.unwrap();
    assert_eq!(echo["skipPermission"], true);
    assert_eq!(
        echo["metadata"],
        json!({"server": "old", "tool": "echo", "title": "Echo",
            "annotations": {"readOnlyHint": true, "openWorldHint": false}})
    );
}

#[tokio::test]
async fn d10_a_list_that_has_not_changed_is_not_sent_again() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let path = format!("{LIST}?format=openai");
    let first = app.get(&path).await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with('"'), "a strong one: {tag}");
    let bearer = format!("Bearer {TOKEN}");
    let ask = async |tag: &str| {
        let headers = [("authorization", bearer.as_str()), ("if-none-match", tag)];
        app.request("GET", &path, None, &headers).await
    };
    for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let same = ask(&known).await;
        assert_eq!((same.status, same.text.as_str()), (304, ""), "{known}");
        assert_eq!(same.headers["etag"], tag.as_str());
    }
    assert_eq!(ask("\"x\"").await.status, 200);
    let other = app.get(&format!("{LIST}?format=copilot")).await;
    assert_ne!(other.headers["etag"], tag.as_str());

    let toggled = app.call_as("mcp", "one:toggle_tool", json!({})).await;
    toggled.expect(200);
    let start = tokio::time::Instant::now();
    let changed = loop {
        let answer = ask(&tag).await;
        if answer.status == 200 {
            break answer;
        }
        assert!(start.elapsed() < crate::app::PATIENCE, "never changes");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_ne!(changed.headers["etag"], tag.as_str());
    assert_ne!(changed.body["hash"], first.body["hash"]);
    assert!(names(&changed.body).contains(&"mcp_one_toggled"));
}

#[tokio::test]
async fn d10_a_filter_narrows_what_is_listed_and_called() {
    let filters = json!({"filters": {"sums": {"allow": ["one:add"]}, "bad": {"allow": ["one"]}}});
    let app = setup()
        .mcp(fixtures(&[("one", &[])]))
        .file(".portway.json", filters.to_string())
        .start()
        .await;
    app.until_status("one", "connected").await;
    for format in FORMATS {
        let list = app.formatted(&format!("format={format}&filter=sums")).await;
        assert_eq!(names(&list), ["mcp_one_add"]);
        let query = format!("format={format}&filter=sums");
        let body = json!({"arguments": {"a": 1, "b": 2}});
        let sum = app.post(&at("mcp_one_add", &query), body).await.expect(200);
        assert_eq!(text(format, &sum), r#"{"sum":3.0}"#);
        for hidden in ["mcp_one_echo", "one:echo"] {
            let body = json!({"arguments": {"text": "hi"}});
            let answer = app.post(&at(hidden, &query), body).await;
            is_no_tool(format, hidden, answer);
        }
    }
    let unknown = app.get(&format!("{LIST}?filter=none")).await;
    refused(unknown, 404, "NOT_FOUND");
    let bad = app.get(&format!("{LIST}?filter=bad")).await;
    refused(bad, 409, "CONFLICT");
}

#[tokio::test]
async fn d10_a_wrong_question_is_told_what_is_wrong() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    for (query, field) in [
        ("format=gemini", "format"),
        ("format=", "format"),
        ("format=OpenAI", "format"),
        ("entry=", "entry"),
    ] {
        assert_eq!(
            wrong_fields(app.get(&format!("{LIST}?{query}")).await),
            [field]
        );
        let call = app.post(&at("one:echo", query), json!({})).await;
        assert_eq!(wrong_fields(call), [field]);
    }
    for entry in ["7", "mine", "99999999999999999999"] {
        let answer = app.get(&format!("{LIST}?entry={entry}")).await;
        refused(answer, 404, "NOT_FOUND");
    }
    let path = at("mcp_one_echo", "format=openai");
    for (body, field) in [
        (json!({"argument": {"text": "hi"}}), "argument"),
        (json!({"arguments": ["hi"]}), "arguments"),
        (json!({"arguments": "{}"}), "arguments"),
        (json!({"arguments": {}, "id": 5}), "id"),
        (json!({"arguments": {}, "name": "one:add"}), "name"),
        (json!({"arguments": {}, "name": "nothing"}), "name"),
        (json!({"arguments": {}, "name": 5}), "name"),
        (json!({"function": "echo"}), "function"),
        (json!({"function": {"arguments": 5}}), "function.arguments"),
        (
            json!({"function": {"name": "mcp_one_add"}}),
            "function.name",
        ),
        (json!({"type": "tool_use", "function": {}}), "type"),
        (json!({"input": []}), "input"),
        (json!({"input": {}, "name": "mcp_one_add"}), "name"),
        (json!([]), "body"),
    ] {
        let answer = app.post(&path, body.clone()).await;
        assert_eq!(wrong_fields(answer), [field], "{body}");
    }
    let twice = r#"{"arguments": {"text": "a"}, "arguments": {"text": "b"}}"#;
    let answer = app.send("POST", &path, Some(twice.into())).await;
    assert_eq!(wrong_fields(answer), ["arguments"]);
    let answer = app.send("POST", &path, Some("{".into())).await;
    refused(answer, 400, "BAD_REQUEST");
    for none in ["mcp_one_none", "one:none", "two:echo", "echo", "%20"] {
        let answer = app.post(&at(none, ""), json!({})).await;
        refused(answer, 404, "NOT_FOUND");
        for format in FORMATS {
            let answer = app.call_as(format, none, json!({})).await;
            is_no_tool(format, &none.replace("%20", " "), answer);
        }
    }
}
