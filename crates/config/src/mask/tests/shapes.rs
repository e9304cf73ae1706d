//! Secrets in every form that people write, and texts that are no secret.

use indexmap::IndexMap;
use proptest::prelude::*;
use serde_json::json;

use super::{args_shown, url_shown};
use crate::{MASK, ServerSpec, Target, parse_body, parse_replacement};

/// Arguments with the secret `hunter2x`, or the one in the comment, and their
/// masked form.
const SHAPES: &[(&str, &[&str], &[&str])] = &[
    (
        "c",
        &["Authorization: Bearer hunter2x"],
        &["Authorization: ***"],
    ),
    (
        "c",
        &["Authorization: Basic hunter2x=="],
        &["Authorization: ***"],
    ),
    (
        "c",
        &["Proxy-Authorization:Token hunter2x"],
        &["Proxy-Authorization:***"],
    ),
    ("c", &["Basic hunter2x"], &["Basic ***"]),
    ("c", &["Bearer hunter2x"], &["Bearer ***"]),
    ("c", &["X-API-Key: hunter2x"], &["X-API-Key: ***"]),
    (
        "sh",
        &["-c", "curl -H 'Authorization: Bearer hunter2x' http://h"],
        &["-c", "curl -H 'Authorization: ***' http://h"],
    ),
    (
        "sh",
        &[
            "-c",
            "curl --header \"Authorization: Digest username=\\\"u\\\", response=\\\"hunter2x\\\"\"",
        ],
        &["-c", "curl --header \"Authorization: ***\""],
    ),
    (
        "sh",
        &["-c", "echo Authorization: ApiKey hunter2x\ntrue"],
        &["-c", "echo Authorization: ***\ntrue"],
    ),
    (
        "c",
        &[
            "--config",
            r#"{"headers":{"Authorization":"Bearer hunter2x"},"mode":"fast"}"#,
        ],
        &[
            "--config",
            r#"{"headers":{"Authorization":"***"},"mode":"fast"}"#,
        ],
    ),
    (
        "c",
        &[r#"--config={"body":"{\"token\":\"two hunter2x\",\"a\":\"b\"}"}"#],
        &[r#"--config={"body":"{\"token\":\"***\",\"a\":\"b\"}"}"#],
    ),
    (
        "c",
        &[
            "--config",
            r#"{"password":"correct hunter2x battery","token":"abc,hunter2x"}"#,
        ],
        &["--config", r#"{"password":"***","token":"***"}"#],
    ),
    (
        "c",
        &[
            "--config",
            r#"{ "password" : "a hunter2x", pin: 1234, mode: fast }"#,
        ],
        &[
            "--config",
            r#"{ "password" : "***", pin: ***, mode: fast }"#,
        ],
    ),
    (
        "c",
        &[
            "--config",
            r#"{"auth":{"user":"u","value":"hunter2x"},"mode":"fast"}"#,
        ],
        &["--config", r#"{"auth":***,"mode":"fast"}"#],
    ),
    (
        "sh",
        &["-c", "export API_KEY='two hunter2x'; run --fast"],
        &["-c", "export API_KEY='***'; run --fast"],
    ),
    (
        "sh",
        &["-c", "API_KEY=a,hunter2x run; mkdir -p dir"],
        &["-c", "API_KEY=*** run; mkdir -p dir"],
    ),
    (
        "sh",
        &[
            "-c",
            "mysql -phunter2x -u root && sshpass -p hunter2x ssh h",
        ],
        &["-c", "mysql -p*** -u root && sshpass -p *** ssh h"],
    ),
    (
        "sh",
        &[
            "-c",
            "curl -u me:hunter2x http://h; docker run -e MYVAR=hunter2x -eX='a hunter2x' img",
        ],
        &[
            "-c",
            "curl -u me:*** http://h; docker run -e MYVAR=*** -eX=*** img",
        ],
    ),
    (
        "c",
        &[
            "--private-key",
            "-----BEGIN PRIVATE KEY-----\nhunter2x\n-----END PRIVATE KEY-----",
            "x",
        ],
        &["--private-key", "***", "x"],
    ),
    ("c", &["-----BEGIN PRIVATE KEY-----\nhunter2x"], &["***"]),
    (
        "c",
        &["--password", "-hunter2x", "run"],
        &["--password", "***", "run"],
    ),
    (
        "c",
        &["--token", "--hunter2x", "run"],
        &["--token", "***", "run"],
    ),
    (
        "c",
        &["--token", "--password", "hunter2x"],
        &["--token", "***", "***"],
    ),
    (
        "c",
        &["--no-auth", "--port", "80"],
        &["--no-auth", "--port", "80"],
    ),
    ("c", &["--token hunter2x"], &["--token ***"]),
    (
        "c",
        &["-ume:hunter2x", "-eDB_X=hunter2x"],
        &["-ume:***", "-eDB_X=***"],
    ),
    (
        "c",
        &["-phunterqx", "-port", "80", "-project-dir", "x"],
        &["-p***", "-port", "80", "-project-dir", "x"],
    ),
    (
        "c",
        &["--pw", "hunter2x", "--login", "me:hunter2x"],
        &["--pw", "***", "--login", "me:***"],
    ),
    (
        "c",
        &["-b", "session=hunter2x", "-b", "main"],
        &["-b", "session=***", "-b", "main"],
    ),
    (
        "c",
        &["password:hunter2x", "/password:hunter2x"],
        &["password:***", "/password:***"],
    ),
    (
        "c",
        &["--auth:hunter2x", "--sas", "sv=1&sig=hunter2x"],
        &["--auth:***", "--sas", "***"],
    ),
    (
        "c",
        &["sv=2022-11-02&sig=hunter2x&se=1"],
        &["sv=2022-11-02&sig=***&se=1"],
    ),
    ("c", &["PASSWORD=two hunter2x"], &["PASSWORD=***"]),
    (
        "c",
        &["host=h user=u password='a hunter2x'"],
        &["host=h user=u password='***'"],
    ),
    (
        "c",
        &[
            "--connection",
            "Server=h;User=sa;Password=hunter2x;Encrypt=yes",
        ],
        &["--connection", "Server=h;User=sa;Password=***;Encrypt=yes"],
    ),
    (
        "c",
        &["--file-token", "hunter2x", "--maxTokens", "5"],
        &["--file-token", "***", "--maxTokens", "5"],
    ),
    // By their shape.
    (
        "c",
        &["a1b2c3d4e5f60718", "k9Xq2LmZ7pR4tV8w"],
        &["***", "***"],
    ),
    (
        "c",
        &["qWzXcVbNmLkJhGfDsApOiUyT", "deadbeefcafe0123"],
        &["***", "***"],
    ),
    // These are no secrets.
    (
        "npx",
        &[
            "-y",
            "@scope/server-x@1.2.3",
            "/home/me/dir",
            "--port",
            "8080",
            "--log-level",
            "info",
        ],
        &[
            "-y",
            "@scope/server-x@1.2.3",
            "/home/me/dir",
            "--port",
            "8080",
            "--log-level",
            "info",
        ],
    ),
    (
        "docker",
        &[
            "run",
            "-v",
            "/secrets:/data",
            "github-token:v1",
            "keycloak:24",
            "token-lib==1.2",
        ],
        &[
            "run",
            "-v",
            "/secrets:/data",
            "github-token:v1",
            "keycloak:24",
            "token-lib==1.2",
        ],
    ),
    (
        "sh",
        &[
            "-c",
            "cd /srv/app && npm run build -- --mode=fast; don't stop",
        ],
        &[
            "-c",
            "cd /srv/app && npm run build -- --mode=fast; don't stop",
        ],
    ),
];

const ADDRESSES: &[(&str, &str)] = &[
    ("http://h/s/a1b2c3d4e5f6a7b8/mcp", "http://h/s/***/mcp"),
    (
        "http://h/s/938475938475938475938475/mcp",
        "http://h/s/***/mcp",
    ),
    (
        "http://h/services/T0/qWzXcVbNmLkJhGfDsApOiUyT",
        "http://h/services/T0/***",
    ),
    ("http://h/token/abcdef/mcp", "http://h/token/***/mcp"),
    ("http://h/mcp?session=hunter2x", "http://h/mcp?session=***"),
    (
        "http://h/mcp?sessionId=hunter2x",
        "http://h/mcp?sessionId=***",
    ),
    (
        "http://h/mcp?api%5Fkey=hunter2x",
        "http://h/mcp?api%5Fkey=***",
    ),
    (
        "http://h/mcp?t=a8f3k2p9&p=a8f3-k2p9",
        "http://h/mcp?t=***&p=***",
    ),
    (
        "http://h/mcp?next=http%3A%2F%2Fu%3Ahunter2x%40h",
        "http://h/mcp?next=***",
    ),
    ("http://h/mcp#hunter2x", "http://h/mcp#***"),
    ("http://h/mcp;token=hunter2x", "http://h/mcp;token=***"),
    ("http://hunter2x@h/mcp", "http://***@h/mcp"),
    ("http://hunter:@h/mcp", "http://***:@h/mcp"),
    ("http://k9xq2lmz7pr4tv8w.h.net/mcp", "http://***.h.net/mcp"),
    (
        "http://h/v1beta1/my-project-42/mcp?v=2025-06-18",
        "http://h/v1beta1/my-project-42/mcp?v=2025-06-18",
    ),
];

#[test]
fn g3_a_token_whose_letters_spell_a_name_is_hidden() {
    let padded = "Qm9pWdK3x1LtZq7Rk2Vb8Ny4Tf6Hs0Gd5Jc9Ew1Xa3M=";
    let quoted = "[\"Qm9keyK3x1LtZq7Rk2Vb8Ny4Tf6Hs0Gd5Jc9Ew1Xa3M\"]";
    assert_eq!(args_shown("c", &[padded]), [MASK]);
    assert_eq!(args_shown("c", &[quoted]), [format!("[\"{MASK}\"]")]);
}

#[test]
fn g3_every_shape_of_a_secret_is_hidden() {
    for (command, args, shown) in SHAPES {
        assert_eq!(args_shown(command, args), *shown);
    }
    for (url, shown) in ADDRESSES {
        assert_eq!(url_shown(url), *shown);
        if !url.contains('#') {
            assert_eq!(args_shown("c", &[url]), [*shown]);
        }
    }
}

/// A masked value that the client sends back keeps the stored value.
#[test]
fn g3_an_edit_with_covers_keeps_every_value() {
    for (command, args, shown) in SHAPES {
        let stored = ServerSpec::new(Target::Stdio {
            command: (*command).into(),
            args: args.iter().map(|arg| (*arg).into()).collect(),
            env: IndexMap::new(),
            cwd: None,
        });
        let body = json!({"command": command, "args": shown}).to_string();
        let change = parse_replacement(&stored, body.as_bytes()).unwrap();
        assert_eq!(change.spec, stored);
        // A new server has no value that a cover could stand for.
        if args != shown {
            let body = json!({"name": "new", "command": command, "args": shown}).to_string();
            assert!(parse_body(body.as_bytes()).is_err(), "{shown:?}");
        }
    }
}

proptest! {
    /// A name that denotes a secret hides any value, however short and of any
    /// characters.
    #[test]
    fn g3_a_short_secret_is_hidden_where_its_place_says_so(
        token in "[A-Za-z0-9][A-Za-z0-9!%*+.~^-]{4,14}[A-Za-z0-9]",
        odd in "[A-Za-z0-9][A-Za-z0-9 ,;|}{)(=:&-]{4,14}[A-Za-z0-9]",
    ) {
        for form in [
            format!("Authorization: Bearer {token}"),
            format!("Authorization: Token {token}"),
            format!("Authorization: Digest a=b, c={token}"),
            format!("Bearer {token}"),
            format!("Basic {token}"),
            format!("password:{token}x"),
            format!("password: {token}"),
            format!("/password:{token}x"),
            format!("--auth:{token}"),
            format!("--token {token}"),
            format!("-e{}={token}", "DB_X"),
            format!("-ume:{token}x"),
            format!("curl -u me:{token}x http://h"),
            format!("sshpass -p {token}x ssh h"),
            format!("docker run -e X={token} -e Y={token} img"),
            format!("API_KEY={token} run"),
            format!("curl -H 'X-Key: {token}' -b session={token} h"),
            format!("sv=1&sig={token}&se=2"),
            format!("host=h;Password={token};user=u"),
            format!("http://me:{}@h/mcp", token.replace(['%', '#'], "x")),
        ] {
            let shown = args_shown("c", &[&form]).join(" ");
            let found = token.replace(['%', '#'], "x");
            prop_assert!(!shown.contains(&token) && !shown.contains(&found), "{}: {}", form, shown);
        }
        for form in [
            format!("API_KEY={odd}"),
            format!("export API_KEY='{odd}'; run"),
            format!("run --token '{odd}' --fast"),
            format!("run --token=\"{odd}\" --fast"),
            format!(r#"{{"password":"{odd}","mode":"fast"}}"#),
            format!(r#"{{"password" : "{odd}"}}"#),
            format!(r#"{{"headers":{{"Authorization":"Bearer {odd}"}}}}"#),
            format!(r#"{{"body":"{{\"token\":\"{odd}\"}}"}}"#),
            format!("curl -H 'Authorization: Bearer {odd}' http://h"),
            format!("Authorization: Basic {odd}"),
        ] {
            let shown = args_shown("c", &[&form]).join(" ");
            prop_assert!(!shown.contains(&odd), "{}: {}", form, shown);
        }
        for flag in ["--token", "--password", "--pw", "--sas", "--secret-key", "-H", "--apiKey"] {
            for value in [odd.clone(), format!("-{odd}"), format!("--{token}")] {
                if flag != "-H" || !value.starts_with('-') && !value.contains([':', '=']) {
                    let shown = args_shown("c", &["run", flag, &value]).join(" ");
                    prop_assert!(!shown.contains(&value), "{} {}: {}", flag, value, shown);
                }
            }
        }
        for name in ["session", "sessionId", "api%5Fkey", "sig", "pin"] {
            let shown = url_shown(&format!("http://h/mcp?a=b&{name}={}", token.replace('&', "x")));
            prop_assert!(!shown.contains(&token), "{}", shown);
        }
    }

    /// Any text is read to its end.
    #[test]
    fn g3_quotes_and_brackets_of_any_text_are_read(text in r#"[a-z=:'"`\\ {}\[\](),;&$\n-]{0,80}"#) {
        let shown = args_shown("sh", &["-c", &text]);
        prop_assert_eq!(shown.len(), 2);
    }
}
