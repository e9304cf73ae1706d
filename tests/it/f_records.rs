//! The repositories as REST shows them: lists by owner and page, what is not
//! there, and rules of the database that are not Portway's.

use serde_json::json;

use crate::app::{fixtures, setup};
use crate::cluster::{self, Cluster};
use crate::e_records::{ENTRIES, OLD, Storage, TOOLS, each, on_each_store, refused};

on_each_store!(f4_lists_go_by_owner_and_page_and_what_is_missing_is_404);

async fn f4_lists_go_by_owner_and_page_and_what_is_missing_is_404(storage: Storage) {
    let app = storage.start().await;
    for (name, owner) in [("a", 7), ("b", 7), ("c", 8), ("d", 7)] {
        let body = json!({"name": name, "user_id": owner});
        app.post(OLD, body).await.expect(201);
    }
    assert_eq!(app.total(&format!("{OLD}?user_id=7")).await, 3);
    let page = format!("{OLD}?user_id=7&skip=1&limit=1");
    let page = app.get(&page).await.expect(200);
    assert_eq!(
        (each(&page, "name"), &page["total"]),
        (vec![json!("b")], &json!(3))
    );
    for path in [TOOLS, ENTRIES] {
        let missing = format!("{path}/999999");
        refused(
            app.patched(&missing, json!({"name": "x"})).await,
            404,
            "NOT_FOUND",
        );
        refused(app.deleted(&missing).await, 404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn f5_a_rule_of_the_databases_owner_is_named() {
    let cluster: &Cluster = cluster::shared();
    let database = cluster.database();
    let app = setup()
        .mcp(fixtures(&[("x", &[])]))
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", &cluster.url(&database))
        .start()
        .await;
    app.until_status("x", "connected").await;
    cluster.sql(
        &database,
        "alter table tool add constraint no_secrets check (name <> 'secret')",
    );
    let tool = |name: &str| json!({"name": name, "server": "x", "tool": "echo"});
    let answer = app.post(TOOLS, tool("secret")).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert!(answer.text.contains("no_secrets"), "{}", answer.text);
    assert!(!answer.text.contains("insert"), "{}", answer.text);
    app.post(TOOLS, tool("open")).await.expect(201);
}
