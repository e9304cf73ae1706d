use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn given(keys: &[(&str, &str)]) -> Vec<String> {
    names(keys.iter().copied())
        .into_iter()
        .map(|named| named.name)
        .collect()
}

#[test]
fn d2_names_that_nobody_else_has_are_plain() {
    for (server, tool, visible) in [
        ("fs", "read_file", "mcp_fs_read_file"),
        ("my_srv", "read_file", "mcp_my_srv_read_file"),
        ("my-server", "a", "mcp_my-server_a"),
        ("fs", "_private", "mcp_fs__private"),
        ("gh", "Since2024", "mcp_gh_Since2024"),
        ("fs", "read.file", "mcp_fs_read_file"),
        ("fs", "v_1234567", "mcp_fs_v_1234567"),
        ("with space", "t", "mcp_with_space_t"),
        ("文件系统服务", "read", "mcp_wen_jian_xi_tong_fu_wu_read"),
        ("数据库服务", "查询", "mcp_shu_ju_ku_fu_wu_cha_xun"),
    ] {
        assert_eq!(name(server, tool), visible);
        assert_eq!(given(&[(server, tool)]), [visible]);
    }
}

#[test]
fn d2_a_long_name_is_cut_and_gets_a_hash() {
    let long = "x".repeat(200);
    let visible = name("fs", &long);
    assert!(visible.starts_with("mcp_fs_xxxxx") && visible.len() == LONGEST);
    assert!(is_qualified(&visible));
    assert_eq!(visible, qualified("fs", &long));
    let fits = "x".repeat(LONGEST - "mcp_fs_".len());
    assert_eq!(name("fs", &fits), format!("mcp_fs_{fits}"));
    let other = format!("{long}y");
    let both = given(&[("fs", &long), ("fs", &other)]);
    assert_eq!(both[0], visible);
    assert_ne!(both[0], both[1]);
}

/// Names reach prompts, permissions and logs of others: they must not change
/// with a release.
#[test]
fn d2_hashes_stay_as_they_are() {
    assert_eq!(qualified("a_b", "c"), "mcp_a_b_c_3d4x8cz");
    assert_eq!(
        qualified("my_srv", "read_file"),
        "mcp_my_srv_read_file_3cvfdz5"
    );
}

#[test]
fn d2_the_shortest_server_name_keeps_the_plain_name() {
    for keys in [[("a_b", "c"), ("a", "b_c")], [("a", "b_c"), ("a_b", "c")]] {
        let named = names(keys.into_iter());
        let of = |server: &str| {
            let at = keys.iter().position(|key| key.0 == server).unwrap();
            &named[at]
        };
        assert_eq!(of("a").name, "mcp_a_b_c");
        assert_eq!(of("a").yields_to, None);
        assert_eq!(of("a_b").name, "mcp_a_b_c_3d4x8cz");
        let keeper = of("a_b").yields_to.unwrap();
        assert_eq!(keys[keeper], ("a", "b_c"));
    }
    // Then the first in order; of one server, what needs no other spelling.
    let names = given(&[("b.c", "t"), ("b c", "t"), ("s", "x.y"), ("s", "x_y")]);
    assert_eq!(names[0], qualified("b.c", "t"));
    assert_eq!(names[1], "mcp_b_c_t");
    assert_eq!(names[2], qualified("s", "x.y"));
    assert_eq!(names[3], "mcp_s_x_y");
}

#[test]
fn d2_a_name_made_to_look_like_a_qualified_one_hides_nothing() {
    let taken = "b_c_3d4x8cz";
    let keys = [("a", "b_c"), ("a", taken), ("a_b", "c")];
    let names = given(&keys);
    assert_eq!(names[..2], ["mcp_a_b_c", "mcp_a_b_c_3d4x8cz"]);
    assert!(names[2].starts_with("mcp_a_b_c_") && names[2].len() == "mcp_a_b_c_".len() + LONG);
    // Whatever the longer one is, taking that as well is of no use.
    let longer = names[2].strip_prefix("mcp_a_").unwrap();
    let names = given(&[keys[0], keys[1], ("a", longer), keys[2]]);
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), 4, "{names:?}");
}

/// Servers and tools that clash often: few letters, many separators.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab_.-]{1,5}",
        "[文件读毒a_.]{1,4}",
        "[a-z0-9_]{1,8}_[0-9][a-z0-9]{6}",
        "\\PC{1,80}",
    ]
}

type KeyList = BTreeSet<(String, String)>;

fn named(keys: impl Iterator<Item = (String, String)>) -> BTreeMap<(String, String), ToolName> {
    let keys: Vec<(String, String)> = keys.collect();
    let pairs = keys
        .iter()
        .map(|(server, tool)| (server.as_str(), tool.as_str()));
    let names = names(pairs);
    keys.iter().cloned().zip(names).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn d2_names_are_valid_unique_and_stable(
        keys in proptest::collection::btree_set((part(), part()), 1..40),
        more in proptest::collection::btree_set((part(), part()), 0..40),
    ) {
        let few = named(keys.iter().cloned());
        let unique: BTreeSet<&String> = few.values().map(|named| &named.name).collect();
        prop_assert_eq!(unique.len(), few.len());
        for ((server, own), ToolName { name, yields_to }) in &few {
            prop_assert!(name.len() <= LONGEST && name.chars().all(is_allowed), "{}", name);
            prop_assert!(name.starts_with("mcp_"));
            prop_assert_eq!(yields_to.is_none(), *name == super::name(server, own));
        }
        // The order of the keys does not matter.
        let turned = named(keys.iter().rev().cloned());
        for (key, named) in &few {
            prop_assert_eq!(&turned[key].name, &named.name);
        }
        // Only a tool that wants the same name changes one.
        let all: KeyList = keys.union(&more).cloned().collect();
        let many = named(all.iter().cloned());
        for (key, before) in few.iter().filter(|(key, before)| many[*key].name != before.name) {
            let wanted = [plain(&key.0, &key.1), before.name.clone()];
            let rival = more.difference(&keys).any(|(server, own)| wanted.contains(&plain(server, own)));
            prop_assert!(rival, "{:?}: {} became {}", key, before.name, many[key].name);
        }
    }

    #[test]
    fn d2_plain_names_say_where_they_belong(server in "[a-zA-Z0-9-]{1,20}", tool in "[a-z_]{1,20}") {
        let name = name(&server, &tool);
        let (found, rest) = name.strip_prefix("mcp_").unwrap().split_once('_').unwrap();
        prop_assert_eq!((found, rest), (server.as_str(), tool.as_str()));
    }
}
