//! Generated files in the styles of people and tools: comments in every
//! possible place, fields of other tools.

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::ServerFile;

struct FileGenerator {
    rng: Rng,
    newline: &'static str,
    unit: &'static str,
    comments: bool,
    commas: bool,
    count: usize,
    text: String,
}

pub(super) fn generated_file(seed: u64, servers: usize) -> String {
    FileGenerator::new(seed).file(servers)
}

impl FileGenerator {
    fn new(seed: u64) -> FileGenerator {
        let mut rng = Rng::with_seed(seed);
        let newline = if rng.bool() { "\n" } else { "\r\n" };
        let unit = ["  ", "    ", "\t", "   "][rng.usize(..4)];
        let (comments, commas) = (rng.bool(), rng.bool());
        let text = if rng.u8(..8) == 0 { BOM } else { "" }.to_owned();
        FileGenerator {
            rng,
            newline,
            unit,
            comments,
            commas,
            count: 0,
            text,
        }
    }

    fn file(mut self, servers: usize) -> String {
        self.gap(0, true);
        let mut members = Vec::new();
        if self.rng.bool() {
            members.push(("other".to_owned(), None));
        }
        members.push(("mcpServers".to_owned(), Some(servers)));
        if self.rng.bool() {
            members.push(("另一个 \\\" {".to_owned(), None));
        }
        self.object(0, false, members.len(), |writer, i| {
            let (key, section) = &members[i];
            writer.key(key, 1, false);
            match section {
                None => writer.anything(1, false),
                Some(servers) => {
                    let one_line = writer.rng.u8(..6) == 0;
                    writer.object(1, one_line, *servers, |writer, i| {
                        writer.key(&format!("s{i}"), 2, one_line);
                        writer.server(2, one_line);
                    });
                }
            }
        });
        if self.rng.bool() {
            self.text.push_str(self.newline);
        }
        self.text
    }

    fn server(&mut self, depth: usize, one_line: bool) {
        let one_line = one_line || self.rng.u8(..4) == 0;
        let mut fields = vec!["command"];
        for field in ["args", "env", "unknown", "timeout", "disabled", "x.y/z"] {
            if self.rng.bool() {
                fields.insert(self.rng.usize(..=fields.len()), field);
            }
        }
        self.object(depth, one_line, fields.len(), |writer, i| {
            writer.key(fields[i], depth + 1, one_line);
            match fields[i] {
                "command" => writer.string(),
                "args" => writer.list(depth + 1, one_line),
                "env" => {
                    let names = writer.rng.usize(..4);
                    writer.object(depth + 1, one_line, names, |writer, i| {
                        writer.key(&format!("V{i}"), depth + 2, one_line);
                        writer.string();
                    });
                }
                "timeout" => {
                    let number = writer.rng.u32(1..99_999).to_string();
                    writer.text.push_str(&number);
                }
                "disabled" => {
                    let word = writer.rng.bool().to_string();
                    writer.text.push_str(&word);
                }
                _ => writer.anything(depth + 1, one_line),
            }
        });
    }

    fn anything(&mut self, depth: usize, one_line: bool) {
        match self.rng.u8(..if depth > 8 { 3 } else { 6 }) {
            0 => self.text.push_str("null"),
            1 => self.text.push_str("-1.5e3"),
            2 => self.string(),
            3 => self.list(depth, one_line),
            _ => {
                let members = self.rng.usize(..3);
                self.object(depth, one_line, members, |writer, i| {
                    writer.key(&format!("k{i}"), depth + 1, one_line);
                    writer.anything(depth + 1, one_line);
                });
            }
        }
    }

    fn string(&mut self) {
        let texts = [
            "npx", "-y", "a b", "${A:-b}", "\\\"q\\\"", "// no comment", "/* nor this */", "{",
            "],", "\\u00e9", "日本語", "\\\\", "😀",
        ];
        let text = texts[self.rng.usize(..texts.len())];
        self.text.push_str(&format!("\"{text}\""));
    }

    fn list(&mut self, depth: usize, one_line: bool) {
        let one_line = one_line || self.rng.bool();
        let length = self.rng.usize(..4);
        self.items(("[", "]"), depth, one_line, length, |writer, _| {
            writer.string()
        });
    }

    fn object(
        &mut self,
        depth: usize,
        one_line: bool,
        length: usize,
        item: impl FnMut(&mut FileGenerator, usize),
    ) {
        self.items(("{", "}"), depth, one_line, length, item);
    }

    fn items(
        &mut self,
        (open, close): (&str, &str),
        depth: usize,
        one_line: bool,
        length: usize,
        mut item: impl FnMut(&mut FileGenerator, usize),
    ) {
        self.text.push_str(open);
        for i in 0..length {
            self.gap(depth + 1, one_line);
            item(self, i);
            let last = i + 1 == length;
            if self.rng.u8(..8) == 0 {
                self.gap(depth + 1, true);
            }
            if !last || (self.commas && !one_line) {
                self.text.push(',');
            }
        }
        if length > 0 || self.rng.u8(..4) == 0 {
            self.gap(depth, one_line);
        }
        self.text.push_str(close);
    }

    fn key(&mut self, name: &str, depth: usize, one_line: bool) {
        self.text.push_str(&format!("\"{name}\""));
        if self.rng.u8(..10) == 0 {
            self.gap(depth, one_line);
        }
        self.text.push(':');
        if self.rng.u8(..6) > 0 {
            self.text.push(' ');
        }
    }

