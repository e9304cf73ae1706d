//! How many files may be open. Portway takes what the system allows; the
//! servers get the limit back that Portway was started with, since a program
//! that uses `select` breaks above 1024.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// More is of no use: the kernel's usual upper bound for any process.
const MOST: u64 = 1 << 20;
/// What systems allow that say that there is no limit.
const MODEST: u64 = 10_240;

/// Tells the helper which limit its server is to have.
pub(super) const VARIABLE: &str = "PORTWAY_NOFILE";

static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one. To be called before anything is
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

/// How many files may be open now.
pub fn descriptor_limit() -> usize {
    let soft = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    usize::try_from(soft.min(MOST)).unwrap_or(1024)
}

/// The soft limit from before it was raised.
pub(super) fn original() -> Option<u64> {
    ORIGINAL.get().copied()
}

/// In the helper: gives back the limit that Portway was started with.
pub(crate) fn restore() {
    let original = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok());
    if let (Some(soft), Ok((_, hard))) = (original, getrlimit(Resource::RLIMIT_NOFILE)) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
    }
}
