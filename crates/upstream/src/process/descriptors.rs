//! The limit of open files. Portway raises its own limit to the hard one; the
//! servers get back the limit that Portway was started with, since a program
//! that uses `select` breaks above 1024.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// A higher limit is useless: the kernel's usual maximum for any process.
const MOST: u64 = 1 << 20;
/// The actual limit of systems that report no limit.
const MODEST: u64 = 10_240;

/// Passes the server's limit to the helper.
pub(super) const VARIABLE: &str = "PORTWAY_NOFILE";

static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one. Must be called before anything is
/// started.
pub fn raise_descriptor_limit() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let raised = [hard.min(MOST), hard.min(MODEST)]
        .into_iter()
        .filter(|limit| *limit > soft)
        .any(|limit| setrlimit(Resource::RLIMIT_NOFILE, limit, hard).is_ok());
    if raised {
        let _ = ORIGINAL.set(soft);
    }
}

pub fn descriptor_limit() -> usize {
    let soft = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    usize::try_from(soft.min(MOST)).unwrap_or(1024)
}

/// The soft limit before it was raised.
pub(super) fn original() -> Option<u64> {
    ORIGINAL.get().copied()
}

/// In the helper: restores the limit that Portway was started with.
pub(crate) fn restore() {
    let original = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok());
    if let (Some(soft), Ok((_, hard))) = (original, getrlimit(Resource::RLIMIT_NOFILE)) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
    }
}