    /// The text between two tokens: a blank or a line end, and sometimes
    /// comments.
    fn gap(&mut self, depth: usize, one_line: bool) {
        if self.comments && self.rng.u8(..6) == 0 {
            self.count += 1;
            let comment = match (one_line, self.rng.bool()) {
                (false, true) => format!(" // c{}, \"x\": {{{}", self.count, self.newline),
                (false, false) if self.rng.bool() => {
                    format!(" /* c{}{}  }} */", self.count, self.newline)
                }
                _ => format!(" /* c{} */ ", self.count),
            };
            self.text.push_str(&comment);
        }
        match one_line {
            true if self.rng.bool() => self.text.push(' '),
            true => {}
            false => {
                if self.rng.u8(..10) == 0 {
                    self.text.push_str(self.newline);
                }
                self.text.push_str(self.newline);
                self.text.push_str(&self.unit.repeat(depth));
            }
        }
    }
}

fn parsed(text: &str) -> ServerFile {
    parse_file(text, Dialect::Mcp).unwrap_or_else(|p| panic!("{p}\n{text}"))
}

/// The range of a server's member.
fn member(text: &str, name: &str) -> Range<usize> {
    let inner = tree::without_bom(text);
    let shift = text.len() - inner.len();
    let Node::Object(root) = tree::parse(inner).unwrap() else {
        panic!()
    };
    let section = root.get_object("mcpServers").unwrap();
    let member = section.get(name).unwrap();
    shift + member.start()..shift + member.end()
}

fn some_spec(rng: &mut Rng) -> ServerSpec {
    let specs = [
        r#"{"command": "new"}"#,
        r#"{"command": "new", "args": ["a", "-y", "z"], "env": {"V1": "x", "W": "y"}}"#,
        r#"{"command": "npx", "env": {"V0": "日本"}, "cwd": "/x", "timeout": 77, "enabled": false}"#,
        r#"{"url": "http://h/mcp", "headers": {"A": "b"}, "era": "modern"}"#,
        r#"{"type": "sse", "url": "${U}", "isolation": "session", "timeout": 5}"#,
    ];
    spec(specs[rng.usize(..specs.len())])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn b7_changing_a_server_changes_only_its_bytes(seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let servers = rng.usize(1..5);
        let text = FileGenerator::new(seed).file(servers);
        let name = format!("s{}", rng.usize(..servers));
        let path = ["mcpServers", name.as_str()];

        // The same edit again changes no byte.
        let before = parsed(&text);
        if let Ok((_, spec)) = &before.servers[&name] {
            prop_assert_eq!(&set_server(&text, &path, spec).unwrap(), &text);
        }

        let spec = some_spec(&mut rng);
        let edited = set_server(&text, &path, &spec).unwrap();
        let (old, new) = (member(&text, &name), member(&edited, &name));
        prop_assert_eq!(&text[..old.start], &edited[..new.start]);
        prop_assert_eq!(&text[old.end..], &edited[new.end..]);
        let after = parsed(&edited);
        let said = after.servers[&name].clone();
        prop_assert_eq!(&said.unwrap().1, &spec, "{}\n{}", text, edited);
        // Fields of other tools are still there.
        for field in ["unknown", "x.y/z"] {
            let key = format!("\"{field}\"");
            prop_assert_eq!(text[old.clone()].contains(&key), edited[new.clone()].contains(&key));
        }
    }

    #[test]
    fn b7_adding_and_removing_gives_the_file_back(seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let servers = rng.usize(1..5);
        let text = FileGenerator::new(seed).file(servers);
        let path = ["mcpServers", "new one"];
        let spec = some_spec(&mut rng);
        let added = set_server(&text, &path, &spec).unwrap();
        let after = parsed(&added);
        prop_assert_eq!(&after.servers["new one"].clone().unwrap().1, &spec);
        for i in 0..servers {
            let name = format!("s{i}");
            prop_assert_eq!(&text[member(&text, &name)], &added[member(&added, &name)]);
        }
        let removed = remove_server(&added, &path).unwrap().unwrap();
        prop_assert_eq!(&removed, &text, "{}", added);
    }

    #[test]
    fn b7_removing_a_server_leaves_the_others_and_their_comments(seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let servers = rng.usize(1..5);
        let text = FileGenerator::new(seed).file(servers);
        let gone = rng.usize(..servers);
        let name = format!("s{gone}");
        let removed = remove_server(&text, &["mcpServers", &name]).unwrap().unwrap();
        let after = parsed(&removed);
        prop_assert_eq!(after.servers.len(), servers - 1);
        for i in (0..servers).filter(|i| *i != gone) {
            let name = format!("s{i}");
            prop_assert_eq!(&text[member(&text, &name)], &removed[member(&removed, &name)]);
        }
        // Everything before the line of the server is there, but for a comma.
        let start = member(&text, &name).start;
        let line = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let without_commas = |text: &str| text.replace(',', "");
        prop_assert!(
            without_commas(&removed).starts_with(without_commas(&text[..line]).trim_end()),
            "{}\n{}", text, removed
        );
    }

    #[test]
    fn b7_renaming_changes_the_key(seed: u64) {
        let text = FileGenerator::new(seed).file(3);
        let renamed = rename_server(&text, &["mcpServers", "s1"], "新").unwrap();
        prop_assert_eq!(renamed.replace("\"新\"", "\"s1\""), text);
    }
}
