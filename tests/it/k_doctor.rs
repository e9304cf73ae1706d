//! SPEC K7: `portway doctor` finds what is wrong, says what to do, tells no
//! secret and changes nothing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::a_away::{fill, on_a_small_disk, seen_by, until_health};
use crate::app::{PATIENCE, TOKEN, fixture, fixtures, setup};
use crate::cluster;

struct Doctor {
    dir: TempDir,
    env: Vec<(String, String)>,
}

struct DoctorOutput {
    code: i32,
    findings: Vec<Value>,
    text: String,
}

impl Doctor {
    /// In a project of its own, where nothing runs and nobody listens.
    fn new() -> Doctor {
        let free = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        Doctor {
            dir: tempfile::tempdir().unwrap(),
            env: vec![("PORTWAY_LISTEN".into(), free.to_string())],
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Doctor {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn mode(self, name: &str, mode: u32) -> Doctor {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path().join(name), permissions).unwrap();
        self
    }

    fn env(mut self, name: &str, value: &str) -> Doctor {
        self.env.push((name.into(), value.into()));
        self
    }

    async fn run(&self) -> DoctorOutput {
        ask(self.path(), &self.env, &["doctor", "--json"]).await
    }
}

async fn ask(dir: &Path, env: &[(String, String)], args: &[&str]) -> DoctorOutput {
    let output = Command::new(env!("CARGO_BIN_EXE_portway"))
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .envs(env.iter().cloned())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, output)
        .await
        .expect("in time")
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    DoctorOutput {
        code: output.status.code().unwrap_or(-1),
        findings: json["findings"].as_array().cloned().unwrap_or_default(),
        text: text + &String::from_utf8_lossy(&output.stderr),
    }
}

impl DoctorOutput {
    /// That there is such a finding, with such a word.
    #[track_caller]
    fn expect(&self, id: &str, mark: &str, word: &str) {
        let fits = |one: &&Value| {
            let found = one["found"].as_str().unwrap_or_default();
            one["id"] == id && one["mark"] == mark && found.contains(word)
        };
        let found = self.findings.iter().find(fits);
        let found = found.unwrap_or_else(|| panic!("no {mark} {id} {word:?}: {}", self.text));
        if matches!(mark, "warn" | "bad") {
            assert!(found["todo"].is_string(), "says what to do: {found}");
        }
    }

    #[track_caller]
    fn ends(&self, code: i32) {
        assert_eq!(self.code, code, "{}", self.text);
    }
}

/// Every file below a directory, with its time and size.
fn state(dir: &Path) -> BTreeMap<String, (SystemTime, u64)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        let name = entry.path().display().to_string();
        found.insert(name, (metadata.modified().unwrap(), metadata.len()));
        if metadata.is_dir() {
            found.extend(state(&entry.path()));
        }
    }
    found
}

#[tokio::test]
async fn k7_doctor_finds_nothing_wrong_with_an_empty_folder_and_leaves_it_empty() {
    let doctor = Doctor::new();
    let told = doctor.run().await;
    told.ends(0);
    told.expect("version", "ok", env!("CARGO_PKG_VERSION"));
    told.expect("gateway", "note", "none answers");
    told.expect("address", "ok", "is free");
    told.expect("data directory", "note", "first start");
    told.expect("files", "note", "none in");
    told.expect("clock", "ok", "");
    let held = told
        .findings
        .iter()
        .filter(|one| one["id"] == "containment");
    assert!(held.count() >= 1, "{}", told.text);
    assert!(state(doctor.path()).is_empty());
}

#[tokio::test]
async fn k7_doctor_tells_what_is_wrong_with_files_and_servers() {
    let servers = json!({"mcpServers": {
        "missing": {"command": "no-such-program-here"},
        "npx-ish": {"command": "./npx", "args": ["--token", "sesame-open-now"]},
        "unset": {"command": "no-such-either", "env": {"A": "${DOCTOR_UNSET_VARIABLE}"}},
        "away": {"url": "http://127.0.0.1:9/mcp?api_key=sesame-open-now"},
        "bad": {"command": 7},
        "off": {"command": "also-not-there", "enabled": false},
        "fine": {"command": fixture()},
    }});
    let doctor = Doctor::new()
        .file(".mcp.json", servers.to_string())
        .file(
            ".kode.json",
            json!({"mcpServers": {"fine": {"command": "x"}}}).to_string(),
        )
        .file(".portway.json", "{\"filters\": {\"a\": {\"alow\": []}}}");
    let before = state(doctor.path());
    let told = doctor.run().await;
    told.ends(1);
    told.expect("command", "bad", "no-such-program-here");
    told.expect("command", "bad", "./npx --token ***");
    told.expect("command", "bad", "unset: `no-such-either");
    told.expect("command", "ok", "for fine");
    told.expect("variable", "bad", "DOCTOR_UNSET_VARIABLE");
    told.expect("url", "bad", "api_key=***");
    told.expect("definition", "bad", "server \"bad\": command");
    told.expect("definition", "bad", ".portway.json:1:");
    told.expect("shadowed", "warn", "\"fine\"");
    told.expect("disabled", "note", "off");
    assert!(!told.text.contains("sesame"), "{}", told.text);
    assert!(
        told.text.contains("Node 20"),
        "a hint for npx: {}",
        told.text
    );
    assert_eq!(state(doctor.path()), before);
    let told = ask(doctor.path(), &doctor.env, &["doctor"]).await;
    told.ends(1);
    assert!(
        told.text.contains("✗ variable") && told.text.contains("→ set it"),
        "{}",
        told.text
    );
    assert!(!told.text.contains('\u{1b}'), "colours are for terminals");
}

