use std::time::Duration;

use super::*;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn load(options: ServeOptions, pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::load(options, &env(pairs), PathBuf::from("/home/someone"))
}

/// The names of the invalid settings, and all their messages.
fn bad(options: ServeOptions, pairs: &[(&str, &str)]) -> (Vec<String>, String) {
    let error = load(options, pairs).expect_err("settings should be refused");
    let names = match &error {
        SettingsError::Bad(bad) => bad.iter().map(|one| one.name.clone()).collect(),
        SettingsError::UnsupportedStorage(_) => vec!["STORAGE_TYPE".to_owned()],
    };
    (names, error.to_string())
}

#[test]
fn k1_defaults() {
    let settings = load(
        ServeOptions::default(),
        &[("PATH", "/bin"), ("PORTWAY_LISTEN", "")],
    )
    .unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7420");
    assert_eq!(settings.project, PathBuf::from("/home/someone"));
    assert_eq!(settings.data_dir, PathBuf::from("/home/someone/data"));
    assert_eq!(settings.storage, StorageType::Json);
    assert_eq!(settings.log_format, LogFormat::Text);
    assert!(!settings.no_auth && settings.admin_token.is_none());
    assert!(settings.self_control);
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.limits.health_interval, Duration::from_secs(30));
    assert_eq!(settings.limits.drain, Duration::from_secs(10));
    assert_eq!(settings.limits.max_body, 4 << 20);
}

#[test]
fn k1_the_command_line_wins_over_the_environment() {
    let options = ServeOptions {
        listen: Some("[::1]:0".into()),
        project: Some("p".into()),
        data_dir: Some("d".into()),
        ..ServeOptions::default()
    };
    let pairs = [
        ("PORTWAY_LISTEN", "nonsense"),
        ("PORTWAY_DATA_DIR", "/elsewhere"),
    ];
    let settings = load(options, &pairs).unwrap();
    assert_eq!(settings.listen.to_string(), "[::1]:0");
    assert_eq!(settings.project, PathBuf::from("/home/someone/p"));
    assert_eq!(settings.data_dir, PathBuf::from("/home/someone/d"));
}

#[test]
fn d9_self_control_is_on_or_off() {
    for (word, on) in [("on", true), ("off", false), ("", true)] {
        let settings = load(ServeOptions::default(), &[("PORTWAY_SELF_CONTROL", word)]).unwrap();
        assert_eq!(settings.self_control, on, "{word}");
    }
    let (names, text) = bad(ServeOptions::default(), &[("PORTWAY_SELF_CONTROL", "no")]);
    assert_eq!(names, ["PORTWAY_SELF_CONTROL"]);
    assert!(text.contains("on or off"), "{text}");
}

#[test]
fn k1_values_have_units() {
    let pairs = [
        ("PORTWAY_HEALTH_INTERVAL", "500ms"),
        ("PORTWAY_DRAIN", "2m"),
        ("PORTWAY_STOP_GRACE", "7"),
        ("PORTWAY_MAX_BODY", "512KiB"),
        ("PORTWAY_MAX_LINE", "65536"),
        ("PORTWAY_LISTEN", "localhost:0"),
        ("PORTWAY_ALLOWED_HOSTS", "portway.example, [fd00::1]:7420,"),
        ("PORTWAY_ALLOWED_ORIGINS", "https://app.example/"),
    ];
    let settings = load(ServeOptions::default(), &pairs).unwrap();
    let limits = &settings.limits;
    assert_eq!(limits.health_interval, Duration::from_millis(500));
    assert_eq!(limits.drain, Duration::from_secs(120));
    assert_eq!(limits.stop_grace, Duration::from_secs(7));
    assert_eq!((limits.max_body, limits.max_line), (512 << 10, 65536));
    assert_eq!(settings.listen.to_string(), "127.0.0.1:0");
    assert_eq!(settings.allowed_hosts.len(), 2);
    assert_eq!(settings.allowed_origins.len(), 1);
}

