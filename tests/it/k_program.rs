//! SPEC K1-K3, F1: the program seen from outside: settings, what it prints,
//! who may ask.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::app::{App, TOKEN, eventually, fixture, fixtures, setup};

#[tokio::test]
async fn k1_a_bad_setting_stops_the_start_with_its_name() {
    for (name, value) in [
        ("PORTWAY_LISTEN", "nowhere"),
        ("PORTWAY_ADMIN_TOKEN", "short"),
        ("PORTWAY_ADMIN_TOKEN", "has a space in its middle"),
        ("PORTWAY_SECRET", "short"),
        ("PORTWAY_ALLOWED_HOSTS", "http://a/b"),
        ("PORTWAY_ALLOWED_ORIGINS", "not-an-origin"),
        ("PORTWAY_CONNECT_TIMEOUT", "soon"),
        ("PORTWAY_CONNECT_TIMEOUT", "0"),
        ("PORTWAY_HEALTH_INTERVAL", "0"),
        ("PORTWAY_STOP_GRACE", "-1s"),
        ("PORTWAY_DRAIN", "2 fortnights"),
        ("PORTWAY_MAX_BODY", "huge"),
        ("PORTWAY_MAX_LINE", "1"),
        ("PORTWAY_MAX_CONNECTIONS", "0"),
        ("STORAGE_TYPE", "supabase"),
        ("SUPABASE_URL", "not a url"),
        ("SUPABASE_DB_URL", "http://not.postgres/"),
        ("MCP_SERVICE_URL", "ftp://x"),
        ("RUST_LOG", "portway=loud=very"),
    ] {
        // `--listen` would hide a bad PORTWAY_LISTEN.
        let (code, text) = setup().quietly().env(name, value).refused().await;
        assert_eq!(code, Some(2), "{name}={value}: {text}");
        assert!(text.contains(name), "{name}={value}: {text}");
        let secret = name.contains("TOKEN") || name.contains("SECRET");
        assert!(!secret || !text.contains(value), "{text}");
    }
    for args in [
        &["--listen", "nowhere"][..],
        &["--log-format", "xml"],
        &["--colour", "red"],
        &["--project", "/no/such/folder"],
        &["--no-auth", "--listen", "0.0.0.0:0"],
    ] {
        let mut start = setup().quietly();
        for arg in args {
            start = start.arg(arg);
        }
        let (code, text) = start.refused().await;
        assert_eq!(code, Some(2), "{args:?}: {text}");
        assert!(text.contains(args[0]), "{args:?}: {text}");
    }
    let (code, _) = setup().quietly().arg("gateway").refused().await;
    assert_eq!(code, Some(2));
}

#[tokio::test]
async fn k1_variables_of_a_kubernetes_service_stop_nothing() {
    let app = setup()
        .env("PORTWAY_SERVICE_HOST", "10.0.0.1")
        .env("PORTWAY_PORT", "tcp://10.0.0.1:7420")
        .env("PORTWAY_LISTEM", "127.0.0.1:1")
        .start()
        .await;
    let warned = |text: &str| app.log().lines().any(|line| line.contains(text));
    eventually("a warning with the nearest name", || {
        warned("PORTWAY_LISTEM: is not a setting and is ignored; did you mean PORTWAY_LISTEN?")
    })
    .await;
}

#[tokio::test]
async fn f1_an_unsupported_storage_type_is_refused_in_these_words() {
    for value in ["redis", "Json", "sqlite"] {
        let (code, text) = setup().env("STORAGE_TYPE", value).refused().await;
        assert_eq!(code, Some(2));
        assert_eq!(text, format!("Unsupported storage type: {value}\n"));
    }
    setup().env("STORAGE_TYPE", "json").start().await;
    // As compose files leave a variable out.
    setup().env("STORAGE_TYPE", "").start().await;
}

#[tokio::test]
async fn k1_several_bad_settings_are_told_at_once() {
    let bad = ["PORTWAY_DRAIN", "PORTWAY_MAX_BODY"];
    let start = setup().env(bad[0], "x").env(bad[1], "y");
    let (_, text) = start.refused().await;
    assert!(bad.iter().all(|name| text.contains(name)), "{text}");
}

#[tokio::test]
async fn k1_files_are_where_the_settings_say() {
    let elsewhere = tempfile::tempdir().unwrap();
    let file = fixtures(&[("one", &["--instance-file", "starts"])]).to_string();
    std::fs::write(elsewhere.path().join(".mcp.json"), file).unwrap();
    let project = elsewhere.path().to_str().unwrap();
    let app = setup().arg("--project").arg(project).start().await;
    app.until_status("one", "connected").await;
    assert!(elsewhere.path().join("data/mcp_instances.json").exists());
    // Servers run there too.
    assert!(elsewhere.path().join("starts").exists());
    app.stop().await;

    let state = tempfile::tempdir().unwrap();
    let data = state.path().join("a/b").display().to_string();
    let by_env = setup().env("PORTWAY_DATA_DIR", &data).start().await;
    assert!(state.path().join("a/b/instance_id").exists());
    assert!(!by_env.path("data").exists());
    by_env.stop().await;
    let by_arg = setup().arg("--data-dir").arg("state").start().await;
    assert!(by_arg.path("state/instance_id").exists());
}