#[tokio::test]
async fn k7_doctor_tells_of_files_that_others_may_write_or_read() {
    let doctor = Doctor::new()
        .file(".mcp.json", "{\"mcpServers\": {}}")
        .mode(".mcp.json", 0o666)
        .file("data/admin_token", TOKEN)
        .mode("data/admin_token", 0o644)
        .mode("data", 0o755)
        .file("data/mcp_instances.json", "{\"version\": 1")
        .file("data/mcp_instances.journal", "")
        .file("data/mcp_instances.json.corrupt-20260101", "x");
    let before = state(doctor.path());
    let told = doctor.run().await;
    told.ends(1);
    told.expect("file", "bad", "may be written by everyone");
    told.expect("admin token", "bad", "mode 644");
    told.expect("data directory", "warn", "mode 755");
    told.expect("storage", "bad", "is damaged");
    told.expect("storage", "warn", "corrupt-20260101");
    assert!(!told.text.contains(TOKEN));
    assert_eq!(state(doctor.path()), before);
}

#[tokio::test]
async fn k7_doctor_tells_of_secrets_that_a_start_replaces() {
    let shipped = "shipped-".repeat(6);
    let doctor = Doctor::new()
        .file("data/admin_token", &shipped)
        .mode("data/admin_token", 0o600)
        .mode("data", 0o700);
    let told = doctor.run().await;
    told.expect("data directory", "warn", "not made by this user's Portway");
    assert!(!told.text.contains(&shipped));
    let args = ["doctor", "--json", "--data-dir", "data"];
    let named = ask(doctor.path(), &doctor.env, &args).await;
    assert!(!named.text.contains("not made by"), "{}", named.text);
}

#[tokio::test]
async fn k7_doctor_tells_a_bad_setting_and_looks_at_the_rest() {
    let doctor = Doctor::new()
        .env("PORTWAY_DRAIN", "soon")
        .env("PORTWAY_ADMIN_TOKEN", "short");
    let told = doctor.run().await;
    told.ends(1);
    told.expect("settings", "bad", "PORTWAY_DRAIN");
    told.expect("settings", "bad", "PORTWAY_ADMIN_TOKEN");
    told.expect("files", "note", "none in");
    let told = ask(
        doctor.path(),
        &[],
        &["doctor", "--project", "/no/such/folder"],
    )
    .await;
    told.ends(2);
    assert!(told.text.contains("--project"), "{}", told.text);
}

#[tokio::test]
async fn k7_doctor_knows_the_running_one_and_its_servers_in_trouble() {
    let mut servers = fixtures(&[("good", &[])]);
    servers["mcpServers"]["broken"] = json!({"command": fixture(), "args": ["--exit", "7"]});
    let app = setup()
        .mcp(servers)
        .file(".portway.json", "{}")
        .start()
        .await;
    let listed = app.get("/api/mcp/sources").await.expect(200);
    let kinds: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["kind"])
        .collect();
    assert_eq!(kinds, [&json!("mcp"), &json!("filters")]);
    app.until_status("broken", "error").await;
    let env = [("PORTWAY_ADMIN_TOKEN".to_owned(), TOKEN.to_owned())];
    let told = ask(app.setup.path(), &env, &["doctor", "--json"]).await;
    told.ends(1);
    told.expect("version", "ok", "so is the running one");
    told.expect("gateway", "ok", &app.url);
    told.expect("token", "ok", "takes it");
    told.expect("lock", "ok", &format!("process {}", app.pid()));
    told.expect("server", "bad", "broken: ");
    told.expect("server", "bad", "exit code 7");
    told.expect("storage", "ok", "json");
    assert!(!told.text.contains(TOKEN));

    let wrong = [(
        "PORTWAY_ADMIN_TOKEN".to_owned(),
        "another-token-0123456789".to_owned(),
    )];
    let told = ask(app.setup.path(), &wrong, &["doctor", "--json"]).await;
    told.ends(1);
    told.expect("token", "bad", "does not take this token");
    // Somewhere else, the lock says that there must be one.
    let elsewhere = [
        env[0].clone(),
        ("PORTWAY_URL".to_owned(), "http://127.0.0.1:9".to_owned()),
    ];
    let told = ask(app.setup.path(), &elsewhere, &["doctor", "--json"]).await;
    told.expect("lock", "warn", "no Portway answers");
}

