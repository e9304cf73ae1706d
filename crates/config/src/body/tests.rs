use super::*;
use crate::RemoteKind;
use crate::view::masked_config;

fn fields(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|p| p.field.as_str()).collect()
}

fn body(text: &str) -> Registration {
    parse_body(text.as_bytes()).unwrap_or_else(|p| panic!("{text}: {p:?}"))
}

#[test]
fn a1_a_registration_is_read_in_every_shape() {
    let plain = body(
        r#"{"name": "s", "command": "node", "args": ["server.js"], "transport": "stdio", "autoStart": false}"#,
    );
    assert_eq!(plain.name.as_str(), "s");
    assert_eq!(plain.auto_start, Some(false));
    let other = body(r#"{"name": "s", "type": "local", "command": ["node", "server.js"]}"#);
    assert_eq!(other.spec, plain.spec);
    assert_eq!(other.auto_start, None);
    assert!(matches!(
        body(r#"{"name": "s", "type": "sse", "url": "http://h"}"#)
            .spec
            .target,
        Target::Remote {
            kind: RemoteKind::Sse,
            ..
        }
    ));
}

#[test]
fn a1_every_wrong_field_of_a_registration_is_named() {
    for (text, expected) in [
        ("", vec![""]),
        ("{", vec![""]),
        ("[]", vec![""]),
        ("// c\n{}", vec![""]),
        (r#"{"name": "s", "command": "c",}"#, vec![""]),
        ("{}", vec!["name", "command"]),
        (r#"{"command": "c"}"#, vec!["name"]),
        (r#"{"name": null, "command": "c"}"#, vec!["name"]),
        (r#"{"name": 1, "command": "c"}"#, vec!["name"]),
        (r#"{"name": "../x", "command": "c"}"#, vec!["name"]),
        (
            r#"{"name": "s", "name": "t", "command": "c"}"#,
            vec!["name"],
        ),
        (
            r#"{"name": "s", "command": "c", "autoStart": "no"}"#,
            vec!["autoStart"],
        ),
        (
            r#"{"name": "s", "command": "c", "comand": "d"}"#,
            vec!["comand"],
        ),
        (
            r#"{"name": "s", "command": "c", "env": {"A": "1", "A": "2"}}"#,
            vec!["env.A"],
        ),
        (
            r#"{"name": "s", "command": "c", "url": "http://h"}"#,
            vec!["url"],
        ),
        (
            r#"{"name": "s", "url": "http://h", "args": ["a"]}"#,
            vec!["args"],
        ),
        (
            r#"{"name": "s", "command": "c", "headers": {}}"#,
            vec!["headers"],
        ),
        (r#"{"name": "s", "type": "x"}"#, vec!["type"]),
        (r#"{"name": "s", "type": "stdio"}"#, vec!["command"]),
        (
            r#"{"name": "", "command": 1, "args": [1], "env": {"A": 1}, "cwd": 1, "timeout": 0, "enabled": 1}"#,
            vec![
                "name", "command", "args[0]", "env.A", "cwd", "enabled", "timeout",
            ],
        ),
        (
            r#"{"name": "s", "url": "x", "headers": {"A": 1}, "era": 1, "isolation": "x"}"#,
            vec!["url", "headers.A", "era", "isolation"],
        ),
        (
            r#"{"name": "s", "command": "c", "env": {"T": "***"}}"#,
            vec!["env.T"],
        ),
        (r#"{"name": "s", "url": "http://u:***@h"}"#, vec!["url"]),
        (
            r#"{"name": "s", "command": "c", "args": ["--token=***"]}"#,
            vec!["args[0]"],
        ),
    ] {
        let problems = parse_body(text.as_bytes()).expect_err(text);
        assert_eq!(fields(&problems), expected, "{text}: {problems:?}");
        assert!(
            problems.iter().all(|p| p.line.is_none() || text.is_empty()),
            "{problems:?}"
        );
    }
    let problems = parse_body(br#"{"name": "s", "comand": "c"}"#).unwrap_err();
    assert_eq!(
        problems[0].message,
        "unknown field; did you mean \"command\"?"
    );
    let problems = parse_body(br#"{"name": "s", "command": "c", "zzz": 1}"#).unwrap_err();
    assert!(!problems[0].message.contains("did you mean"));
    assert!(parse_body(b"{\"name\": \"\xff\"}").is_err());
    let deep = format!(
        "{{\"name\": {}1{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert!(parse_body(deep.as_bytes()).is_err());
}

const STDIO: &str = r#"{"name": "s", "command": "c", "cwd": "/x", "timeout": 5000,
    "args": ["run", "--token", "t0ken", "--key=k3y"],
    "env": {"A": "one", "B": "${B:-two}", "C": "${C}"}}"#;
const ADDRESSES: &str = r#"{"name": "s", "command": "c", "args": ["--token", "t0ken",
    "postgres://u:pw@h/db", "--db=postgres://u:pw2@h/db", "postgres://u:pw3@h2/db"]}"#;
const REMOTE: &str = r#"{"name": "s", "url": "http://u:pw@h/?token=abc",
    "headers": {"Authorization": "Bearer x", "X-Env": "Bearer ${T}"}}"#;

#[test]
fn g3_what_was_shown_can_be_sent_back() {
    for text in [STDIO, ADDRESSES, REMOTE] {
        let stored = body(text).spec;
        let shown = masked_config(&stored);
        assert!(shown.to_string().contains("***"));
        let change = parse_replacement(&stored, shown.to_string().as_bytes()).unwrap();
        assert_eq!(change.spec, stored);
        let change = merge_patch(&stored, shown.to_string().as_bytes()).unwrap();
        assert_eq!(change.spec, stored);
        assert_eq!((change.name, change.auto_start), (None, None));
    }
}

#[test]
fn g3_a_cover_without_a_stored_value_is_refused() {
    let stored = body(STDIO).spec;
    let put = |text: &str| parse_replacement(&stored, text.as_bytes());
    for (text, field) in [
        (r#"{"command": "c", "env": {"NEW": "***"}}"#, "env.NEW"),
        (r#"{"command": "c", "env": {"A": "${A:-***}"}}"#, "env.A"),
        (r#"{"command": "c", "args": ["***"]}"#, "args[0]"),
        (
            r#"{"command": "c", "args": ["--secret", "***"]}"#,
            "args[1]",
        ),
        (
            r#"{"url": "http://h", "headers": {"A": "***"}}"#,
            "headers.A",
        ),
    ] {
        assert_eq!(fields(&put(text).unwrap_err()), [field], "{text}");
    }
    let change = put(r#"{"command": "d", "environment": {"A": "***", "C": "new"}}"#).unwrap();
    let Target::Stdio { env, args, .. } = change.spec.target else {
        panic!()
    };
    assert_eq!((env["A"].as_str(), env["C"].as_str()), ("one", "new"));
    assert!(args.is_empty());

    // Moved, but still known by the flag before it.
    let change = put(r#"{"command": "c", "args": ["--key=***", "x", "--token", "***"]}"#).unwrap();
    let Target::Stdio { args, .. } = change.spec.target else {
        panic!()
    };
    assert_eq!(args, ["--key=k3y", "x", "--token", "t0ken"]);
}

#[test]
fn a8_a_patch_changes_what_it_names() {
    let stored = body(STDIO).spec;
    let patched = |text: &str| {
        merge_patch(&stored, text.as_bytes()).unwrap_or_else(|p| panic!("{text}: {p:?}"))
    };

    assert_eq!(patched("{}").spec, stored);
    assert_eq!(patched(r#"{"timeout": null}"#).spec.timeout.as_secs(), 30);
    assert_eq!(patched(r#"{"timeout": 7000}"#).spec.timeout.as_secs(), 7);
    assert!(!patched(r#"{"enabled": false}"#).spec.enabled);
    assert!(!patched(r#"{"disabled": true}"#).spec.enabled);
    assert_eq!(patched(r#"{"name": "t"}"#).name.unwrap().as_str(), "t");

    let Target::Stdio { env, cwd, .. } =
        patched(r#"{"env": {"A": null, "B": "***", "D": "four"}, "cwd": null}"#)
            .spec
            .target
    else {
        panic!()
    };
    let env: Vec<(&str, &str)> = env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(env, [("B", "${B:-two}"), ("C", "${C}"), ("D", "four")]);
    assert_eq!(cwd, None);

    let Target::Stdio { command, args, .. } = patched(r#"{"command": ["d", "e"]}"#).spec.target
    else {
        panic!()
    };
    assert_eq!((command.as_str(), args), ("d", vec!["e".to_owned()]));

    let moved = patched(r#"{"type": "http", "url": "http://h"}"#).spec;
    assert!(
        matches!(&moved.target, Target::Remote { kind: RemoteKind::Http, headers, .. } if headers.is_empty())
    );
    assert_eq!(moved.timeout, stored.timeout);
}

#[test]
fn a8_a_patch_that_is_wrong_names_the_field() {
    let stored = body(STDIO).spec;
    for (text, field) in [
        ("[]", ""),
        (r#"{"command": null}"#, "command"),
        (r#"{"url": "http://h"}"#, "url"),
        (r#"{"type": "http"}"#, "url"),
        (r#"{"env": {"A": 1}}"#, "env.A"),
        (r#"{"env": 1}"#, "env"),
        (r#"{"timeout": 0}"#, "timeout"),
        (r#"{"foo": null}"#, "foo"),
        (r#"{"timeout": 1, "timeout": 2}"#, "timeout"),
        (r#"{"enabled": true, "disabled": true}"#, "disabled"),
        (r#"{"name": "a/b"}"#, "name"),
        (r#"{"env": {"Z": "***"}}"#, "env.Z"),
    ] {
        let problems = merge_patch(&stored, text.as_bytes()).expect_err(text);
        assert_eq!(fields(&problems), [field], "{text}: {problems:?}");
    }
    let disabled = ServerSpec {
        enabled: false,
        ..stored
    };
    let change = merge_patch(&disabled, br#"{"disabled": false}"#).unwrap();
    assert!(change.spec.enabled);
}
