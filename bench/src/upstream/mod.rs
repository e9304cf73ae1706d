//! An MCP server whose own cost is small against what it is to show: no
//! framework, one parse of the envelope, one write per answer.

pub mod http;
pub mod stdio;

use std::cell::{Cell, OnceCell};
use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::BenchEra;
use crate::exchange::find;

#[derive(Args)]
pub struct UpstreamOptions {
    /// Serve HTTP here (any path); without it, stdio.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    #[arg(long, value_enum, default_value = "modern")]
    era: BenchEra,
    /// How many tools to list.
    #[arg(long, default_value_t = 1)]
    tools: usize,
    /// About how many bytes each of them takes in the list.
    #[arg(long, default_value_t = 260)]
    tool_bytes: usize,
    /// Two of the tools are `toggle`, which adds or removes the other one,
    /// `toggled`.
    #[arg(long)]
    changing: bool,
    /// Answer GET with an event stream that stays open.
    #[arg(long)]
    streams: bool,
}

const VERSION_KEY: &[u8] = b"io.modelcontextprotocol/protocolVersion";
const SERVER_INFO: &str = r#"{"name":"bench","version":"1"}"#;

#[derive(Deserialize)]
struct ToolRequest<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolParams<'a> {
    #[serde(borrow)]
    arguments: EchoArguments<'a>,
}

#[derive(Deserialize)]
struct EchoArguments<'a> {
    nonce: &'a str,
    /// The size of the text in the result; without it, the nonce alone.
    #[serde(default)]
    bytes: usize,
}

/// The answers of the server, prepared as far as possible.
pub struct BenchAnswers {
    era: BenchEra,
    streams: bool,
    tools: String,
    /// The list with the tool `toggled`.
    more_tools: String,
    changing: bool,
    toggled: Cell<bool>,
    /// JSON text of lines, as a large result contains them.
    lines: OnceCell<String>,
}

const LINE: &str = r#"A line of the text that a large result consists of, \"quoted\" once.\n"#;
const LARGEST_RESULT: usize = 4 << 20;
const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

impl BenchAnswers {
    pub fn new(options: &UpstreamOptions) -> BenchAnswers {
        let others = if options.changing { 2 } else { 0 };
        let echo = (0..options.tools.saturating_sub(others)).map(|number| match number {
            0 => "echo".to_owned(),
            _ => format!("echo_{number:04}"),
        });
        let names = echo.chain(options.changing.then(|| "toggle".to_owned()));
        let list = |names: &mut dyn Iterator<Item = String>| {
            let tools: Vec<String> = names.map(|name| tool(&name, options.tool_bytes)).collect();
            format!(r#""tools":[{}]"#, tools.join(","))
        };
        BenchAnswers {
            era: options.era,
            streams: options.streams,
            tools: list(&mut names.clone()),
            more_tools: list(&mut names.chain(["toggled".to_owned()])),
            changing: options.changing,
            toggled: Cell::new(false),
            lines: OnceCell::new(),
        }
    }

    fn tools(&self) -> &str {
        if self.toggled.get() {
            &self.more_tools
        } else {
            &self.tools
        }
    }

    /// Appends the answer to one message; nothing for a notification.
    pub fn answer(&self, message: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        let Ok(request) = serde_json::from_slice::<ToolRequest<'_>>(message) else {
            return write!(
                out,
                r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"not a message"}}}}"#
            );
        };
        let (Some(id), Some(method)) = (request.id, request.method) else {
            return Ok(());
        };
        let params = request.params.map_or("{}", RawValue::get);
        write!(out, r#"{{"jsonrpc":"2.0","id":{id},"#)?;
        match (method, self.era) {
            ("tools/call", _)
                if self.changing && find(params.as_bytes(), br#""toggle""#).is_some() =>
            {
                self.toggled.set(!self.toggled.get());
                write!(out, r#""result":{{"content":[]}}}}"#)?;
                write!(out, "\n{LIST_CHANGED}")
            }
            ("tools/call", era) => self.call(params, era, out),
            ("tools/list", BenchEra::Legacy) => write!(out, r#""result":{{{}}}}}"#, self.tools()),
            ("tools/list", BenchEra::Modern) => write!(
                out,
                r#""result":{{"resultType":"complete",{},"ttlMs":60000,"cacheScope":"public"}}}}"#,
                self.tools()
            ),
            ("server/discover", BenchEra::Modern) => write!(
                out,
                r#""result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"ttlMs":60000,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{SERVER_INFO}}}}}}}"#
            ),
            ("initialize", BenchEra::Legacy) => write!(
                out,
                r#""result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":{}}}}},"serverInfo":{SERVER_INFO}}}}}"#,
                self.changing
            ),
            ("ping", BenchEra::Legacy) => write!(out, r#""result":{{}}}}"#),
            _ => write!(
                out,
                r#""error":{{"code":-32601,"message":"no such method"}}}}"#
            ),
        }
    }

    fn call(&self, params: &str, era: BenchEra, out: &mut Vec<u8>) -> std::io::Result<()> {
        let Ok(ToolParams {
            arguments: EchoArguments { nonce, bytes },
        }) = serde_json::from_str(params)
        else {
            return write!(
                out,
                r#""error":{{"code":-32602,"message":"nonce: missing"}}}}"#
            );
        };
        let complete = match era {
            BenchEra::Legacy => "",
            BenchEra::Modern if find(params.as_bytes(), VERSION_KEY).is_none() => {
                return write!(
                    out,
                    r#""error":{{"code":-32602,"message":"_meta: missing"}}}}"#
                );
            }
            BenchEra::Modern => r#""resultType":"complete","#,
        };
        write!(
            out,
            r#""result":{{{complete}"content":[{{"type":"text","text":"{nonce}"#
        )?;
        // The nonce is at both ends, so that the load need not read the middle.
        let lines = bytes.min(LARGEST_RESULT) / LINE.len() * LINE.len();
        if lines > 0 {
            let all = || LINE.repeat(LARGEST_RESULT / LINE.len());
            write!(out, " {} {nonce}", &self.lines.get_or_init(all)[..lines])?;
        }
        write!(out, r#""}}]}}}}"#)
    }
}

/// A tool whose description makes it `bytes` long.
fn tool(name: &str, bytes: usize) -> String {
    const SENTENCE: &str = "Returns its argument unchanged, to show the cost of a call. ";
    let spell = |description: &str| {
        format!(
            r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"nonce":{{"type":"string","description":"Comes back as it is."}}}},"required":["nonce"]}}}}"#
        )
    };
    // One byte for the comma.
    let rest = bytes.saturating_sub(spell("").len() + 1);
    spell(&SENTENCE.chars().cycle().take(rest).collect::<String>())
}
