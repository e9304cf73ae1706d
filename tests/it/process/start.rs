//! Starting a server: what it gets, and what is said when it cannot start.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

use config::{Containment, Privileges};
use upstream::containment::ContainmentStep;
use upstream::process::{Grace, ProcessCommand, SpawnError, spawn};

use super::forest::{SHORT, TestForest, all_output, example, ladder_here, shim};

#[tokio::test(flavor = "multi_thread")]
async fn c8_auto_takes_the_strongest_step_that_works() {
    let ladder = ladder_here().await;
    assert_eq!(ladder.works().last(), Some(&ContainmentStep::Group));
    assert_eq!(
        ladder.works().len() + ladder.refused().len(),
        ContainmentStep::ALL.len()
    );
    let tree = TestForest::new();
    let mut command = tree.command(ContainmentStep::Group, "cat", &[]);
    command.containment = Containment::Auto;
    let process = spawn(&command).await.unwrap();
    assert_eq!(process.containment(), ladder.works()[0]);
    process.end(SHORT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_a_command_that_cannot_run_says_why() {
    let tree = TestForest::new();
    let put = |name: &str, text: &[u8], mode: u32| {
        let file = tree.dir.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    put("plain", b"#!/bin/sh\n", 0o644);
    put("lost", b"#!/no/such/interpreter\n", 0o755);
    put("alien", b"\x7fELF\0\0\0\0\0\0\0\0\0\0\0\0", 0o755);
    let huge = "x".repeat(3 << 20);
    let cases: [(&str, &[&str], &str); 8] = [
        (
            "no-such-program",
            &[],
            "no program \"no-such-program\" in PATH (",
        ),
        (
            "./no-such-program",
            &[],
            "no program \"./no-such-program\" in the file system",
        ),
        (
            "./plain",
            &[],
            "DIR/./plain cannot be run: it is not executable (chmod +x)",
        ),
        (
            "./lost",
            &[],
            "DIR/./lost cannot be run: the interpreter named in its first line",
        ),
        (
            "./alien",
            &[],
            "DIR/./alien cannot be run: it is not a program for this machine",
        ),
        ("/", &[], "/ cannot be run: it is a directory"),
        (
            "cat",
            &["a\0b"],
            "args holds a character that a process cannot be given",
        ),
        (
            "cat",
            &[&huge],
            "cat cannot be run: its arguments and environment are too long",
        ),
    ];
    for &step in ladder_here().await.works() {
        for (program, args, expected) in &cases {
            let error = spawn(&tree.command(step, program, args))
                .await
                .err()
                .expect(program);
            assert!(error.permanent(), "{error}");
            let text = error
                .to_string()
                .replace(tree.dir.path().to_str().unwrap(), "DIR");
            assert!(text.contains(expected), "{step}: {text}");
        }
    }
    tree.assert_gone("after nothing but failures");
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_a_working_directory_that_cannot_be_used_says_why() {
    let tree = TestForest::new();
    fs::write(tree.dir.path().join("file"), "").unwrap();
    for (name, reason) in [("none", "No such file"), ("file", "not a directory")] {
        let mut command = tree.command(ContainmentStep::Group, "cat", &[]);
        command.cwd = tree.dir.path().join(name);
        let error = spawn(&command).await.err().unwrap();
        assert!(matches!(error, SpawnError::BadCwd { .. }), "{error}");
        assert!(
            error.permanent() && error.to_string().contains(reason),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_a_missing_helper_is_not_the_servers_fault() {
    ladder_here().await;
    let tree = TestForest::new();
    let mut command = tree.command(ContainmentStep::Group, "cat", &[]);
    command.shim = "/no/such/portway".into();
    let error = spawn(&command).await.err().unwrap();
    assert!(
        matches!(
            error,
            SpawnError::Io {
                doing: "starting the helper",
                ..
            }
        ),
        "{error}"
    );
    // A binary that is no helper: ends without a word.
    command.shim = "/bin/true".into();
    let error = spawn(&command).await.err().unwrap();
    assert!(
        matches!(
            error,
            SpawnError::Io {
                doing: "talking to the helper",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_a_script_without_a_first_line_runs_as_execvp_would() {
    let tree = TestForest::new();
    let file = tree.dir.path().join("bare");
    fs::write(&file, "echo bare $1\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        output(&tree.command(ContainmentStep::Group, "./bare", &["one"])).await,
        "bare one\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_the_environment_is_exactly_what_was_declared() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let mut command = tree.command(step, "env", &[]);
        command.env.push(("EMPTY".into(), String::new()));
        command.env.push(("LD_PRELOAD".into(), "".into()));
        let text = output(&command).await;
        let names: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.split('=').next())
            .collect();
        let expected = ["EMPTY", "LD_PRELOAD", "PATH", "PORTWAY_INSTANCE", "TREE"];
        assert_eq!(names, expected.into(), "{step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_a_server_starts_clean() {
    // A descriptor that any careless program would inherit.
    let careless = nix::unistd::dup(std::io::stderr()).unwrap();
    assert!(careless.as_raw_fd() > 2);
    let script = "pwd; ls /proc/self/fd | tr '\\n' ' '; echo; umask; \
                  grep -E 'SigBlk|SigIgn' /proc/self/status; \
                  cut -d' ' -f6 /proc/$$/stat; echo $$";
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let text = output(&tree.command(step, "sh", &["-c", script])).await;
        let lines: Vec<&str> = text.lines().collect();
        let [cwd, descriptors, _umask, blocked, ignored, session, pid] = lines[..] else {
            panic!("{step}: {text}");
        };
        assert_eq!(cwd, tree.dir.path().to_str().unwrap());
        assert_eq!(descriptors, "0 1 2 3 ", "{step}: and the one ls reads with");
        assert_eq!(blocked, "SigBlk:\t0000000000000000", "{step}");
        // Without the real-time ones: libc keeps the first two for itself.
        let ignored = u64::from_str_radix(&ignored["SigIgn:\t".len()..], 16).unwrap();
        assert_eq!(ignored & 0x7fff_ffff, 0, "{step}");
        assert_eq!(session, pid, "{step}: a session of its own");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_a_parents_ignored_signals_change_nothing() {
    let tree = TestForest::new();
    let script = "trap '' CHLD PIPE TERM HUP; exec \"$@\"";
    for &step in ladder_here().await.works() {
        let server = "grep SigIgn /proc/self/status; exit 3";
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                script,
                "sh",
                &example("holder"),
                shim().to_str().unwrap(),
            ])
            .args([step.as_str(), &tree.name, "1", "sh", "-c", server])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let ignored = text
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:\t"))
            .expect(&text);
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        assert_eq!(ignored & 0x7fff_ffff, 0, "{step}: {text}");
        assert!(text.ends_with("ended exit code 3\n"), "{step}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_the_helper_is_ourselves_though_the_file_be_gone() {
    use std::io::Write;
    let tree = TestForest::new();
    let copy = tree.dir.path().join("upgraded");
    // By another program: what a test beside this one starts just then would
    // inherit our handle to the copy, and a file open for writing cannot run.
    let copied = std::process::Command::new("cp")
        .arg(example("holder"))
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    let mut holder = std::process::Command::new(&copy)
        .args(["self", "auto", &tree.name, "1", "echo", "here"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    fs::remove_file(&copy).unwrap();
    holder.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = holder.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("here\nended exit code 0\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c8_a_namespace_shows_the_server_itself_and_no_dead_parent() {
    let works = ladder_here().await.works();
    if !crate::needs::has(
        works.contains(&ContainmentStep::Namespace),
        "pid-namespaces",
    ) {
        return;
    }
    let tree = TestForest::new();
    let script =
        "echo $PPID; ls -d /proc/[0-9]* | wc -l; readlink /proc/self/exe >/dev/null && echo own";
    let text = output(&tree.command(ContainmentStep::Namespace, "sh", &["-c", script])).await;
    let lines: Vec<&str> = text.lines().collect();
    // A parent of 1 is what servers take for "my parent has died".
    assert_eq!(lines[0], "0");
    assert!(
        lines[1].parse::<u32>().unwrap() <= 5,
        "only its own processes: {text}"
    );
    assert_eq!(lines[2], "own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_the_tree_can_be_looked_at() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let process = tree.grow(step, "tree", &[]).await;
        let shown = process.tree().map(|tree| tree.list()).unwrap_or_default();
        let alive: BTreeSet<u32> = tree.alive().iter().map(|pid| pid.unsigned_abs()).collect();
        assert_eq!(
            shown.iter().map(|info| info.pid).collect::<BTreeSet<_>>(),
            alive,
            "{step}"
        );
        assert_eq!((shown.len(), shown[0].pid), (3, process.pid()), "{step}");
        assert!(
            shown
                .iter()
                .all(|info| info.command == "unruly" && info.rss > 0),
            "{shown:?}"
        );
        process.end(SHORT).await;
    }
}

async fn output(command: &ProcessCommand) -> String {
    let mut process = spawn(command).await.unwrap();
    drop(process.stdin.take());
    let text = all_output(&mut process).await;
    process.end(Grace::default()).await;
    text
}

/// The value of a line of `/proc/self/status`, as the server sees its own.
fn status<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim()
}

#[tokio::test(flavor = "multi_thread")]
async fn t_a_server_has_no_privileges_unless_its_definition_says_so() {
    let ours = fs::read_to_string("/proc/self/status").unwrap();
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let mut command = tree.command(step, "cat", &["/proc/self/status"]);
        let text = output(&command).await;
        assert_eq!(status(&text, "NoNewPrivs:"), "1", "{step}");
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(status(&text, set), "0".repeat(16), "{step} {set}");
        }
        // Shortening the list of what can ever be had is a privilege itself.
        if step == ContainmentStep::Namespace || nix::unistd::geteuid().is_root() {
            assert_eq!(status(&text, "CapBnd:"), "0".repeat(16), "{step}");
        }
        command.privileges = Privileges::Keep;
        let text = output(&command).await;
        let untouched = ["NoNewPrivs:", "CapEff:", "CapBnd:"];
        if nix::unistd::geteuid().is_root() {
            for name in untouched {
                assert_eq!(status(&text, name), status(&ours, name), "{step} {name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t_a_server_cannot_see_what_is_hidden_from_it() {
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let directory = tree.dir.path().canonicalize().unwrap();
        let keys = directory.join("keys");
        fs::create_dir(&keys).unwrap();
        let token = "pwa_of-the-admin\n";
        fs::write(keys.join("admin_token"), token).unwrap();
        let script = "umount -l keys; cat keys/admin_token; ls -A keys; cat plain; \
                      touch keys/mine; unshare -rm sh -c 'umount keys; cat keys/admin_token'";
        fs::write(directory.join("plain"), "to be seen\n").unwrap();
        let mut command = tree.command(step, "sh", &["-c", script]);
        command.hidden = vec![keys.clone(), directory.join("not-there")];
        let mut process = spawn(&command).await.unwrap();
        let hides = process.hides();
        assert_eq!(hides, step == ContainmentStep::Namespace, "{step}");
        let text = all_output(&mut process).await;
        process.end(SHORT).await;
        assert!(text.contains("to be seen"), "{step}: {text}");
        assert_eq!(text.contains(token), !hides, "{step}: {text}");
        assert_eq!(text.contains("\nadmin_token\n"), !hides, "{step}: {text}");
        assert_eq!(keys.join("mine").exists(), !hides, "{step}");
        assert_eq!(fs::read_to_string(keys.join("admin_token")).unwrap(), token);
    }
}
