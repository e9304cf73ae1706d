//! Additions to a file are removed again without a trace.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::graft::{Graft, graft, value_at};
use super::super::prune::prune;
use super::generated::generated_file;
use crate::edit::EditError;

fn path(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn server() -> Value {
    json!({
        "type": "http",
        "url": "http://127.0.0.1:7420/mcp",
        "headers": {"Authorization": "Bearer ${PORTWAY_ENTRY_KEY}"},
    })
}

fn member(keys: &[&str]) -> Vec<Graft> {
    vec![Graft::Member {
        path: path(keys),
        value: server(),
    }]
}

fn with_input() -> Vec<Graft> {
    let element = Graft::Element {
        path: path(&["inputs"]),
        value: json!({"id": "portway-key", "type": "promptString", "password": true}),
    };
    [member(&["servers", "portway"]), vec![element]].concat()
}

fn table() -> Vec<Graft> {
    let Value::Object(fields) = json!({"url": "http://x/mcp", "http_headers": {"A b": "c\"d"}})
    else {
        unreachable!()
    };
    vec![Graft::Table {
        section: "mcp_servers".into(),
        name: "portway".into(),
        fields,
    }]
}

#[track_caller]
fn there_and_back(before: &str, grafts: &[Graft]) -> String {
    let grown = graft(before, grafts).unwrap_or_else(|error| panic!("{before:?}: {error}"));
    assert_ne!(grown.text, before);
    for added in &grown.added {
        assert!(added.text.contains("portway"), "{before:?}: {}", added.text);
    }
    let backups = [Some("{\"other\": 1}".to_owned()), Some(before.to_owned())];
    match prune(&grown.text, grafts, &backups).unwrap() {
        Some(text) => assert_eq!(text, before),
        None => panic!("{before:?} is gone"),
    }
    grown.text
}

const JSON: &[&str] = &[
    "",
    "\n",
    "  \n\n",
    "// only a comment",
    "/* a */\r\n// b\r\n",
    "{}",
    "{ }",
    "{\n}",
    "{\r\n}\r\n",
    "{\n\n\t}\n",
    "{ /* c */ }",
    "{ // c\n}",
    "{\n  // c\n  // d\n}",
    "{\n  /* c */ }",
    "{\"mcpServers\":{}}",
    "{\"mcpServers\": { } }",
    "{\"mcpServers\":{\"a\":{}}}",
    "{\"mcpServers\":{\"a\":{},},}",
    "{\"servers\":{},\"inputs\":[]}",
    "{\"servers\":{\"a\":{}},\"inputs\":[{\"id\":\"x\"}]}",
    "{\n\t\"servers\": {\n\t},\n\t\"inputs\": [\n\t\t{ \"id\": \"x\" }, // y\n\t]\n}",
    "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"} // last\r\n\t}\r\n}",
    "{\n  \"theme\": \"dark\"}",
    "{\n  \"theme\": \"dark\",\n  // the end\n}",
    "{\n  \"mcpServers\": {\n    \"a\": {}, // a\n    // tail\n  },\n  \"z\": [1, 2]\n}\n\n\n",
    "{\"a\": 1, \"b\": {\"mcpServers\": {}}}",
];

#[test]
fn b8_install_and_uninstall_leave_no_byte_behind() {
    for before in JSON {
        there_and_back(before, &member(&["mcpServers", "portway"]));
        there_and_back(
            before,
            &member(&["projects", "/a/b", "mcpServers", "portway"]),
        );
        there_and_back(before, &with_input());
    }
}

const TOML: &[&str] = &[
    "",
    "\n",
    "# only a comment",
    "model = \"x\"",
    "model = \"x\"\r\n\r\n# end\r\n",
    "[mcp_servers]\n",
    "[mcp_servers.a]\ncommand = \"x\" # y\n\n[[profiles]]\nname = 'z'\n\n\n",
    "mcp_servers.a.command = \"x\"\n",
    "\u{feff}[tui]\nx = 1",
];

#[test]
fn b8_a_table_comes_and_goes_without_a_trace() {
    for before in TOML {
        let text = there_and_back(before, &table());
        assert!(text.starts_with(before), "{text}");
        assert!(text.contains("[mcp_servers.portway]"), "{text}");
    }
    let inline = "mcp_servers = { a = { command = \"x\" } }\n";
    assert!(graft(inline, &table()).is_err());
}

