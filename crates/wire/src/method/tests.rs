use super::*;

fn sent(era: Era, kind: MethodKind, sender: Sender) -> Vec<&'static str> {
    let by = |m: &&Method| {
        m.sender(era)
            .is_some_and(|s| s == sender || s == Sender::Either)
    };
    let mut names: Vec<&str> = METHODS
        .iter()
        .filter(|m| m.kind == kind)
        .filter(by)
        .map(|m| m.name)
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn the_modern_set_is_complete() {
    assert_eq!(
        sent(Era::Modern, MethodKind::Request, Sender::Client),
        [
            "completion/complete",
            "prompts/get",
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "server/discover",
            "subscriptions/listen",
            "tasks/cancel",
            "tasks/get",
            "tasks/update",
            "tools/call",
            "tools/list",
        ]
    );
    // Modern servers send no requests; results contain the input they need.
    assert!(sent(Era::Modern, MethodKind::Request, Sender::Server).is_empty());
    assert_eq!(
        sent(Era::Modern, MethodKind::Notification, Sender::Client),
        ["notifications/cancelled"]
    );
    assert_eq!(
        sent(Era::Modern, MethodKind::Notification, Sender::Server),
        [
            "notifications/cancelled",
            "notifications/message",
            "notifications/progress",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
            "notifications/tasks",
            "notifications/tools/list_changed",
        ]
    );
}

#[test]
fn the_modern_era_removed_what_it_removed() {
    for name in [
        "initialize",
        "notifications/initialized",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "notifications/roots/list_changed",
        "notifications/elicitation/complete",
        "tasks/list",
        "tasks/result",
    ] {
        let method = find(name).unwrap();
        assert!(method.modern.is_none() && method.legacy.is_some(), "{name}");
    }
    for name in ["server/discover", "subscriptions/listen"] {
        assert!(find(name).unwrap().legacy.is_none(), "{name}");
    }
    assert!(find("no/such").is_none() && find("Tools/call").is_none());
}

/// Whether a peer of this revision knows the method, extensions aside.
fn exists_in(method: &Method, version: &str) -> bool {
    match (Era::of(version), method.legacy) {
        (Some(Era::Modern), _) => method.modern.is_some() && method.extension.is_none(),
        (Some(Era::Legacy), Some((_, since))) => crate::era::legacy_at_least(version, since),
        _ => false,
    }
}

#[test]
fn revisions_know_their_methods() {
    for (name, version, known) in [
        ("tools/call", "2024-11-05", true),
        ("tools/call", "2026-07-28", true),
        ("ping", "2025-11-25", true),
        ("ping", "2026-07-28", false),
        ("server/discover", "2025-11-25", false),
        ("elicitation/create", "2025-03-26", false),
        ("elicitation/create", "2025-06-18", true),
        ("elicitation/create", "2026-07-28", false),
        ("tasks/get", "2025-06-18", false),
        ("tasks/get", "2025-11-25", true),
        // Only with the extension, which the revision does not determine.
        ("tasks/get", "2026-07-28", false),
        ("tools/call", "", false),
    ] {
        assert_eq!(
            exists_in(find(name).unwrap(), version),
            known,
            "{name} in {version}"
        );
    }
}

#[test]
fn special_methods_are_marked() {
    let names = |wanted: fn(&Method) -> bool| {
        let mut names: Vec<&str> = METHODS
            .iter()
            .filter(|m| wanted(m))
            .map(|m| m.name)
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        names(|m| m.interactive),
        ["prompts/get", "resources/read", "tools/call"]
    );
    assert_eq!(
        names(|m| m.cacheable),
        [
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "server/discover",
            "tools/list",
        ]
    );
    for (method, member) in [
        ("tools/call", Some("name")),
        ("prompts/get", Some("name")),
        ("resources/read", Some("uri")),
        ("tasks/get", Some("taskId")),
        ("tasks/update", Some("taskId")),
        ("tasks/cancel", Some("taskId")),
        ("tools/list", None),
        ("unknown", None),
    ] {
        assert_eq!(name_param(method), member, "{method}");
    }
    let mut all = names(|_| true);
    all.dedup();
    assert_eq!(all.len(), METHODS.len());
}
