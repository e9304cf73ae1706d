//! Tests that a create with bindings is saved as a whole or not at all,
//! whenever the process is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use super::*;

const TOOLS: usize = 20;
/// More than any test creates.
const EVERY: Page = Page {
    skip: 0,
    limit: 1_000_000,
};

fn new_tool(name: String) -> NewTool {
    NewTool {
        owner: "me".into(),
        tool: name.clone(),
        name,
        description: None,
        server: "files".to_owned(),
    }
}

pub(super) async fn tools(store: &Store, count: usize) -> Vec<ToolId> {
    let mut ids = Vec::new();
    for i in 0..count {
        let new = new_tool(format!("tool_{i}"));
        match store.create_tool(new, None).await.unwrap() {
            Creation::New(tool) => ids.push(tool.id),
            earlier => panic!("{earlier:?}"),
        }
    }
    ids
}

pub(super) fn new_entry(tools: &[ToolId]) -> NewEntry {
    let bind = |tool: &ToolId| NewBinding {
        tool: *tool,
        enabled: true,
    };
    NewEntry {
        owner: "me".into(),
        name: "an entry of some name".to_owned(),
        enabled: true,
        key: ApiKey::random().unwrap().record(None),
        exposes: ExposedServers::default(),
        filter: None,
        bindings: tools.iter().map(bind).collect(),
    }
}

/// Makes entries without end, several at once, and prints the saved ones.
#[tokio::test]
#[ignore = "the process that is killed"]
async fn maker() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let sizes = Sizes {
        journal: 64 * 1024,
        small: 0,
    };
    let opened = Store::open_files_with(Path::new(&directory), sizes).unwrap();
    let store = Arc::new(opened.store);
    let listed = store.tools(&OwnerScope::Everyone, EVERY).await.unwrap();
    let ids: Vec<ToolId> = listed.items.iter().map(|tool| tool.id).collect();
    eprintln!("ready");
    let mut makers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (store, ids) = (store.clone(), ids.clone());
        makers.spawn(async move {
            loop {
                let made = store.create_entry(new_entry(&ids), None).await.unwrap();
                let Creation::New(entry) = made else {
                    panic!("{made:?}");
                };
                let line = format!("made {}\n", entry.id);
                std::io::stderr().write_all(line.as_bytes()).unwrap();
            }
        });
    }
    makers.join_all().await;
}

#[tokio::test]
async fn e5_a_killed_create_is_there_as_a_whole_or_not_at_all() {
    let rounds = rounds(6, 200);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (mut answered, mut kept) = (0, 0);
    for round in 0..rounds {
        if round % 20 == 0 {
            let _ = std::fs::remove_dir_all(&data);
            tools(&open(&data), TOOLS).await;
        }
        let mut child = child("tests::whole::maker", &data, "");
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        said.read_line(&mut text).unwrap();
        assert_eq!(text, "ready\n");
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..30_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        said.read_to_string(&mut text).unwrap();
        let lines = text.split_inclusive('\n');
        let lines = lines.filter_map(|line| line.strip_prefix("made ")?.strip_suffix('\n'));
        let ids = lines.map(|id| EntryId(id.parse().unwrap()));

        let opened = Store::open_files(&data).unwrap();
        for warning in &opened.warnings {
            assert!(warning.contains("was cut off"), "{warning}");
        }
        let all = opened.store.entries(&OwnerScope::Everyone, EVERY).await;
        let all = all.unwrap();
        for id in ids {
            answered += 1;
            let there = all.items.binary_search_by_key(&id, |entry| entry.id);
            assert!(there.is_ok(), "round {round}: {id} is lost");
        }
        for entry in &all.items {
            let bound = opened.store.bindings(&OwnerScope::Everyone, entry.id).await;
            let bound = bound.unwrap().unwrap();
            assert_eq!(bound.len(), TOOLS, "round {round}: {}", entry.id);
        }
        kept = all.total;
    }
    println!("{rounds} kills, {answered} answered creates, {kept} since the last wipe");
}
