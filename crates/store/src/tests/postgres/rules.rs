//! Rules that the owner of the database made (SPEC F5).

use super::*;

/// Each with what an answer says of it, and whether another record is in the
/// way.
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
        // It does not take the tables for another's because of it.
        drop(store);
        open(cluster, &database).await;
    }
}
