//! What a change would do and what is wrong, told beforehand: `portway check`,
//! `portway plan`, `POST /api/mcp/plan`, the schema.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::app::{App, fixture, fixtures, setup};
use crate::tools::installed;

/// A project and a home beside it.
struct ProjectDir {
    dir: TempDir,
}

impl ProjectDir {
    fn new() -> ProjectDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["project", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        ProjectDir { dir }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &ProjectDir {
        std::fs::write(self.dir.path().join(name), text).unwrap();
        self
    }

    fn path(&self, name: &str) -> String {
        let root = self.dir.path().canonicalize().unwrap();
        root.join(name).display().to_string()
    }

    /// Exit code and what was printed.
    fn run(&self, args: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_portway"))
            .args(args)
            .current_dir(self.dir.path().join("project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        (output.status.code().unwrap(), text)
    }

    fn json(&self, args: &[&str]) -> (i32, Value) {
        let (code, text) = self.run(&[args, &["--json"]].concat());
        let value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        (code, value)
    }
}

const GOOD: &str = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"url": "http://127.0.0.1/"}}}"#;
const BAD: &str = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \
                   \"b\": {\"command\": \"x\",\n      \"timeout\": 0}\n  }\n}\n";
const BROKEN: &str = "{\n  \"mcpServers\": {\n    oops\n";

#[test]
fn b3_check_says_what_is_wrong_and_where_and_exits_with_1() {
    let project = ProjectDir::new();
    assert_eq!(
        project.run(&["check"]),
        (0, "0 files, 0 servers, 0 problems\n".into())
    );
    project.write("project/.mcp.json", GOOD);
    project.write("project/.kode.json", GOOD);
    let mcp = project.path("project/.mcp.json");
    let kode = project.path("project/.kode.json");
    let shadowed = |name| format!("{kode}: server \"{name}\" is shadowed by {mcp}\n");
    let told = shadowed("a") + &shadowed("b") + "2 files, 4 servers, 0 problems\n";
    assert_eq!(project.run(&["check"]), (0, told));

    project.write("project/.mcp.json", BAD);
    let (code, text) = project.run(&["check"]);
    let line = format!("{mcp}:5:18: server \"b\": timeout: must be");
    assert!(code == 1 && text.starts_with(&line), "{code}: {text}");
    assert!(text.ends_with("2 files, 4 servers, 1 problem\n"), "{text}");
    let elsewhere = project.run(&["check", "--project", &project.path("home")]);
    assert_eq!(elsewhere.0, 0, "{}", elsewhere.1);

    project.write("project/.mcp.json", BROKEN);
    let (code, text) = project.run(&["check"]);
    let line = format!("{mcp}:3:5: not JSON");
    assert!(code == 1 && text.starts_with(&line), "{code}: {text}");

    let (code, reports) = project.json(&["check"]);
    assert_eq!(code, 1);
    let report = reports.as_array().unwrap();
    let report = report.iter().find(|one| one["path"] == *mcp).unwrap();
    assert_eq!(
        (&report["kind"], &report["servers"]),
        (&json!("mcp"), &json!([]))
    );
    assert!(report["error"].as_str().unwrap().contains("line 3"));
}

#[test]
fn d7_check_looks_at_the_file_of_filters_too() {
    let project = ProjectDir::new();
    project.write("project/.mcp.json", GOOD);
    project.write(
        "project/.portway.json",
        r#"{"filters": {"a": {"allow": ["x:*"]}}}"#,
    );
    assert_eq!(
        project.run(&["check"]),
        (0, "2 files, 2 servers, 0 problems\n".into())
    );
    let filters = project.path("project/.portway.json");
    project.write(
        "project/.portway.json",
        r#"{"filters": {"a": {"alow": []}}}"#,
    );
    let (code, text) = project.run(&["check"]);
    let line = format!("{filters}:1:20: filters.a.alow: unknown field");
    assert!(code == 1 && text.starts_with(&line), "{code}: {text}");
    project.write("project/.portway.json", BROKEN);
    let (code, reports) = project.json(&["check"]);
    let report = reports.as_array().unwrap().last().unwrap();
    assert_eq!((code, &report["kind"]), (1, &json!("filters")));
    assert!(report["error"].as_str().unwrap().contains("line 3"));
}

