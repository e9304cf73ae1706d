//! Tests of rules that the owner of the database made (SPEC F5).

use super::*;

/// Each with the error that it gives, and whether another record causes it.
const RULES: &[(&str, &str, bool)] = &[
    (
        "alter table public.mcp_v2 add constraint short_names check (char_length(name) < 4)",
        "the constraint \"short_names\" of the table mcp_v2 does not allow it",
        false,
    ),
    (
        "alter table public.mcp_v2 add column region text not null",
        "the column \"region\" of the table mcp_v2 must have a value",
        false,
    ),
    (
        "create unique index one_desk on public.mcp_v2 (name); \
         insert into public.mcp_v2 (user_id, name, key_digest) values ('x', 'desk', sha256('x'))",
        "the constraint \"one_desk\" of the table mcp_v2 forbids a second record like this",
        true,
    ),
    (
        "create table public.account (name text primary key); \
         alter table public.mcp_v2 add constraint known_account foreign key (user_id) \
         references public.account",
        "the constraint \"known_account\" of the table mcp_v2 does not allow it",
        false,
    ),
    (
        "create function public.no_more() returns trigger language plpgsql as \
         $$ begin raise exception 'select secret: %', new; end $$; \
         create trigger no_more before insert on public.mcp_v2 \
         for each row execute function public.no_more()",
        "the database's function \"no_more\" does not allow it",
        false,
    ),
    (
        "create function public.odd() returns trigger language plpgsql as \
         $$ begin raise exception using errcode = 'PT402', message = 'pay first'; end $$; \
         create trigger odd before insert on public.mcp_v2 \
         for each row execute function public.odd()",
        "the database's function \"odd\" does not allow it",
        false,
    ),
    (
        "create function public.halved() returns trigger language plpgsql as \
         $$ begin perform 1 / 0; return new; end $$; \
         create trigger halved before insert on public.mcp_v2 \
         for each row execute function public.halved()",
        "the database's function \"halved\" does not allow it",
        false,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn f5_a_rule_that_is_not_ours_is_named_and_keeps_nothing() {
    let cluster = cluster::shared();
    for (made, words, clashes) in RULES {
        let database = cluster.database();
        let store = open(cluster, &database).await;
        cluster.sql(&database, made);
        let count = "select count(*) from public.mcp_v2";
        let before = cluster.sql(&database, count);
        let error = store.create_entry(new_entry(&[]).1, None).await;
        let error = error.unwrap_err();
        let told = error.to_string();
        assert_eq!(told, format!("cannot create MCP instance: {words}"));
        let StoreErrorKind::Refused { clash, .. } = error.kind else {
            panic!("{error:?}");
        };
        assert_eq!(clash, *clashes, "{told}");
        assert_eq!(cluster.sql(&database, count), before);
        // Portway still recognizes the tables as its own.
        drop(store);
        open(cluster, &database).await;
    }
}

/// Codes that PostgreSQL uses for its own errors, and that a function may use
/// to refuse a row.
const CODES: &[&str] = &[
    "42501", "57014", "40001", "40P01", "55P03", "25006", "08006", "53100", "57P01", "42P01",
    "0A000", "22001",
];

#[tokio::test(flavor = "multi_thread")]
async fn f5_an_exception_is_a_rule_whatever_its_code_is() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    for code in CODES {
        let raise = format!(
            "create or replace function public.guard() returns trigger language plpgsql as \
             $$ begin raise exception 'secret' using errcode = '{code}'; end $$; \
             create or replace trigger guard before insert on public.mcp_v2 \
             for each row execute function public.guard()"
        );
        cluster.sql(&database, &raise);
        let error = store.create_entry(new_entry(&[]).1, None).await;
        let error = error.unwrap_err();
        let words =
            "cannot create MCP instance: the database's function \"guard\" does not allow it";
        assert_eq!(error.to_string(), words, "{code}");
        let refused = matches!(error.kind, StoreErrorKind::Refused { clash: false, .. });
        assert!(refused, "{code}: {error:?}");
        assert!(store.trouble().is_none(), "{code}");
    }
    // An error in a function of the owner's is not a fault of our tables.
    let misses = "create or replace function public.guard() returns trigger language plpgsql as \
         $$ begin insert into public.nowhere values (1); return new; end $$";
    cluster.sql(&database, misses);
    let error = store.create_entry(new_entry(&[]).1, None).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind, StoreErrorKind::Refused { .. }),
        "{error:?}"
    );
    // A timeout does not mean that the record is refused.
    let waits = "create or replace function public.guard() returns trigger language plpgsql as \
         $$ begin perform pg_sleep(10); return new; end $$";
    cluster.sql(&database, waits);
    let error = store.create_entry(new_entry(&[]).1, None).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind, StoreErrorKind::Unavailable(_)),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn f5_what_a_trigger_leaves_out_is_not_said_to_be_saved() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    let (read, write) = (tool(&store, "read").await, tool(&store, "write").await);
    let (_, desk) = entry(&store, &[read]).await;
    cluster.sql(
        &database,
        "create function public.skip() returns trigger language plpgsql as \
         $$ begin return null; end $$",
    );
    for table in ["mcp_v2", "tool", "mcp_binding", "mcp_server"] {
        let trigger = format!(
            "create trigger skip before insert or update or delete on public.{table} \
             for each row execute function public.skip()"
        );
        cluster.sql(&database, &trigger);
    }
    let bind = |tool, enabled| NewBinding { tool, enabled };
    let renamed = ToolChange {
        name: Some("look".into()),
        ..ToolChange::default()
    };
    let outcomes = [
        store.create_entry(new_entry(&[]).1, None).await.err(),
        store.update_entry(&ALL, desk, switch(false)).await.err(),
        store.delete_entry(&ALL, desk).await.err(),
        store.update_tool(&ALL, read, renamed).await.err(),
        store.delete_tool(&ALL, read).await.err(),
        store.bind(&ALL, desk, &[bind(write, true)]).await.err(),
        store
            .update_binding(&ALL, desk, bind(read, false))
            .await
            .err(),
        store.unbind(&ALL, desk, read).await.err(),
    ];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let error = outcome.unwrap_or_else(|| panic!("{at} is said to be done"));
        let told = error.to_string();
        assert!(told.contains("of the database's owner"), "{at}: {told}");
        let refused = matches!(error.kind, StoreErrorKind::Refused { clash: false, .. });
        assert!(refused, "{at}: {error:?}");
    }
    // A binding that already has the status needs no write.
    store.bind(&ALL, desk, &[bind(read, true)]).await.unwrap();
    let missing = store.unbind(&ALL, desk, write).await;
    assert!(!missing.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn f5_a_generated_column_is_a_rule() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    cluster.sql(
        &database,
        "alter table public.tool drop column description; \
         alter table public.tool add column description text \
         generated always as (upper(name)) stored",
    );
    let new = NewTool {
        owner: "me".into(),
        name: "read".into(),
        description: Some("reads".into()),
        server: "files".into(),
        tool: "read".into(),
    };
    let error = store.create_tool(new, None).await.unwrap_err();
    let refused = matches!(error.kind, StoreErrorKind::Refused { clash: false, .. });
    assert!(refused, "{error:?}");
    assert!(error.to_string().contains("generated"), "{error}");
}
