use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

mod shapes;

fn url_shown(url: &str) -> String {
    covered(url, &in_url(url))
}

fn args_shown<S: AsRef<str>>(command: &str, args: &[S]) -> Vec<String> {
    let args: Vec<String> = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
    let hidden = in_args(command, &args);
    let pairs = args.iter().zip(&hidden);
    pairs.map(|(arg, hidden)| covered(arg, hidden)).collect()
}

#[test]
fn g3_values_are_covered_and_references_are_not() {
    for (value, shown) in [
        ("", ""),
        ("secret", "***"),
        ("1", "***"),
        ("${A}", "${A}"),
        ("${A:-}", "${A:-}"),
        ("${A:-secret}", "${A:-***}"),
        ("${A}${B}", "${A}${B}"),
        ("${A}-suffix", "***"),
        ("prefix-${A}", "***"),
        ("Bearer ${A}", "Bearer ${A}"),
        ("bearer ${A:-x}", "bearer ${A:-***}"),
        ("token ${A}", "token ${A}"),
        ("Bearer secret", "***"),
        ("Bearer ", "***"),
        ("Password ${A}", "***"),
        ("$A", "***"),
        ("${A:-${B}}", "***"),
    ] {
        assert_eq!(cover(value), shown, "{value}");
    }
}

#[test]
fn g3_secrets_inside_an_address_are_covered() {
    for (url, shown) in [
        ("http://h/mcp", "http://h/mcp"),
        ("http://h/mcp?page=1&x=2#f", "http://h/mcp?page=1&x=2#***"),
        ("http://u:p@h/", "http://u:***@h/"),
        ("http://u@h/", "http://***@h/"),
        ("http://:p@h", "http://:***@h"),
        ("http://u:p:q@r@h/x@y", "http://u:***@h/x@y"),
        ("http://u:${P}@h/", "http://u:${P}@h/"),
        ("http://ghp_0123456789abcdef@h/", "http://***@h/"),
        ("http://ghp_0123456789abcdef:x@h/", "http://***:***@h/"),
        (
            "http://${A_RATHER_LONG_NAME}@h/",
            "http://${A_RATHER_LONG_NAME}@h/",
        ),
        ("http://h/?api_key=abc&b=1", "http://h/?api_key=***&b=1"),
        ("http://h/?Token=abc#t", "http://h/?Token=***#***"),
        ("http://h/?apiKey=${K}", "http://h/?apiKey=${K}"),
        ("http://h/?sig=a=b&sig", "http://h/?sig=***&sig"),
        ("http://h/?tokens=", "http://h/?tokens="),
        ("${BASE}/mcp?access_token=x", "${BASE}/mcp?access_token=***"),
    ] {
        assert_eq!(url_shown(url), shown);
    }
}

#[test]
fn g3_secrets_among_arguments_are_covered() {
    let args = [
        "-y",
        "pkg@1",
        "--api-key",
        "abc",
        "--token=abc",
        "--port",
        "80",
        "--password",
        "--verbose",
        "--secret",
        "${S}",
        "--author",
        "me",
        "token",
        "--key=",
        "postgresql://u:p@h/db?sslmode=on",
        "--db=postgresql://u:p@h/db",
    ];
    let args: Vec<String> = args.map(str::to_owned).to_vec();
    assert_eq!(
        args_shown("c", &args),
        [
            "-y",
            "pkg@1",
            "--api-key",
            "***",
            "--token=***",
            "--port",
            "80",
            "--password",
            "***",
            "--secret",
            "${S}",
            "--author",
            "me",
            "token",
            "--key=",
            "postgresql://u:***@h/db?sslmode=on",
            "--db=postgresql://u:***@h/db",
        ]
    );
}

