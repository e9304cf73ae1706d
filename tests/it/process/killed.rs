//! Portway killed with SIGKILL: the servers go with it, whenever it happens.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use upstream::containment::ContainmentStep;

use super::forest::{LIMIT, TestForest, example, helpers, ladder_here, marked, rounds, shim};
use crate::needs::has;

/// What real servers look like, and worse.
const KINDS: [&str; 4] = ["tree", "daemon", "comet", "launcher"];

/// Servers started at once by a parent that is killed meanwhile.
const RACERS: u32 = 4;

const ORDINARY: [&str; 4] = [
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
];

/// Whom the parent runs as.
#[derive(Clone, Copy)]
enum RunAs {
    Us,
    Ordinary,
    /// Where the kernel gives no more namespaces, as many containers do.
    Confined,
}

impl RunAs {
    fn command(self) -> Command {
        let confine = "echo 0 > /proc/sys/user/max_user_namespaces && \
                       exec setpriv --bounding-set=-all \"$@\"";
        let mut words = match self {
            RunAs::Ordinary | RunAs::Confined if geteuid().is_root() => ORDINARY.to_vec(),
            // Nothing to give up: we are ordinary ourselves.
            _ => vec!["env"],
        };
        if let RunAs::Confined = self {
            words.extend([
                "unshare",
                "--user",
                "--map-root-user",
                "sh",
                "-c",
                confine,
                "sh",
            ]);
        }
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }
}

/// A parent holding `count` servers of one kind.
struct ServerParent {
    child: Child,
    tree: TestForest,
}