#[tokio::test]
async fn k7_doctor_tells_what_containment_does_not_prevent() {
    let mut servers = fixtures(&[("usual", &[]), ("weak", &[]), ("strong", &[])]);
    servers["mcpServers"]["weak"]["containment"] = json!("group");
    servers["mcpServers"]["strong"]["privileges"] = json!("keep");
    let stopped = Doctor::new().file(".mcp.json", servers.to_string());
    let told = stopped.run().await;
    told.ends(0);
    told.expect(
        "containment",
        "warn",
        "weak: a process that leaves its group",
    );
    told.expect(
        "containment",
        "warn",
        "strong: it keeps Portway's privileges",
    );

    let app = setup().mcp(servers).start().await;
    for name in ["usual", "weak", "strong"] {
        app.until_status(name, "connected").await;
    }
    let env = [("PORTWAY_ADMIN_TOKEN".to_owned(), TOKEN.to_owned())];
    let told = ask(app.setup.path(), &env, &["doctor", "--json"]).await;
    told.ends(0);
    for server in app.list().await {
        for gap in server["containmentGaps"].as_array().into_iter().flatten() {
            let gap = gap.as_str().unwrap();
            told.expect("containment", "warn", gap);
        }
    }
    told.expect("containment", "warn", "weak: ");
    told.expect(
        "containment",
        "warn",
        "strong: it keeps Portway's privileges",
    );
}

#[tokio::test]
async fn k7_doctor_knows_a_degraded_portway_and_tells_why() {
    let app = on_a_small_disk(setup(), "data").await;
    fill(&seen_by(&app, "data/filler"));
    let record = json!({"name": "n".repeat(200)});
    // What is left of the journal's last page takes a few.
    while app.post("/api/v1/mcp_v2", record.clone()).await.status == 201 {}
    until_health(&app, "degraded").await;
    let env = [
        ("PORTWAY_ADMIN_TOKEN".to_owned(), TOKEN.to_owned()),
        ("PORTWAY_URL".to_owned(), app.url.clone()),
    ];
    let told = ask(app.setup.path(), &env, &["doctor", "--json"]).await;
    told.ends(1);
    told.expect("gateway", "bad", "degraded: ");
    told.expect("gateway", "bad", "no space is left");
    told.expect("token", "ok", "takes it");
    // Nor is it a stranger to another project.
    let beside = Doctor::new().env("PORTWAY_LISTEN", app.url.strip_prefix("http://").unwrap());
    beside
        .run()
        .await
        .expect("gateway", "warn", "another one's");
}

#[tokio::test]
async fn k7_doctor_tells_of_somebody_else_on_the_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let silent = Doctor::new().env("PORTWAY_LISTEN", &address);
    let told = silent.run().await;
    told.ends(1);
    told.expect("address", "bad", "taken by another program");
    assert!(
        told.text.contains("PORTWAY_LISTEN"),
        "how to choose another: {}",
        told.text
    );

    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
        }
    });
    let told = silent.run().await;
    told.ends(1);
    told.expect("gateway", "bad", "it is no Portway");
}

#[tokio::test]
async fn k7_doctor_knows_another_projects_portway_from_this_ones() {
    let app = setup().start().await;
    let address = app.url.strip_prefix("http://").unwrap();
    let beside = Doctor::new().env("PORTWAY_LISTEN", address);
    let told = beside.run().await;
    told.ends(0);
    told.expect("gateway", "warn", "another one's");
    assert!(!told.text.contains("asks for a token"), "{}", told.text);

    let broken = Doctor::new().file(".mcp.json", "{\"mcpServers\": ");
    let told = broken.run().await;
    told.ends(1);
    told.expect("files", "note", "0 definitions");
}

#[tokio::test]
async fn k7_doctor_looks_at_the_database_and_tells_no_password() {
    let cluster = cluster::shared();
    let url = cluster.url(&cluster.database());
    let supabase = |url: &str| {
        let doctor = Doctor::new().env("STORAGE_TYPE", "supabase");
        doctor.env("SUPABASE_DB_URL", url)
    };
    let told = supabase(&url).run().await;
    told.ends(1);
    told.expect("storage", "ok", "connected");
    told.expect("migrations", "bad", "mcp_v2");

    let app = setup()
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", &url);
    app.start().await.stop().await;
    let told = supabase(&url).run().await;
    told.ends(0);
    told.expect("migrations", "ok", "all applied");

    let pooler = "postgres://portway:sesame-open-now@127.0.0.1:6543/postgres";
    let told = supabase(pooler).run().await;
    told.ends(1);
    told.expect("storage", "bad", "6543");
    assert!(!told.text.contains("sesame"), "{}", told.text);
    let nobody = "postgres://portway:sesame-open-now@127.0.0.1:9/postgres";
    let told = supabase(nobody).run().await;
    told.ends(1);
    assert!(!told.text.contains("sesame"), "{}", told.text);
}
