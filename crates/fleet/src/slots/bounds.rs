//! The limits of slots per server, principal and owner, and the choice of the
//! slot that a new one displaces.

use std::cmp::Reverse;
use std::collections::HashMap;

use tokio::time::Instant;

use config::Isolation;
use store::ADMIN;

/// The limit for one server.
const SLOTS: usize = 256;
/// Slots that users leave to the admin and the admin's entries, and vice versa.
const RESERVE: usize = 64;
/// Limits for one principal: by kinds of clients, or by sessions.
const KINDS: usize = 8;
const SESSIONS: usize = 128;
/// The limit for all entries of one user together.
const USER: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotActivity {
    Idle,
    /// Every call in the slot waits for its client's answer to a question.
    Asking,
    Busy,
}

pub(super) struct SlotUse<'a, K> {
    pub key: K,
    pub principal: &'a str,
    pub owner: &'a str,
    pub used: Instant,
    pub activity: SlotActivity,
}

/// The limit that prevents a new slot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    pub limit: usize,
    pub whose: &'static str,
}

/// Selects the slots that a limit counts.
type CountedSlots<'a, K> = &'a dyn Fn(&SlotUse<'_, K>) -> bool;

/// The slot that a new one displaces, if necessary. A principal or an owner
/// above its limit loses its own slot; if the server is at its limit, the
/// longest idle slot goes, or a slot of the owner with most.
pub(super) fn displaced<K: Copy>(
    taken: &[SlotUse<'_, K>],
    (principal, owner): (&str, &str),
    isolation: Isolation,
) -> Result<Option<K>, TooMany> {
    let (of_principal, of_user) = match isolation {
        Isolation::Session => (SESSIONS, SESSIONS),
        Isolation::Auto | Isolation::Shared | Isolation::Principal => (KINDS, USER),
    };
    let is_admins = owner == ADMIN;
    let of_owner = if is_admins { SLOTS - RESERVE } else { of_user };
    let bounds: [(usize, &str, CountedSlots<'_, K>); 2] = [
        (of_principal, "this principal's", &|slot| {
            slot.principal == principal
        }),
        (of_owner, "this owner's", &|slot| slot.owner == owner),
    ];
    for (limit, whose, counts) in bounds {
        if taken.iter().filter(|slot| counts(slot)).count() >= limit {
            let own = taken.iter().filter(|slot| counts(slot));
            let gives_way = own
                .filter(|slot| slot.activity != SlotActivity::Busy)
                .min_by_key(|slot| slot.used);
            return match gives_way {
                Some(slot) => Ok(Some(slot.key)),
                None => Err(TooMany { limit, whose }),
            };
        }
    }
    let of_users = taken.iter().filter(|slot| slot.owner != ADMIN).count();
    let users_full = !is_admins && of_users >= SLOTS - RESERVE;
    if taken.len() < SLOTS && !users_full {
        return Ok(None);
    }
    let among = |slot: &&SlotUse<'_, K>| !users_full || slot.owner != ADMIN;
    let idle = taken.iter().filter(among);
    let idle = idle.filter(|slot| slot.activity == SlotActivity::Idle);
    if let Some(slot) = idle.min_by_key(|slot| slot.used) {
        return Ok(Some(slot.key));
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for slot in taken {
        *counts.entry(slot.owner).or_default() += 1;
    }
    let count = |owner: &str| counts.get(owner).copied().unwrap_or(0);
    let asking = taken
        .iter()
        .filter(among)
        .filter(|slot| slot.activity == SlotActivity::Asking && count(slot.owner) > count(owner));
    let limit = if users_full { SLOTS - RESERVE } else { SLOTS };
    match asking.max_by_key(|slot| (count(slot.owner), Reverse(slot.used))) {
        Some(slot) => Ok(Some(slot.key)),
        None => Err(TooMany {
            limit,
            whose: if users_full { "the users'" } else { "its" },
        }),
    }
}

#[cfg(test)]
mod tests;
