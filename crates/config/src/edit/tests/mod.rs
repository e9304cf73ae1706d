use super::*;
use crate::{Dialect, parse_file};

mod generated;
mod grafts;

fn spec(definition: &str) -> ServerSpec {
    let text = format!(r#"{{"mcpServers": {{"x": {definition}}}}}"#);
    let parsed = parse_file(&text, Dialect::Mcp).unwrap();
    parsed.servers["x"].clone().unwrap().1
}

#[track_caller]
fn set(before: &str, name: &str, definition: &str, after: &str) {
    let edited = set_server(before, &["mcpServers", name], &spec(definition)).unwrap();
    assert_eq!(edited, after);
}

#[track_caller]
fn remove(before: &str, name: &str, after: &str) {
    let edited = remove_server(before, &["mcpServers", name]).unwrap();
    assert_eq!(edited.as_deref(), Some(after));
}

const STYLED: &str = r#"// my servers
{
    "mcpServers": {
        // the first
        "one": {
            "command": "npx", // by npm
            "args": ["-y", "one"],
            "alwaysAllow": ["x"], // another tool's
            "env": {
                "A": "1",
                /* B */ "B": "2"
            },
        }, // end of one
        // "off": {"command": "x"},
        "two": {"command": "two", "timeout": 5000}
    },
    "other": [1,2,  3]
}
"#;

#[test]
fn b7_a_new_server_follows_the_style_of_the_file() {
    let after = STYLED.replace(
        "\"two\": {\"command\": \"two\", \"timeout\": 5000}\n",
        r#""two": {"command": "two", "timeout": 5000},
        "three": {
            "type": "stdio",
            "transport": "stdio",
            "command": "c",
            "args": ["a", "b"],
            "env": {
                "K": "v"
            }
        }
"#,
    );
    let definition = r#"{"command": "c", "args": ["a", "b"], "env": {"K": "v"}}"#;
    set(STYLED, "three", definition, &after);
}

#[test]
fn b7_only_what_differs_changes() {
    let base = r#"{"command": "npx", "args": ["-y", "one"], "env": {"A": "1", "B": "2"}"#;
    set(STYLED, "one", &format!("{base}}}"), STYLED);
    for (more, from, to) in [
        (
            r#", "timeout": 7"#,
            "\"2\"\n            },\n",
            "\"2\"\n            },\n            \"timeout\": 7,\n",
        ),
        (
            r#", "enabled": false"#,
            "\"2\"\n            },\n",
            "\"2\"\n            },\n            \"enabled\": false,\n",
        ),
    ] {
        set(
            STYLED,
            "one",
            &format!("{base}{more}}}"),
            &STYLED.replace(from, to),
        );
    }
    for (definition, from, to) in [
        (
            r#"{"command": "npx", "args": ["-y", "one@2", "z"], "env": {"A": "1", "B": "2"}}"#,
            r#"["-y", "one"]"#,
            r#"["-y", "one@2", "z"]"#,
        ),
        (
            r#"{"command": "npx", "args": ["one"], "env": {"A": "1", "B": "2"}}"#,
            r#"["-y", "one"]"#,
            r#"["one"]"#,
        ),
        (
            r#"{"command": "npx", "args": ["-y", "one"], "env": {"A": "9", "B": "2"}}"#,
            r#""A": "1""#,
            r#""A": "9""#,
        ),
        (
            r#"{"command": "npx", "args": ["-y", "one"], "env": {"B": "2"}}"#,
            "                \"A\": \"1\",\n",
            "",
        ),
        (
            r#"{"command": "npx", "args": ["-y", "one"], "env": {"A": "1", "B": "2", "C": "3"}}"#,
            "/* B */ \"B\": \"2\"\n",
            "/* B */ \"B\": \"2\", \"C\": \"3\"\n",
        ),
        (
            r#"{"command": "npx", "args": ["-y", "one"]}"#,
            "{\n                \"A\": \"1\",\n                /* B */ \"B\": \"2\"\n            }",
            "{\n                /* B */ \n            }",
        ),
    ] {
        set(STYLED, "one", definition, &STYLED.replace(from, to));
    }
    set(
        STYLED,
        "two",
        r#"{"command": "two", "env": {"A": "b"}}"#,
        &STYLED.replace(
            r#""timeout": 5000}"#,
            r#""timeout": 30000, "env": {"A": "b"}}"#,
        ),
    );
}

#[test]
fn b7_a_server_is_taken_out_with_its_line_and_comma() {
    let start = STYLED.find("        \"one\"").unwrap();
    let end = STYLED.find("        // \"off\"").unwrap();
    let without_one = format!("{}{}", &STYLED[..start], &STYLED[end..]);
    remove(STYLED, "one", &without_one);

    let start = STYLED.find("        \"two\"").unwrap();
    let end = STYLED.find("    },\n    \"other\"").unwrap();
    let without_two =
        format!("{}{}", &STYLED[..start], &STYLED[end..]).replace("}, // end", "} // end");
    remove(STYLED, "two", &without_two);

    for (before, after) in [
        (
            r#"{"mcpServers":{"a":{"command":"x"}}}"#,
            r#"{"mcpServers":{}}"#,
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#,
            r#"{"mcpServers": {"b": {"command": "y"}}}"#,
        ),
        (
            r#"{"mcpServers": {"b": {"command": "y"}, "a": {"command": "x"}}}"#,
            r#"{"mcpServers": {"b": {"command": "y"}}}"#,
        ),
        (
            r#"{"mcpServers": {"b": {"command": "y"}, "a": {"command": "x"},}}"#,
            r#"{"mcpServers": {"b": {"command": "y"}, }}"#,
        ),
        (
            "{\n\t\"mcpServers\": {\n\t\t\"a\": {}\n\t}\n}",
            "{\n\t\"mcpServers\": {}\n}",
        ),
        (
            "{\r\n  \"mcpServers\": {\r\n    \"a\": {},\r\n    \"b\": {}\r\n  }\r\n}\r\n",
            "{\r\n  \"mcpServers\": {\r\n    \"b\": {}\r\n  }\r\n}\r\n",
        ),
        (
            "{\"mcpServers\": {\n  \"a\": {\n  }, \"b\": {\n  }\n}}",
            "{\"mcpServers\": {\n  \"b\": {\n  }\n}}",
        ),
    ] {
        remove(before, "a", after);
    }
    assert_eq!(remove_server(STYLED, &["mcpServers", "none"]), Ok(None));
    assert_eq!(remove_server("", &["mcpServers", "none"]), Ok(None));
    assert_eq!(remove_server("{}", &["mcpServers", "none"]), Ok(None));
}

#[test]
fn b7_a_file_is_made_from_nothing() {
    let made = r#"{
  "mcpServers": {
    "s": {
      "type": "http",
      "transport": "http",
      "url": "http://h/mcp",
      "headers": {
        "Authorization": "Bearer ${T}"
      }
    }
  }
}
"#;
    let definition = r#"{"url": "http://h/mcp", "headers": {"Authorization": "Bearer ${T}"}}"#;
    for nothing in ["", "  \n", "{}", "{\n}\n", "{\"mcpServers\": {}}"] {
        set(nothing, "s", definition, made);
    }
    set("\u{feff}", "s", definition, &format!("\u{feff}{made}"));
    set("// mine\n", "s", definition, &format!("// mine\n{made}"));
    set("{\r\n}\r\n", "s", definition, &made.replace('\n', "\r\n"));
}

