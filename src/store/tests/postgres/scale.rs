//! Many entries.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn f7_a_create_among_many_entries_costs_what_it_costs_among_few() {
    let cluster = cluster::shared();
    let database = cluster.database();
    let store = open(cluster, &database).await;
    cluster.sql(
        &database,
        "insert into public.tool (user_id, name, server, tool) \
         select 'me', 't' || n, 'files', 't' || n from generate_series(1, 200) n",
    );
    let among_few = median_create(&store).await;
    let entries = rounds(1_000, 10_000);
    cluster.sql(
        &database,
        &format!(
            "insert into public.mcp_v2 (user_id, name, key_digest) \
             select 'me', 'e' || n, sha256(n::text::bytea) from generate_series(1, {entries}) n; \
             insert into public.mcp_binding (mcp_id, tool_id, user_id, tool_name) \
             select e.id, t.id, 'me', t.name from public.mcp_v2 e \
             join public.tool t on (t.id + e.id) % 10 = 0 where e.key_digest = sha256(substr(e.name, 2)::bytea); \
             analyze"
        ),
    );
    drop(store);
    let start = Instant::now();
    let store = open(cluster, &database).await;
    let opened = start.elapsed();
    let among_many = median_create(&store).await;
    println!(
        "{entries} entries × 20: open {opened:?}, create {among_many:?}; among few {among_few:?}"
    );
    assert!(among_many < among_few * 5, "{among_few:?}, {among_many:?}");
}

/// The median time of creating an entry with twenty bindings.
async fn median_create(store: &PostgresStore) -> Duration {
    let page = Page { skip: 0, limit: 20 };
    let tools = store.tools(&ALL, page).await.unwrap().items;
    let tools: Vec<ToolId> = tools.iter().map(|tool| tool.id).collect();
    let mut times = Vec::new();
    for _ in 0..rounds(50, 500) {
        let (_, new) = new_entry(&tools);
        let start = Instant::now();
        store.create_entry(new, None).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}
