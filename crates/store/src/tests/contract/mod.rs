//! The behavior of every store, written once and run on each. A case gets an
//! empty store of its own, and uses nothing that only one store can do.

use std::sync::Arc;

use async_trait::async_trait;

use crate::*;
use config::ServerName;
use config::filters::Filter;

mod adopted;
mod atomic;
mod bindings;
mod entries;
mod grants;
mod instances;
mod kept;
mod once;
mod owners;
mod paging;
mod races;
mod servers;
mod tools;

/// The place of a store while a case runs.
#[async_trait]
pub(crate) trait TestStore: Send + Sync {
    /// A second call is allowed only after the first store is dropped.
    async fn open(&self) -> Arc<Store>;
}

/// One test per case, on the stores that `$fresh` makes: an async function that
/// returns a [`TestStore`].
macro_rules! contract {
    ($fresh:path) => {
        contract! { @on $fresh;
            adopted:
                e9_records_of_others_become_entries_with_their_keys,
                e9_adopting_again_makes_nothing_more,
                e9_a_key_of_somebody_elses_is_refused;
            atomic:
                e5_a_failed_with_bindings_keeps_nothing,
                e5_a_failed_bind_changes_nothing,
                e5_the_first_missing_tool_is_named,
                e5_a_missing_tool_is_told_before_a_name;
            bindings:
                e3_bindings_stand_in_the_order_they_were_made,
                e3_binding_again_sets_the_status,
                e3_one_tool_named_twice_is_bound_once,
                e3_a_status_is_set_only_where_there_is_a_binding,
                e3_unbinding_takes_one_away,
                e3_binding_nothing_changes_nothing,
                e5_a_rename_obeys_the_rule_of_names,
                e5_a_disabled_binding_counts_for_names,
                e5_names_may_meet_once_the_other_is_gone;
            entries:
                e1_an_entry_is_made_read_changed_and_deleted,
                e1_a_change_leaves_the_rest,
                e1_a_change_that_changes_nothing_keeps_the_time,
                e1_any_text_is_kept_as_it_is,
                e1_numbers_are_not_used_twice,
                e10_a_key_is_replaced,
                e10_a_key_is_of_one_entry,
                e10_keys_are_in_no_debug_output,
                f4_a_missing_entry_is_no_error;
            grants:
                e3_what_is_visible_is_what_is_bound_and_enabled,
                d7_an_entrys_filter_is_part_of_what_it_grants,
                e7_disabled_deleted_rotated_and_unknown_open_nothing,
                e7_after_the_answer_nothing_enters,
                e7_the_answer_waits_for_those_who_are_passing,
                e7_a_matrix_of_keys_and_tools_is_exact,
                e7_changes_are_announced,
                e10_an_expired_key_opens_nothing,
                t_a_tool_is_in_memory_once_and_a_change_touches_only_its_entries,
                e10_the_last_use_is_shown;
            instances:
                e9_an_old_record_is_made_read_changed_and_deleted,
                e9_an_old_record_opens_nothing,
                e9_an_old_key_is_of_one_record,
                e9_an_old_record_is_found_by_its_id,
                e9_an_old_record_gets_another_owner_and_key,
                e9_migrating_keeps_the_key_and_binds_the_tools,
                e9_migrating_twice_does_nothing_more,
                e9_migrating_uses_the_tools_there_are,
                e9_migrating_is_all_or_none,
                f4_a_missing_old_record_is_no_error;
            kept:
                f6_everything_answered_is_there_after_opening_again,
                f6_numbers_go_on_after_opening_again,
                f6_a_create_is_remembered_after_opening_again;
            once:
                e4_who_asks_again_gets_what_was_made,
                e4_another_request_with_the_same_key_is_refused,
                e4_what_is_gone_since_is_not_made_again,
                e4_a_failed_create_may_be_tried_again,
                e4_the_same_create_at_once_is_made_once;
            owners:
                e2_tools_of_another_are_not_there,
                e1_entries_of_another_are_not_there,
                e9_old_records_of_another_are_not_there,
                e5_nobody_binds_the_tool_of_another;
            paging:
                f4_tools_come_in_pages,
                f4_entries_come_in_pages,
                f4_old_records_come_in_pages;
            races:
                e4_many_creates_at_once_are_all_kept,
                e3_many_binds_at_once_are_all_kept,
                e1_changes_at_once_lose_nothing,
                e9_fields_given_at_once_are_all_kept,
                e5_of_many_with_one_name_one_is_bound,
                e5_of_two_renames_to_one_name_one_is_done,
                e5_a_rename_and_a_bind_do_not_meet,
                e5_no_binding_outlives_its_tool,
                e10_a_key_is_taken_once,
                e10_rotations_at_once_leave_one_key;
            servers:
                f4_servers_are_put_replaced_and_deleted,
                f4_server_names_are_unique,
                f4_servers_are_put_all_or_none,
                a9_the_record_follows_its_server;
            tools:
                e2_a_tool_is_made_read_changed_and_deleted,
                e2_a_change_that_changes_nothing_keeps_the_time,
                e2_two_tools_may_have_one_name,
                a8_tools_follow_a_server_to_its_new_name,
                a9_bindings_go_with_their_server,
                e2_deleting_a_tool_takes_its_bindings,
                e2_numbers_are_not_used_twice,
                f4_a_missing_tool_is_no_error;
        }
    };
    (@on $fresh:path; $($subject:ident: $($case:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let place = $fresh().await;
                $crate::tests::contract::$subject::$case(&place).await;
            }
        )+)+
    };
}

