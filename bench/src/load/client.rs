//! One connection of the load. All connections use the same ids; the nonce
//! shows an answer that went to the wrong one.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{LoadKind, LoadOptions};
use crate::BenchEra;
use crate::exchange::{self, find, whole};

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The part of a large answer that is read at each end.
const END: usize = 512;

#[derive(Deserialize)]
struct CallAnswer<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Deserialize)]
struct EchoResult<'a> {
    #[serde(borrow)]
    content: [TextContent<'a>; 1],
}

#[derive(Deserialize)]
struct TextContent<'a> {
    text: &'a str,
}

/// One connection, and one session on it where the era has sessions.
pub struct LoadClient {
    socket: TcpStream,
    number: usize,
    what: LoadKind,
    era: BenchEra,
    tool: String,
    result_bytes: usize,
    path: String,
    /// The headers of every request but for the length.
    headers: String,
    last: u64,
    out: Vec<u8>,
    buffer: Vec<u8>,
    body: String,
    /// The size of all pages of the first list; later ones are compared with it.
    list_bytes: Option<usize>,
}

impl LoadClient {
    pub async fn open(options: &LoadOptions, number: usize) -> anyhow::Result<LoadClient> {
        let rest = options
            .url
            .strip_prefix("http://")
            .context("--url: not http")?;
        let (host, path) = rest.split_once('/').context("--url: no path")?;
        let socket = TcpStream::connect(host).await?;
        socket.set_nodelay(true)?;
        let mut headers = format!(
            "host: {host}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n"
        );
        if let Some(token) = &options.token {
            write!(headers, "authorization: Bearer {token}\r\n")?;
        }
        let mut client = LoadClient {
            socket,
            number,
            what: options.what,
            era: options.era,
            tool: options.tool.clone(),
            result_bytes: options.result_bytes,
            path: format!("/{path}"),
            headers,
            last: 0,
            out: Vec::new(),
            buffer: Vec::new(),
            body: String::new(),
            list_bytes: None,
        };
        match (client.what, client.era) {
            (LoadKind::Session, _) => {}
            (_, BenchEra::Legacy) => client.open_session().await?,
            (what, BenchEra::Modern) => {
                client.headers += "mcp-protocol-version: 2026-07-28\r\n";
                client.headers += &match what {
                    LoadKind::Call => {
                        format!("mcp-method: tools/call\r\nmcp-name: {}\r\n", client.tool)
                    }
                    _ => "mcp-method: tools/list\r\n".to_owned(),
                };
            }
        }
        Ok(client)
    }

    async fn open_session(&mut self) -> anyhow::Result<()> {
        self.body = INITIALIZE.into();
        let body = self.exchange("POST").await?;
        if let Some(session) = exchange::header(&self.buffer[..body.start], "mcp-session-id") {
            write!(self.headers, "mcp-session-id: {session}\r\n")?;
        }
        self.headers += "mcp-protocol-version: 2025-11-25\r\n";
        self.body = INITIALIZED.into();
        self.exchange("POST").await?;
        Ok(())
    }

    pub async fn ask(&mut self) -> anyhow::Result<()> {
        self.last += 1;
        match self.what {
            LoadKind::Call => self.call().await,
            LoadKind::List => self.list().await,
            LoadKind::Session => {
                let headers = self.headers.len();
                self.open_session().await?;
                self.body.clear();
                self.exchange("DELETE").await?;
                self.headers.truncate(headers);
                Ok(())
            }
        }
    }

