//! Tools, entries, bindings, keys and the old records, over REST. Each story
//! is told once and runs on every store: the answers may not differ (SPEC F2).

mod adopt;
mod alike;
mod bodies;
mod bound;
mod entries;
mod keys;
mod migrate;
mod old;
mod once;
mod tools;

use serde_json::{Value, json};

use crate::app::{App, HttpAnswer, PATIENCE, Setup, TOKEN, setup};
use crate::cluster::{self, Cluster};

/// Where records are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Json,
    Supabase,
}

impl Storage {
    pub(crate) fn setup(self) -> Setup {
        match self {
            Storage::Json => setup(),
            Storage::Supabase => on_database(setup(), cluster::shared()),
        }
    }

    pub(crate) async fn start(self) -> App {
        self.setup().start().await
    }
}

/// With a new database in place of a file.
pub(crate) fn on_database(setup: Setup, cluster: &Cluster) -> Setup {
    let url = cluster.url(&cluster.database());
    setup
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", &url)
}

/// The stories of a file, once for each store.
macro_rules! on_each_store {
    ($($story:ident),+ $(,)?) => {
        mod json {
            $(
                #[tokio::test]
                async fn $story() {
                    super::$story(crate::e_records::Storage::Json).await;
                }
            )+
        }

        mod supabase {
            $(
                #[tokio::test]
                async fn $story() {
                    super::$story(crate::e_records::Storage::Supabase).await;
                }
            )+
        }
    };
}
pub(crate) use on_each_store;

pub(crate) const TOOLS: &str = "/api/v1/tools";
pub(crate) const ENTRIES: &str = "/api/v1/mcp_v2";
pub(crate) const BOUND: &str = "/api/v1/mcp_v2/with_bindings";
pub(crate) const OLD: &str = "/api/v1/mcp/";

impl App {
    pub(crate) async fn put(&self, path: &str, body: Value) -> HttpAnswer {
        self.send("PUT", path, Some(body.to_string())).await
    }

    pub(crate) async fn patched(&self, path: &str, body: Value) -> HttpAnswer {
        self.send("PATCH", path, Some(body.to_string())).await
    }

    pub(crate) async fn deleted(&self, path: &str) -> HttpAnswer {
        self.send("DELETE", path, None).await
    }

    /// A create that may be sent twice.
    pub(crate) async fn post_once(&self, path: &str, key: &str, body: &str) -> HttpAnswer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key)];
        self.request("POST", path, Some(body.to_owned()), &headers)
            .await
    }

    /// The id of a new tool record; it stands for one of the fixture's.
    pub(crate) async fn new_tool(&self, name: &str) -> i64 {
        let body =
            json!({"name": name, "server": "fixture", "tool": "echo", "allow_missing": true});
        number(&self.post(TOOLS, body).await.expect(201)["id"])
    }

    /// The answer to a create of an entry with these tools.
    pub(crate) async fn new_entry(&self, name: &str, tools: &[i64]) -> Value {
        let bindings: Vec<Value> = tools.iter().map(|id| json!({"tool_id": id})).collect();
        let body = json!({"name": name, "bindings": bindings});
        self.post(BOUND, body).await.expect(201)
    }

    /// What is at `path`; asked for again while a database on a busy machine
    /// takes no further connection.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let read = async {
            loop {
                let answer = self.get(path).await;
                if answer.status != 503 {
                    return answer.expect(200);
                }
            }
        };
        let read = tokio::time::timeout(PATIENCE, read).await;
        read.expect("the database answers")
    }

    pub(crate) async fn total(&self, path: &str) -> i64 {
        number(&self.read(path).await["total"])
    }
}

#[track_caller]
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// One member of each item of a list.
#[track_caller]
pub(crate) fn each(list: &Value, member: &str) -> Vec<Value> {
    let items = list["items"].as_array();
    let items = items.unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item[member].clone()).collect()
}

#[track_caller]
pub(crate) fn refused(answer: HttpAnswer, status: u16, code: &str) -> Value {
    let body = answer.expect(status);
    assert_eq!(body["error"]["code"], code, "{body}");
    body["error"].clone()
}

/// The fields that a `VALIDATION_ERROR` names.
#[track_caller]
pub(crate) fn wrong_fields(answer: HttpAnswer) -> Vec<String> {
    let error = refused(answer, 422, "VALIDATION_ERROR");
    let details = error["details"].as_array();
    let details = details.unwrap_or_else(|| panic!("{error}"));
    let field = |problem: &Value| text(&problem["field"]).to_owned();
    details.iter().map(field).collect()
}
