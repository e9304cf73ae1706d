use std::fs;

use super::limit::smallest;
use super::*;

#[test]
fn t_bytes_are_counted_until_they_are_dropped() {
    let budget = Budget::new(1000);
    let admin = budget.admin();
    let one = admin.take(600).unwrap();
    assert_eq!(admin.take(401).unwrap_err(), Full::Everything);
    assert_eq!(admin.used(), 600);
    let bytes = Arc::new(one).bind(Bytes::from_static(b"abc"));
    let part = bytes.slice(1..2);
    drop(bytes);
    assert_eq!((&part[..], admin.used()), (&b"b"[..], 600));
    drop(part);
    assert_eq!(admin.used(), 0);
}

#[test]
fn t_one_key_cannot_take_all() {
    let budget = Budget::new(1000);
    let (one, other) = (budget.key(None), budget.key(None));
    let held = one.take(250).unwrap();
    assert_eq!(one.take(1).unwrap_err(), Full::Share { limit: 250 });
    assert_eq!(one.full(), Some(Full::Share { limit: 250 }));
    assert!(other.full().is_none() && other.take(250).is_ok());
    drop(held);
    assert!(one.full().is_none());
    // A single text may be larger than a share, but not than the whole budget.
    drop(one.take(800).unwrap());
    assert!(one.take(1001).is_err());
    assert_eq!((one.used(), budget.admin().used()), (0, 0));
}

#[test]
fn t_many_keys_of_one_user_share_and_the_admin_has_room_left() {
    let budget = Budget::new(1000);
    let ann: Arc<str> = "ann".into();
    let keys = [(); 3].map(|()| budget.key(Some(&ann)));
    let mut held = vec![keys[0].take(250).unwrap(), keys[1].take(250).unwrap()];
    assert_eq!(keys[2].take(1).unwrap_err(), Full::Share { limit: 500 });
    held.extend([budget.key(None).take(250), budget.key(None).take(125)].map(Result::unwrap));
    assert!(budget.key(None).take(1).is_err());
    assert!(budget.admin().full().is_none() && budget.admin().take(100).is_ok());
}

#[test]
fn t_the_smallest_limit_of_the_control_groups_counts() {
    let root = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put("a/memory.max", "268435456\n");
    put("a/b/memory.max", "max\n");
    put("memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/memory.limit_in_bytes", "1000000\n");
    let smallest = |groups| smallest(groups, root.path());
    assert_eq!(smallest("0::/a/b\n"), Some(268_435_456));
    assert_eq!(smallest("0::/elsewhere\n"), None);
    assert_eq!(smallest("3:cpu:/x\n5:memory,hugetlb:/x\n"), Some(1_000_000));
    assert_eq!(smallest("nonsense"), None);
    assert!((32 << 20..=512 << 20).contains(&default_budget()));
}