#[test]
fn b7_one_line_stays_one_line() {
    set(
        r#"{"mcpServers":{"a":{"command":"x"}},"y":1}"#,
        "b",
        r#"{"command": "y", "args": ["1", "2"]}"#,
        r#"{"mcpServers":{"a":{"command":"x"},"b":{"type":"stdio","transport":"stdio","command":"y","args":["1","2"]}},"y":1}"#,
    );
    set(
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"env\": {} }\n  }\n}",
        "a",
        r#"{"command": "x", "env": {"K": "v"}}"#,
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"env\": {\"K\": \"v\"} }\n  }\n}",
    );
    set(
        "{\n  \"other\": 1\n}",
        "a",
        r#"{"command": "x"}"#,
        "{\n  \"other\": 1,\n  \"mcpServers\": {\n    \"a\": {\n      \"type\": \"stdio\",\n      \
         \"transport\": \"stdio\",\n      \"command\": \"x\"\n    }\n  }\n}",
    );
}

#[test]
fn b7_the_shape_of_a_definition_is_kept() {
    let file = |server: &str| format!("{{\n  \"mcpServers\": {{\n    \"a\": {server}\n  }}\n}}\n");
    for (before, wanted, after) in [
        (
            r#"{"type": "local", "command": ["npx", "x"], "environment": {"A": "1"}}"#,
            r#"{"command": "npx", "args": ["x", "y"], "env": {"A": "2"}}"#,
            r#"{"type": "local", "command": ["npx", "x", "y"], "environment": {"A": "2"}}"#,
        ),
        (
            r#"{"command": "x", "disabled": true}"#,
            r#"{"command": "x"}"#,
            r#"{"command": "x", "disabled": false}"#,
        ),
        (
            r#"{"type": "remote", "url": "http://h"}"#,
            r#"{"url": "http://h2"}"#,
            r#"{"type": "remote", "url": "http://h2"}"#,
        ),
        (
            r#"{"type": "remote", "url": "http://h"}"#,
            r#"{"type": "sse", "url": "http://h"}"#,
            r#"{"type": "sse", "url": "http://h", "transport": "sse"}"#,
        ),
        (
            r#"{"url": "http://h", "x": 1}"#,
            r#"{"command": "c"}"#,
            r#"{"x": 1, "type": "stdio", "transport": "stdio", "command": "c"}"#,
        ),
        (
            r#"{"command": "c", "cwd": "/x", "era": "modern"}"#,
            r#"{"command": "c"}"#,
            r#"{"command": "c", "era": "auto"}"#,
        ),
        (
            r#"{"command": 3, "env": "broken", "x": null}"#,
            r#"{"command": "c", "env": {"A": "b"}}"#,
            r#"{"command": "c", "env": {"A": "b"}, "x": null}"#,
        ),
    ] {
        set(&file(before), "a", wanted, &file(after));
    }
    set(
        &file("7"),
        "a",
        r#"{"command": "c"}"#,
        &file(
            "{\n      \"type\": \"stdio\",\n      \"transport\": \"stdio\",\n      \"command\": \"c\"\n    }",
        ),
    );
}

