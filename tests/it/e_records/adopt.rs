//! `portway migrate --from`: records of another application (SPEC E9).

use serde_json::{Value, json};

use super::migrate::portway;
use super::*;
use crate::e_door::users::project::{now, sign_with};

on_each_store!(
    e9_records_of_another_file_become_entries_with_the_same_keys,
    e9_a_foreign_file_in_the_data_directory_is_left_as_it_is,
    e9_what_cannot_be_migrated_from_says_why,
    e8_e9_a_key_that_looks_like_a_users_token_opens_its_entry,
);

fn records() -> Value {
    json!([
        {"id": 7, "api_key": "old-key-of-number-seven", "user_id": 3, "name": "seven",
         "status": 1, "register_tools": ["files:read"], "port": 4001},
        {"id": 8, "api_key": "old-key-of-number-eight", "name": "eight", "status": false},
        {"id": 9, "api_key": "old-key-of-number-seven", "name": "twin", "status": true},
        {"id": 10, "api_key": "old-key-of-number-ten", "name": "ten", "status": "archived"},
        {"id": 11, "api_key": "short", "name": "eleven", "status": true},
    ])
}

/// Every file below a directory.
fn files(directory: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else {
        return all;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

async fn report(setup: &Setup, args: &[&str], code: i32) -> Value {
    let mut all = vec!["migrate", "--json", "--from"];
    all.extend(args);
    let (found, said, complaint) = portway(setup, &all).await;
    assert_eq!(found, code, "{said}{complaint}");
    for output in [&said, &complaint] {
        assert!(!output.contains("old-key"), "{output}");
    }
    serde_json::from_str(&said).unwrap()
}

async fn e9_records_of_another_file_become_entries_with_the_same_keys(storage: Storage) {
    let setup = storage.setup().file("old.json", records().to_string());
    let before = files(setup.path());
    let foreseen = report(&setup, &["old.json", "--dry-run"], 1).await;
    assert_eq!(files(setup.path()), before, "nothing was made");
    assert_eq!(foreseen["dry_run"], true);
    let names = |report: &Value, list: &str| {
        let each = report[list].as_array().unwrap().iter();
        each.map(|one| one["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&foreseen, "migrated"), ["seven", "eight", "eleven"]);
    assert_eq!(foreseen["migrated"][0]["tools"], 1);
    assert_eq!(names(&foreseen, "warnings"), ["eleven"]);
    let done = report(&setup, &["old.json"], 1).await;
    assert_eq!(names(&done, "migrated"), ["seven", "eight", "eleven"]);
    assert_eq!(names(&done, "refused"), ["twin", "ten"]);
    assert_eq!(done["refused"], foreseen["refused"]);
    assert_eq!(
        done["refused"][0]["reason"],
        "its key is that of record 1, too"
    );
    assert_eq!(done["refused"][1]["record"], 4);

    // Again, and nothing more comes of it.
    for args in [&["old.json", "--dry-run"][..], &["old.json"]] {
        let again = report(&setup, args, 1).await;
        assert_eq!(again["migrated"], json!([]));
        assert_eq!(names(&again, "known"), ["seven", "eight", "eleven"]);
        assert_eq!(again["known"][0]["id"], done["migrated"][0]["id"]);
    }
    let (_, said, _) = portway(&setup, &["migrate", "--from", "old.json"]).await;
    assert!(
        said.contains("0 migrated, 3 already there, 2 refused"),
        "{said}"
    );
    assert!(
        said.contains("refused: record 4 (id 10, name \"ten\"): status: "),
        "{said}"
    );
    assert_eq!(
        std::fs::read(setup.path().join("old.json")).unwrap(),
        before[0].1
    );

    let app = setup.start().await;
    assert_eq!(app.total(ENTRIES).await, 3);
    let tools = format!("{OLD}old-key-of-number-seven/tools");
    let tools = app.request("GET", &tools, None, &[]).await.expect(200);
    assert_eq!(each(&tools, "tool"), ["read"]);
    assert_eq!(app.total(&format!("{ENTRIES}?user_id=3")).await, 1);
    let off = format!("{ENTRIES}/{}", done["migrated"][1]["id"]);
    assert_eq!(app.get(&off).await.expect(200)["status"], false);
}

async fn e9_a_foreign_file_in_the_data_directory_is_left_as_it_is(storage: Storage) {
    let name = "data/mcp_instances.json";
    let setup = storage.setup();
    std::fs::create_dir(setup.path().join("data")).unwrap();
    let theirs = records().to_string();
    let app = setup.file(name, &theirs).start().await;
    if storage == Storage::Json {
        let log = app.log();
        assert!(log.contains("was made by another application"), "{log}");
        assert!(log.contains("portway_instances.json"), "{log}");
    }
    app.new_entry("ours", &[]).await;
    let app = app.again().await;
    assert_eq!(app.total(ENTRIES).await, 1);
    let mut app = app;
    app.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(app.ended().await, Some(0));
    let setup = app.setup;
    let done = report(&setup, &[name], 1).await;
    assert_eq!(done["migrated"].as_array().unwrap().len(), 3);
    let found = std::fs::read_to_string(setup.path().join(name)).unwrap();
    assert_eq!(found, theirs);
    let app = setup.start().await;
    assert_eq!(app.total(ENTRIES).await, 4);
}

async fn e9_what_cannot_be_migrated_from_says_why(storage: Storage) {
    let setup = storage.setup();
    let setup = setup
        .file("odd.json", r#"{"servers": {}}"#)
        .file("bad.json", "{");
    for (from, words) in [
        ("gone.json", "there is no file gone.json"),
        ("odd.json", "no records found"),
        ("bad.json", "no JSON"),
        ("a.b.c", "neither a file nor a table"),
        (
            "nowhere.mcp",
            match storage {
                Storage::Json => "a table needs SUPABASE_DB_URL",
                Storage::Supabase => "there is no table nowhere.mcp",
            },
        ),
    ] {
        let (code, said, complaint) = portway(&setup, &["migrate", "--from", from]).await;
        assert_eq!((code, said.as_str()), (1, ""), "{complaint}");
        assert!(complaint.contains(words), "{complaint}");
    }
}

/// An older application's table beside which Portway cannot start in the
/// same schema, and can in another.
#[tokio::test]
async fn e9_records_of_another_table_become_entries_with_the_same_keys() {
    let cluster = cluster::shared();
    let database = cluster.database();
    cluster.sql(
        &database,
        "create table public.mcp (id bigint primary key, api_key text unique, user_id bigint, \
         name text, status boolean, created_at timestamptz default '2024-02-29 10:00:00+00'); \
         insert into public.mcp values (8, 'old-key-of-number-eight', null, 'eight', false), \
         (7, 'old-key-of-number-seven', 3, 'seven', true), (9, null, 3, 'nine', true)",
    );
    let theirs = "select c.xmin, c.relrowsecurity, c.relacl, c.relhastriggers, m.xmin, m.* \
                  from pg_class c, public.mcp m where c.oid = 'public.mcp'::regclass order by m.id";
    let before = cluster.sql(&database, theirs);
    let others = "select count(*) from pg_class where relnamespace = 'public'::regnamespace \
                  and relname !~ '^mcp(_pkey|_api_key_key)?$'";
    let setup = setup()
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", &cluster.url(&database));
    let (code, said) = setup.refused().await;
    assert_ne!(code, Some(0));
    assert!(said.contains("SUPABASE_DB_SCHEMA=portway"), "{said}");
    assert!(said.contains("portway migrate --from public.mcp"), "{said}");

    let setup = setup.env("SUPABASE_DB_SCHEMA", "portway");
    let foreseen = report(&setup, &["public.mcp", "--dry-run"], 1).await;
    assert_eq!(each_name(&foreseen["migrated"]), ["seven", "eight"]);
    let schemas = "select count(*) from pg_namespace where nspname like 'portway%'";
    assert_eq!(cluster.sql(&database, schemas), "0", "nothing was made");
    let done = report(&setup, &["public.mcp"], 1).await;
    assert_eq!(each_name(&done["migrated"]), ["seven", "eight"]);
    assert_eq!(each_name(&done["refused"]), ["nine"]);
    let again = report(&setup, &["mcp"], 1).await;
    assert_eq!(each_name(&again["known"]), ["seven", "eight"]);
    let (code, _, complaint) = portway(&setup, &["migrate", "--from", "portway.mcp"]).await;
    assert_eq!(code, 1);
    assert!(
        complaint.contains("a table of Portway itself"),
        "{complaint}"
    );

    let app = setup.start().await;
    let seven = app.get(&format!("{ENTRIES}?user_id=3")).await.expect(200);
    assert_eq!(each(&seven, "created_at"), ["2024-02-29T10:00:00.000Z"]);
    let tools = format!("{OLD}old-key-of-number-seven/tools");
    app.request("GET", &tools, None, &[]).await.expect(200);
    assert_eq!(cluster.sql(&database, theirs), before);
    assert_eq!(cluster.sql(&database, others), "0");
}

fn each_name(list: &Value) -> Vec<&str> {
    let each = list.as_array().unwrap().iter();
    each.map(|one| one["name"].as_str().unwrap()).collect()
}

/// Other applications make their keys as JWTs, signed with secrets of theirs.
async fn e8_e9_a_key_that_looks_like_a_users_token_opens_its_entry(storage: Storage) {
    let sign = |secret: &str, sub: &str| {
        sign_with(
            secret.as_bytes(),
            &json!({"alg": "HS256", "typ": "JWT"}),
            &json!({"sub": sub, "exp": now() + 600}),
        )
    };
    let key = sign("a secret of that application", "7");
    let records = json!([{"api_key": key, "name": "old", "status": 1}]);
    let setup = storage
        .setup()
        .env("SUPABASE_JWT_SECRET", "the-secret-of-a-project-0123456789")
        .file("old.json", records.to_string());
    let (code, said, complaint) = portway(&setup, &["migrate", "--from", "old.json"]).await;
    assert_eq!(code, 0, "{said}{complaint}");
    let app = setup.start().await;
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let ask = async |(name, value): (&str, String)| {
        let headers = [(name, value.as_str())];
        let answer = app.request("POST", "/mcp", Some(list.clone()), &headers);
        answer.await.status
    };
    assert_eq!(ask(("x-api-key", key.clone())).await, 200);
    assert_eq!(ask(bearer(&key)).await, 200);
    let keyed = format!("{ENTRIES}/server/{key}");
    let answer = app.request("POST", &keyed, Some(list.clone()), &[]).await;
    assert_eq!(answer.status, 200);
    let forged = sign("a secret of that application", "8");
    assert_eq!(ask(("x-api-key", forged.clone())).await, 401);
    assert_eq!(ask(bearer(&forged)).await, 401);
}