#[test]
fn b8_a_file_that_was_not_there_is_nothing_again() {
    for grafts in [member(&["mcpServers", "portway"]), with_input(), table()] {
        let text = graft("", &grafts).unwrap().text;
        for backups in [vec![], vec![None, Some("{}".to_owned())]] {
            let left = prune(&text, &grafts, &backups).unwrap();
            assert!(left.is_none(), "{text}");
        }
    }
}

#[test]
fn b8_what_changed_since_stays() {
    let grafts = member(&["mcpServers", "portway"]);
    for (before, edit, after) in [
        // The section existed before.
        (
            "{\n  \"a\": 1,\n  \"mcpServers\": {\n  }\n}",
            ("\"a\": 1", "\"a\": 2"),
            "{\n  \"a\": 2,\n  \"mcpServers\": {\n  }\n}",
        ),
        // The section did not exist before.
        (
            "{\n  \"a\": 1\n}",
            ("\"a\": 1", "\"a\": 2"),
            "{\n  \"a\": 2\n}",
        ),
        ("{\"a\":1}", ("1", "22"), "{\"a\":22}"),
        (
            "{\n  \"mcpServers\": {\"x\": {}}\n}",
            ("\"x\": {}", "\"x\": {}, \"y\": {}"),
            "{\n  \"mcpServers\": {\"x\": {}, \"y\": {}}\n}",
        ),
    ] {
        let text = graft(before, &grafts).unwrap().text;
        let text = text.replacen(edit.0, edit.1, 1);
        let backups = [Some(before.to_owned())];
        match prune(&text, &grafts, &backups).unwrap() {
            Some(left) => assert_eq!(left, after),
            None => panic!("{text}"),
        }
    }
}

#[test]
fn b8_a_table_leaves_though_the_file_changed_since() {
    let text = graft("a = 1\n", &table()).unwrap().text;
    for (now, after) in [
        (text.replace("a = 1", "a = 2"), "a = 2\n"),
        (format!("{text}\n[b]\nc = 1\n"), "a = 1\n\n[b]\nc = 1\n"),
    ] {
        match prune(&now, &table(), &[Some("a = 1\n".to_owned())]).unwrap() {
            Some(left) => assert_eq!(left, after),
            None => panic!("{now}"),
        }
    }
}

#[test]
fn b8_what_is_ambiguous_or_taken_is_not_touched() {
    let grafts = member(&["mcpServers", "portway"]);
    let twice = "{\"mcpServers\":{},\"mcpServers\":{}}";
    assert!(matches!(
        graft(twice, &grafts),
        Err(EditError::Ambiguous(_))
    ));
    let taken = "{\"mcpServers\":{\"portway\":{}}}";
    assert!(matches!(graft(taken, &grafts), Err(EditError::Taken(_))));
    for broken in ["{\"mcpServers\":{}", "[]", "{\"mcpServers\":[]}", "{'a':1}"] {
        assert!(graft(broken, &grafts).is_err(), "{broken}");
    }
    let list = "{\"servers\":{},\"inputs\":{}}";
    assert!(matches!(
        graft(list, &with_input()),
        Err(EditError::NotAList(_))
    ));
    assert!(matches!(
        graft("a = [", &table()),
        Err(EditError::NotJson(_))
    ));
}

proptest! {
    #[test]
    fn b8_any_file_is_itself_again(seed: u64, servers in 0_usize..4, list in any::<bool>()) {
        let before = generated_file(seed, servers);
        let grafts = match list {
            true => with_input(),
            false => member(&["mcpServers", "portway"]),
        };
        let text = there_and_back(&before, &grafts);
        let value = value_at(&text, &path(&["mcpServers", "portway"])).unwrap();
        prop_assert_eq!(value.is_some(), !list);
        // Without the shortcut over the backup: only its structure is used.
        let moved = format!("{text}\n");
        let backups = [Some(before.clone())];
        match prune(&moved, &grafts, &backups).unwrap() {
            Some(left) => prop_assert_eq!(left, format!("{before}\n")),
            None => prop_assert!(false, "{} is gone", before),
        }
    }
}
