//! The lists that clients see of a server. A server that is briefly disconnected
//! keeps its last good lists, so that no list request waits for it.

use std::sync::Arc;

use super::catalog::Catalog;
use super::state::ServerState;
use upstream::Peer;

#[derive(Clone, Debug)]
pub struct Offer {
    pub catalog: Arc<Catalog>,
    pub peer: Arc<Peer>,
    /// The server is disconnected; these are its last good lists.
    pub stale: bool,
}

/// The offer of a connected server after a listing; the old one if nothing has
/// changed.
pub(super) fn renewed(old: Option<&Arc<Offer>>, catalog: Catalog, peer: &Arc<Peer>) -> Arc<Offer> {
    let known = old.filter(|old| *old.catalog == catalog);
    if let Some(old) = known.filter(|old| !old.stale && Arc::ptr_eq(&old.peer, peer)) {
        return old.clone();
    }
    Arc::new(Offer {
        catalog: known.map_or_else(|| Arc::new(catalog), |old| old.catalog.clone()),
        peer: peer.clone(),
        stale: false,
    })
}

/// The part of an offer that remains when the state changes.
pub(super) fn kept(
    offer: Option<&Arc<Offer>>,
    before: &ServerState,
    now: &ServerState,
) -> Option<Arc<Offer>> {
    let offer = offer?;
    let away = match now {
        ServerState::Connected { .. }
        | ServerState::Connecting {
            serving: Some(_), ..
        } => false,
        ServerState::Connecting {
            replacing: true, ..
        }
        | ServerState::Waiting { lost: true, .. } => true,
        // The first attempt after a loss; if it fails too, the state is an error.
        ServerState::Connecting { .. }
            if matches!(before, ServerState::Waiting { lost: true, .. }) =>
        {
            true
        }
        _ => return None,
    };
    if away == offer.stale {
        return Some(offer.clone());
    }
    Some(Arc::new(Offer {
        stale: away,
        ..Offer::clone(offer)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(stale: bool) -> Arc<Offer> {
        Arc::new(Offer {
            catalog: Arc::default(),
            peer: Arc::new(Peer::ourselves(
                serde_json::value::RawValue::from_string("{}".into()).unwrap(),
                "",
            )),
            stale,
        })
    }

    fn waiting(lost: bool) -> ServerState {
        ServerState::Waiting {
            error: "gone".into(),
            lost,
            retry_at: std::time::SystemTime::UNIX_EPOCH,
        }
    }

    fn connecting(replacing: bool) -> ServerState {
        let serving = None;
        ServerState::Connecting { serving, replacing }
    }

    #[test]
    fn a_server_away_for_a_moment_keeps_its_lists() {
        for (before, now, wanted) in [
            (ServerState::Stopped, connecting(true), Some(true)),
            (ServerState::Stopped, waiting(true), Some(true)),
            (waiting(true), connecting(false), Some(true)),
            (ServerState::Stopped, connecting(false), None),
            (connecting(false), waiting(false), None),
            (waiting(true), ServerState::Stopped, None),
            (
                waiting(true),
                ServerState::Failed { error: "no".into() },
                None,
            ),
        ] {
            for stale in [true, false] {
                let kept = kept(Some(&offer(stale)), &before, &now);
                assert_eq!(kept.map(|offer| offer.stale), wanted);
            }
            assert!(kept(None, &before, &now).is_none());
        }
    }

    #[test]
    fn equal_lists_are_no_change() {
        let old = offer(false);
        let again = renewed(Some(&old), Catalog::default(), &old.peer);
        assert!(Arc::ptr_eq(&old, &again));
        let back = renewed(Some(&offer(true)), Catalog::default(), &old.peer);
        assert!(!back.stale);
    }
}
