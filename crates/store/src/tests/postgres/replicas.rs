//! Tests of several processes on one database.

use super::*;

/// Waits for the notification of a change of this entry. A reload of everything
/// does not count as its notification.
async fn announced(changes: &mut tokio::sync::broadcast::Receiver<StoreChange>, entry: EntryId) {
    let heard = async {
        loop {
            match changes.recv().await.unwrap() {
                StoreChange::Entry(id) if id == entry => return,
                StoreChange::Everything => panic!("everything was read anew"),
                _ => {}
            }
        }
    };
    let heard = tokio::time::timeout(Duration::from_secs(60), heard).await;
    heard.expect("the change is announced");
}

/// A notification takes less than a second; the test checks the notification,
/// since the time depends on the machine.
#[tokio::test(flavor = "multi_thread")]
async fn f7_replicas_follow_each_other_by_notices() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let (one, two) = (
        open(cluster, &database).await,
        open(cluster, &database).await,
    );
    let mut changes = two.changes();
    let read = tool(&one, "read").await;
    for _ in 0..rounds(5, 50) {
        let (key, desk) = entry(&one, &[read]).await;
        eventually("the entry", async || two.grant_of(desk).is_some()).await;
        announced(&mut changes, desk).await;
        let grant = granted(&two, &key).await.unwrap().unwrap();
        assert!(grant.tool("read").is_some());

        one.unbind(&ALL, desk, read).await.unwrap();
        eventually("the tool is gone", async || {
            two.grant_of(desk)
                .is_some_and(|grant| grant.tools.is_empty())
        })
        .await;
        announced(&mut changes, desk).await;
        assert!(
            grant.calls.is_closed(),
            "what was handed out is out of force"
        );

        one.update_entry(&ALL, desk, switch(false)).await.unwrap();
        eventually("it is closed", async || {
            matches!(two.grant(&key), GrantLookup::No)
        })
        .await;
        announced(&mut changes, desk).await;
        assert_eq!(two.trouble(), None, "memory was in step all the time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_servers_of_others_are_announced_and_own_ones_are_not() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let (one, two) = (
        open(cluster, &database).await,
        open(cluster, &database).await,
    );
    let (mut own, mut others) = (one.changes(), two.changes());
    let record = ServerRecord::new(config::ServerName::parse("files").unwrap());
    one.put_server(&record).await.unwrap();
    let define = |found: Option<&str>, new: Option<&str>| DefinitionChange {
        name: "files".into(),
        found: found.map(Into::into),
        new: new.map(Into::into),
    };
    let first = r#"{"command": "npx",  "args": ["b", "a"]}"#;
    assert!(one.define(&[define(None, Some(first))]).await.unwrap());
    assert!(!two.define(&[define(None, Some("{}"))]).await.unwrap());
    let heard = async { while others.recv().await.unwrap() != StoreChange::Servers {} };
    tokio::time::timeout(Duration::from_secs(10), heard)
        .await
        .unwrap();
    let definitions = two.definitions().await.unwrap().unwrap();
    assert_eq!(definitions["files"], first, "to the letter");
    assert_eq!(two.servers().await.unwrap(), [record]);
    assert!(two.define(&[define(Some(first), None)]).await.unwrap());
    // The first one received is the other process's.
    let heard = tokio::time::timeout(Duration::from_secs(10), own.recv());
    assert_eq!(heard.await.unwrap().unwrap(), StoreChange::Servers);
    assert!(own.try_recv().is_err(), "own changes are no news");
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_a_lost_listener_is_found_and_remade() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    let (key, desk) = entry(&store, &[]).await;
    for _ in 0..3 {
        let end = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where datname = '{database}' and pid <> pg_backend_pid()"
        );
        cluster.sql("postgres", &end);
        // Changed outside of Portway, perhaps while no listener is connected.
        cluster.sql(&database, "update public.mcp_v2 set status = false");
        eventually("it is closed", async || {
            matches!(granted(&store, &key).await, Ok(None))
        })
        .await;
        eventually("all is well", async || store.trouble().is_none()).await;
        eventually("it is open", async || {
            store.update_entry(&ALL, desk, switch(true)).await.is_ok()
        })
        .await;
        assert!(matches!(store.grant(&key), GrantLookup::Yes(_)));
    }
}
