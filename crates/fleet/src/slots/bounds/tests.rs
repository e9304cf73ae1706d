use std::time::Duration;

use super::*;

/// The slots in use, oldest first.
#[derive(Default)]
struct TestSlots(Vec<(String, String, SlotActivity)>);

impl TestSlots {
    fn add(&mut self, count: usize, owner: &str, activity: SlotActivity) -> &mut TestSlots {
        for _ in 0..count {
            let principal = format!("entry:{}", self.0.len());
            self.0.push((principal, owner.to_owned(), activity));
        }
        self
    }

    /// The slot that a new principal of `owner` displaces.
    fn displaced(&self, owner: &str) -> Result<Option<usize>, TooMany> {
        self.displaced_by(("new", owner), Isolation::Auto)
    }

    fn displaced_by(
        &self,
        whose: (&str, &str),
        isolation: Isolation,
    ) -> Result<Option<usize>, TooMany> {
        let start = Instant::now();
        let all = self.0.iter().enumerate();
        let taken: Vec<SlotUse<'_, usize>> = all
            .map(|(key, (principal, owner, activity))| SlotUse {
                key,
                principal,
                owner,
                used: start + Duration::from_millis(key as u64),
                activity: *activity,
            })
            .collect();
        displaced(&taken, whose, isolation)
    }
}

use SlotActivity::{Asking, Busy, Idle};

#[test]
fn t_c7_a_user_at_the_bound_displaces_only_their_own() {
    let mut slots = TestSlots::default();
    slots.add(1, "victim", Idle).add(USER, "mallory", Asking);
    assert_eq!(slots.displaced("mallory"), Ok(Some(1)));
    assert_eq!(slots.displaced("victim"), Ok(None));
    assert_eq!(slots.displaced(ADMIN), Ok(None));
    let mut slots = TestSlots::default();
    slots.add(1, "victim", Idle).add(USER, "mallory", Busy);
    let refused = slots.displaced("mallory").unwrap_err();
    assert_eq!(refused.whose, "this owner's");
    let sessions = slots.displaced_by(("new", "mallory"), Isolation::Session);
    assert_eq!(sessions, Ok(None));
}

#[test]
fn t_c7_a_principal_at_the_bound_displaces_only_its_own() {
    let mut slots = TestSlots::default();
    slots.add(1, "u", Idle).add(KINDS, "u", Asking);
    for slot in &mut slots.0[1..] {
        slot.0 = "one".to_owned();
    }
    let displaced = |slots: &TestSlots| slots.displaced_by(("one", "u"), Isolation::Auto);
    assert_eq!(displaced(&slots), Ok(Some(1)));
    for slot in &mut slots.0[1..] {
        slot.2 = Busy;
    }
    assert_eq!(displaced(&slots).unwrap_err().whose, "this principal's");
}

#[test]
fn t_c7_users_leave_the_admin_room_and_the_admin_leaves_users_room() {
    let mut slots = TestSlots::default();
    slots.add(USER, "a", Busy).add(USER, "b", Busy);
    slots.add(SLOTS - RESERVE - 2 * USER, "c", Busy);
    assert_eq!(slots.displaced("d").unwrap_err().whose, "the users'");
    assert_eq!(slots.displaced(ADMIN), Ok(None));
    let mut slots = TestSlots::default();
    slots.add(SLOTS - RESERVE, ADMIN, Busy);
    assert_eq!(slots.displaced(ADMIN).unwrap_err().whose, "this owner's");
    assert_eq!(slots.displaced("a"), Ok(None));
}

#[test]
fn t_c7_where_all_is_taken_the_owner_with_most_makes_room() {
    let mut slots = TestSlots::default();
    slots.add(1, "modest", Asking).add(USER, "greedy", Asking);
    while slots.0.len() < SLOTS - RESERVE {
        slots.add(2, &format!("user {}", slots.0.len()), Asking);
        slots.0.truncate(SLOTS - RESERVE);
    }
    assert_eq!(slots.displaced("new"), Ok(Some(1)), "the oldest of theirs");
    slots.0[9].2 = Idle;
    assert_eq!(slots.displaced("new"), Ok(Some(9)));
}
