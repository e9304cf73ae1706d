//! SPEC K7: `portway lab` against a server that misbehaves on demand: each
//! finding is shown by the flag that causes it, and nothing stays behind.

mod calls;
mod endings;
mod web;

use std::process::Stdio;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::app::{PATIENCE, fixture};
use crate::process::forest::{carrying, marked};

/// Runs that load the machine at a time.
const AT_ONCE: usize = 3;

pub(crate) struct Lab {
    pub dir: TempDir,
    args: Vec<String>,
}

/// What a run came to.
pub(crate) struct LabOutput {
    pub code: i32,
    pub json: Value,
    pub text: String,
    pub stderr: String,
}

impl Lab {
    pub(crate) fn new(args: &[&str]) -> Lab {
        Lab {
            dir: tempfile::tempdir().unwrap(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        }
    }

    /// `portway lab --json … -- fixture …`.
    pub(crate) fn of_fixture(lab: &[&str], fixture_args: &[&str]) -> Lab {
        let program = fixture();
        let mut args = vec!["--json"];
        args.extend(lab);
        args.extend(["--", &program]);
        args.extend(fixture_args);
        Lab::new(&args)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
        command
            .arg("lab")
            .args(&self.args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs it to its end, and sees that nothing is left.
    pub(crate) async fn run(&self) -> LabOutput {
        let child = self.command().spawn().unwrap();
        let pid = child.id().unwrap();
        let output = tokio::time::timeout(PATIENCE * 2, child.wait_with_output());
        let output = output.await.expect("lab ends in time").unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = LabOutput {
            code: output.status.code().unwrap_or(-1),
            json: serde_json::from_str(&text).unwrap_or_default(),
            text,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        crate::app::eventually("nothing is left", || self.left(pid).is_empty()).await;
        told
    }

    /// Whatever runs of it: servers have its home, helpers its mark.
    pub(crate) fn left(&self, pid: u32) -> Vec<i32> {
        let mut pids = carrying(&format!("HOME={}", self.dir.path().display()));
        pids.extend(marked(&format!("lab-{pid}")));
        pids
    }
}

impl LabOutput {
    pub(crate) fn find(&self, id: &str) -> Option<&Value> {
        let findings = self.json["findings"].as_array()?;
        findings.iter().find(|finding| finding["id"] == id)
    }

    #[track_caller]
    pub(crate) fn expect(&self, id: &str, mark: &str) -> &str {
        let all = self.json["findings"].as_array();
        let of_id = all.into_iter().flatten().filter(|one| one["id"] == id);
        let mut of_mark = of_id.filter(|one| one["mark"] == mark);
        let found = of_mark
            .next()
            .unwrap_or_else(|| panic!("no {mark} {id}: {} {}", self.text, self.stderr));
        if matches!(mark, "warn" | "bad") {
            assert!(found["todo"].is_string(), "says what to do: {found}");
        }
        found["found"].as_str().unwrap()
    }

    pub(crate) fn setting(&self, name: &str) -> &Value {
        let servers = self.json["settings"]["mcpServers"].as_object().unwrap();
        &servers.values().next().unwrap()[name]
    }
}

/// One run and what it must find: id, mark, a word of it.
type LabCase = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [(&'static str, &'static str, &'static str)],
);

/// Runs all of them, a few at a time.
async fn hold(cases: &[LabCase]) {
    let runs = cases.iter().map(|(lab, flags, findings)| async move {
        let told = Lab::of_fixture(lab, flags).run().await;
        for (id, mark, word) in *findings {
            let found = told.expect(id, mark);
            assert!(found.contains(word), "{flags:?} {id}: {found:?}");
        }
        let bad = findings.iter().any(|(_, mark, _)| *mark == "bad");
        assert_eq!(told.code, i32::from(bad), "{flags:?}: {}", told.text);
        assert_eq!(told.json["ok"], !bad);
    });
    let runs: Vec<()> = futures_util::stream::iter(runs)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    assert_eq!(runs.len(), cases.len());
}

#[tokio::test]
async fn k7_lab_finds_a_sound_server_fine_and_measures_it() {
    let told = Lab::of_fixture(&[], &[]).run().await;
    assert_eq!(told.code, 0, "{}", told.text);
    let findings = told.json["findings"].as_array().unwrap();
    let worst = findings
        .iter()
        .find(|one| one["mark"] == "bad" || one["mark"] == "warn");
    assert_eq!(worst, None);
    for id in [
        "era.modern",
        "era.legacy",
        "tools",
        "completions",
        "health",
        "ids.number",
        "ids.string",
        "unknown method",
        "unknown tool",
        "bad params",
        "side by side",
        "subscriptions/listen",
        "broken line",
        "stdout",
        "start",
        "end.eof",
        "end.term",
        "end.orphans",
    ] {
        told.expect(id, "ok");
    }
    let facts = &told.json["facts"];
    assert_eq!(
        (&facts["modern"], &facts["legacy"]),
        (&json!("2026-07-28"), &json!("2025-11-25"))
    );
    assert_eq!(
        (&facts["processes"], &facts["noise"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(facts["serverInfo"]["name"], "fixture");
    for measured in [
        "helloMs", "listsMs", "againMs", "healthMs", "eofMs", "termMs",
    ] {
        assert!(facts[measured].as_f64() > Some(0.0), "{measured}: {facts}");
    }
    assert!(facts["rssBytes"].as_u64() > Some(1 << 20), "{facts}");
    assert!(told.json["complete"] == true && told.json["reasons"] == json!({}));
    // What it suggests can be used as it is.
    let lab = Lab::new(&["--json", "fixture"]);
    std::fs::write(
        lab.dir.path().join(".mcp.json"),
        told.json["settings"].to_string(),
    )
    .unwrap();
    let again = lab.run().await;
    assert_eq!(
        (again.code, &again.json["server"]),
        (0, &json!("fixture")),
        "{}",
        again.text
    );
}

#[tokio::test]
async fn k7_lab_tells_the_eras_and_who_cannot_stand_the_question() {
    hold(&[
        (
            &[],
            &["--era", "modern"],
            &[
                ("era.modern", "ok", "2026-07-28"),
                ("era.legacy", "note", "-32022"),
            ],
        ),
        (
            &[],
            &["--era", "legacy", "--legacy-version", "2025-06-18"],
            &[
                ("era.modern", "note", "-32601"),
                ("era.legacy", "ok", "2025-06-18"),
            ],
        ),
        (
            &["--timeout", "16"],
            &["--hang-init"],
            &[("start", "bad", "no answer within 4 s")],
        ),
        (
            &[],
            &["--refuse-init"],
            &[("start", "bad", "refuses to be initialized")],
        ),
        (
            &["--timeout", "16"],
            &["--foreign-id=all"],
            &[("start", "bad", "nobody-asked")],
        ),
    ])
    .await;
    for flag in ["--exit-on-discover", "--silent-discover"] {
        let told = Lab::of_fixture(&["--timeout", "20"], &["--era", "legacy", flag])
            .run()
            .await;
        told.expect("era.probe", "warn");
        told.expect("era.legacy", "ok");
        assert_eq!(
            (told.code, told.setting("era")),
            (0, &json!("legacy")),
            "{}",
            told.text
        );
        assert!(told.json["reasons"]["era"].is_string());
    }
}

#[tokio::test]
async fn k7_lab_says_why_a_server_does_not_start_and_what_it_needs() {
    let complaint = "Error: SESAME_API_KEY environment variable is required";
    let told = Lab::of_fixture(&[], &["--stderr", complaint, "--exit", "7"])
        .run()
        .await;
    let found = told.expect("start", "bad");
    assert!(
        found.contains("exit code 7") && found.contains(complaint),
        "{found}"
    );
    assert_eq!(told.code, 1);
    assert_eq!(told.setting("env")["SESAME_API_KEY"], "${SESAME_API_KEY}");

    let told = Lab::new(&["--json", "--", "no-such-program-here"])
        .run()
        .await;
    assert!(
        told.expect("start", "bad").contains("no program"),
        "{}",
        told.text
    );
    assert_eq!(told.code, 1);
    assert_eq!(told.json["settings"], Value::Null, "{}", told.text);
}

#[tokio::test]
async fn k7_lab_calls_an_echo_an_echo_and_suggests_no_settings_for_it() {
    let told = Lab::new(&["--json", "--", "cat"]).run().await;
    let found = told.expect("start", "bad");
    assert!(found.contains("echoes"), "{found}");
    assert!(!told.text.contains("-32601"), "{}", told.text);
    assert_eq!(told.json["settings"], Value::Null);

    let told = Lab::new(&["--", "cat"]).run().await;
    assert!(!told.text.contains("Settings for"), "{}", told.text);
}

#[tokio::test]
async fn k7_lab_holds_capabilities_against_the_truth() {
    hold(&[
        (
            &[],
            &["--era", "legacy", "--empty-promises"],
            &[
                ("resources", "warn", "-32601"),
                ("prompts", "warn", "-32601"),
                ("completions", "warn", "-32601"),
                ("logging", "warn", "-32601"),
                ("tools", "ok", "24"),
            ],
        ),
        (
            &[],
            &["--secretive"],
            &[
                ("tools", "warn", "without announcing"),
                ("prompts", "warn", "without"),
            ],
        ),
        (&[], &["--tools-error"], &[("tools", "bad", "on strike")]),
        (
            &[],
            &["--repeat-cursor"],
            &[("tools.pages", "bad", "does not end")],
        ),
        (&[], &["--no-ttl"], &[("lists.ttl", "warn", "how long")]),
        (&[], &["--no-tools"], &[("tools", "note", "not announced")]),
        (
            &[],
            &["--noise", "--era", "legacy"],
            &[("stdout", "warn", "Server listening on stdio")],
        ),
        (&[], &["--flood-stderr"], &[("stderr", "warn", "lines")]),
    ])
    .await;
}

#[tokio::test]
async fn k7_lab_finds_what_is_wrong_with_tools() {
    let told = Lab::of_fixture(&[], &["--odd-tools"]).run().await;
    assert_eq!(told.code, 1, "{}", told.text);
    assert!(told.expect("duplicate name", "bad").contains("odd_twice"));
    assert!(
        told.expect("name", "warn")
            .contains("odd name: with spaces")
    );
    assert!(
        told.expect("names", "note")
            .contains("as mcp_fixture_odd_name")
    );
    assert!(told.expect("description", "warn").contains("odd_silent"));
    let schemaless = told.expect("schema", "bad");
    assert!(
        schemaless.contains("odd_schemaless") && schemaless.contains("odd_list"),
        "{schemaless}"
    );
    let schema = told.expect("schema", "warn");
    for word in [
        "odd_type: a: \"strnig\"",
        "odd_required",
        "leads nowhere",
        "leads out of",
    ] {
        assert!(schema.contains(word), "{word}: {schema}");
    }
    assert!(told.expect("size", "warn").contains("odd_huge"));
    // Over a pipe nobody mirrors arguments into headers.
    assert!(told.find("x-mcp-header").is_none());
}

#[tokio::test]
async fn k7_lab_tells_how_a_server_answers() {
    hold(&[
        (
            &[],
            &["--text-ids"],
            &[
                ("ids.number", "bad", "\"9007199254740991\""),
                ("ids.string", "ok", ""),
            ],
        ),
        (
            &[],
            &["--answer-twice"],
            &[("ids.once", "bad", "more than once")],
        ),
        (
            &[],
            &["--era", "legacy", "--unknown", "error"],
            &[("unknown method", "warn", "-32603")],
        ),
        (
            &[],
            &["--era", "legacy", "--unknown", "silent"],
            &[("unknown method", "warn", "never")],
        ),
        (
            &[],
            &["--era", "legacy", "--unknown", "exit"],
            &[
                ("unknown method", "bad", "no answer"),
                ("crash", "bad", "exit code 4"),
            ],
        ),
        (
            &[],
            &["--stall=health", "--era", "legacy"],
            &[("health", "bad", "no answer")],
        ),
    ])
    .await;
}

#[tokio::test]
async fn k7_lab_refuses_what_it_cannot_try_and_says_what_to_do() {
    for (args, word) in [
        (&["nobody"][..], "no file here defines any"),
        (&["--call", "x", "{", "--", "true"], "is not JSON"),
        (
            &["--call", "x", "[]", "--", "true"],
            "must be a JSON object",
        ),
        (&["--env", "X", "--", "true"], "NAME=VALUE"),
        (&["--header", "a: b", "--", "true"], "use --env"),
        (&["--timeout", "1", "--", "true"], "--timeout"),
        (&["ftp://127.0.0.1/"], "http"),
        (&[], "SERVER|URL"),
        (&[], "-- COMMAND"),
        (&["--project", "/no/such/folder", "x"], "--project"),
    ] {
        let told = Lab::new(args).run().await;
        assert_eq!(told.code, 2, "{args:?}: {}{}", told.text, told.stderr);
        assert!(told.stderr.contains(word), "{args:?}: {}", told.stderr);
    }
}
