//! A server that leaves processes behind, for the tests of containment.
//!
//! `unruly KIND HEARTBEAT [--deaf]` starts its processes, says `ready` when
//! they run, and ends with code 3 at the end of its stdin; deaf, it ignores
//! that and SIGTERM. Kinds:
//!
//! - `tree`: a child and a grandchild.
//! - `daemon`: double fork, own session, ignores SIGTERM.
//! - `comet`: a daemon that forks a successor every 2 ms and exits.
//!
//! The last two add to the file HEARTBEAT as long as they live.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::process::exit;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, fork, setsid};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, heartbeat, rest @ ..] = args.as_slice() else {
        exit(64);
    };
    let deaf = rest.iter().any(|arg| arg == "--deaf");
    let (mut up, mut tell) = std::io::pipe().expect("a pipe");
    if child() {
        match kind.as_str() {
            "tree" => tree(&mut tell),
            kind => daemon(&mut tell, heartbeat, kind == "comet"),
        }
    }
    drop(tell);
    let up = up.read_exact(&mut [0]);
    up.expect("the processes are up");
    if deaf {
        ignore(Signal::SIGTERM);
    }
    std::io::stdout()
        .write_all(b"ready\n")
        .expect("someone listens");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("stdin can be read");
    if deaf {
        loop {
            sleep(Duration::from_secs(1));
        }
    }
    exit(3);
}

fn tree(tell: &mut impl Write) -> ! {
    if child() {
        tell.write_all(b"+").expect("the server waits");
    }
    loop {
        sleep(Duration::from_secs(1));
    }
}

fn daemon(tell: &mut impl Write, heartbeat: &str, comet: bool) -> ! {
    setsid().expect("a session");
    if !child() {
        exit(0);
    }
    ignore(Signal::SIGTERM);
    ignore(Signal::SIGHUP);
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(heartbeat)
        .expect("the file");
    file.write_all(b".").expect("a heartbeat");
    tell.write_all(b"+").expect("the server waits");
    loop {
        sleep(Duration::from_millis(2));
        let _ = file.write_all(b".");
        if comet && !child() {
            exit(0);
        }
    }
}

#[expect(unsafe_code, reason = "fork in a program with one thread")]
fn child() -> bool {
    // SAFETY: there is no other thread.
    matches!(unsafe { fork() }.expect("a process"), ForkResult::Child)
}

#[expect(unsafe_code, reason = "signal(2); no handler runs")]
fn ignore(number: Signal) {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { signal(number, SigHandler::SigIgn) }.expect("a signal");
}