#[cfg(unix)]
#[test]
fn b3_check_tells_of_a_file_that_others_may_write() {
    use std::os::unix::fs::PermissionsExt;
    let project = ProjectDir::new();
    project.write("project/.mcp.json", GOOD);
    let mcp = project.path("project/.mcp.json");
    std::fs::set_permissions(&mcp, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (code, text) = project.run(&["check"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("may be written by everyone (mode 666)"),
        "{text}"
    );
    // As a candidate its content counts alone.
    assert_eq!(project.run(&["check", ".mcp.json"]).0, 0);
}

#[test]
fn b4_check_looks_into_every_layer() {
    let project = ProjectDir::new();
    let section = project.path("project");
    let global = json!({
        "mcpServers": {"a": {"command": "x"}},
        "projects": {
            &section: {"mcpServers": {"a": {"command": "x"}, "bad": {"command": 7}}},
            "/elsewhere": {"mcpServers": {"worse": 7}},
        },
    });
    project.write("home/.kode.json", global.to_string());
    let (code, text) = project.run(&["check"]);
    assert_eq!(code, 1);
    let line = format!("{}:1:", project.path("home/.kode.json"));
    assert!(text.starts_with(&line), "{text}");
    assert!(text.contains("server \"bad\": command: must be"), "{text}");
    let global = project.path("home/.kode.json");
    let shadowed = format!("{global}: server \"a\" is shadowed by {global}\n");
    assert!(text.contains(&shadowed), "{text}");
    assert!(text.ends_with("1 file, 3 servers, 1 problem\n"), "{text}");
    let (_, reports) = project.json(&["check"]);
    let kinds: Vec<&str> = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|report| report["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["kode-global", "kode-global-project"]);
    let shadowed = &reports[0]["servers"][0]["shadowedBy"];
    assert_eq!(*shadowed, json!(project.path("home/.kode.json")));
}

#[test]
fn b3_check_judges_a_candidate_under_its_own_name() {
    let project = ProjectDir::new();
    project.write("project/.mcp.json", BROKEN);
    project.write("good.json", GOOD).write("bad.json", BAD);
    project
        .write("broken.json", BROKEN)
        .write("bytes.json", b"\xff");
    let (code, text) = project.run(&["check", "../good.json"]);
    assert_eq!((code, &*text), (0, "1 file, 2 servers, 0 problems\n"));
    for (file, start) in [
        ("../bad.json", "../bad.json:5:18: server \"b\": timeout"),
        ("../broken.json", "../broken.json:3:5: not JSON"),
        ("../bytes.json", "../bytes.json: is not UTF-8 text"),
    ] {
        let (code, text) = project.run(&["check", file]);
        assert!(code == 1 && text.starts_with(start), "{code}: {text}");
        let (code, reports) = project.json(&["check", file]);
        assert_eq!((code, &reports[0]["path"]), (1, &json!(file)));
    }
    for args in [
        &["check", "../missing.json"][..],
        &["check", "--project", "/missing"],
        &["plan", "../missing.json"],
        &["plan"],
    ] {
        assert_eq!(project.run(args).0, 2, "{args:?}");
    }
}

#[test]
fn plan_tells_what_a_file_would_do_and_exits_with_1_if_it_is_wrong() {
    let project = ProjectDir::new();
    let off = |command: &str| json!({"command": command});
    let now = json!({"mcpServers": {
        "kept": off("a"), "slower": {"command": "b", "timeout": 1}, "changed": off("c"),
        "removed": off("d"), "uncovered": off("e"),
    }});
    let kode = json!({"mcpServers": {"uncovered": off("hidden"), "kode": off("k")}});
    let then = json!({"mcpServers": {
        "added": off("f"), "kept": off("a"), "slower": {"command": "b", "timeout": 2},
        "changed": off("other"),
    }});
    project.write("project/.mcp.json", now.to_string());
    project.write("project/.kode.json", kode.to_string());
    project.write("then.json", then.to_string());
    let (code, text) = project.run(&["plan", "../then.json"]);
    assert_eq!(code, 0, "{text}");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "+ added     added",
            "- removed   removed",
            "= kept      kept",
            "= kept      kode",
            "= kept      slower",
            "~ restarted changed",
            "~ restarted uncovered",
        ]
    );

    // A fault elsewhere is told, and is no fault of the candidate.
    project.write("project/.kode.json", BAD);
    let (code, plan) = project.json(&["plan", "../then.json"]);
    assert_eq!(code, 0, "{plan:#}");
    let fault = &plan["problems"][0];
    assert_eq!(fault["file"], project.path("project/.kode.json"));
    assert_eq!(
        (&fault["line"], &fault["field"]),
        (&json!(5), &json!("timeout"))
    );

    project.write("project/.kode.json", "{}");
    let (code, plan) = project.json(&["plan", "../then.json"]);
    assert_eq!((code, &plan["problems"]), (0, &json!([])));
    project.write("bad.json", BAD).write("broken.json", BROKEN);
    let (code, plan) = project.json(&["plan", "../bad.json"]);
    assert_eq!(code, 1);
    assert_eq!(plan["problems"][0]["file"], "../bad.json");
    assert_eq!(plan["added"], json!(["a", "b"]));
    let (code, text) = project.run(&["plan", "../broken.json"]);
    assert!(
        code == 1 && text.contains("../broken.json:3:5: not JSON"),
        "{text}"
    );
    assert!(
        !text.contains("- removed"),
        "it would change nothing: {text}"
    );
}

async fn planned(app: &App, body: Value) -> Value {
    app.post("/api/mcp/plan", body).await.expect(200)
}

#[tokio::test]
async fn plan_by_api_tells_the_same_and_does_nothing() {
    let app = setup()
        .mcp(fixtures(&[
            ("kept", &[]),
            ("changed", &[]),
            ("removed", &[]),
        ]))
        .start()
        .await;
    let mut before = Vec::new();
    for name in ["kept", "changed", "removed"] {
        before.push(app.until_status(name, "connected").await);
    }
    let file = std::fs::read(app.path(".mcp.json")).unwrap();
    let mut then = fixtures(&[
        ("kept", &[]),
        ("changed", &["--tools", "1"]),
        ("added", &[]),
    ]);
    then["mcpServers"]["kept"]["timeout"] = json!(5);
    let expected = json!({
        "added": ["added"], "removed": ["removed"], "restarted": ["changed"], "kept": ["kept"],
        "problems": [],
    });
    assert_eq!(planned(&app, then.clone()).await, expected);
    let text = format!("// with a comment\n{then}");
    assert_eq!(planned(&app, json!({ "file": text })).await, expected);

    then["mcpServers"]["bad"] = json!({"command": "x", "url": "y"});
    let text = serde_json::to_string_pretty(&then).unwrap();
    let with_bad = planned(&app, json!({ "file": text })).await;
    let fault = &with_bad["problems"][0];
    assert_eq!(
        (&fault["server"], &fault["field"]),
        (&json!("bad"), &json!("url"))
    );
    assert!(fault["line"].as_u64().unwrap() > 10, "{fault}");
    assert!(fault["file"].as_str().unwrap().ends_with("/.mcp.json"));

    // One server, as in a registration or a replacement.
    let one = planned(&app, json!({"name": "new", "command": "x"})).await;
    assert_eq!(one["added"], json!(["new"]));
    assert_eq!(one["kept"].as_array().unwrap().len(), 3);
    let same = json!({"name": "kept", "command": fixture(), "timeout": 9});
    assert_eq!(planned(&app, same).await["restarted"], json!([]));
    let other = json!({"name": "kept", "command": fixture(), "args": ["--tools", "1"]});
    assert_eq!(planned(&app, other).await["restarted"], json!(["kept"]));

    for (body, status, field) in [
        (json!({"file": BROKEN}), 422, "file"),
        (json!({"file": 7}), 422, "file"),
        (json!({"mcpServers": []}), 422, "file"),
        (json!({"name": "x"}), 422, "command"),
        (
            json!({"name": "x", "command": "y", "colour": 1}),
            422,
            "colour",
        ),
        (json!([]), 400, ""),
    ] {
        let refusal = app.post("/api/mcp/plan", body.clone()).await.expect(status);
        let details = &refusal["error"]["details"][0]["field"];
        assert_eq!(
            details.as_str().unwrap_or_default(),
            field,
            "{body}: {refusal}"
        );
    }
    assert_eq!(std::fs::read(app.path(".mcp.json")).unwrap(), file);
    for old in before {
        let now = app.server(old["name"].as_str().unwrap()).await;
        assert_eq!((&now["pid"], &now["since"]), (&old["pid"], &old["since"]));
    }
}

#[tokio::test]
async fn plan_takes_a_covered_value_for_the_stored_one() {
    let server = json!({"command": "x", "env": {"TOKEN": "s3cret-value"}, "enabled": false});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .start()
        .await;
    let mut shown = app.server("one").await["config"].clone();
    assert_eq!(shown["env"]["TOKEN"], "***");
    shown["name"] = json!("one");
    assert_eq!(planned(&app, shown.clone()).await["kept"], json!(["one"]));
    shown["env"]["TOKEN"] = json!("other");
    assert_eq!(
        planned(&app, shown.clone()).await["restarted"],
        json!(["one"])
    );
    shown["name"] = json!("two");
    shown["env"]["TOKEN"] = json!("***");
    app.post("/api/mcp/plan", shown).await.expect(422);
}

/// With the validator of others, where it is installed.
#[tokio::test]
async fn the_schema_takes_what_portway_takes() {
    let app = setup().start().await;
    let schema = app.get("/api/mcp/schema").await.expect(200);
    let judge = "import sys, json\n\
                 from jsonschema import Draft202012Validator as V\n\
                 schema, texts = json.load(sys.stdin)\n\
                 V.check_schema(schema)\n\
                 print(json.dumps([V(schema).is_valid(json.loads(t)) for t in texts]))";
    let server = |server: Value| json!({"mcpServers": {"one": server}}).to_string();
    let named = |name: &str| json!({"mcpServers": {name: {"command": "x"}}}).to_string();
    let texts = [
        GOOD.to_owned(),
        "{}".into(),
        server(json!({"type": "local", "command": ["npx", "x"], "environment": {}, "timeout": 3})),
        server(json!({"type": "remote", "url": "https://x/", "headers": {"X-A": "b"}})),
        server(json!({"transport": "sse", "url": "${URL}", "disabled": true, "other": 1})),
        named("Größe 2.0_x-y"),
        named("日本"),
        BAD.to_owned(),
        server(json!({"command": "x", "url": "http://y/"})),
        server(json!({"type": "http", "command": "x"})),
        server(json!({"type": "teleport", "command": "x"})),
        server(json!({"command": "x", "args": "y"})),
        server(json!({"command": "x", "env": {"A": 1}})),
        server(json!({"url": "ftp://x/"})),
        server(json!(7)),
        named("a/b"),
        named(" a"),
        named("a "),
        named(&"a".repeat(65)),
    ];
    let takes: Vec<bool> = texts.iter().map(|text| takes(text)).collect();
    assert_eq!(takes.iter().filter(|taken| **taken).count(), 7, "{takes:?}");
    let input = json!([schema, texts]).to_string();
    let mut python = Command::new(installed("python-1/bin/python"))
        .args(["-W", "ignore", "-c", judge])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut python.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    let verdicts: Vec<bool> = serde_json::from_slice(&output.stdout).expect(&complaint);
    assert_eq!(verdicts, takes);
}

/// Whether `portway check` finds nothing wrong.
fn takes(text: &str) -> bool {
    let project = ProjectDir::new();
    project.write("candidate.json", text);
    project.run(&["check", "../candidate.json"]).0 == 0
}
