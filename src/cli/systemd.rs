//! What systemd is told, and the socket that it hands over. Without systemd all
//! of this does nothing.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use sd_notify::NotifyState;

use super::Environment;

/// Variables that are for this process alone: a server that had them could
/// speak to systemd in its name.
const OWN: [&str; 6] = [
    "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID",
];

/// A listener that systemd keeps open while Portway restarts.
pub(super) fn handed_listener() -> std::io::Result<Option<TcpListener>> {
    let mut handed = listenfd::ListenFd::from_env();
    if handed.len() > 1 {
        return Err(std::io::Error::other(
            "LISTEN_FDS: one socket is expected; name one ListenStream in the socket unit",
        ));
    }
    let listener = handed.take_tcp_listener(0)?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    Ok(listener)
}

/// The environment of servers.
pub(super) fn without_own(mut environment: Environment) -> Environment {
    environment.retain(|name, _| !OWN.contains(&name.as_str()));
    environment
}

pub(super) fn tell_ready() {
    tell(&[NotifyState::Ready]);
    if let Some(limit) = sd_notify::watchdog_enabled() {
        // In the runtime: if that hangs, systemd restarts the process.
        tokio::spawn(async move {
            loop {
                tell(&[NotifyState::Watchdog]);
                tokio::time::sleep(limit / 3).await;
            }
        });
    }
}

pub(super) fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

pub(super) fn tell_reloaded() {
    tell(&[NotifyState::Ready]);
}

pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if let Err(error) = sd_notify::notify(states)
        && !SAID.swap(true, Ordering::Relaxed)
    {
        tracing::warn!("systemd is not reached at NOTIFY_SOCKET: {error}");
    }
}
