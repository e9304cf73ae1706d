use super::*;

#[test]
fn j1_defaults_are_those_of_the_document() {
    let config: Config = r#"{"type":"local","command":["npx","x"]}"#.parse().unwrap();
    assert!(config.enabled());
    assert_eq!(config.timeout(), 30_000);
}

#[test]
fn j1_a_bad_config_is_refused_naming_the_field() {
    for (text, named) in [
        (r#"{"type":"sock","command":["x"]}"#, "sock"),
        (r#"{"type":"local"}"#, "command"),
        (r#"{"type":"local","command":[]}"#, "command"),
        (r#"{"type":"remote"}"#, "url"),
        (r#"{"type":"remote","url":"ftp://x"}"#, "url"),
        (
            r#"{"type":"remote","url":"http://x","timeout":0}"#,
            "timeout",
        ),
        (
            r#"{"type":"remote","url":"http://x","header":{}}"#,
            "header",
        ),
        (r#"{"command":["x"]}"#, "type"),
    ] {
        let error = text.parse::<Config>().unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}

#[test]
fn j1_a_wrong_type_names_its_field() {
    for (text, message) in [
        (
            r#"{"type":"local","command":"npx x"}"#,
            "command: must be a list of strings",
        ),
        (
            r#"{"type":"local","command":["npx",1]}"#,
            "command: must be a list of strings",
        ),
        (
            r#"{"type":"local","command":["x"],"environment":{"PORT":80}}"#,
            "environment: must be an object whose values are strings",
        ),
        (
            r#"{"type":"remote","url":"http://x","headers":["a"]}"#,
            "headers: must be an object whose values are strings",
        ),
        (
            r#"{"type":"remote","url":"http://x","enabled":"yes"}"#,
            "enabled: must be true or false",
        ),
        (
            r#"{"type":"remote","url":"http://x","timeout":-1}"#,
            "timeout: must be a whole number of milliseconds",
        ),
        (r#"{"type":"remote","url":7}"#, "url: must be a string"),
        (r#"{"type":3}"#, "type: must be \"local\" or \"remote\""),
    ] {
        let error = text.parse::<Config>().unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
        let error = serde_json::from_str::<Config>(text).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn j1_what_was_written_can_be_read_back() {
    let servers = McpServer::new();
    for (name, config) in [
        (
            "local",
            r#"{"type":"local","command":["x","y"],"environment":{"A":"b"}}"#,
        ),
        (
            "remote",
            r#"{"type":"remote","url":"http://x/","headers":{"A":"b"},"enabled":false}"#,
        ),
    ] {
        servers.register(name, config.parse().unwrap()).unwrap();
    }
    servers.update_status("remote", Status::Error, Some("gone"));
    assert!(servers.update_tool_count("local", 3));
    assert!(!servers.update_tool_count("nobody", 3));
    let text = serde_json::to_string(&servers.list()).unwrap();
    let read: Vec<Info> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, servers.list());
    assert_eq!(read[0].tool_count, 3);
}

#[test]
fn j1_register_get_list_remove_update_reset() {
    let servers = McpServer::new();
    let config: Config = r#"{"type":"remote","url":"https://example.com/mcp"}"#
        .parse()
        .unwrap();
    servers.register("api", config.clone()).unwrap();
    servers.register("other", config).unwrap();
    assert_eq!(servers.get("api").unwrap().status, Status::Disconnected);
    assert!(servers.update_status("api", Status::Error, Some("连接超时")));
    assert_eq!(
        servers.get("api").unwrap().error.as_deref(),
        Some("连接超时")
    );
    assert!(servers.update_status("api", Status::Connected, Some("ignored")));
    assert_eq!(servers.get("api").unwrap().error, None);
    assert!(!servers.update_status("nobody", Status::Connected, None));
    assert_eq!(servers.list().len(), 2);
    assert!(servers.remove("api") && !servers.remove("api"));
    assert_eq!(servers.get("api"), None);
    servers.reset();
    assert!(servers.list().is_empty());
    assert!(
        servers
            .register(
                "a:b",
                "{\"type\":\"local\",\"command\":[\"x\"]}".parse().unwrap()
            )
            .is_err()
    );
}

#[test]
fn j1_values_of_variables_are_not_printed() {
    let config: Config = r#"{"type":"local","command":["x"],"environment":{"TOKEN":"s3cret"}}"#
        .parse()
        .unwrap();
    let text = format!("{config:?}");
    assert!(text.contains("TOKEN") && !text.contains("s3cret"), "{text}");
}