#[test]
fn b7_every_field_can_be_changed_and_set_back() {
    for (field, value, default) in [
        ("timeout", "5", "30000"),
        ("era", "\"legacy\"", "\"auto\""),
        ("containment", "\"group\"", "\"auto\""),
        ("privileges", "\"keep\"", "\"drop\""),
        ("isolation", "\"session\"", "\"auto\""),
    ] {
        let plain = r#"{"mcpServers": {"a": {"command": "c"}}}"#;
        let with = |value: &str| format!(r#"{{"command": "c", "{field}": {value}}}"#);
        let file = |value: &str| format!(r#"{{"mcpServers": {{"a": {}}}}}"#, with(value));
        set(plain, "a", &with(value), &file(value));
        set(&file(value), "a", r#"{"command": "c"}"#, &file(default));
    }
}

#[test]
fn b7_a_server_is_renamed_in_its_place() {
    let path = ["mcpServers", "one"];
    assert_eq!(
        rename_server(STYLED, &path, "eins"),
        Ok(STYLED.replace("\"one\": {", "\"eins\": {"))
    );
    assert_eq!(rename_server(STYLED, &path, "one"), Ok(STYLED.to_owned()));
    assert_eq!(
        rename_server(STYLED, &path, "two"),
        Err(EditError::Taken("two".into()))
    );
    assert!(matches!(
        rename_server(STYLED, &["mcpServers", "none"], "x"),
        Err(EditError::Missing(_))
    ));
}

#[test]
fn b7_a_file_that_cannot_be_understood_is_not_touched() {
    let spec = spec(r#"{"command": "c"}"#);
    let path = ["mcpServers", "a"];
    for (text, error) in [
        ("[1]", EditError::NotAnObject("the file".into())),
        (
            "{\"mcpServers\": 3}",
            EditError::NotAnObject("mcpServers".into()),
        ),
        (
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            EditError::Ambiguous("mcpServers".into()),
        ),
        (
            "{\"mcpServers\": {\"a\": {}, \"a\": {}}}",
            EditError::Ambiguous("mcpServers.a".into()),
        ),
    ] {
        assert_eq!(set_server(text, &path, &spec), Err(error), "{text}");
    }
    for text in ["{", "{\"mcpServers\": {}", "nonsense"] {
        assert!(matches!(
            set_server(text, &path, &spec),
            Err(EditError::NotJson(_))
        ));
    }
}

#[test]
fn b7_what_is_there_is_known_without_reading_it() {
    let path = ["mcpServers", "a"];
    for (text, there) in [
        ("", false),
        ("// nothing yet\n", false),
        ("{}", false),
        (r#"{"mcpServers": {}}"#, false),
        (r#"{"mcpServers": {"b": {}}}"#, false),
        (r#"{"mcpServers": {"a": 7}}"#, true),
        ("\u{feff}{\"mcpServers\": {\"a\": {},},}", true),
    ] {
        assert_eq!(has_server(text, &path), Ok(there), "{text}");
    }
    assert!(has_server("{", &path).is_err());
}

#[test]
fn b7_a_large_file_is_edited_in_a_moment() {
    let servers: Vec<String> = (0..20_000)
        .map(|i| format!("    \"s{i}\": {{ \"command\": \"{}\" }}", "x".repeat(220)))
        .collect();
    let text = format!(
        "{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n",
        servers.join(",\n")
    );
    let start = std::time::Instant::now();
    let spec = spec(r#"{"command": "c", "args": ["a"], "timeout": 5}"#);
    let edited = set_server(&text, &["mcpServers", "s10000"], &spec).unwrap();
    println!("edited {} bytes in {:?}", text.len(), start.elapsed());
    let (old, new) = (
        &servers[10_000],
        r#"    "s10000": { "command": "c", "args": ["a"], "timeout": 5 }"#,
    );
    assert_eq!(edited, text.replace(old.as_str(), new));
}
