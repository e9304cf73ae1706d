//! What clients hear of resources they follow.

use serde_json::{Value, json};

use crate::mcp_front::{FrontResponse, LegacyClient, X, legacy, modern};
use crate::traps::{TrapGateway, rig};

/// Has the server tell of changes.
async fn tell(rig: &TrapGateway, updates: &[Value]) {
    let steps: Vec<Value> = updates
        .iter()
        .map(|params| {
            let method = "notifications/resources/updated";
            json!({"send": {"jsonrpc": "2.0", "method": method, "params": params}})
        })
        .collect();
    let client = legacy(&rig.app, X, "2025-11-25", json!({})).await;
    let talk = client
        .tool(1, "script", json!({ "steps": steps }))
        .send()
        .await;
    assert!(talk.answer().await["result"].is_object());
}

async fn listening(rig: &TrapGateway, path: &str, uri: &str) -> FrontResponse {
    let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let mut talk = modern(&rig.app, path, "subscriptions/listen", wanted)
        .send()
        .await;
    let (_, told) = talk.message().await.expect("an acknowledgement");
    assert_eq!(
        told["params"]["notifications"]["resourceSubscriptions"],
        json!([uri])
    );
    talk
}

async fn subscribed<'a>(rig: &'a TrapGateway, uri: &str) -> (LegacyClient<'a>, FrontResponse) {
    let client = legacy(&rig.app, X, "2025-11-25", json!({})).await;
    let stream = client.listen().send().await;
    let agreed = client
        .request(2, "resources/subscribe", json!({ "uri": uri }))
        .send()
        .await;
    assert_eq!(agreed.answer().await["result"], json!({}));
    (client, stream)
}

async fn next(talk: &mut FrontResponse) -> Value {
    talk.message().await.expect("news").1["params"].take()
}

/// One server tells all of what any of them follows: who follows `…/1` has
/// nothing to do with `…/10`.
#[tokio::test]
async fn i2_who_follows_one_resource_hears_of_no_other_that_is_spelled_alike() {
    let rig = rig(false, &["--era", "legacy"]).await;
    let (_client, mut stream) = subscribed(&rig, "fixture://item/1").await;
    let mut listen = listening(&rig, X, "fixture://item/1").await;
    let of = |uri: &str| json!({ "uri": uri });
    let uris = [
        "fixture://item/10",
        "fixture://item/1/part",
        "fixture://item/1",
    ];
    tell(&rig, &uris.map(of)).await;
    for uri in &uris[1..] {
        assert_eq!(next(&mut stream).await["uri"], *uri);
        assert_eq!(next(&mut listen).await["uri"], *uri);
    }
}

#[tokio::test]
async fn i2_all_that_a_server_says_of_a_change_arrives() {
    for era in ["legacy", "modern"] {
        let rig = rig(false, &["--era", era]).await;
        let uri = "fixture://watched";
        let (_client, mut stream) = subscribed(&rig, uri).await;
        let mut listen = listening(&rig, X, uri).await;
        let mut shared = listening(&rig, "/mcp", "portway://x/fixture://watched").await;
        let mut said = json!({"uri": uri, "version": 1.50, "_meta": {"example.org/by": "me"}});
        tell(&rig, &[said.clone()]).await;
        assert_eq!(next(&mut stream).await, said, "{era}");
        said["_meta"]["io.modelcontextprotocol/subscriptionId"] = json!(1);
        assert_eq!(next(&mut listen).await, said, "{era}");
        said["uri"] = json!("portway://x/fixture://watched");
        assert_eq!(next(&mut shared).await, said, "{era}");
    }
}