impl ServerParent {
    fn start(containment: &str, kind: &str, count: u32, who: RunAs) -> ServerParent {
        let tree = TestForest::new();
        std::fs::set_permissions(tree.dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let heartbeat = tree.heartbeat().to_str().unwrap().to_string();
        let mut command = who.command();
        command.arg(example("holder"));
        let shim = shim().to_str().unwrap();
        command.args([shim, containment, &tree.name, &count.to_string()]);
        let unruly = example("unruly");
        match kind {
            // npx starts sh, which starts node.
            "launcher" => command
                .args(["sh", "-c", "sh -c '\"$@\"; :' sh \"$@\"; :", "sh"])
                .args([&unruly, "tree", &heartbeat, "--deaf"]),
            kind => command.args([&unruly, kind, &heartbeat, "--deaf"]),
        };
        let child = command
            .env_clear()
            .envs(tree.env())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        ServerParent {
            child: child.spawn().unwrap(),
            tree,
        }
    }

    /// Until every server says that all its processes run. Gives the lines.
    fn await_ready(&mut self, count: u32) -> Vec<String> {
        let mut lines = Vec::new();
        let mut ready = 0;
        for line in BufReader::new(self.child.stdout.as_mut().unwrap()).lines() {
            let line = line.unwrap();
            assert!(!line.starts_with("failed"), "{line}");
            ready += u32::from(line == "ready");
            lines.push(line);
            if ready == count {
                return lines;
            }
        }
        panic!("the holder ended: {lines:?}");
    }

    fn kill(&mut self) -> Instant {
        let killed = Instant::now();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        killed
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_killed_while_servers_run_leaves_none() {
    for &step in ladder_here().await.works() {
        let kinds = KINDS
            .iter()
            .filter(|kind| (step, **kind) != (ContainmentStep::Group, "comet"));
        for kind in kinds {
            let mut times = Vec::new();
            for _ in 0..rounds(
                1,
                if step == ContainmentStep::Namespace {
                    100
                } else {
                    25
                },
            ) {
                let mut holder = ServerParent::start(step.as_str(), kind, 1, RunAs::Us);
                holder.await_ready(1);
                let killed = holder.kill();
                times.push(holder.tree.await_gone(killed, &format!("{step} {kind}")));
            }
            report(step.as_str(), kind, times);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_killed_at_any_moment_of_a_start_leaves_none() {
    for &step in ladder_here().await.works() {
        let window = time_to_start(step.as_str(), RunAs::Us);
        let mut times = Vec::new();
        for _ in 0..rounds(8, 100) {
            let mut holder = ServerParent::start(step.as_str(), "daemon", RACERS, RunAs::Us);
            std::thread::sleep(window.mul_f64(fastrand::f64()));
            let killed = holder.kill();
            times.push(await_nothing_left(
                killed,
                &holder.tree,
                &format!("{step}, race"),
            ));
        }
        report(step.as_str(), "race", times);
    }
}

/// How long a parent takes from nothing to running servers, now: the time in
/// which to kill it.
fn time_to_start(containment: &str, who: RunAs) -> Duration {
    let start = Instant::now();
    let mut holder = ServerParent::start(containment, "daemon", RACERS, who);
    holder.await_ready(RACERS);
    let took = start.elapsed();
    let killed = holder.kill();
    await_nothing_left(killed, &holder.tree, "before the race");
    took
}

/// A helper that has not started its server yet counts as well, and so does
/// a process that shows its environment only at the next look.
fn await_nothing_left(start: Instant, tree: &TestForest, what: &str) -> Duration {
    let mut empty_looks = 0;
    while empty_looks < 3 && start.elapsed() < LIMIT {
        let empty = marked(&tree.name).is_empty() && tree.alive().is_empty();
        empty_looks = if empty { empty_looks + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = start.elapsed();
    let left = marked(&tree.name);
    assert!(left.is_empty(), "{what}: {left:?}");
    tree.assert_gone(what);
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_killed_together_with_the_helper_leaves_none() {
    let works = ladder_here().await.works();
    if !has(
        works.contains(&ContainmentStep::Namespace),
        "pid-namespaces",
    ) {
        return;
    }
    for kind in KINDS {
        let mut times = Vec::new();
        for _ in 0..rounds(2, 50) {
            let mut holder = ServerParent::start("namespace", kind, 1, RunAs::Us);
            holder.await_ready(1);
            let helpers = helpers(&holder.tree.name);
            assert!(!helpers.is_empty());
            for helper in helpers {
                kill(Pid::from_raw(helper), Signal::SIGKILL).unwrap();
            }
            let killed = holder.kill();
            times.push(
                holder
                    .tree
                    .await_gone(killed, &format!("{kind}, helper killed too")),
            );
        }
        report("helper killed too", kind, times);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_an_ordinary_user_is_served_as_well() {
    for kind in KINDS {
        let mut times = Vec::new();
        for _ in 0..rounds(1, 50) {
            let mut holder = ServerParent::start("auto", kind, 1, RunAs::Ordinary);
            let lines = holder.await_ready(1);
            let strong = lines
                .iter()
                .any(|line| line.starts_with("started namespace"));
            assert!(strong || !user_namespaces_work(), "{lines:?}");
            let killed = holder.kill();
            times.push(
                holder
                    .tree
                    .await_gone(killed, &format!("ordinary user, {kind}")),
            );
        }
        report("ordinary user", kind, times);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_an_ordinary_user_is_served_during_a_start_as_well() {
    let window = time_to_start("auto", RunAs::Ordinary);
    let mut times = Vec::new();
    for _ in 0..rounds(8, 100) {
        let mut holder = ServerParent::start("auto", "daemon", RACERS, RunAs::Ordinary);
        std::thread::sleep(window.mul_f64(fastrand::f64()));
        let killed = holder.kill();
        times.push(await_nothing_left(
            killed,
            &holder.tree,
            "ordinary user, race",
        ));
    }
    report("ordinary user", "race", times);
}

#[tokio::test(flavor = "multi_thread")]
async fn c8_without_namespaces_auto_takes_the_next_step_and_still_leaves_none() {
    if !has(user_namespaces_work(), "user-namespaces") {
        return;
    }
    for kind in KINDS {
        let mut times = Vec::new();
        for _ in 0..rounds(1, 25) {
            let mut holder = ServerParent::start("auto", kind, 1, RunAs::Confined);
            let lines = holder.await_ready(1);
            assert!(lines[0].starts_with("started subreaper"), "{lines:?}");
            let killed = holder.kill();
            times.push(holder.tree.await_gone(killed, &format!("confined, {kind}")));
        }
        report("confined", kind, times);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c8_an_ordinary_users_files_stay_the_users() {
    let user = match geteuid() {
        us if us.is_root() => 65534,
        us => us.as_raw(),
    };
    let tree = TestForest::new();
    let file = tree.dir.path().join("made");
    std::fs::set_permissions(tree.dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let script = format!(
        "id -u; touch {0}; stat -c %u {0}; grep CapEff /proc/self/status",
        file.display()
    );
    let output = RunAs::Ordinary
        .command()
        .arg(example("holder"))
        .args([
            shim().to_str().unwrap(),
            "auto",
            &tree.name,
            "1",
            "sh",
            "-c",
            &script,
        ])
        .env_clear()
        .envs(tree.env())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            user.to_string().as_str(),
            user.to_string().as_str(),
            "CapEff:\t0000000000000000",
            "ended exit code 0"
        ]
    );
    use std::os::unix::fs::MetadataExt;
    assert_eq!(
        std::fs::metadata(&file).unwrap().uid(),
        user,
        "also from outside"
    );
}

fn user_namespaces_work() -> bool {
    let mut unshare = RunAs::Ordinary.command();
    unshare.args([
        "unshare",
        "--user",
        "--map-current-user",
        "--pid",
        "--fork",
        "--mount-proc",
        "true",
    ]);
    unshare
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn report(step: &str, kind: &str, times: Vec<Duration>) {
    let (count, worst) = (times.len(), times.iter().max().copied().unwrap_or_default());
    println!(
        "{step:18} {kind:10} 0/{count} survive, gone in {:?} (worst {worst:?})",
        median(times)
    );
}