#[test]
fn g3_credentials_are_covered_by_flag_by_name_and_by_shape() {
    let key = "k9Xq2LmZ7pR4tV8wB1nC";
    for (command, args, shown) in [
        (
            "npx",
            vec![
                "-y",
                "mcp-remote",
                "https://h/mcp",
                "--header",
                "Authorization: Bearer abc",
            ],
            vec![
                "-y",
                "mcp-remote",
                "https://h/mcp",
                "--header",
                "Authorization: ***",
            ],
        ),
        (
            "npx",
            vec!["mcp-remote", "--header", "Authorization:${AUTH}"],
            vec!["mcp-remote", "--header", "Authorization:${AUTH}"],
        ),
        (
            "npx",
            vec!["mcp-remote", "--header", "Authorization: Bearer ${AUTH}"],
            vec!["mcp-remote", "--header", "Authorization: Bearer ${AUTH}"],
        ),
        (
            "curl",
            vec!["-H", "X-Api-Key: 1", "-HX-Pin: 12", "--header=A: b"],
            vec!["-H", "X-Api-Key: ***", "-HX-Pin: ***", "--header=A: ***"],
        ),
        (
            "mysql-mcp",
            vec!["-u", "root", "-p", "x", "-phunter2", "-P", "3306"],
            vec!["-u", "root", "-p", "***", "-p***", "-P", "***"],
        ),
        (
            "mcp",
            vec!["-u", "me:pw", "--user=me:pw", "-u", "1000:1000"],
            vec!["-u", "me:***", "--user=me:***", "-u", "1000:1000"],
        ),
        (
            "docker",
            vec![
                "run", "-i", "--rm", "-e", "TOKEN=a", "-e", "MODE=b", "-e", "NAME", "--env=PIN=1",
                "-p", "80:80", "img:1.2",
            ],
            vec![
                "run", "-i", "--rm", "-e", "TOKEN=***", "-e", "MODE=***", "-e", "NAME",
                "--env=PIN=***", "-p", "80:80", "img:1.2",
            ],
        ),
        (
            "c",
            vec![
                "-token", "1", "--pin", "1234", "-api-key=2", "TOKEN=3", "Bearer abcdef",
            ],
            vec![
                "-token", "***", "--pin", "***", "-api-key=***", "TOKEN=***", "Bearer ***",
            ],
        ),
        (
            "c",
            vec!["--config", r#"{"apiKey":"a b","pin":12,"mode":"fast"}"#],
            vec!["--config", r#"{"apiKey":"***","pin":***,"mode":"fast"}"#],
        ),
        (
            "sh",
            vec![
                "-c",
                "mkdir -p dir; API_KEY=x run --token y -H 'X-Key: z' --verbose",
            ],
            vec![
                "-c",
                "mkdir -p dir; API_KEY=*** run --token *** -H 'X-Key: ***' --verbose",
            ],
        ),
        (
            "c",
            vec![
                key,
                "--x=sk-ant-api03-0123456789ab",
                "550e8400-e29b-41d4-a716-446655440000",
            ],
            vec!["***", "--x=***", "***"],
        ),
        (
            "c",
            vec!["${API_KEY:-abc}", "${MODE:-abc}"],
            vec!["${API_KEY:-***}", "${MODE:-abc}"],
        ),
    ] {
        assert_eq!(args_shown(command, &args), shown, "{args:?}");
    }
}

#[test]
fn g3_secrets_in_paths_and_queries_are_covered() {
    for (url, shown) in [
        (
            "https://h/api/mcp/s/NzY5ZDk4MWYtMzA0Yy00/mcp",
            "https://h/api/mcp/s/***/mcp",
        ),
        (
            "https://h/services/T0/B0/k9Xq2LmZ7pR4tV8wB1nC",
            "https://h/services/T0/B0/***",
        ),
        ("https://h/token/1234/mcp", "https://h/token/***/mcp"),
        ("https://h/token/refresh", "https://h/token/refresh"),
        (
            "https://h/v1/mcp/2025-06-18/tools",
            "https://h/v1/mcp/2025-06-18/tools",
        ),
        (
            "https://h/?x=k9Xq2LmZ7pR4tV8wB1nC&page=2",
            "https://h/?x=***&page=2",
        ),
        ("https://h/#access_token=abc", "https://h/#access_token=***"),
        ("http://h/${SEGMENT}/mcp", "http://h/${SEGMENT}/mcp"),
    ] {
        assert_eq!(url_shown(url), shown);
    }
}

/// Arguments as they occur in people's files.
const ORDINARY: &[&str] = &[
    "-y",
    "run",
    "--directory",
    "/home/me/projects/k9Xq2LmZ7pR4tV8wB1nC",
    "@modelcontextprotocol/server-filesystem@2025.8.21",
    "mcp-server-sqlite==2025.4.25",
    "--from",
    "git+https://github.com/oraios/serena@0123456789abcdef0123456789abcdef01234567",
    "ghcr.io/github/github-mcp-server:v0.15.0",
    "mcp/fetch@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "claude-3-5-sonnet-20241022",
    "x86_64-unknown-linux-gnu",
    "--max-tokens",
    "4096",
    "--token-file=/run/secrets/token",
    "--port=8080",
    "--keywords",
    "alpha,beta",
    "C:\\Users\\me\\AppData\\Roaming\\npm\\index.js",
    "src/components/FooBar2/Index3.tsx",
    "https://mcp.example.com/v1/projects/my-project-42/mcp?readonly=true",
    "com.example.SomeLongClassName2",
    "--transport=streamable-http",
    "token-server:latest",
    "--author",
    "me",
    "127.0.0.1:7420",
    "--root=../data/2025-01-31",
    "kubernetes-mcp-server@latest",
];

#[test]
fn g3_ordinary_arguments_are_shown() {
    for command in ["npx", "docker", "server"] {
        assert_eq!(args_shown(command, ORDINARY), ORDINARY);
    }
    for args in [
        ["-p", "typescript", "tsc"],
        ["-p", "3.12", "mcp-server-time"],
        ["--package", "typescript", "tsc"],
    ] {
        assert_eq!(args_shown("npx", &args), args);
    }
}

fn token() -> impl Strategy<Value = String> {
    let bytes = prop::collection::vec(any::<u8>(), 24..48);
    prop_oneof![
        bytes
            .clone()
            .prop_map(|bytes| URL_SAFE_NO_PAD.encode(bytes)),
        bytes.clone().prop_map(|bytes| STANDARD.encode(bytes)),
        bytes.prop_map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    ]
    .prop_filter("a token that random bytes make", |text: &String| {
        let mixed = |two: &&[u8]| two[0].is_ascii_digit() != two[1].is_ascii_digit();
        let changes = text.as_bytes().windows(2).filter(mixed).count();
        changes >= 10 && !text.starts_with(['-', '/', '.'])
    })
}

proptest! {
    /// A token is hidden wherever a person may have put it, and so are all of
    /// its parts that would be of use.
    #[test]
    fn g3_a_token_is_hidden_wherever_it_stands(token in token(), at in 0..ORDINARY.len()) {
        for form in [
            token.clone(),
            format!("--header=Authorization: Bearer {token}"),
            format!("Authorization: Bearer {token}"),
            format!("--api-key={token}"),
            format!("TOKEN={token}"),
            format!("--db=postgres://u:{}@h/db", token.replace('/', "_")),
            format!("https://h/mcp?key={}", token.replace('+', "-")),
            format!("https://h/mcp?x={}", token.replace('+', "-")),
            format!("{{\"apiKey\": \"{token}\"}}"),
        ] {
            let mut args: Vec<&str> = ORDINARY.to_vec();
            args.insert(at, &form);
            let shown = args_shown("npx", &args).join(" ");
            prop_assert!(!shown.contains(&token), "{form}: {shown}");
            prop_assert!(shown.contains(MASK), "{form}: {shown}");
        }
        for flag in ["--token", "--password", "-H", "--secret-key", "-e"] {
            let value = if flag == "-e" { format!("X={token}") } else { token.clone() };
            let shown = args_shown("docker", &["run", flag, &value]);
            prop_assert!(!shown.join(" ").contains(&token), "{flag}");
        }
    }

    /// For any text, the output is the text with parts masked.
    #[test]
    fn g3_covering_changes_nothing_else(args in prop::collection::vec(".{0,40}", 0..6)) {
        let shown = args_shown("c", &args);
        prop_assert_eq!(shown.len(), args.len());
        for (arg, shown) in args.iter().zip(&shown) {
            if !shown.contains(MASK) && !arg.contains("${") {
                prop_assert_eq!(arg, shown);
            }
        }
        for arg in &args {
            let _ = url_shown(arg);
        }
    }
}
