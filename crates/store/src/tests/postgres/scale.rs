//! Tests with many entries.

use super::*;

/// Creates tools, entries and bindings by SQL.
fn fill(cluster: &Cluster, database: &str, entries: usize) {
    cluster.sql(
        database,
        &format!(
            "insert into public.tool (user_id, name, server, tool) \
             select 'me', 't' || n, 'files', 't' || n from generate_series(1, 200) n; \
             insert into public.mcp_v2 (user_id, name, key_digest) \
             select 'me', 'e' || n, sha256(n::text::bytea) from generate_series(1, {entries}) n; \
             insert into public.mcp_binding (mcp_id, tool_id, user_id, tool_name) \
             select e.id, t.id, 'me', t.name from public.mcp_v2 e \
             join public.tool t on (t.id + e.id) % 10 = 0; \
             analyze"
        ),
    );
}

async fn filled(cluster: &Cluster, entries: usize) -> Store {
    let database = cluster.database();
    drop(open(cluster, &database).await);
    fill(cluster, &database, entries);
    open(cluster, &database).await
}

async fn create(store: &Store, tools: &[ToolId]) -> Duration {
    let (_, new) = new_entry(tools);
    let start = Instant::now();
    store.create_entry(new, None).await.unwrap();
    start.elapsed()
}

/// Measures both in turns, so that a slow machine slows both down.
#[tokio::test(flavor = "multi_thread")]
async fn f7_a_create_among_many_entries_costs_what_it_costs_among_few() {
    let cluster = cluster::shared();
    let (few, many) = (10, rounds(1_000, 10_000));
    let stores = [filled(cluster, few).await, filled(cluster, many).await];
    let page = Page { skip: 0, limit: 20 };
    let tools = stores[0].tools(&ALL, page).await.unwrap().items;
    let tools: Vec<ToolId> = tools.iter().map(|tool| tool.id).collect();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds(50, 500) {
        for (store, times) in stores.iter().zip(&mut times) {
            times.push(create(store, &tools).await);
        }
    }
    let [among_few, among_many] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    println!("create: {among_few:?} among {few} entries, {among_many:?} among {many} (median)");
    assert!(
        among_many < among_few * 5,
        "{among_few:?} became {among_many:?}"
    );
}