#[test]
fn k1_a_bad_setting_is_named() {
    let table = [
        ("PORTWAY_LISTEN", "7420"),
        ("PORTWAY_LISTEN", "example.com:80"),
        ("PORTWAY_LISTEN", "127.0.0.1:70000"),
        ("PORTWAY_ADMIN_TOKEN", "short"),
        ("PORTWAY_ADMIN_TOKEN", "has a space in the middle"),
        ("PORTWAY_ADMIN_TOKEN", "ümläüts-are-not-printable"),
        ("PORTWAY_SECRET", "only-twenty-chars-xx"),
        ("PORTWAY_ALLOWED_HOSTS", "*"),
        ("PORTWAY_ALLOWED_HOSTS", "http://a"),
        ("PORTWAY_ALLOWED_HOSTS", "a, b/c"),
        ("PORTWAY_ALLOWED_ORIGINS", "a.example"),
        ("PORTWAY_ALLOWED_ORIGINS", "null"),
        ("PORTWAY_ALLOWED_ORIGINS", "*"),
        ("PORTWAY_HEALTH_INTERVAL", "soon"),
        ("PORTWAY_HEALTH_INTERVAL", "0s"),
        ("PORTWAY_HEALTH_INTERVAL", "-1s"),
        ("PORTWAY_HEALTH_INTERVAL", "99999999999999999999h"),
        ("PORTWAY_STOP_GRACE", "5 minutes"),
        ("PORTWAY_DRAIN", "2h"),
        ("PORTWAY_MAX_BODY", "0"),
        ("PORTWAY_MAX_BODY", "4 MB"),
        ("PORTWAY_MAX_LINE", "many"),
        ("PORTWAY_MAX_RESPONSE", "9999999999GiB"),
        ("PORTWAY_MAX_CONNECTIONS", "0"),
        ("PORTWAY_MAX_CONNECTIONS_PER_IP", "x"),
        ("PORTWAY_FIRST_BYTE_TIMEOUT", "x"),
        ("PORTWAY_HEADER_TIMEOUT", "x"),
        ("PORTWAY_BODY_TIMEOUT", "x"),
        ("PORTWAY_WRITE_TIMEOUT", "x"),
        ("PORTWAY_IDLE_TIMEOUT", "x"),
        ("PORTWAY_SESSION_IDLE", "x"),
        ("PORTWAY_SESSION_LIFETIME", "0"),
        ("RUST_LOG", "info,a=b=c"),
        ("MCP_SERVICE_URL", "localhost:7420"),
        ("MCP_SERVICE_URL", "ftp://a"),
        ("SUPABASE_URL", "not a url"),
        ("SUPABASE_DB_URL", "mysql://a/b"),
        ("SUPABASE_DB_SCHEMA", "Public; drop"),
        ("SUPABASE_DB_SCHEMA", "pg_catalog"),
        ("SUPABASE_JWT_SECRET", "tiny"),
        ("STORAGE_TYPE", "redis"),
    ];
    for (name, value) in table {
        let (names, text) = bad(ServeOptions::default(), &[(name, value)]);
        assert_eq!(names, [name], "{name}={value}: {text}");
    }
}

#[test]
fn f1_an_unknown_storage_type_has_the_words_of_the_spec() {
    let (_, text) = bad(
        ServeOptions::default(),
        &[("STORAGE_TYPE", "redis"), ("PORTWAY_X", "")],
    );
    assert_eq!(text, "Unsupported storage type: redis");
    let (_, text) = bad(ServeOptions::default(), &[("STORAGE_TYPE", "supabase")]);
    assert_eq!(
        text,
        "SUPABASE_DB_URL: is needed with STORAGE_TYPE=supabase"
    );
}

#[test]
fn k1_a_bad_option_is_named_as_it_was_given() {
    let listen = |text: &str| ServeOptions {
        listen: Some(text.into()),
        ..ServeOptions::default()
    };
    assert_eq!(bad(listen("nowhere"), &[]).0, ["--listen"]);
    let format = ServeOptions {
        log_format: Some("xml".into()),
        ..ServeOptions::default()
    };
    assert_eq!(bad(format, &[]).0, ["--log-format"]);
    let open = ServeOptions {
        no_auth: true,
        ..listen("0.0.0.0:7420")
    };
    assert_eq!(bad(open, &[]).0, ["--no-auth"]);
    for address in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:0"] {
        let open = ServeOptions {
            no_auth: true,
            ..listen(address)
        };
        assert!(load(open, &[]).unwrap().no_auth);
    }
}

#[test]
fn k1_all_that_is_wrong_is_told_at_once() {
    let pairs = [("PORTWAY_DRAIN", "x"), ("PORTWAY_ADMIN_TOKEN", "short")];
    let (names, text) = bad(ServeOptions::default(), &pairs);
    assert_eq!(names, ["PORTWAY_ADMIN_TOKEN", "PORTWAY_DRAIN"]);
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn k1_an_unknown_variable_is_a_warning_with_the_nearest_name() {
    let pairs = [
        ("PORTWAY_LISTENN", "127.0.0.1:1"),
        ("PORTWAY_SERVICE_HOST", "10.0.0.1"),
        ("PORTWAY_PORT_7420_TCP", "tcp://10.0.0.1:7420"),
        ("PORTWAY_INSTANCE", "of a parent"),
    ];
    let settings = load(ServeOptions::default(), &pairs).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7420");
    let said: Vec<String> = settings.unknown.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("did you mean PORTWAY_LISTEN?"), "{said:?}");
    assert!(said[1].starts_with("PORTWAY_PORT_7420_TCP: "), "{said:?}");
    assert!(said[2].contains("portway serve --help"), "{said:?}");
}

#[test]
fn g3_no_secret_is_printed() {
    let pairs = [
        ("PORTWAY_ADMIN_TOKEN", "canary-canary-canary"),
        ("PORTWAY_SECRET", "canary-canary-canary-canary-canary"),
        ("SUPABASE_DB_URL", "postgres://u:canary@h/db"),
        ("SUPABASE_JWT_SECRET", "canary-canary-canary"),
    ];
    let shown = format!("{:?}", load(ServeOptions::default(), &pairs).unwrap());
    assert!(!shown.contains("canary"), "{shown}");
    let pairs = [
        ("PORTWAY_ADMIN_TOKEN", "canary"),
        ("PORTWAY_SECRET", "canary"),
        ("SUPABASE_DB_URL", "canary"),
        ("SUPABASE_JWT_SECRET", "canary"),
    ];
    let (names, text) = bad(ServeOptions::default(), &pairs);
    assert_eq!(names.len(), 4);
    assert!(!text.contains("canary"), "{text}");
}
