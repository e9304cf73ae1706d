use std::future::poll_fn;
use std::task::Poll;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn connections(total: usize, per_source: usize, reserve: usize) -> Arc<ClientConnections> {
    ClientConnections::new(Caps {
        total,
        per_source,
        reserve,
        share: total.div_ceil(2),
    })
}

fn is_cut(slot: &ConnectionSlot) -> bool {
    slot.connections.open.lock().all[&slot.connection.id].leaving
}

fn user(name: &str) -> Principal {
    Principal::User(name.into())
}

#[test]
fn t_the_oldest_idle_connection_of_nobody_gives_way() {
    let all = connections(3, 9, 0);
    let here = ip("127.0.0.1");
    let slots: Vec<ConnectionSlot> = (0..3).map(|_| all.take(here, false).unwrap()).collect();
    for (at, slot) in slots.iter().enumerate() {
        slot.connection.set_since(at as u64);
    }
    slots[0]
        .connection
        .admit(Some(&Principal::Admin), None)
        .unwrap();
    let fourth = all.take(here, false).unwrap();
    let cut: Vec<bool> = slots.iter().map(is_cut).collect();
    assert_eq!(cut, [false, true, false]);
    assert!(!is_cut(&fourth));
    // The place is free before its last user has gone.
    assert_eq!(all.open.lock().regular, 3);
    drop(slots);
    drop(fourth);
    let open = all.open.lock();
    assert_eq!((open.regular, open.reserved), (0, 0));
    assert!(open.all.is_empty() && open.sources.is_empty() && open.owners.is_empty());
}

#[test]
fn t_idle_ones_of_others_give_way_next_and_busy_ones_never() {
    let all = connections(3, 9, 0);
    let here = ip("127.0.0.1");
    let slots: Vec<ConnectionSlot> = (0..3).map(|_| all.take(here, false).unwrap()).collect();
    slots[0]
        .connection
        .admit(Some(&Principal::Admin), None)
        .unwrap();
    slots[1].connection.admit(Some(&user("u")), None).unwrap();
    slots[2].connection.admit(Some(&user("v")), None).unwrap();
    slots[2].connection.begin();
    let next = all.take(here, false).unwrap();
    let cut: Vec<bool> = slots.iter().map(is_cut).collect();
    assert_eq!(cut, [false, true, false]);
    next.connection.admit(Some(&user("w")), None).unwrap();
    next.connection.begin();
    let last = all.take(here, false).unwrap();
    assert!(is_cut(&slots[0]), "the admin's idle ones are the last");
    last.connection.admit(Some(&user("x")), None).unwrap();
    last.connection.begin();
    assert!(all.take(here, false).is_none(), "nobody is idle any more");
}

#[test]
fn t_the_reserve_is_for_the_admin() {
    let all = connections(2, 9, 2);
    let here = ip("127.0.0.1");
    let held: Vec<ConnectionSlot> = ["u", "v"]
        .iter()
        .map(|name| {
            let slot = all.take(here, false).unwrap();
            slot.connection.admit(Some(&user(name)), None).unwrap();
            slot.connection.begin();
            slot
        })
        .collect();
    let stranger = all.take(here, false).unwrap();
    let refused = stranger.connection.admit(Some(&user("w")), None);
    assert!(refused.is_err(), "a user is told to come back");
    assert!(
        stranger.connection.admit(None, None).is_ok(),
        "health is public"
    );
    let admin = all.take(here, false).unwrap();
    admin
        .connection
        .admit(Some(&Principal::Admin), None)
        .unwrap();
    // A client without an owner in the reserve is closed for the next one.
    let attacker = all.take(here, false).unwrap();
    assert!(is_cut(&stranger) && !is_cut(&admin) && !is_cut(&attacker));
    drop(held);
    let late = all.take(here, false).unwrap();
    late.connection.admit(Some(&user("w")), None).unwrap();
}

#[test]
fn t_one_user_has_a_share_and_the_admin_has_none() {
    let all = connections(4, 9, 0);
    let here = ip("127.0.0.1");
    let mine: Vec<ConnectionSlot> = (0..2)
        .map(|_| {
            let slot = all.take(here, false).unwrap();
            slot.connection.admit(Some(&user("u")), None).unwrap();
            slot
        })
        .collect();
    mine[0].connection.begin();
    let third = all.take(here, false).unwrap();
    third.connection.admit(Some(&user("u")), None).unwrap();
    assert!(is_cut(&mine[1]), "their own idle one gives way");
    third.connection.begin();
    let fourth = all.take(here, false).unwrap();
    assert!(fourth.connection.admit(Some(&user("u")), None).is_err());
    fourth.connection.admit(Some(&user("other")), None).unwrap();
    fourth
        .connection
        .admit(Some(&Principal::Admin), None)
        .unwrap();
}

#[test]
fn t_one_address_cannot_take_all_places_nor_lock_the_admin_out() {
    let all = connections(9, 2, 1);
    let _other = all.take(ip("10.0.0.2"), false).unwrap();
    let first = all.take(ip("10.0.0.1"), false).unwrap();
    first.connection.admit(Some(&user("u")), None).unwrap();
    first.connection.begin();
    let second = all.take(ip("::ffff:10.0.0.1"), false).unwrap();
    second.connection.admit(Some(&user("v")), None).unwrap();
    second.connection.begin();
    let third = all.take(ip("10.0.0.1"), false).unwrap();
    assert_eq!(all.open.lock().reserved, 1);
    third
        .connection
        .admit(Some(&Principal::Admin), None)
        .unwrap();
    let v6 = connections(9, 1, 0);
    let one = v6.take(ip("2001:db8::1"), false).unwrap();
    let _two = v6.take(ip("2001:db8::2"), false).unwrap();
    assert!(is_cut(&one), "a v6 network is one source");
    let local: Vec<_> = (0..3).map(|_| v6.take(ip("::1"), false).unwrap()).collect();
    assert!(!local.iter().any(is_cut), "loopback is exempt");
}

#[test]
fn t_without_descriptors_only_the_reserve_is_left() {
    let all = connections(9, 9, 1);
    let slot = all.take(ip("127.0.0.1"), true).unwrap();
    let open = all.open.lock();
    assert_eq!((open.regular, open.reserved), (0, 1));
    drop(open);
    drop(slot);
    assert!(!all.relieve(), "nobody is there to give way");
}

#[tokio::test]
async fn e7_a_connection_is_finished_before_it_is_cut() {
    let all = connections(2, 9, 0);
    let slot = all.take(ip("127.0.0.1"), false).unwrap();
    slot.connection.admit(Some(&user("u")), None).unwrap();
    all.retire(|owner| *owner == ConnectionHolder::User("other".into()));
    let its = |owner: &ConnectionHolder| *owner == ConnectionHolder::User("u".into());
    slot.connection.begin();
    all.retire(its);
    assert!(!slot.connection.is_finishing(), "its answer says so");
    assert!(slot.connection.is_last_response());
    slot.connection.begin_stream();
    let order = || poll_fn(|cx| Poll::Ready(slot.connection.poll_order(cx)));
    assert_eq!(order().await, None);
    all.retire(its);
    assert_eq!(order().await, Some(CloseOrder::Finish));
    slot.connection.order(CloseOrder::Cut);
    assert_eq!(order().await, Some(CloseOrder::Cut));
}