    fn meta(&self) -> &'static str {
        match self.era {
            BenchEra::Legacy => "",
            BenchEra::Modern => META,
        }
    }

    async fn call(&mut self) -> anyhow::Result<()> {
        let (id, number, meta) = (self.last, self.number, self.meta());
        self.body.clear();
        write!(
            self.body,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{}","arguments":{{"nonce":"{number}-{id}""#,
            self.tool
        )?;
        if self.result_bytes > 0 {
            write!(self.body, r#","bytes":{}"#, self.result_bytes)?;
        }
        write!(self.body, "}}{meta}}}}}")?;
        let body = self.exchange("POST").await?;
        if self.result_bytes > 0 {
            self.check_large(&self.buffer[body])
        } else {
            self.check_echo(&self.buffer[body])
        }
    }

    fn check_echo(&self, body: &[u8]) -> anyhow::Result<()> {
        let json = exchange::json(body)?;
        let answer: CallAnswer<'_> = serde_json::from_slice(json)
            .with_context(|| String::from_utf8_lossy(&json[..json.len().min(400)]).into_owned())?;
        let (id, number) = (self.last, self.number);
        ensure!(answer.id == id, "id {} instead of {id}", answer.id);
        let EchoResult {
            content: [TextContent { text }],
        } = serde_json::from_str(answer.result.get())
            .with_context(|| answer.result.get().to_owned())?;
        let mine = text
            .split_once('-')
            .is_some_and(|(to, nonce)| to.parse() == Ok(number) && nonce.parse() == Ok(id));
        ensure!(mine, "the answer {text:?} is not for {number}-{id}");
        Ok(())
    }

    /// Checks the size, the id and the nonce at both ends: to parse all of it
    /// would measure the parser.
    fn check_large(&self, body: &[u8]) -> anyhow::Result<()> {
        let (id, number) = (self.last, self.number);
        let [first, last] = ends(body);
        ensure!(
            body.len().abs_diff(self.result_bytes) < END + self.result_bytes / 64,
            "{} bytes instead of {}",
            body.len(),
            self.result_bytes
        );
        let nonce = [
            format!(r#""text":"{number}-{id} "#),
            format!(r#" {number}-{id}""#),
        ];
        ensure!(
            find(first, nonce[0].as_bytes()).is_some() && find(last, nonce[1].as_bytes()).is_some(),
            "the large answer is not for {number}-{id}"
        );
        self.check_id(body)
    }

    fn check_id(&self, body: &[u8]) -> anyhow::Result<()> {
        let id = format!(r#""id":{}"#, self.last);
        let found = ends(body)
            .iter()
            .any(|part| find(part, id.as_bytes()).is_some());
        ensure!(found, "the answer has another id than {}", self.last);
        Ok(())
    }

    async fn list(&mut self) -> anyhow::Result<()> {
        let mut bytes = 0;
        let mut cursor = None;
        loop {
            let (id, meta) = (self.last, self.meta());
            let cursor_member = match cursor.take() {
                Some(cursor) => format!(r#","cursor":"{cursor}""#),
                None => String::new(),
            };
            let params = format!("{cursor_member}{meta}");
            self.body.clear();
            write!(
                self.body,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{}}}}}"#,
                params.trim_start_matches(',')
            )?;
            let body = self.exchange("POST").await?;
            let body = &self.buffer[body];
            self.check_id(body)?;
            bytes += body.len();
            cursor = next_cursor(body).map(ToOwned::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        // The ids of two lists differ by a few digits.
        let expected = *self.list_bytes.get_or_insert(bytes);
        ensure!(
            bytes.abs_diff(expected) < END && bytes > 100,
            "a list of {bytes} bytes instead of {expected}"
        );
        Ok(())
    }

    /// Sends the body and reads one answer; the place of its body in the
    /// buffer.
    async fn exchange(&mut self, method: &str) -> anyhow::Result<Range<usize>> {
        self.out.clear();
        let (path, headers, body) = (&self.path, &self.headers, &self.body);
        let length = body.len();
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )?;
        self.socket.write_all(&self.out).await?;
        self.buffer.clear();
        loop {
            let read = self.socket.read_buf(&mut self.buffer).await?;
            ensure!(read > 0, "the connection was closed");
            let Some(parts) = whole(&self.buffer)? else {
                continue;
            };
            let status = exchange::status(&self.buffer)?;
            if !(200..300).contains(&status) {
                let answer = String::from_utf8_lossy(&self.buffer[..parts.end]);
                bail!("{status}: {answer}");
            }
            ensure!(parts.end == self.buffer.len(), "more than one answer");
            return Ok(parts.body);
        }
    }
}

fn ends(body: &[u8]) -> [&[u8]; 2] {
    [
        &body[..body.len().min(END)],
        &body[body.len().saturating_sub(END)..],
    ]
}

/// The cursor of a list's next page, which stands at one of its ends.
pub fn next_cursor(body: &[u8]) -> Option<&str> {
    const NAME: &[u8] = br#""nextCursor":""#;
    let after = ends(body)
        .into_iter()
        .find_map(|part| Some(&part[find(part, NAME)? + NAME.len()..]))?;
    let end = after.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&after[..end]).ok()
}
