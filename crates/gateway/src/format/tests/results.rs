use super::*;

fn answered(format: Format, result: &Value) -> Value {
    let result = raw(result);
    let answer = answer(format, &ToolOutcome::Result(result), Some("c1"));
    serde_json::from_str(&answer).unwrap()
}

fn block(block: Value) -> Value {
    json!({ "content": [block] })
}

/// Every kind of content: what OpenAI's message and Copilot's result say,
/// Anthropic's block, and what Copilot gets as binary.
#[test]
fn d10_every_kind_of_content_reaches_every_format() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let source = |kind: &str, mime: &str| {
        json!({"type": kind,
        "source": {"type": "base64", "media_type": mime, "data": "AAAA"}})
    };
    let table = [
        (text("hi"), "hi", text("hi"), None),
        (
            json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
            "[image: image/png, 3 bytes]",
            source("image", "image/png"),
            Some(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})),
        ),
        (
            json!({"type": "image", "data": "AAA=", "mimeType": "image/svg+xml"}),
            "[image: image/svg+xml, 2 bytes]",
            text("[image: image/svg+xml, 2 bytes]"),
            Some(json!({"type": "image", "data": "AAA=", "mimeType": "image/svg+xml"})),
        ),
        (
            json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            "[audio: audio/wav, 3 bytes]",
            text("[audio: audio/wav, 3 bytes]"),
            Some(
                json!({"type": "resource", "data": "AAAA", "mimeType": "audio/wav", "description": "audio"}),
            ),
        ),
        (
            json!({"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain",
                "size": 12, "description": "About a."}),
            "[link to resource \"a\": file:///a, text/plain, 12 bytes] About a.",
            text("[link to resource \"a\": file:///a, text/plain, 12 bytes] About a."),
            None,
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "in it"}}),
            "[resource file:///a, text/plain]\nin it",
            text("[resource file:///a, text/plain]\nin it"),
            None,
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "AAAA"}}),
            "[resource file:///b: application/pdf, 3 bytes]",
            source("document", "application/pdf"),
            Some(
                json!({"type": "resource", "data": "AAAA", "mimeType": "application/pdf", "description": "file:///b"}),
            ),
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}}),
            "[resource file:///c: application/octet-stream, 3 bytes]",
            text("[resource file:///c: application/octet-stream, 3 bytes]"),
            Some(
                json!({"type": "resource", "data": "AAAA", "mimeType": "application/octet-stream", "description": "file:///c"}),
            ),
        ),
        (
            json!({"type": "hologram", "x": 1}),
            "[content of type \"hologram\": 25 bytes of JSON]",
            text("[content of type \"hologram\": 25 bytes of JSON]"),
            None,
        ),
        (
            json!({"type": "image", "data": 5}),
            "[content that cannot be read: 25 bytes of JSON]",
            text("[content that cannot be read: 25 bytes of JSON]"),
            None,
        ),
    ];
    for (content, openai, anthropic, binary) in table {
        let result = block(content.clone());
        assert_eq!(
            answered(Format::OpenAi, &result),
            json!({"role": "tool", "tool_call_id": "c1", "content": openai}),
        );
        assert_eq!(
            answered(Format::Anthropic, &result),
            json!({"type": "tool_result", "tool_use_id": "c1", "content": [anthropic], "is_error": false}),
        );
        let mut expected = json!({"textResultForLlm": openai, "resultType": "success"});
        if let Some(binary) = binary {
            expected["binaryResultsForLlm"] = json!([binary]);
        }
        assert_eq!(answered(Format::Copilot, &result), expected, "{content}");
        assert_eq!(answered(Format::Mcp, &result), result);
    }
}

#[test]
fn d10_structured_content_is_said_where_there_is_no_text() {
    let structured = json!({"content": [], "structuredContent": {"sum": 3}});
    let both = json!({"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}});
    let alone = json!({"structuredContent": {"sum": 3}});
    for (result, said) in [
        (structured, r#"{"sum":3}"#),
        (both, "3"),
        (alone, r#"{"sum":3}"#),
    ] {
        assert_eq!(answered(Format::OpenAi, &result)["content"], said);
        assert_eq!(
            answered(Format::Anthropic, &result)["content"][0]["text"],
            said
        );
        assert_eq!(answered(Format::Copilot, &result)["textResultForLlm"], said);
    }
}

#[test]
fn d10_failures_are_told_as_such() {
    let failed = json!({"content": [{"type": "text", "text": "no disk"}], "isError": true});
    let silent = json!({"content": [], "isError": true});
    let silence = "The tool failed without saying why.";
    for (result, said) in [(failed, "no disk"), (silent, silence)] {
        let openai = answered(Format::OpenAi, &result);
        assert_eq!(openai["content"], format!("Error: {said}"));
        let anthropic = answered(Format::Anthropic, &result);
        assert_eq!(anthropic["is_error"], true);
        assert_eq!(
            anthropic["content"],
            json!([{"type": "text", "text": said}])
        );
        let copilot = answered(Format::Copilot, &result);
        assert_eq!(
            copilot,
            json!({"textResultForLlm": said, "resultType": "failure", "error": said})
        );
    }
    for (outcome, kind) in [
        (ToolOutcome::Failure("gone".into()), "failure"),
        (ToolOutcome::Timeout("gone".into()), "timeout"),
    ] {
        let told =
            |format| -> Value { serde_json::from_str(&answer(format, &outcome, None)).unwrap() };
        assert_eq!(
            told(Format::Copilot),
            json!({"textResultForLlm": "gone", "resultType": kind, "error": "gone"})
        );
        assert_eq!(
            told(Format::OpenAi),
            json!({"role": "tool", "content": "Error: gone"})
        );
        assert_eq!(
            told(Format::Anthropic),
            json!({"type": "tool_result", "content": [{"type": "text", "text": "gone"}], "is_error": true})
        );
        let mcp = told(Format::Mcp);
        assert_eq!(
            (&mcp["isError"], &mcp["content"][0]["text"]),
            (&json!(true), &json!("gone"))
        );
    }
}

#[test]
fn d10_blank_texts_are_not_given_to_anthropic() {
    let blank =
        json!({"content": [{"type": "text", "text": " \n"}, {"type": "text", "text": "x"}]});
    let answer = answered(Format::Anthropic, &blank);
    assert_eq!(answer["content"], json!([{"type": "text", "text": "x"}]));
    let nothing = json!({"content": []});
    assert_eq!(answered(Format::Anthropic, &nothing)["content"], json!([]));
    assert_eq!(answered(Format::OpenAi, &nothing)["content"], "");
}
