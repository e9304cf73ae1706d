//! Tests of a database that stops, hangs, or loses a process in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn f7_a_restart_costs_writes_for_a_moment_and_calls_nothing() {
    let mut cluster = tokio::task::spawn_blocking(Cluster::start).await.unwrap();
    let database = cluster.database();
    let store = Arc::new(open(&cluster, &database).await);
    let (key, _) = entry(&store, &[tool(&store, "read").await]).await;
    has_heard(&store, &cluster, &database).await;
    let (good, bad) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = tokio::spawn({
        let (store, good, bad) = (store.clone(), good.clone(), bad.clone());
        async move {
            let mut every = tokio::time::interval(Duration::from_millis(5));
            loop {
                every.tick().await;
                let (store, good, bad) = (store.clone(), good.clone(), bad.clone());
                tokio::spawn(async move {
                    let answer = granted(&store, &key).await;
                    let open = matches!(answer, Ok(Some(_)));
                    if !open {
                        println!("not open: {answer:?}");
                    }
                    let count = if open { good } else { bad };
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
        }
    });
    let mut refused = 0;
    for _ in 0..rounds(4, 20) {
        cluster.restart();
        let restarting = tokio::task::spawn_blocking(move || {
            cluster.restarted();
            cluster
        });
        while !restarting.is_finished() {
            let written = store.create_entry(new_entry(&[]).1, None).await;
            if let Err(error) = written {
                assert!(
                    matches!(error.kind, StoreErrorKind::Unavailable(_)),
                    "{error}"
                );
                refused += 1;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cluster = restarting.await.unwrap();
        eventually("writes work", async || {
            store.create_entry(new_entry(&[]).1, None).await.is_ok()
        })
        .await;
        eventually("all is well", async || store.trouble().is_none()).await;
    }
    eventually("many calls", async || good.load(Ordering::Relaxed) > 400).await;
    calls.abort();
    let (good, bad) = (good.load(Ordering::Relaxed), bad.load(Ordering::Relaxed));
    println!("{good} calls, {bad} failed; {refused} writes refused");
    assert_eq!(bad, 0, "{good} good");
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_a_database_that_hangs_refuses_writes_and_serves_calls() {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.unwrap();
    let database = cluster.database();
    let store = Arc::new(open(&cluster, &database).await);
    let (key, desk) = entry(&store, &[]).await;
    has_heard(&store, &cluster, &database).await;
    cluster.freeze(true);
    let tasks = |runtime: tokio::runtime::Handle| runtime.metrics().num_alive_tasks();
    let before = tasks(tokio::runtime::Handle::current());
    let mut known = 0;
    // The database hangs until the writes return: they do not wait for it.
    while known < 3 {
        known += usize::from(
            store
                .trouble()
                .is_some_and(|it| it.contains("has not answered")),
        );
        let mut writes = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let store = store.clone();
            writes.spawn(async move { store.update_entry(&ALL, desk, switch(true)).await });
        }
        while let Some(written) = writes.join_next().await {
            let kind = written.unwrap().unwrap_err().kind;
            assert!(matches!(kind, StoreErrorKind::Unavailable(_)), "{kind:?}");
        }
        assert!(granted(&store, &key).await.unwrap().is_some());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let after = tasks(tokio::runtime::Handle::current());
    let unknown = granted(&store, &KeyDigest::of("unknown")).await;
    assert!(unknown.is_err(), "nobody knows");
    cluster.freeze(false);
    eventually("writes work", async || {
        store.update_entry(&ALL, desk, switch(false)).await.is_ok()
    })
    .await;
    assert!(after < before + 40, "{before} tasks became {after}");
    assert!(granted(&store, &key).await.unwrap().is_none());
}

/// A process that dies in the middle: the database rolls its transaction back.
#[tokio::test(flavor = "multi_thread")]
async fn e4_killed_at_any_binding_nothing_is_kept() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = Arc::new(open(cluster, &database).await);
    let mut tools = Vec::new();
    for k in 0..5 {
        tools.push(tool(&store, &format!("t{k}")).await);
    }
    // It stops at the k-th binding, until its connection is terminated.
    cluster.sql(
        &database,
        "create table public.stop_at (tool bigint); \
         create function public.stop() returns trigger language plpgsql as $$ begin \
         if exists (select 1 from public.stop_at where tool = new.tool_id) \
         then perform pg_sleep(10); end if; return new; end $$; \
         create trigger stop before insert on public.mcp_binding \
         for each row execute function public.stop()",
    );
    let rows = "select (select count(*) from mcp_v2) || ' ' || (select count(*) from mcp_binding) \
                || ' ' || (select count(*) from mcp_idempotency)";
    for stop in tools.iter().cycle().take(rounds(5, 200)) {
        let at = format!("truncate stop_at; insert into stop_at values ({stop})");
        cluster.sql(&database, &at);
        let (_, new) = new_entry(&tools);
        let once = Idempotency {
            key: [7; 32],
            body: [8; 32],
        };
        let creating = tokio::spawn({
            let store = store.clone();
            async move { store.create_entry(new, Some(once)).await }
        });
        let sleeping = "select pg_terminate_backend(pid) from pg_stat_activity \
             where datname = current_database() and wait_event = 'PgSleep'";
        eventually("it is in the middle", async || {
            cluster.sql(&database, sleeping) == "t"
        })
        .await;
        let error = creating.await.unwrap().unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::Unavailable(_)),
            "{error}"
        );
        assert_eq!(cluster.sql(&database, rows), "0 0 0", "stopped at {stop}");
        eventually("all is well", async || store.trouble().is_none()).await;
    }
    cluster.sql(&database, "truncate stop_at");
    let (key, _) = entry(&store, &tools).await;
    assert_eq!(granted(&store, &key).await.unwrap().unwrap().tools.len(), 5);
    assert_eq!(cluster.sql(&database, rows), "1 5 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_statements_from_before_a_change_of_the_tables_are_made_anew() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    let read = tool(&store, "read").await;
    // New connections may take too long on a busy machine; an error of an old
    // statement is another matter.
    let works = |error: Option<StoreError>| match error {
        None => true,
        Some(error) => {
            assert!(!error.to_string().contains("SQLSTATE"), "{error}");
            false
        }
    };
    // Several at once, so that several connections prepare the statements.
    let look = async || {
        let each = (0..4).map(|_| store.tool(&ALL, read));
        let all = futures_util::future::join_all(each).await;
        all.into_iter().all(|found| works(found.err()))
    };
    for kind in ["varchar(20)", "text", "varchar(30)"] {
        eventually("the statements are known", look).await;
        let alter = format!("alter table public.tool alter description type {kind}");
        cluster.sql(&database, &alter);
        eventually("a read works", look).await;
        let change = ToolChange {
            description: Some(Some(kind.into())),
            ..ToolChange::default()
        };
        eventually("a write works", async || {
            let changed = store.update_tool(&ALL, read, change.clone()).await;
            works(changed.err())
        })
        .await;
    }
}
