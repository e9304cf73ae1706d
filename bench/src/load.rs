//! The load: so many connections, each asking again as soon as it has its
//! answer. All of them use the same ids, so that an answer that went to the
//! wrong one is seen by its nonce.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::BenchEra;
use crate::exchange::{self, find, whole};
use crate::figures::Figures;
use crate::lab::cpu;

/// What a run may take beyond its time: one limit for all, since a timer for
/// each answer would be measured too.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Args)]
pub struct LoadOptions {
    /// `http://host:port/path`.
    #[arg(long)]
    url: String,
    #[arg(long, value_enum, default_value = "modern")]
    era: BenchEra,
    #[arg(long, value_enum, default_value = "call")]
    what: LoadKind,
    #[arg(long, default_value = "echo")]
    tool: String,
    #[arg(long)]
    token: Option<String>,
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Asked for so long, after a warm-up.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Asked so often instead, without a warm-up.
    #[arg(long)]
    calls: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadKind {
    Call,
    List,
    /// A plain `GET`.
    Get,
}

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

#[derive(Deserialize)]
struct ToolsPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

pub async fn main(options: &LoadOptions) -> anyhow::Result<()> {
    let limit = PATIENCE + Duration::try_from_secs_f64(options.seconds * 2.0)?;
    let figures = tokio::time::timeout(limit, measure(options)).await;
    let figures = figures.context("no answer")??;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn measure(options: &LoadOptions) -> anyhow::Result<Figures> {
    let mut clients = Vec::new();
    for number in 0..options.connections {
        clients.push(LoadClient::open(options, number).await?);
    }
    if let Some(calls) = options.calls {
        return round(&mut clients, LoadEnd::Calls(calls)).await;
    }
    let time = Duration::try_from_secs_f64(options.seconds)?;
    let warmed = round(&mut clients, LoadEnd::Time(time / 5)).await?;
    let mut figures = round(&mut clients, LoadEnd::Time(time)).await?;
    figures.all_calls += warmed.calls;
    Ok(figures)
}

#[derive(Clone, Copy)]
enum LoadEnd {
    Time(Duration),
    Calls(u64),
}

async fn round(clients: &mut Vec<LoadClient>, until: LoadEnd) -> anyhow::Result<Figures> {
    let local = tokio::task::LocalSet::new();
    let asked = Rc::new(Cell::new(0));
    let (start, before) = (Instant::now(), cpu(std::process::id()));
    let work = clients.drain(..).map(|mut client| {
        let asked = asked.clone();
        local.spawn_local(async move {
            let mut waits = Vec::new();
            loop {
                let over = match until {
                    LoadEnd::Time(time) => start.elapsed() >= time,
                    LoadEnd::Calls(calls) => asked.replace(asked.get() + 1) >= calls,
                };
                if over {
                    return anyhow::Ok((client, waits));
                }
                let asked = Instant::now();
                client.ask().await?;
                waits.push(u32::try_from(asked.elapsed().as_nanos()).unwrap_or(u32::MAX));
            }
        })
    });
    let work: Vec<_> = work.collect();
    let done = local.run_until(async {
        let mut done = Vec::new();
        for task in work {
            done.push(task.await??);
        }
        anyhow::Ok(done)
    });
    let done = done.await?;
    let seconds = start.elapsed().as_secs_f64();
    let spent = cpu(std::process::id()) - before;
    let mut all = Vec::new();
    let mut bytes = 0;
    for (client, waits) in done {
        bytes = client.bytes;
        clients.push(client);
        all.extend(waits);
    }
    Ok(Figures::new(all, seconds, spent, bytes))
}

/// One connection, and one session on it where the era has sessions.
struct LoadClient {
    socket: TcpStream,
    number: usize,
    what: LoadKind,
    era: BenchEra,
    tool: String,
    /// All of the head but the length.
    head: String,
    last: u64,
    out: Vec<u8>,
    buffer: Vec<u8>,
    body: String,
    /// The size of the last answer.
    bytes: usize,
    /// Told by the first list; later ones are compared with it.
    tools: usize,
}

impl LoadClient {
    async fn open(options: &LoadOptions, number: usize) -> anyhow::Result<LoadClient> {
        let rest = options
            .url
            .strip_prefix("http://")
            .context("--url: not http")?;
        let (host, path) = rest.split_once('/').context("--url: no path")?;
        let socket = TcpStream::connect(host).await?;
        socket.set_nodelay(true)?;
        let login = options.token.as_ref();
        let login = login.map_or(String::new(), |token| {
            format!("authorization: Bearer {token}\r\n")
        });
        let method = if options.what == LoadKind::Get {
            "GET"
        } else {
            "POST"
        };
        let mut head = format!("{method} /{path} HTTP/1.1\r\nhost: {host}\r\n{login}");
        if options.what != LoadKind::Get {
            head +=
                "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
        }
        let mut client = LoadClient {
            socket,
            number,
            what: options.what,
            era: options.era,
            tool: options.tool.clone(),
            head,
            last: 0,
            out: Vec::new(),
            buffer: Vec::new(),
            body: String::new(),
            bytes: 0,
            tools: 0,
        };
        match (client.what, client.era) {
            (LoadKind::Get, _) => {}
            (_, BenchEra::Legacy) => client.open_session().await?,
            (LoadKind::Call, BenchEra::Modern) => {
                let name = &client.tool;
                client.head += &format!(
                    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"
                );
            }
            (LoadKind::List, BenchEra::Modern) => {
                client.head += "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
            }
        }
        Ok(client)
    }

    async fn open_session(&mut self) -> anyhow::Result<()> {
        self.body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#.into();
        let parts = self.exchange(200).await?;
        if let Some(session) = exchange::header(&self.buffer[..parts.body.start], "mcp-session-id")
        {
            self.head += &format!("mcp-session-id: {session}\r\n");
        }
        self.head += "mcp-protocol-version: 2025-11-25\r\n";
        self.buffer.clear();
        self.body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into();
        self.exchange(202).await?;
        self.buffer.clear();
        Ok(())
    }

    async fn ask(&mut self) -> anyhow::Result<()> {
        use std::fmt::Write as _;
        self.last += 1;
        let (id, number) = (self.last, self.number);
        let meta = match self.era {
            BenchEra::Legacy => "",
            BenchEra::Modern => {
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        };
        self.body.clear();
        match self.what {
            LoadKind::Call => write!(
                self.body,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{}","arguments":{{"nonce":"{number}-{id}"}}{meta}}}}}"#,
                self.tool
            )?,
            LoadKind::List => write!(
                self.body,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{}}}}}"#,
                meta.strip_prefix(',').unwrap_or(meta)
            )?,
            LoadKind::Get => {}
        }
        let parts = self.exchange(200).await?;
        self.bytes = parts.body.len();
        let body = parts.body.clone();
        self.check(body)?;
        self.buffer.drain(..parts.end);
        ensure!(self.buffer.is_empty(), "more than was asked for");
        Ok(())
    }

    fn check(&mut self, body: std::ops::Range<usize>) -> anyhow::Result<()> {
        let body = &self.buffer[body];
        match self.what {
            LoadKind::Get => return Ok(()),
            // To read each list whole would measure the reader.
            LoadKind::List if self.tools > 0 => {
                let mut id = [0; 32];
                let mut rest = &mut id[..];
                write!(rest, r#""id":{}"#, self.last)?;
                let left = rest.len();
                let ends = [
                    &body[..body.len().min(64)],
                    &body[body.len().saturating_sub(64)..],
                ];
                let found = ends
                    .iter()
                    .any(|part| find(part, &id[..32 - left]).is_some());
                ensure!(found, "another list than the one asked for");
                return Ok(());
            }
            LoadKind::Call | LoadKind::List => {}
        }
        let json = exchange::json(body)?;
        let answer: CallAnswer<'_> = serde_json::from_slice(json)
            .with_context(|| String::from_utf8_lossy(&json[..json.len().min(400)]).into_owned())?;
        ensure!(
            answer.id == self.last,
            "id {} instead of {}",
            answer.id,
            self.last
        );
        if self.what == LoadKind::List {
            self.tools = serde_json::from_str::<ToolsPage<'_>>(answer.result.get())?
                .tools
                .len();
            ensure!(self.tools > 0, "an empty list");
            return Ok(());
        }
        let EchoResult {
            content: [TextContent { text }],
        } = serde_json::from_str(answer.result.get())
            .with_context(|| answer.result.get().to_owned())?;
        let mine = text.split_once('-').is_some_and(|(number, id)| {
            number.parse() == Ok(self.number) && id.parse() == Ok(self.last)
        });
        ensure!(
            mine,
            "the answer {text:?} is not for {}-{}",
            self.number,
            self.last
        );
        Ok(())
    }

    /// Sends the body and reads one answer, which is left in the buffer.
    async fn exchange(&mut self, status: u16) -> anyhow::Result<exchange::Parts> {
        self.out.clear();
        self.out.extend_from_slice(self.head.as_bytes());
        match self.what {
            LoadKind::Get => self.out.extend_from_slice(b"\r\n"),
            _ => write!(
                self.out,
                "content-length: {}\r\n\r\n{}",
                self.body.len(),
                self.body
            )?,
        }
        self.socket.write_all(&self.out).await?;
        loop {
            let read = self.socket.read_buf(&mut self.buffer).await?;
            ensure!(read > 0, "the connection was closed");
            let Some(parts) = whole(&self.buffer)? else {
                continue;
            };
            let got = exchange::status(&self.buffer)?;
            if got != status {
                bail!(
                    "{got}: {}",
                    String::from_utf8_lossy(&self.buffer[..parts.end])
                );
            }
            return Ok(parts);
        }
    }
}