#[tokio::test]
async fn k1_the_admin_token_is_made_once_and_kept_to_ourselves() {
    let first = setup().without("PORTWAY_ADMIN_TOKEN").start().await;
    let file = first.path("data/admin_token");
    let token = std::fs::read_to_string(&file).unwrap();
    let token = token.trim().to_owned();
    assert!(token.len() >= 32, "{} characters", token.len());
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let ask = |app: App| async move {
        let status = app
            .request("GET", "/api/mcp/servers", None, &headers)
            .await
            .status;
        (app, status)
    };
    let (first, status) = ask(first).await;
    assert_eq!(status, 200);
    assert_eq!(
        first.get("/api/mcp/servers").await.status,
        401,
        "another one"
    );
    eventually("the greeting", || first.said().contains("curl")).await;
    assert!(!first.said().contains(&token), "stdout is no terminal");
    assert!(!first.log().contains(&token));
    let again = first.again().await;
    assert_eq!(
        std::fs::read_to_string(again.path("data/admin_token"))
            .unwrap()
            .trim(),
        token
    );
}

#[tokio::test]
async fn k1_no_auth_asks_for_no_token_but_still_for_the_host() {
    let app = setup().arg("--no-auth").start().await;
    assert_eq!(
        app.request("GET", "/api/mcp/servers", None, &[])
            .await
            .status,
        200
    );
    for header in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let answer = app
            .request("GET", "/api/mcp/servers", None, &[header])
            .await;
        assert_eq!(answer.status, 403, "{header:?}");
    }
    eventually("the log says so", || app.log().contains("--no-auth")).await;
}

#[tokio::test]
async fn k1_a_taken_port_or_directory_is_told() {
    let app = setup().start().await;
    let address = app.url.strip_prefix("http://").unwrap();
    let (code, text) = setup()
        .quietly()
        .arg("--listen")
        .arg(address)
        .refused()
        .await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(address) && text.contains("--listen"),
        "{text}"
    );

    let data = app.path("data").display().to_string();
    let (code, text) = setup().env("PORTWAY_DATA_DIR", &data).refused().await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&data), "{text}");
    app.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn k2_stdout_has_the_line_then_the_table_and_how_to_go_on() {
    let app = setup()
        .mcp(json!({"mcpServers": {
            "alpha": {"command": fixture()},
            "beta": {"command": "no-such-command"},
            "delta": {"command": fixture(), "args": ["--stderr", "my last words", "--exit", "3"]},
            "gamma": {"command": fixture(), "disabled": true},
        }}))
        .start()
        .await;
    eventually("the greeting", || app.said().contains("curl")).await;
    let said = app.said();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], format!("portway listening on {}", app.url));
    assert!(app.url.starts_with("http://127.0.0.1:"));
    let row = |name: &str| {
        let found = lines.iter().find(|line| line.starts_with(name));
        found
            .unwrap_or_else(|| panic!("no {name} in {said}"))
            .to_string()
    };
    let tools = app.server("alpha").await["toolCount"].to_string();
    assert!(
        row("alpha").contains("connected") && row("alpha").ends_with(&tools),
        "{said}"
    );
    assert!(
        row("beta").contains("error") && row("beta").contains("no-such-command"),
        "{said}"
    );
    assert!(row("delta").ends_with("my last words"), "{said}");
    assert!(row("gamma").contains("disconnected"), "{said}");
    assert!(said.contains(&format!("{}/", app.url)), "{said}");
    // Nothing of the log, no secret, and no line for a screen of another size.
    assert!(!said.contains("INFO") && !said.contains(TOKEN), "{said}");
    assert!(
        lines.iter().all(|line| line.chars().count() < 300),
        "{said}"
    );
    assert!(
        app.log().contains("server alpha is connected"),
        "{}",
        app.log()
    );
}

