use serde_json::json;

use super::*;
use crate::app::PATIENCE;
use crate::e_records::text as string;
use crate::mcp_front::post;

#[tokio::test]
async fn d10_a_call_is_answered_in_the_shape_of_its_format() {
    let app = portway().await;
    for server in ["one", "old"] {
        for name in [format!("mcp_{server}_echo"), format!("{server}:echo")] {
            for format in FORMATS {
                let answer = app.call_as(format, &name, json!({"text": "hi"})).await;
                let answer = answer.expect(200);
                assert_eq!(text(format, &answer), "hi", "{answer}");
                assert!(!failed(format, &answer), "{answer}");
            }
        }
        let name = format!("{server}:content");
        let big = app.call_as("mcp", &name, json!({})).await;
        assert!(big.text.contains("9007199254740993"), "{}", big.text);
    }
    // A call as the model made it goes in, what its API takes comes out.
    let name = "mcp_one_echo";
    let call = json!({"id": "call_1", "type": "function", "index": 0,
        "function": {"name": name, "arguments": "{\"text\": \"hi\"}"}});
    let answer = app.post(&at(name, "format=openai"), call).await.expect(200);
    assert_eq!(
        answer,
        json!({"role": "tool", "tool_call_id": "call_1", "content": "hi"})
    );
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {"text": "hi"}});
    let answer = app.post(&at(name, "format=anthropic"), call).await;
    assert_eq!(
        answer.expect(200),
        json!({"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "hi"}], "is_error": false})
    );
    // Without a body, where a tool takes nothing.
    for body in ["", "{\"function\":{\"arguments\":\"\"}}"] {
        let body = (!body.is_empty()).then(|| body.to_owned());
        let path = at("one:pid", "format=openai");
        let answer = app.send("POST", &path, body).await.expect(200);
        let pid: Result<u32, _> = text("openai", &answer).parse();
        assert!(pid.is_ok(), "{answer}");
    }
}

/// Whatever goes wrong is told as the format tells failures, with the words
/// of whoever knows.
#[tokio::test]
async fn d10_every_failure_is_an_answer_with_its_text() {
    let app = portway().await;
    for format in FORMATS {
        let table = [
            ("one:fail", json!({"text": "no paper"}), "no paper"),
            ("old:fail", json!({"text": "no paper"}), "no paper"),
            ("one:error", json!({"data": {"why": 7}}), r#"{"why":7}"#),
            ("old:error", json!({}), "an error as told"),
            (
                "old:elicit",
                json!({}),
                "needs a client that supports elicitation/create",
            ),
            ("one:elicit", json!({}), "elicitation"),
            ("old:sample", json!({}), "sampling/createMessage"),
            ("mcp_off_echo", json!({}), "server \"off\" is not connected"),
            ("off:echo", json!({}), "server \"off\" is not connected"),
            ("hurried:hang", json!({}), "700 ms"),
        ];
        for (tool, arguments, said) in table {
            let answer = app.call_as(format, tool, arguments).await.expect(200);
            assert!(failed(format, &answer), "{format} {tool}: {answer}");
            assert!(text(format, &answer).contains(said), "{tool}: {answer}");
            if format == "copilot" {
                let late = tool == "hurried:hang";
                assert_eq!(answer["resultType"] == "timeout", late, "{answer}");
            }
        }
    }
    let lost = app.call_as("copilot", "hurried:crash", json!({})).await;
    assert!(failed("copilot", &lost.expect(200)));
}

#[tokio::test]
async fn d10_arguments_are_held_against_the_tools_own_schema() {
    let app = portway().await;
    let begun = async || -> u64 {
        let count = app.call_as("mcp", "one:count", json!({})).await;
        text("mcp", &count.expect(200)).parse().unwrap()
    };
    let before = begun().await;
    for format in FORMATS {
        for (tool, arguments, said) in [
            ("mcp_one_echo", json!({}), "text: is missing"),
            (
                "one:echo",
                json!({"text": 5}),
                "text: must be string, not number",
            ),
            ("one:big", json!({"bytes": -1}), "bytes: must be at least 0"),
            (
                "one:elicit",
                json!({"mode": "x"}),
                r#"mode: must be one of "form", "url""#,
            ),
            ("one:pid", json!({"x": 1}), "x: is not an argument"),
        ] {
            let answer = app.call_as(format, tool, arguments).await.expect(200);
            assert!(failed(format, &answer), "{answer}");
            assert!(text(format, &answer).contains(said), "{answer}");
        }
    }
    let path = at("mcp_one_echo", "format=openai");
    for (written, said) in [("{\"text\":", "not JSON"), ("[]", "a JSON object")] {
        let call = json!({"id": "c", "function": {"name": "mcp_one_echo", "arguments": written}});
        let answer = app.post(&path, call).await.expect(200);
        assert!(failed("openai", &answer), "{answer}");
        assert!(text("openai", &answer).contains(said), "{answer}");
    }
    assert_eq!(begun().await, before, "none of them reached the server");
    // What the schema says nothing about goes through.
    let more = json!({"text": "hi", "more": [1, {"x": null}]});
    let answer = app.call_as("mcp", "one:echo", more).await;
    assert_eq!(text("mcp", &answer.expect(200)), "hi");
}

/// What a model made up, or what was there when it was asked.
#[tokio::test]
async fn d10_a_tool_that_is_not_there_is_a_failure_that_a_loop_survives() {
    let app = portway().await;
    let path = at("mcp_one_ecco", "format=openai");
    let call = json!({"id": "c1", "type": "function",
        "function": {"name": "mcp_one_ecco", "arguments": "{\"text\":"}});
    let answer = app.post(&path, call).await.expect(200);
    assert_eq!(answer["tool_call_id"], "c1");
    let said = text("openai", &answer);
    assert!(said.starts_with("Error: there is no tool"), "{said}");
    assert!(said.contains("did you mean mcp_one_echo"), "{said}");
    let path = at("echo", "format=anthropic");
    let call = json!({"type": "tool_use", "id": "c2", "name": "echo", "input": {}});
    let answer = app.post(&path, call).await.expect(200);
    assert_eq!(answer["tool_use_id"], "c2");
    let said = text("anthropic", &answer);
    let near = "did you mean mcp_hurried_echo, mcp_old_echo, mcp_one_echo?";
    assert!(said.contains(near), "{said}");
    assert_eq!(app.deleted("/api/mcp/servers/one").await.status, 204);
    let gone = || async {
        let answer = app.call_as("mcp", "mcp_one_echo", json!({})).await;
        answer.status == 404
    };
    crate::mcp_front::until("its tools are gone", gone).await;
    for format in FORMATS {
        let answer = app.call_as(format, "mcp_one_echo", json!({})).await;
        is_no_tool(format, "mcp_one_echo", answer);
    }
}

#[tokio::test]
async fn d10_a_plain_body_may_name_its_tool() {
    let app = portway().await;
    for format in FORMATS {
        let path = at("mcp_one_echo", &format!("format={format}"));
        for name in [json!("mcp_one_echo"), json!("one:echo"), json!(null)] {
            let body = json!({"name": name, "arguments": {"text": "hi"}});
            let answer = app.post(&path, body).await.expect(200);
            assert_eq!(text(format, &answer), "hi");
        }
    }
}

#[tokio::test]
async fn d10_hanging_up_cancels_the_call() {
    let app = portway().await;
    for server in ["one", "old"] {
        let asked = async |tool: &str| {
            let name = format!("{server}:{tool}");
            let answer = app.call_as("mcp", &name, json!({})).await;
            string(&answer.expect(200)["content"][0]["text"]).to_owned()
        };
        let before: u64 = asked("count").await.parse().unwrap();
        let path = at(&format!("mcp_{server}_sleep"), "format=copilot");
        let waiting = post(&app, &path, json!({"arguments": {"ms": 600_000}}));
        let begun = async {
            while asked("count").await.parse::<u64>().unwrap() == before {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            talk = waiting.send() => panic!("an answer: {}", talk.status),
            begun = tokio::time::timeout(PATIENCE, begun) => begun.expect("it begins"),
        }
        let told = async {
            while !asked("cancelled").await.contains("\"sleep\"") {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let told = tokio::time::timeout(PATIENCE, told).await;
        told.expect("the server is told");
    }
}

#[tokio::test]
async fn d10_calls_are_like_any_others() {
    let app = portway().await;
    // Progress restarts the limit.
    let steps = json!({"steps": 6, "ms": 250});
    let answer = app.call_as("openai", "hurried:progress", steps).await;
    assert_eq!(text("openai", &answer.expect(200)), "6 steps");
    // They are written down.
    let told = async {
        loop {
            let activity = app.get("/api/mcp/activity").await.expect(200);
            let recent = activity["recent"].as_array().unwrap().clone();
            if let Some(call) = recent.iter().find(|call| call["tool"] == "progress") {
                return call.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let call = tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert_eq!(call["server"], "hurried");
    assert_eq!(call["outcome"], "ok");
    // A slow one delays nobody.
    let slow = app.call_as("mcp", "one:sleep", json!({"ms": 3_600_000}));
    let quick = app.call_as("mcp", "one:echo", json!({"text": "hi"}));
    tokio::select! {
        answer = slow => panic!("the slow call is over: {}", answer.text),
        answer = quick => drop(answer.expect(200)),
    }
}
