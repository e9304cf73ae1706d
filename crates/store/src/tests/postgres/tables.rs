//! Tests of the tables, whatever created them, and of their constraints.

use super::*;

fn migrations() -> Vec<std::path::PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../supabase/migrations");
    let files = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_migrations_do_no_harm_twice_nor_at_once() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let opened = tokio::join!(
        open(cluster, &database),
        open(cluster, &database),
        open(cluster, &database)
    );
    let (key, _) = entry(&opened.0, &[]).await;
    drop(opened);
    // As the Supabase CLI applies them, which keeps its own ledger.
    for file in migrations() {
        cluster.file(&database, &file);
    }
    let again = open(cluster, &database).await;
    assert!(granted(&again, &key).await.unwrap().is_some());
    assert_eq!(again.trouble(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_tables_made_by_others_are_taken_as_they_are() {
    let cluster = cluster::shared();
    let database = cluster.database();
    for file in migrations() {
        cluster.file(&database, &file);
    }
    let store = open(cluster, &database).await;
    entry(&store, &[tool(&store, "read").await]).await;
    drop(store);

    // Portway must not change a foreign table that has one of the names.
    let foreign = cluster.database();
    cluster.sql(&foreign, "create table public.tool (id int)");
    let error = refused(&cluster.url(&foreign)).await;
    assert_eq!(error.operation, "open the database");
    cluster.sql(&foreign, "select id from public.tool");
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_whoever_comes_through_the_data_api_sees_and_changes_nothing() {
    let cluster = cluster::shared();
    let database = cluster.database();
    for role in ["anon", "authenticated"] {
        // Roles belong to the whole cluster, and other tests may run.
        cluster.run(&format!("create role {role} nologin"), &database);
    }
    cluster.sql(
        &database,
        "alter default privileges in schema public grant all on tables to anon",
    );
    let store = open(cluster, &database).await;
    entry(&store, &[tool(&store, "read").await]).await;
    let tables = [
        "mcp",
        "mcp_v2",
        "tool",
        "mcp_binding",
        "mcp_server",
        "mcp_server_definition",
        "mcp_idempotency",
    ];
    for table in tables {
        let secure =
            format!("select relrowsecurity from pg_class where oid = 'public.{table}'::regclass");
        assert_eq!(cluster.sql(&database, &secure), "t", "{table}");
        let look = format!("set role anon; select * from public.{table}");
        let output = cluster.run(&look, &database);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("permission denied"), "{table}: {told}");
        // Even where an administrator has granted it since.
        cluster.sql(&database, &format!("grant all on public.{table} to anon"));
        assert_eq!(cluster.sql(&database, &look), "", "{table}");
    }
    let write = "set role anon; insert into public.tool (user_id, name, server, tool) \
                 values ('me', 'x', 'y', 'z')";
    assert!(!cluster.run(write, &database).status.success());
    let schema = "set role anon; select * from portway.migrations";
    assert!(!cluster.run(schema, &database).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn e5_the_database_itself_forbids_what_must_not_be() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    let (read, write) = (tool(&store, "read").await, tool(&store, "write").await);
    let (_, desk) = entry(&store, &[read]).await;
    let other = "insert into public.tool (user_id, name, server, tool) \
                 values ('other', 'theirs', 's', 't') returning id";
    let theirs = cluster.sql(&database, other);
    let bind = |tool: &str, user: &str, name: &str| {
        format!(
            "insert into public.mcp_binding (mcp_id, tool_id, user_id, tool_name) \
             values ({desk}, {tool}, '{user}', '{name}')"
        )
    };
    let digest = "update public.mcp_v2 set key_digest = 'plain key'".to_owned();
    let twin = format!("update public.tool set name = 'read' where id = {write}");
    cluster.sql(&database, &bind(&write.to_string(), "me", "write"));
    for bad in [
        bind(&theirs, "me", "theirs"),
        bind(&theirs, "other", "theirs"),
        bind("12345", "me", "theirs"),
        bind(&write.to_string(), "me", "write"),
        digest,
        twin,
        "update public.mcp_v2 set name = ''".to_owned(),
        "update public.tool set user_id = 'other'".to_owned(),
    ] {
        let output = cluster.run(&bad, &database);
        assert!(!output.status.success(), "{bad}");
    }
    // Changes made outside of Portway are followed too.
    let renamed = format!("update public.tool set name = 'look' where id = {read}");
    cluster.sql(&database, &renamed);
    eventually("the new name", async || {
        let grant = store.grant_of(desk).unwrap();
        grant.tool("look").is_some() && grant.tool("write").is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f5_a_start_that_fails_says_why_and_no_secret() {
    let cluster = cluster::shared();
    let (here, port) = ("127.0.0.1", cluster.port);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free.local_addr().unwrap().port();
    drop(free);
    for (url, words) in [
        (
            format!("postgres://postgres:hunter2@{here}:{port}/postgres"),
            "credentials",
        ),
        (cluster.url("nowhere"), "no such database"),
        (
            format!("postgres://u:hunter2@{here}:{closed}/x"),
            "refuses connections",
        ),
        (format!("postgres://u:hunter2@{here}:6543/x"), "port 5432"),
    ] {
        let error = refused(&url).await;
        let told = format!("{error} {error:?}");
        assert!(told.contains(words), "{told}");
        assert!(
            !told.contains("hunter2") && !told.contains("s3cret"),
            "{told}"
        );
        assert!(!told.contains("postgres://"), "{told}");
    }
}

/// Uses `pgbouncer`, which pools as Supabase does on its port 6543.
#[tokio::test(flavor = "multi_thread")]
async fn f7_a_pooler_by_transaction_is_refused() {
    if !std::path::Path::new("/usr/sbin/pgbouncer").exists() {
        panic!("this test needs pgbouncer: run tests/tools/install.sh");
    }
    let cluster = cluster::shared();
    let database = cluster.database();
    for (mode, works) in [("transaction", false), ("session", true)] {
        let pooler = cluster.pooler(mode);
        let url = cluster.url(&database).replace(
            &format!(":{}/", cluster.port),
            &format!(":{}/", pooler.port),
        );
        let opened = Store::open_database(&Secret::new(url), &DatabaseSchema::default()).await;
        match opened {
            Ok(store) => {
                assert!(works, "{mode}");
                let (key, _) = entry(&store, &[]).await;
                assert!(granted(&store, &key).await.unwrap().is_some());
            }
            Err(error) => {
                assert!(!works, "{mode}: {error}");
                assert!(
                    error.to_string().contains("session pooler (port 5432)"),
                    "{error}"
                );
            }
        }
    }
}