#[tokio::test]
async fn k2_an_empty_folder_is_told_what_to_do() {
    let app = setup().start().await;
    eventually("the greeting", || app.said().contains("curl")).await;
    assert!(app.said().contains(".mcp.json"), "{}", app.said());
    assert_eq!(app.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn k2_the_log_can_be_json_and_is_filtered() {
    let app = setup()
        .mcp(fixtures(&[("one", &[])]))
        .arg("--log-format")
        .arg("json")
        .env("RUST_LOG", "portway=debug")
        .start()
        .await;
    app.until_status("one", "connected").await;
    eventually("a line about it", || app.log().contains("is connected")).await;
    let log = app.log();
    let mut levels = Vec::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        levels.push(line["level"].as_str().unwrap().to_owned());
        assert!(line["timestamp"].is_string(), "{line}");
    }
    assert!(levels.contains(&"DEBUG".to_owned()), "{levels:?}");
    app.stop().await;

    let quiet = setup()
        .mcp(fixtures(&[("one", &[])]))
        .env("RUST_LOG", "error");
    let quiet = quiet.start().await;
    quiet.until_status("one", "connected").await;
    assert_eq!(quiet.log(), "");
}

/// `portway | head -1`, with stderr in the same pipe or apart.
async fn survives_a_closed_stdout(stderr_too: bool) {
    let setup = setup().mcp(fixtures(&[("one", &["--late", "300"])]));
    let mut command = setup.command();
    if stderr_too {
        let (reader, writer) = std::io::pipe().unwrap();
        command.stderr(Stdio::from(writer));
        // Nobody reads it, ever.
        drop(reader);
    }
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    drop(stdout);
    let url = line.trim().strip_prefix("portway listening on ").unwrap();
    let app = App::at(setup, child, url);
    app.until_status("one", "connected").await;
    // The table has been written, to nobody.
    assert_eq!(app.act("one", "restart").await["status"], "connected");
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn k2_a_closed_stdout_does_not_stop_it() {
    survives_a_closed_stdout(false).await;
}

#[tokio::test]
async fn k2_a_closed_stderr_does_not_stop_it() {
    survives_a_closed_stdout(true).await;
}

#[tokio::test]
async fn k2_a_stdout_that_nobody_reads_does_not_hold_it_up() {
    let long = |n: usize| format!("{n:04}{}", "x".repeat(60));
    let off = json!({"command": "x", "disabled": true});
    let servers: serde_json::Map<_, _> = (0..900).map(|n| (long(n), off.clone())).collect();
    let setup = setup().mcp(json!({ "mcpServers": servers }));
    let mut child = setup.spawn();
    let mut stdout = BufReader::with_capacity(64, child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    let url = line.trim().strip_prefix("portway listening on ").unwrap();
    let app = App::at(setup, child, url);
    for _ in 0..3 {
        assert_eq!(app.list().await.len(), 900);
    }
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn k3_health_and_readiness_need_no_credential() {
    let app = setup()
        .mcp(fixtures(&[("slow", &["--late", "700"]), ("off", &[])]))
        .start()
        .await;
    let ask = |path: &'static str| app.request("GET", path, None, &[]);
    let health = ask("/healthz").await.expect(200);
    assert_eq!(health["status"], "ok");
    assert_eq!(health["version"], env!("CARGO_PKG_VERSION"));
    assert!(["embedded", "missing"].contains(&health["console"].as_str().unwrap()));
    let early = ask("/readyz").await;
    assert_eq!(early.status, 503, "{}", early.text);
    assert_eq!(early.body["error"]["code"], "UNAVAILABLE");
    app.until_status("slow", "connected").await;
    assert_eq!(ask("/readyz").await.status, 200);
    // Settled once is settled: a later restart is no reason to be unready.
    app.patch("slow", json!({"args": ["--hang-init"]}))
        .await
        .expect(200);
    app.until_status("slow", "connecting").await;
    assert_eq!(ask("/readyz").await.status, 200);
    assert_eq!(ask("/").await.status, 200);
}

#[tokio::test]
async fn k3_a_server_that_fails_has_settled_too() {
    let app = setup()
        .mcp(fixtures(&[("fails", &["--exit", "1"])]))
        .start()
        .await;
    app.until_status("fails", "error").await;
    assert_eq!(app.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn k3_everything_else_is_401_without_a_credential() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    let before = app.until_status("one", "connected").await;
    for (method, path) in [
        ("GET", "/api/mcp/servers"),
        ("POST", "/api/mcp/servers"),
        ("GET", "/api/mcp/servers/one"),
        ("PUT", "/api/mcp/servers/one"),
        ("PATCH", "/api/mcp/servers/one"),
        ("DELETE", "/api/mcp/servers/one"),
        ("POST", "/api/mcp/servers/one/start"),
        ("POST", "/api/mcp/servers/one/stop"),
        ("POST", "/api/mcp/servers/one/restart"),
        ("GET", "/api/mcp/servers/one/tools"),
        ("GET", "/api/mcp/servers/one/resources"),
        ("GET", "/api/mcp/servers/one/prompts"),
        ("GET", "/api/mcp/servers/one/logs"),
        ("GET", "/api/mcp/sources"),
        ("POST", "/mcp"),
        ("GET", "/anything"),
        ("POST", "/healthz"),
    ] {
        let longer = format!("Bearer {TOKEN}x");
        for credential in [
            &[][..],
            &[("authorization", "Bearer wrong")],
            &[("authorization", longer.as_str())],
            &[("authorization", TOKEN)],
            &[("x-api-key", "wrong")],
        ] {
            let answer = app.request(method, path, None, credential).await;
            assert_eq!(
                answer.status, 401,
                "{method} {path} {credential:?}: {}",
                answer.text
            );
            assert_eq!(answer.body["error"]["code"], "UNAUTHORIZED");
        }
    }
    assert_eq!(app.server("one").await, before, "and nothing has happened");
}

#[tokio::test]
async fn k1_help_and_version_go_to_stdout_with_exit_0() {
    for (arg, part) in [
        ("--help", "PORTWAY_CONNECT_TIMEOUT"),
        ("--version", "portway "),
    ] {
        let mut child = setup().quietly().arg(arg).spawn();
        let mut text = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).await.unwrap();
        assert!(text.contains(part), "{arg}: {text}");
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}
