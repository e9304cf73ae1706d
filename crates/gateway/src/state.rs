//! The `requestState` we hand to modern clients: sealed, so that only we made
//! it, and bound to who may come back with it, for what, and until when.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::parked::PATIENCE;
use super::seal::{Seal, SealPurpose};

/// What a state stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// A call that waits for its answers.
    Parked(u128),
    /// Nothing: the call is made anew.
    Nothing,
}

#[derive(Clone)]
pub(super) struct RequestState(pub Arc<Seal>);

const LENGTH: usize = 1 + 16 + 32 + 8;

impl RequestState {
    pub(crate) fn seal(&self, principal: &str, digest: &[u8; 32], kept: Kept) -> String {
        let (kind, number) = match kept {
            Kept::Parked(number) => (1, number),
            Kept::Nothing => (0, 0),
        };
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.push(kind);
        bytes.extend(number.to_be_bytes());
        bytes.extend(digest);
        bytes.extend((now() + PATIENCE.as_secs()).to_be_bytes());
        self.0.seal(SealPurpose::RequestState, principal, &bytes)
    }

    /// What was kept, if this principal may come back with it for this
    /// request, now.
    pub(crate) fn open(&self, principal: &str, digest: &[u8; 32], state: &str) -> Option<Kept> {
        let bytes = self.0.open(SealPurpose::RequestState, principal, state)?;
        let bytes: [u8; LENGTH] = bytes.try_into().ok()?;
        let number = u128::from_be_bytes(bytes[1..17].try_into().ok()?);
        let until = u64::from_be_bytes(bytes[49..].try_into().ok()?);
        if bytes[17..49] != *digest || until <= now() {
            return None;
        }
        match bytes[0] {
            1 => Some(Kept::Parked(number)),
            0 => Some(Kept::Nothing),
            _ => None,
        }
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
