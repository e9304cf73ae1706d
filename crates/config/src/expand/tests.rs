use super::*;
use crate::{Dialect, Redactor, parse_file};

fn spec(definition: &str) -> ServerSpec {
    let text = format!(r#"{{"mcpServers": {{"x": {definition}}}}}"#);
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    parsed.servers["x"].clone().unwrap().1
}

/// `A` is "alpha", `EMPTY` is set and empty, everything else is not set.
fn env(name: &str) -> Option<String> {
    match name {
        "A" => Some("alpha".into()),
        "EMPTY" => Some(String::new()),
        "NUL" => Some("a\0b".into()),
        "CRLF" => Some("a\r\nX: y".into()),
        "SECRET" => Some("s3cr3t-value".into()),
        "URL" => Some("http://127.0.0.1:1/mcp".into()),
        "NESTED" => Some("${A}".into()),
        _ => None,
    }
}

fn argument(text: &str) -> Result<String, Vec<Problem>> {
    let definition = format!(
        r#"{{"command": "c", "args": [{}]}}"#,
        serde_json::json!(text)
    );
    match expand(&spec(&definition), &env)?.target {
        LaunchTarget::Stdio { args, .. } => Ok(args[0].clone()),
        LaunchTarget::Remote { .. } => panic!("stdio"),
    }
}

#[test]
fn b2_expansion_table() {
    for (text, expected) in [
        ("plain", "plain"),
        ("${A}", "alpha"),
        ("x${A}y${A}", "xalphayalpha"),
        ("${A:-d}", "alpha"),
        ("${UNSET:-d}", "d"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a b:-c}", "a b:-c"),
        // Only an unset variable takes the default, unlike in a shell.
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", ""),
        // Nothing else is expanded.
        ("$A", "$A"),
        ("$$", "$$"),
        ("$${A}", "$alpha"),
        ("${env:A}", "${env:A}"),
        ("${A-d}", "${A-d}"),
        ("${A", "${A"),
        ("${UNSET:-${A}}", "${UNSET:-${A}}"),
        ("${ A }", "${ A }"),
        // A reference inside a value is not expanded.
        ("${NESTED}", "${A}"),
        ("日本${A}語", "日本alpha語"),
    ] {
        assert_eq!(argument(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn b2_an_unset_variable_is_named_with_its_field() {
    let definition = r#"{"command": "${C}", "args": ["a", "${D}"], "env": {"T": "${E}${F}"}}"#;
    let problems = expand(&spec(definition), &env).unwrap_err();
    let told: Vec<(&str, bool)> = ["C", "D", "E", "F"]
        .iter()
        .zip(&problems)
        .map(|(name, p)| {
            (
                p.field.as_str(),
                p.message.contains(&format!("variable {name} ")),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("command", true),
            ("args[1]", true),
            ("env.T", true),
            ("env.T", true)
        ]
    );

    let definition = r#"{"url": "http://${H}/", "headers": {"Authorization": "Bearer ${T}"}}"#;
    let problems = expand(&spec(definition), &env).unwrap_err();
    assert_eq!(problems.len(), 2);
    assert_eq!(problems[0].field, "url");
    assert_eq!(problems[1].field, "headers.Authorization");
}

#[test]
fn b2_every_field_that_expands() {
    let launch = expand(
        &spec(r#"{"command": "${A}", "args": ["-${A}"], "env": {"K": "${A}!"}, "cwd": "/${A}"}"#),
        &env,
    )
    .unwrap();
    let LaunchTarget::Stdio {
        command,
        args,
        env: vars,
        cwd,
    } = &launch.target
    else {
        panic!("{launch:?}")
    };
    assert_eq!((command.as_str(), args[0].as_str()), ("alpha", "-alpha"));
    assert_eq!(
        (vars["K"].as_str(), cwd.as_deref()),
        ("alpha!", Some("/${A}"))
    );

    let definition = r#"{"type": "sse", "url": "${URL}?x=${A}", "headers": {"X": "${A}"}}"#;
    let launch = expand(&spec(definition), &env).unwrap();
    let LaunchTarget::Remote { kind, url, headers } = &launch.target else {
        panic!("{launch:?}")
    };
    assert_eq!(*kind, RemoteKind::Sse);
    assert_eq!(url.as_str(), "http://127.0.0.1:1/mcp?x=alpha");
    assert_eq!(headers["X"], "alpha");
}

#[test]
fn what_the_environment_brings_is_checked_too() {
    for (definition, field) in [
        (r#"{"command": "${EMPTY}"}"#, "command"),
        (r#"{"command": "c", "args": ["${NUL}"]}"#, "args[0]"),
        (r#"{"url": "${A}"}"#, "url"),
        (r#"{"url": "http://h:${A}/"}"#, "url"),
        (r#"{"url": "http://${EMPTY}/"}"#, "url"),
        (
            r#"{"url": "http://h", "headers": {"X": "${CRLF}"}}"#,
            "headers.X",
        ),
    ] {
        let problems = expand(&spec(definition), &env).unwrap_err();
        assert_eq!(problems[0].field, field, "{problems:?}");
    }
}

#[test]
fn g3_what_is_launched_cannot_be_printed_and_its_secrets_are_known() {
    let definition = r#"{"command": "c", "args": ["--t=${SECRET}"],
        "env": {"TOKEN": "literal-token", "MODE": "production", "N": "1"}}"#;
    let launch = expand(&spec(definition), &env).unwrap();
    let shown = format!("{launch:?}{:?}", launch.target);
    assert!(shown.contains("TOKEN"));
    for secret in ["s3cr3t-value", "literal-token"] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(launch.secrets().contains(&secret));
    }
    assert!(!launch.secrets().contains(&"production"));

    let definition = r#"{"url": "http://u:pass-word@h/?k=${SECRET}",
        "headers": {"Authorization": "Bearer abc-token"}}"#;
    let launch = expand(&spec(definition), &env).unwrap();
    let redactor = Redactor::new(launch.secrets());
    assert_eq!(
        redactor.redact("Bearer abc-token, abc-token, s3cr3t-value, pass-word, h"),
        "***, ***, ***, ***, h"
    );
    assert!(!format!("{launch:?}").contains("abc-token"));

    let definition = r#"{"command": "c", "args": ["--token", "flag-value", "--api-key=key-value",
        "--db=postgres://someone:pass-word@h/db?apikey=query-value", "plain-value"]}"#;
    let launch = expand(&spec(definition), &env).unwrap();
    let redactor = Redactor::new(launch.secrets());
    assert_eq!(
        redactor.redact("flag-value key-value pass-word query-value plain-value"),
        "*** *** *** *** plain-value"
    );
}

#[test]
fn g3_parts_of_a_secret_are_known_by_themselves() {
    let definition = r#"{"command": "c", "args": ["Authorization: Bearer hunter-two",
        "--private-key", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----",
        "--sas", "sv=1&sig=hunter-three", "--config", "{\"auth\":{\"value\":\"hunter-four\"}}"],
        "env": {"HOOK": "https://h/services/T0/B0/k9Xq2LmZ7pR4tV8wB1nC",
        "DB": "postgres://u:hunter-five@h/db", "BASE": "https://example.com/api"}}"#;
    let launch = expand(&spec(definition), &env).unwrap();
    let redactor = Redactor::new(launch.secrets());
    for (text, shown) in [
        ("auth hunter-two", "auth ***"),
        ("key MIIEvQIBADAN", "key ***"),
        ("sig hunter-three", "sig ***"),
        ("value hunter-four", "value ***"),
        ("to https://h/services/T0/B0/k9Xq2LmZ7pR4tV8wB1nC", "to ***"),
        ("id k9Xq2LmZ7pR4tV8wB1nC", "id ***"),
        ("password hunter-five", "password ***"),
        ("at https://example.com/api", "at https://example.com/api"),
    ] {
        assert_eq!(redactor.redact(text), shown);
    }
}

#[test]
fn t_portways_own_variables_are_never_filled_in() {
    let own = |name: &str| Some(format!("value of {name}"));
    for (definition, field) in [
        (r#"{"command": "${PORTWAY_ADMIN_TOKEN}"}"#, "command"),
        (
            r#"{"command": "c", "args": ["--t=${PORTWAY_SECRET:-x}"]}"#,
            "args[0]",
        ),
        (
            r#"{"command": "c", "env": {"A": "${SUPABASE_JWT_SECRET}"}}"#,
            "env.A",
        ),
        (r#"{"url": "http://h/${SUPABASE_DB_URL}"}"#, "url"),
        (
            r#"{"url": "http://h", "headers": {"X": "${PORTWAY_ADMIN_TOKEN}"}}"#,
            "headers.X",
        ),
    ] {
        let problems = expand(&spec(definition), &own).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].field, field);
        assert!(
            problems[0].message.contains("Portway's own"),
            "{problems:?}"
        );
        assert!(!problems[0].message.contains("value of"), "{problems:?}");
    }
    let definition = r#"{"command": "c", "env": {"PORTWAY_URL": "${MY_PORTWAY_URL}"}}"#;
    expand(&spec(definition), &own).unwrap();
}
