//! Several Portways on one database behind one address: what
//! `deploy/replicas.sh` starts.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use crate::app::{App, PATIENCE, TOKEN, eventually, fixtures, setup};
use crate::e_served::hung_up::{closed, listen};
use crate::mcp_front::{call, legacy, modern, said};
use crate::process::forest::carrying;

struct Replicas {
    script: Child,
    front: App,
    /// Each by its own address, past the front.
    each: Vec<App>,
    pids: Vec<i32>,
    home: tempfile::TempDir,
}

/// Somebody else runs it: there is no child of ours to watch.
fn at(url: &str) -> App {
    let nobody = Command::new("true").spawn().unwrap();
    App::at(setup(), nobody, url)
}

async fn start() -> Replicas {
    let home = tempfile::tempdir().unwrap();
    // PostgreSQL is another user where this one is root.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).unwrap();
    let project = home.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let mcp = fixtures(&[("x", &["--era", "legacy"])]).to_string();
    std::fs::write(project.join(".mcp.json"), mcp).unwrap();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut script = Command::new(root.join("deploy/replicas.sh"))
        .arg(port.to_string())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("BIN", env!("CARGO_BIN_EXE_portway"))
        .env("PORTWAY_ADMIN_TOKEN", TOKEN)
        .env("PROJECT", &project)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
    let (mut each, mut pids) = (Vec::new(), Vec::new());
    let front = loop {
        let line = timeout(PATIENCE * 2, lines.next_line()).await;
        let line = line.expect("it starts").unwrap().expect("it goes on");
        if let Some((_, url)) = line.split_once(" replicas of Portway on ") {
            break at(url);
        }
        if let Some(rest) = line.strip_prefix("replica ") {
            let words: Vec<&str> = rest.split_whitespace().collect();
            each.push(at(words[1]));
            pids.push(words[3].parse().unwrap());
        }
    };
    // Whoever prints to a pipe that nobody reads stops.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    for replica in &each {
        replica.until_status("x", "connected").await;
    }
    Replicas {
        script,
        front,
        each,
        pids,
        home,
    }
}

impl Replicas {
    /// A replica that gets notifications serves entries from memory, so that
    /// nothing but a notification can have told it of a change. One that had
    /// lost them would ask the database each time, and say so in its log.
    fn were_notified_all_the_time(&self) {
        let mut logs = 0;
        for directory in std::fs::read_dir(self.home.path()).unwrap() {
            for replica in 1..=self.each.len() {
                let path = directory.as_ref().unwrap().path();
                let log = path.join(replica.to_string()).join("log");
                let Ok(log) = std::fs::read_to_string(log) else {
                    continue;
                };
                assert!(!log.contains("notifications lost"), "{log}");
                logs += 1;
            }
        }
        assert_eq!(logs, self.each.len(), "each has a log");
    }

    async fn end(mut self) {
        let pid = Pid::from_raw(self.script.id().unwrap() as i32);
        kill(pid, Signal::SIGTERM).unwrap();
        timeout(PATIENCE, self.script.wait())
            .await
            .expect("it ends")
            .unwrap();
        let home = format!("HOME={}", self.home.path().display());
        eventually("nothing is left", || carrying(&home).is_empty()).await;
    }
}