mod json {
    use super::*;

    struct InFiles(tempfile::TempDir);

    #[async_trait]
    impl TestStore for InFiles {
        async fn open(&self) -> Arc<Store> {
            let opened = Store::open_files(self.0.path()).unwrap();
            assert_eq!(opened.warnings, Vec::<String>::new());
            Arc::new(opened.store)
        }
    }

    async fn fresh() -> InFiles {
        InFiles(tempfile::tempdir().unwrap())
    }

    contract!(fresh);
}

mod postgres {
    use super::*;
    use crate::tests::cluster;
    use config::{DatabaseSchema, Secret};

    struct InADatabase(Secret);

    #[async_trait]
    impl TestStore for InADatabase {
        async fn open(&self) -> Arc<Store> {
            // Not the default, and a keyword that is a name only in quotes.
            let schema = DatabaseSchema::parse("user").unwrap();
            Arc::new(Store::open_database(&self.0, &schema).await.unwrap())
        }
    }

    async fn fresh() -> InADatabase {
        let url = tokio::task::spawn_blocking(|| {
            let cluster = cluster::shared();
            cluster.url(&cluster.database())
        });
        InADatabase(Secret::new(url.await.unwrap()))
    }

    contract!(fresh);
}

/// The owner of the records in most cases.
const ME: &str = "me";
const OTHER: &str = "somebody else";
const ALL: OwnerScope = OwnerScope::Everyone;
const EVERY: Page = Page {
    skip: 0,
    limit: 10_000,
};

fn only(owner: &str) -> OwnerScope {
    OwnerScope::Only(owner.into())
}

fn made<T: std::fmt::Debug>(created: Result<Creation<T>, StoreError>) -> T {
    match created.unwrap() {
        Creation::New(made) => made,
        earlier => panic!("{earlier:?}"),
    }
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> StoreErrorKind {
    outcome.unwrap_err().kind
}

fn new_tool(owner: &str, name: &str) -> NewTool {
    NewTool {
        owner: owner.into(),
        name: name.to_owned(),
        description: None,
        server: "files".to_owned(),
        tool: format!("{name}_there"),
    }
}

async fn tool(store: &Store, name: &str) -> ToolRecord {
    made(store.create_tool(new_tool(ME, name), None).await)
}

async fn tools(store: &Store, names: &[&str]) -> Vec<ToolId> {
    let mut ids = Vec::new();
    for name in names {
        ids.push(tool(store, name).await.id);
    }
    ids
}

fn on(tool: ToolId) -> NewBinding {
    NewBinding {
        tool,
        enabled: true,
    }
}

fn off(tool: ToolId) -> NewBinding {
    NewBinding {
        tool,
        enabled: false,
    }
}

fn filter(allow: &[&str], deny: &[&str]) -> Filter {
    let owned = |patterns: &[&str]| patterns.iter().map(|one| (*one).to_owned()).collect();
    Filter {
        allow: owned(allow),
        deny: owned(deny),
    }
}

fn new_entry(name: &str, tools: &[ToolId]) -> (ApiKey, NewEntry) {
    let key = ApiKey::random().unwrap();
    let new = NewEntry {
        owner: ME.into(),
        name: name.to_owned(),
        enabled: true,
        key: key.record(None),
        exposes: ExposedServers::default(),
        filter: None,
        bindings: tools.iter().copied().map(on).collect(),
    };
    (key, new)
}

async fn entry(store: &Store, tools: &[ToolId]) -> (ApiKey, Entry) {
    let (key, new) = new_entry("an entry", tools);
    (key, made(store.create_entry(new, None).await))
}

fn new_instance(name: &str, extra: serde_json::Value) -> (ApiKey, NewInstance) {
    let key = ApiKey::random().unwrap();
    let serde_json::Value::Object(extra) = extra else {
        panic!("{extra}");
    };
    let new = NewInstance {
        owner: ME.into(),
        name: name.to_owned(),
        enabled: true,
        key: key.record(None),
        extra,
    };
    (key, new)
}

/// The tools bound to an entry and whether each is enabled, in order.
async fn bound(store: &Store, entry: EntryId) -> Vec<(ToolId, bool)> {
    let bound = store.bindings(&ALL, entry).await.unwrap().unwrap();
    let pairs = bound.iter().map(|one| {
        assert_eq!(one.binding.tool, one.tool.id);
        (one.tool.id, one.binding.enabled)
    });
    pairs.collect()
}

async fn granted(store: &Store, key: &ApiKey) -> Option<Arc<Grant>> {
    match store.grant(&key.digest()) {
        GrantLookup::Yes(grant) => Some(grant),
        GrantLookup::No => None,
        GrantLookup::Ask => store.ask(&key.digest()).await.unwrap(),
    }
}

/// The tool names that a key shows; `None` if it opens nothing.
async fn visible(store: &Store, key: &ApiKey) -> Option<Vec<String>> {
    let grant = granted(store, key).await?;
    Some(grant.tools.iter().map(|tool| tool.name.clone()).collect())
}

/// The numbers of tools, entries and old records.
async fn counts(store: &Store) -> (u64, u64, u64) {
    (
        store.tools(&ALL, EVERY).await.unwrap().total,
        store.entries(&ALL, EVERY).await.unwrap().total,
        store.instances(&ALL, EVERY).await.unwrap().total,
    )
}
