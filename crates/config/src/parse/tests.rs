use std::time::Duration;

use super::*;
use crate::{Containment, EraChoice, Isolation, RemoteKind, Target, TransportKind};

fn read(definition: &str) -> Definition {
    let text = format!("{{\"mcpServers\": {{\n\"x\": {definition}\n}}}}");
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    parsed.servers["x"].clone()
}

#[track_caller]
fn good(definition: &str) -> ServerSpec {
    read(definition)
        .unwrap_or_else(|p| panic!("{definition}: {p:?}"))
        .1
}

/// The field of the only problem.
#[track_caller]
fn bad(definition: &str) -> String {
    let problems = read(definition).expect_err(definition);
    assert_eq!(problems.len(), 1, "{definition}: {problems:?}");
    let problem = &problems[0];
    assert_eq!(problem.server.as_deref(), Some("x"));
    assert!(problem.line >= Some(2), "{problem:?}");
    assert!(!problem.message.is_empty());
    problem.field.clone()
}

#[test]
fn b1_every_way_to_name_a_transport() {
    use TransportKind::*;
    for (definition, kind) in [
        (r#"{"command": "c"}"#, Stdio),
        (r#"{"url": "http://h"}"#, Http),
        (r#"{"type": "stdio", "command": "c"}"#, Stdio),
        (r#"{"transport": "stdio", "command": "c"}"#, Stdio),
        (r#"{"type": "http", "url": "http://h"}"#, Http),
        (r#"{"transport": "http", "url": "https://h:1/p?q#f"}"#, Http),
        (r#"{"type": "sse", "url": "http://h"}"#, Sse),
        (r#"{"transport": "sse", "url": "http://[::1]:2/sse"}"#, Sse),
        (r#"{"type": "streamable-http", "url": "http://h"}"#, Http),
        (r#"{"type": "streamableHttp", "url": "http://h"}"#, Http),
        (
            r#"{"type": "http", "transport": "http", "url": "http://h"}"#,
            Http,
        ),
        (
            r#"{"type": "streamable-http", "transport": "http", "url": "http://h"}"#,
            Http,
        ),
        (
            r#"{"type": "remote", "transport": "sse", "url": "http://h"}"#,
            Sse,
        ),
        (r#"{"type": null, "command": "c", "url": null}"#, Stdio),
        (r#"{"type": "local", "command": ["c"]}"#, Stdio),
        (r#"{"type": "remote", "url": "http://h"}"#, Http),
    ] {
        assert_eq!(good(definition).transport(), kind, "{definition}");
    }
}

#[test]
fn b1_every_field_arrives() {
    let spec = good(
        r#"{"command": "c", "args": ["a", "${B}"], "env": {"A": "1", "K": ""},
            "cwd": "/w", "timeout": 1500, "enabled": false, "era": "modern",
            "containment": "group", "isolation": "session", "alwaysAllow": [], "oauth": {}}"#,
    );
    let Target::Stdio {
        command,
        args,
        env,
        cwd,
    } = &spec.target
    else {
        panic!("{spec:?}")
    };
    assert_eq!((command.as_str(), cwd.as_deref()), ("c", Some("/w")));
    assert_eq!(args, &["a", "${B}"]);
    assert_eq!(
        env.iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect::<Vec<_>>(),
        [("A", "1"), ("K", "")]
    );
    assert_eq!(spec.timeout, Duration::from_millis(1500));
    assert_eq!((spec.enabled, spec.era), (false, EraChoice::Modern));
    assert_eq!(
        (spec.containment, spec.isolation),
        (Containment::Group, Isolation::Session)
    );

    let spec =
        good(r#"{"url": "https://${HOST}/${PATH:-mcp}", "headers": {"X-A": "b"}, "env": {}}"#);
    let Target::Remote { kind, url, headers } = &spec.target else {
        panic!("{spec:?}")
    };
    assert_eq!(*kind, RemoteKind::Http);
    assert_eq!(url, "https://${HOST}/${PATH:-mcp}");
    assert_eq!(headers["X-A"], "b");
    assert!(spec.enabled);
    assert_eq!(spec.timeout, Duration::from_secs(30));

    assert!(good(r#"{"command": "c", "disabled": false}"#).enabled);
    assert!(!good(r#"{"command": "c", "disabled": true}"#).enabled);
    assert!(!good(r#"{"command": "c", "disabled": true, "enabled": false}"#).enabled);
}

#[test]
fn b5_the_shape_of_document_004_is_the_same_server() {
    let ours = good(r#"{"command": "npx", "args": ["x"], "env": {"A": "b"}, "timeout": 30000}"#);
    let theirs = good(
        r#"{"type":"local","command":["npx","x"],"environment":{"A":"b"},"enabled":true,"timeout":30000}"#,
    );
    assert_eq!(ours, theirs);
    let ours = good(r#"{"type": "http", "url": "http://h", "headers": {"A": "b"}}"#);
    let theirs = good(r#"{"type":"remote","url":"http://h","headers":{"A":"b"}}"#);
    assert_eq!(ours, theirs);
}

#[test]
fn b3_a_bad_field_is_named() {
    for (definition, field) in [
        ("3", ""),
        ("null", ""),
        ("{}", "command"),
        (r#"{"type": "stdio"}"#, "command"),
        (r#"{"type": "http"}"#, "url"),
        (r#"{"type": "sse", "url": null}"#, "url"),
        (r#"{"type": "ws", "url": "http://h"}"#, "type"),
        (r#"{"type": 1, "url": "http://h"}"#, "type"),
        (r#"{"transport": "STDIO", "command": "c"}"#, "transport"),
        (
            r#"{"type": "stdio", "transport": "sse", "command": "c"}"#,
            "transport",
        ),
        (
            r#"{"type": "local", "transport": "remote", "command": "c"}"#,
            "transport",
        ),
        (r#"{"command": "c", "url": "http://h"}"#, "url"),
        (
            r#"{"type": "stdio", "command": "c", "url": "http://h"}"#,
            "url",
        ),
        (
            r#"{"type": "http", "command": "c", "url": "http://h"}"#,
            "command",
        ),
        (r#"{"command": ""}"#, "command"),
        (r#"{"command": "  "}"#, "command"),
        (r#"{"command": 1}"#, "command"),
        (r#"{"command": []}"#, "command"),
        (r#"{"command": ["c", 2]}"#, "command[1]"),
        (r#"{"command": ["c", "a"], "args": ["b"]}"#, "args"),
        (r#"{"command": "c\u0000"}"#, "command"),
        (r#"{"command": "c", "args": "a"}"#, "args"),
        (r#"{"command": "c", "args": ["a", 1]}"#, "args[1]"),
        (r#"{"command": "c", "args": ["a", null]}"#, "args[1]"),
        (r#"{"command": "c", "env": []}"#, "env"),
        (r#"{"command": "c", "env": {"PORT": 1}}"#, "env.PORT"),
        (r#"{"command": "c", "env": {"": "x"}}"#, "env."),
        (r#"{"command": "c", "env": {"A=B": "x"}}"#, "env.A=B"),
        (r#"{"command": "c", "env": {"A": "x", "A": "y"}}"#, "env.A"),
        (r#"{"command": "c", "env": {"A": "\u0000"}}"#, "env.A"),
        (
            r#"{"command": "c", "env": {}, "environment": {}}"#,
            "environment",
        ),
        (r#"{"command": "c", "cwd": 1}"#, "cwd"),
        (r#"{"command": "c", "cwd": ""}"#, "cwd"),
        (r#"{"command": "c", "command": "d"}"#, "command"),
        (r#"{"url": ""}"#, "url"),
        (r#"{"url": 1}"#, "url"),
        (r#"{"url": "h/mcp"}"#, "url"),
        (r#"{"url": "ftp://h"}"#, "url"),
        (r#"{"url": "file:///etc/passwd"}"#, "url"),
        (r#"{"url": "http://"}"#, "url"),
        (r#"{"url": "ftp://${HOST}"}"#, "url"),
        (r#"{"url": "http://h:99999"}"#, "url"),
        (r#"{"url": "http://h", "headers": []}"#, "headers"),
        (
            r#"{"url": "http://h", "headers": {"A B": "x"}}"#,
            "headers.A B",
        ),
        (r#"{"url": "http://h", "headers": {"": "x"}}"#, "headers."),
        (
            r#"{"url": "http://h", "headers": {"A": "x\r\nB: y"}}"#,
            "headers.A",
        ),
        (r#"{"url": "http://h", "headers": {"A": "ü"}}"#, "headers.A"),
        (r#"{"url": "http://h", "headers": {"A": 1}}"#, "headers.A"),
        (
            r#"{"url": "http://h", "headers": {"A": "1", "a": "2"}}"#,
            "headers.a",
        ),
        (
            r#"{"url": "http://h", "headers": {"Content-Length": "1"}}"#,
            "headers.Content-Length",
        ),
        (r#"{"command": "c", "enabled": "yes"}"#, "enabled"),
        (r#"{"command": "c", "disabled": 1}"#, "disabled"),
        (
            r#"{"command": "c", "enabled": true, "disabled": true}"#,
            "disabled",
        ),
        (r#"{"command": "c", "timeout": 0}"#, "timeout"),
        (r#"{"command": "c", "timeout": -1}"#, "timeout"),
        (r#"{"command": "c", "timeout": 1.5}"#, "timeout"),
        (r#"{"command": "c", "timeout": "30"}"#, "timeout"),
        (r#"{"command": "c", "timeout": 86400001}"#, "timeout"),
        (
            r#"{"command": "c", "timeout": 99999999999999999999}"#,
            "timeout",
        ),
        (r#"{"command": "c", "era": "2026"}"#, "era"),
        (
            r#"{"command": "c", "containment": "docker"}"#,
            "containment",
        ),
        (r#"{"command": "c", "isolation": 1}"#, "isolation"),
    ] {
        assert_eq!(bad(definition), field, "{definition}");
    }
}

#[test]
fn b3_everything_wrong_is_said_at_once_with_its_place() {
    let text = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": 1,\n      \"args\": [2],\n      \
                \"env\": {\"Ä\": \"\", \"B\": 3},\n      \"timeout\": 0\n    }\n  }\n}";
    let parsed = parse_file(text, Dialect::Mcp).unwrap();
    let problems = parsed.servers["x"].clone().unwrap_err();
    let told: Vec<(&str, u32, u32)> = problems
        .iter()
        .map(|p| (p.field.as_str(), p.line.unwrap(), p.column.unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("command", 4, 18),
            ("args[0]", 5, 16),
            ("env.B", 6, 29),
            ("timeout", 7, 18)
        ]
    );
    assert_eq!(
        problems[2].to_string(),
        "server \"x\": env.B: must be a string, not a number (line 6, column 29)"
    );
}

#[test]
fn b3_a_problem_repeats_no_value() {
    for definition in [
        r#"{"command": "c", "env": {"A": "canary\u0000"}}"#,
        r#"{"url": "http://u:canary@h:99999/?t=canary"}"#,
        r#"{"url": "http://h", "headers": {"A": "canary\n"}}"#,
        r#"{"command": "c", "args": ["canary\u0000"], "env": ["canary"]}"#,
    ] {
        let problems = read(definition).unwrap_err();
        assert!(!format!("{problems:?}").contains("canary"), "{problems:?}");
    }
}

#[test]
fn b3_one_bad_server_costs_only_itself() {
    let servers: Vec<String> = (0..500)
        .map(|i| match i % 5 {
            0 => format!("\"s{i}\": {{\"command\": {i}}}"),
            _ => format!("\"s{i}\": {{\"command\": \"c\"}}"),
        })
        .collect();
    let text = format!("{{\"mcpServers\": {{\n{}\n}}}}", servers.join(",\n"));
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    assert_eq!(parsed.servers.len(), 500);
    let mut good = 0;
    for (i, (name, definition)) in parsed.servers.iter().enumerate() {
        assert_eq!(*name, format!("s{i}"));
        match definition {
            Ok((parsed_name, _)) => {
                assert_eq!(parsed_name.as_str(), name);
                good += 1;
            }
            Err(problems) => {
                assert_eq!(problems[0].server.as_deref(), Some(name.as_str()));
                assert_eq!(problems[0].field, "command");
                assert_eq!(problems[0].line, Some(u32::try_from(i).unwrap() + 2));
            }
        }
    }
    assert_eq!(good, 400);
}

#[test]
fn names_that_do_not_fit_are_problems_of_that_name() {
    let long = "n".repeat(65);
    let uuid = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    for name in [
        "", " a", "a ", "a/b", "../../x", "a:b", "a%2eb", "a\\u0000", "-a", "a\\n", &long, uuid,
    ] {
        let text = format!(
            r#"{{"mcpServers": {{"{name}": {{"command": "c"}}, "ok": {{"command": "c"}}}}}}"#
        );
        let parsed = parse_file(&text, Dialect::Mcp).unwrap();
        let problems = parsed.servers[0].as_ref().expect_err(name);
        assert_eq!(problems[0].field, "name", "{name}");
        assert!(parsed.servers["ok"].is_ok());
    }
    for name in ["a", "A b", "a.b-c_d", "0", "文件", "日本 語"] {
        let text = format!(r#"{{"mcpServers": {{"{name}": {{"command": "c"}}}}}}"#);
        assert!(
            parse_file(&text, Dialect::Mcp).unwrap().servers[name].is_ok(),
            "{name}"
        );
    }
}

#[test]
fn b3_comments_trailing_commas_and_a_byte_order_mark_are_read() {
    let text = "\u{feff}// a\n{ /* b */ \"mcpServers\": { \"x\": {\"command\": \"c\", \"args\": [\"a\",],}, }, }\n// c";
    let parsed = parse_file(text, Dialect::Mcp).unwrap();
    assert!(parsed.servers["x"].is_ok());
    assert!(parsed.problems.is_empty());
}

#[test]
fn b3_a_file_that_is_not_json_is_one_problem() {
    for (text, line) in [
        ("", None),
        ("  \n", None),
        ("// nothing", None),
        ("{", Some(1)),
        (
            "{\n\"mcpServers\": {\n\"x\": {\"command\": \"c\"\n",
            Some(3),
        ),
        ("{'mcpServers': {}}", Some(1)),
        ("{mcpServers: {}}", Some(1)),
        ("{\"mcpServers\": {}} {}", Some(1)),
        ("{\"mcpServers\": {}\n \"x\": 1}", Some(1)),
        ("{\"mcpServers\": {\"x\": 0x1}}", Some(1)),
        ("[]", Some(1)),
        ("\"x\"", Some(1)),
        ("{\n\"mcpServers\": []}", Some(2)),
        ("{\"mcpServers\": {},\n\"mcpServers\": {}}", Some(2)),
        ("\0\0\0\0", Some(1)),
    ] {
        let problem = parse_file(text, Dialect::Mcp).expect_err(text);
        assert_eq!(
            (problem.server, problem.line),
            (None, line),
            "{text:?}: {}",
            problem.message
        );
    }
    let deep = format!("{{\"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse_file(&deep, Dialect::Mcp).is_err());
}

#[test]
fn a_file_without_servers_is_fine_and_a_foreign_key_is_said() {
    for text in [
        "{}",
        "{\"mcpServers\": {}}",
        "{\"mcpServers\": null, \"x\": 1}",
    ] {
        assert_eq!(
            parse_file(text, Dialect::Mcp).unwrap(),
            ServerFile::default()
        );
    }
    let parsed = parse_file(r#"{"servers": {"x": {"command": "c"}}}"#, Dialect::Mcp).unwrap();
    assert_eq!(parsed.problems[0].field, "servers");
    assert!(parsed.servers.is_empty());
}

#[test]
fn a_name_given_twice_is_no_server() {
    let text = "{\"mcpServers\": {\"x\": {\"command\": \"a\"}, \"y\": {\"command\": \"b\"},\n\"x\": {\"command\": \"c\"}}}";
    let parsed = parse_file(text, Dialect::Mcp).unwrap();
    assert_eq!(parsed.servers.len(), 2);
    let problems = parsed.servers["x"].clone().unwrap_err();
    assert_eq!(
        (problems[0].field.as_str(), problems[0].line),
        ("name", Some(2))
    );
    assert!(parsed.servers["y"].is_ok());
}

#[test]
fn b4_kode_has_servers_per_project() {
    let text = r#"{
        "theme": "dark", "numStartups": 3,
        "mcpServers": {"g": {"type": "sse", "url": "http://h/sse"}},
        "projects": {
            "/a": {"allowedTools": [], "mcpServers": {"p": {"command": "c"}, "bad": {}}},
            "/b": {"mcpServers": {}},
            "/c": {"mcpServers": 7},
            "/d": 8
        }
    }"#;
    let parsed = parse_file(text, Dialect::Kode).unwrap();
    assert_eq!(
        parsed.servers["g"].as_ref().unwrap().1.transport(),
        TransportKind::Sse
    );
    assert_eq!(parsed.projects.keys().collect::<Vec<_>>(), ["/a"]);
    assert!(parsed.projects["/a"]["p"].is_ok());
    assert!(parsed.projects["/a"]["bad"].is_err());
    assert_eq!(parsed.problems[0].field, "projects[\"/c\"].mcpServers");
}

#[test]
fn a_file_of_five_megabytes_is_read_in_a_moment() {
    let servers: Vec<String> = (0..20_000)
        .map(|i| {
            let filler = "x".repeat(150);
            format!("    \"s{i}\": {{\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"{filler}\"],\n      \"env\": {{ \"A\": \"${{B}}\" }}\n    }}")
        })
        .collect();
    let text = format!(
        "{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n",
        servers.join(",\n")
    );
    assert!(text.len() > 4_500_000, "{}", text.len());
    let start = std::time::Instant::now();
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    println!("parsed {} bytes in {:?}", text.len(), start.elapsed());
    assert_eq!(
        parsed.servers.values().filter(|s| s.is_ok()).count(),
        20_000
    );
}

mod any;