/// A test that fails leaves nothing running either: the script ends what it
/// has started, if it is asked and not killed.
impl Drop for Replicas {
    fn drop(&mut self) {
        let Some(pid) = self.script.id() else { return };
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGTERM);
        for _ in 0..200 {
            if !matches!(self.script.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// An entry with these tools of `x`: its id, key, and one binding's tool.
async fn entry(app: &App, tools: &[&str]) -> (i64, String, i64) {
    let mut bindings = Vec::new();
    for tool in tools {
        let record = json!({"name": tool, "server": "x", "tool": tool, "allow_missing": true});
        let made = app.post("/api/v1/tools", record).await.expect(201);
        bindings.push(json!({"tool_id": made["id"], "status": true}));
    }
    let first = bindings[0]["tool_id"].as_i64().unwrap();
    let body = json!({"name": "agent", "bindings": bindings});
    let path = "/api/v1/mcp_v2/with_bindings";
    let made = app.post(path, body).await.expect(201);
    let key = made["api_key"].as_str().unwrap().to_owned();
    (made["id"].as_i64().unwrap(), key, first)
}

fn endpoint(key: &str) -> String {
    format!("/api/v1/mcp_v2/server/{key}")
}

async fn tools(app: &App, key: &str) -> Option<Vec<String>> {
    let talk = modern(app, &endpoint(key), "tools/list", json!({}));
    let talk = talk.send().await;
    if talk.status == 404 {
        return None;
    }
    let answer = talk.answer().await;
    let listed = answer["result"]["tools"].as_array().unwrap().clone();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    Some(listed.iter().map(name).collect())
}

/// Waits until a replica shows this.
async fn shows(app: &App, key: &str, wanted: Option<&[&str]>) {
    let start = Instant::now();
    loop {
        let now = tools(app, key).await;
        let now: Option<Vec<&str>> = now
            .as_ref()
            .map(|now| now.iter().map(String::as_str).collect());
        if now.as_deref() == wanted {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{now:?}, not {wanted:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_e7_replicas_follow_each_other_and_share_sessions() {
    let replicas = start().await;
    let [one, two, three] = &replicas.each[..] else {
        panic!("three replicas")
    };
    let (id, key, first) = entry(&replicas.front, &["echo", "elicit"]).await;
    let both = ["echo", "elicit"];
    for replica in [one, two, three] {
        shows(replica, &key, Some(&both)).await;
    }
    changes_reach_all(one, &[two, three], id, &key, first).await;
    replicas.were_notified_all_the_time();
    sessions_are_good_everywhere(one, two, &key).await;
    a_parked_call_fails_cleanly_elsewhere(one, two, &key).await;
    connections_end_everywhere(one, &[two, three]).await;
    servers_follow(one, &[two, three]).await;
    one_may_die(&replicas, &key).await;
    replicas.end().await;
}

async fn changes_reach_all(one: &App, others: &[&App], id: i64, key: &str, first: i64) {
    let path = format!("/api/v1/mcp_v2/{id}");
    let switch = |on: bool| Some(json!({ "status": on }).to_string());
    for on in [false, true] {
        one.send("PATCH", &path, switch(on)).await.expect(200);
        let wanted: Option<&[&str]> = on.then_some(&["echo", "elicit"]);
        // Where it was changed it is in force at once.
        assert_eq!(tools(one, key).await.is_some(), on);
        for other in others {
            shows(other, key, wanted).await;
        }
    }
    let binding = format!("{path}/bindings/{first}");
    one.send("PATCH", &binding, switch(false)).await.expect(200);
    for other in others {
        shows(other, key, Some(&["elicit"])).await;
    }
    one.send("PATCH", &binding, switch(true)).await.expect(200);
    for other in others {
        shows(other, key, Some(&["echo", "elicit"])).await;
    }
}

async fn connections_end_everywhere(one: &App, others: &[&App]) {
    let (id, key, _) = entry(one, &["echo"]).await;
    let mut streams = Vec::new();
    for other in others {
        shows(other, &key, Some(&["echo"])).await;
        streams.push(listen(other, &key).await);
    }
    let off = Some(json!({"status": false}).to_string());
    let path = format!("/api/v1/mcp_v2/{id}");
    one.send("PATCH", &path, off).await.expect(200);
    for stream in &mut streams {
        closed(stream, "on another replica").await;
    }
}

async fn sessions_are_good_everywhere(one: &App, two: &App, key: &str) {
    let place = endpoint(key);
    let mut client = legacy(one, &place, "2025-11-25", json!({})).await;
    client.app = two;
    let answer = client
        .tool(7, "echo", json!({"text": "hello"}))
        .send()
        .await;
    assert_eq!(said(&answer.answer().await), "hello");
}

async fn a_parked_call_fails_cleanly_elsewhere(one: &App, two: &App, key: &str) {
    let place = endpoint(key);
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let ask = async |app: &App, mut params: Value| {
        params["_meta"] = json!({capabilities: {"elicitation": {}}});
        let talk = modern(app, &place, "tools/call", params).send().await;
        talk.answer().await
    };
    let params = call("elicit", json!({"rounds": 1}));
    let asked = ask(one, params.clone()).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let mut again = params.clone();
    for key in result["inputRequests"].as_object().unwrap().keys() {
        again["inputResponses"][key] = json!({"action": "accept", "content": {"name": "Ada"}});
    }
    again["requestState"] = result["requestState"].clone();
    // Not here; and that it was tried elsewhere costs it nothing at home.
    assert_eq!(ask(two, again.clone()).await["error"]["code"], -32602);
    let done = ask(one, again).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
}

async fn servers_follow(one: &App, others: &[&App]) {
    let server = &fixtures(&[("made", &[])])["mcpServers"]["made"];
    let mut body = server.clone();
    body["name"] = json!("made");
    one.post("/api/mcp/servers", body).await.expect(201);
    for other in others {
        let record = until_known(other, "made").await;
        assert_eq!(record["source"], "database", "{record:#}");
        other.until_status("made", "connected").await;
    }
    one.act("made", "stop").await;
    for other in others {
        other.until_status("made", "disconnected").await;
    }
    one.act("made", "start").await;
    for other in others {
        other.until_status("made", "connected").await;
    }
    others[0].delete("made").await;
    let start = Instant::now();
    while one.get("/api/mcp/servers/made").await.status != 404 {
        assert!(start.elapsed() < PATIENCE, "it is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn until_known(app: &App, name: &str) -> Value {
    let start = Instant::now();
    loop {
        let answer = app.get(&format!("/api/mcp/servers/{name}")).await;
        if answer.status == 200 {
            return answer.body;
        }
        assert!(start.elapsed() < PATIENCE, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The front goes around a replica that is gone. A call that was being sent
/// to it just then is the client's to repeat: it may have been carried out.
async fn one_may_die(replicas: &Replicas, key: &str) {
    kill(Pid::from_raw(replicas.pids[0]), Signal::SIGKILL).unwrap();
    let mut lost = 0;
    for number in 0..20 {
        loop {
            let params = call("echo", json!({"text": format!("still {number}")}));
            let talk = modern(&replicas.front, &endpoint(key), "tools/call", params);
            let talk = talk.send().await;
            if talk.status == 502 {
                lost += 1;
                assert!(lost <= 5, "the front does not go around it");
                continue;
            }
            assert_eq!(said(&talk.answer().await), format!("still {number}"));
            break;
        }
    }
}
