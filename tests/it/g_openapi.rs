//! SPEC G5: the document says what is there, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::app::{App, fixtures, setup};

/// Files for a browser.
const PAGES: [&str; 3] = ["/", "/favicon.ico", "/assets/{*path}"];

fn read(dir: &Path, text: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The paths given to the router, read from the sources: it does not list
/// them itself.
fn routed() -> BTreeSet<String> {
    let mut text = String::new();
    read(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http"),
        &mut text,
    );
    let constants: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once("const ")?.1.split_once(": &str = \""))
        .map(|(name, rest)| (name, rest.split('"').next().unwrap()))
        .collect();
    let mut paths = BTreeSet::new();
    for route in text.split(".route(").skip(1) {
        let first = route.trim_start();
        let path = if let Some(literal) = first.strip_prefix('"') {
            literal.split('"').next().unwrap().to_owned()
        } else if let Some(made) = first.strip_prefix("&format!(\"{") {
            let (name, rest) = made.split_once('}').unwrap();
            format!("{}{}", constants[name], rest.split('"').next().unwrap())
        } else {
            let name = first.split(',').next().unwrap();
            // Something else is called so: it does not take a path.
            let Some(path) = constants.get(name) else {
                continue;
            };
            (*path).to_owned()
        };
        paths.insert(path);
    }
    paths.retain(|path| !PAGES.contains(&path.as_str()));
    paths
}

/// The methods a path has, as the router says to one that no path has.
async fn allowed(app: &App, path: &str, key: &str) -> BTreeSet<String> {
    let path = path.replace("{server}", "none").replace("{id}", "0");
    let path = path.replace("{api_key}", key).replace("{tool_id}", "0");
    let answer = app.send("OPTIONS", &path, None).await;
    assert_eq!(answer.status, 405, "{path}: {}", answer.text);
    let allow = answer.headers["allow"].to_str().unwrap().to_lowercase();
    let methods = allow.split(',').map(|method| method.trim().to_owned());
    methods.filter(|method| method != "head").collect()
}

#[tokio::test]
async fn g5_the_document_has_every_route_and_method_and_no_other() {
    let app = setup().start().await;
    let document = app.get("/api/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<String> = paths.keys().cloned().collect();
    assert_eq!(documented, routed());
    // Without a key that opens something nothing behind it is seen.
    let entry = app.post("/api/v1/mcp_v2", json!({"name": "e"})).await;
    let entry = entry.expect(201);
    let key = entry["api_key"].as_str().unwrap();
    let mut faults = Vec::new();
    for (path, item) in paths {
        let fields = item.as_object().unwrap().keys();
        let told: BTreeSet<String> = fields
            .filter(|field| *field != "parameters")
            .cloned()
            .collect();
        let there = allowed(&app, path, key).await;
        if told != there {
            faults.push(format!("{path}: told {told:?}, there {there:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[track_caller]
fn fits(document: &Value, name: &str, value: &Value) {
    let schema = &document["components"]["schemas"][name];
    let properties = schema["properties"].as_object().unwrap();
    for (field, _) in value.as_object().unwrap() {
        assert!(
            properties.contains_key(field),
            "{name} has {field}: {value:#}"
        );
    }
    for field in schema["required"].as_array().unwrap() {
        assert!(
            value.get(field.as_str().unwrap()).is_some(),
            "{name} lacks {field}: {value:#}"
        );
    }
}

#[tokio::test]
async fn g5_answers_have_the_fields_that_the_document_names() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let document = app.get("/api/openapi.json").await.expect(200);
    fits(&document, "Server", &app.server("one").await);
    fits(&document, "Health", &app.get("/healthz").await.expect(200));
    let activity = app.get("/api/mcp/activity").await.expect(200);
    fits(&document, "Activity", &activity);
    fits(&document, "Second", &activity["perSecond"][0]);
    let history = app.get("/api/mcp/servers/one/history").await.expect(200);
    fits(&document, "Moment", &history[0]);
    let process = app.get("/api/mcp/servers/one/process").await.expect(200);
    fits(&document, "Processes", &process);
    for one in process["processes"].as_array().unwrap() {
        fits(&document, "Process", one);
    }
}
