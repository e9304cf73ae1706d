use super::*;

const N: usize = 5;

/// Why a binding cannot be made.
#[derive(Clone, Copy, Debug)]
enum RefusalReason {
    Missing,
    Anothers,
    SameName,
}

const REASONS: [RefusalReason; 3] = [
    RefusalReason::Missing,
    RefusalReason::Anothers,
    RefusalReason::SameName,
];

struct TestTools {
    good: Vec<ToolId>,
    /// Has none of the names of the good ones.
    others: ToolId,
    /// Each has the name of one of the good ones.
    twins: Vec<ToolId>,
}

impl TestTools {
    async fn of(store: &Store) -> TestTools {
        let names: Vec<String> = (0..N).map(|i| format!("t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let anothers = new_tool(OTHER, "theirs");
        TestTools {
            good: tools(store, &names).await,
            others: made(store.create_tool(anothers, None).await).id,
            twins: tools(store, &names).await,
        }
    }

    /// The good bindings, of which number `k` cannot be made.
    fn failing(&self, k: usize, reason: RefusalReason) -> Vec<NewBinding> {
        let mut bindings: Vec<NewBinding> = self.good.iter().copied().map(on).collect();
        bindings[k].tool = match reason {
            RefusalReason::Missing => ToolId(i64::MAX),
            RefusalReason::Anothers => self.others,
            RefusalReason::SameName => self.twins[(k + 1) % N],
        };
        bindings
    }

    fn is_told(&self, k: usize, reason: RefusalReason, error: &StoreErrorKind) -> bool {
        match (reason, error) {
            (RefusalReason::Missing, StoreErrorKind::NoSuchTool(id)) => id.0 == i64::MAX,
            (RefusalReason::Anothers, StoreErrorKind::NoSuchTool(id)) => *id == self.others,
            (RefusalReason::SameName, StoreErrorKind::SameName(name)) => {
                *name == format!("t{}", (k + 1) % N)
            }
            _ => false,
        }
    }
}

pub(super) async fn e5_a_failed_with_bindings_keeps_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    let tools = TestTools::of(&store).await;
    let before = counts(&store).await;
    for k in 0..N {
        for reason in REASONS {
            let (key, mut new) = new_entry("desk", &[]);
            new.bindings = tools.failing(k, reason);
            let error = kind(store.create_entry(new, None).await);
            assert!(tools.is_told(k, reason, &error), "{k} {reason:?}: {error}");
            assert_eq!(counts(&store).await, before, "{k} {reason:?}");
            assert!(granted(&store, &key).await.is_none());
            assert!(store.ask(&key.digest()).await.unwrap().is_none());
        }
    }
    drop(store);
    let store = place.open().await;
    assert_eq!(counts(&store).await, before);
    let (key, desk) = entry(&store, &tools.good).await;
    assert_eq!(bound(&store, desk.id).await.len(), N);
    assert_eq!(visible(&store, &key).await.unwrap().len(), N);
}

pub(super) async fn e5_a_failed_bind_changes_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    let tools = TestTools::of(&store).await;
    let kept = tool(&store, "kept").await.id;
    let (key, desk) = entry(&store, &[kept]).await;
    for k in 0..N {
        for reason in REASONS {
            let mut bindings = tools.failing(k, reason);
            bindings.insert(0, off(kept));
            let error = kind(store.bind(&ALL, desk.id, &bindings).await);
            assert!(tools.is_told(k, reason, &error), "{k} {reason:?}: {error}");
            assert_eq!(bound(&store, desk.id).await, [(kept, true)]);
            assert_eq!(visible(&store, &key).await.unwrap(), ["kept"]);
        }
    }
    drop(store);
    let store = place.open().await;
    assert_eq!(bound(&store, desk.id).await, [(kept, true)]);
}

pub(super) async fn e5_the_first_missing_tool_is_named(place: &dyn TestStore) {
    let store = place.open().await;
    let tools = TestTools::of(&store).await;
    let (_, mut new) = new_entry("desk", &tools.good);
    new.bindings.insert(2, on(ToolId(1_000_002)));
    new.bindings.insert(4, on(ToolId(1_000_001)));
    let error = store.create_entry(new, None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create MCP instance: there is no tool 1000002"
    );
}

pub(super) async fn e5_a_missing_tool_is_told_before_a_name(place: &dyn TestStore) {
    let store = place.open().await;
    let tools = TestTools::of(&store).await;
    let bindings = [tools.good[0], tools.twins[0], ToolId(1_000_001)];
    let (_, new) = new_entry("desk", &bindings);
    let error = kind(store.create_entry(new, None).await);
    assert!(matches!(error, StoreErrorKind::NoSuchTool(_)), "{error}");
}
