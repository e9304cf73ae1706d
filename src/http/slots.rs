//! How many connections are open, in all and from one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) struct Slots {
    total: usize,
    per_source: usize,
    /// A std mutex: held for a map operation, never across an await.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    sources: HashMap<IpAddr, usize>,
}

/// One open connection; dropping it frees the place.
pub(super) struct Slot {
    slots: Arc<Slots>,
    source: IpAddr,
}

impl Slots {
    pub(super) fn new(total: usize, per_source: usize) -> Arc<Slots> {
        Arc::new(Slots {
            total,
            per_source,
            open: Mutex::default(),
        })
    }

    pub(super) fn take(self: &Arc<Slots>, ip: IpAddr) -> Option<Slot> {
        let source = source_of(ip);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let here = open.sources.get(&source).copied().unwrap_or(0);
        if open.total >= self.total || (here >= self.per_source && !source.is_loopback()) {
            return None;
        }
        open.total += 1;
        open.sources.insert(source, here + 1);
        Some(Slot {
            slots: self.clone(),
            source,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self
            .slots
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(here) = open.sources.get_mut(&self.source) {
            *here -= 1;
            if *here == 0 {
                open.sources.remove(&self.source);
            }
        }
    }
}

/// Who an address stands for: one host usually owns a whole IPv6 /64.
pub(super) fn source_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        canonical => canonical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_source_cannot_take_all_places() {
        let slots = Slots::new(3, 2);
        let first = slots.take(ip("10.0.0.1")).unwrap();
        let _second = slots.take(ip("::ffff:10.0.0.1")).unwrap();
        assert!(slots.take(ip("10.0.0.1")).is_none());
        let _third = slots.take(ip("10.0.0.2")).unwrap();
        assert!(
            slots.take(ip("10.0.0.3")).is_none(),
            "the total is a limit too"
        );
        drop(first);
        assert!(slots.take(ip("10.0.0.1")).is_some());
    }

    #[test]
    fn a_v6_network_is_one_source_and_loopback_is_exempt() {
        let slots = Slots::new(10, 1);
        let _first = slots.take(ip("2001:db8::1")).unwrap();
        assert!(slots.take(ip("2001:db8::2")).is_none());
        let _here = slots.take(ip("127.0.0.1")).unwrap();
        assert!(slots.take(ip("127.0.0.1")).is_some());
    }

    #[test]
    fn nothing_is_remembered_of_closed_connections() {
        let slots = Slots::new(10, 1);
        drop(slots.take(ip("10.0.0.1")));
        let open = slots.open.lock().unwrap();
        assert_eq!(open.total, 0);
        assert!(open.sources.is_empty());
    }
}
