//! An MCP server whose own cost is small against what it is to show: no
//! framework, one parse of the envelope, one write per answer.

pub mod http;
pub mod stdio;

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

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
    /// How many tools to list; all of them echo.
    #[arg(long, default_value_t = 1)]
    tools: usize,
    /// About how many bytes each of them takes in the list.
    #[arg(long, default_value_t = 260)]
    tool_bytes: usize,
    /// Microseconds of work that each call takes beyond its answer.
    #[arg(long, default_value_t = 0.0)]
    work: f64,
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
    arguments: EchoWord<'a>,
}

#[derive(Deserialize)]
struct EchoWord<'a> {
    #[serde(borrow)]
    nonce: &'a RawValue,
}

/// What the server knows.
pub struct BenchAnswers {
    era: BenchEra,
    tools: String,
    work: Duration,
}

impl BenchAnswers {
    pub fn new(options: &UpstreamOptions) -> BenchAnswers {
        let tools = (0..options.tools)
            .map(|number| tool(number, options.tool_bytes))
            .collect::<Vec<_>>()
            .join(",");
        BenchAnswers {
            era: options.era,
            tools: format!(r#""tools":[{tools}]"#),
            work: Duration::from_secs_f64(options.work.max(0.0) / 1e6),
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
            ("tools/call", era) => {
                spin(self.work);
                call(params, era, out)
            }
            ("tools/list", BenchEra::Legacy) => write!(out, r#""result":{{{}}}}}"#, self.tools),
            ("tools/list", BenchEra::Modern) => write!(
                out,
                r#""result":{{"resultType":"complete",{},"ttlMs":60000,"cacheScope":"public"}}}}"#,
                self.tools
            ),
            ("server/discover", BenchEra::Modern) => write!(
                out,
                r#""result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"ttlMs":60000,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{SERVER_INFO}}}}}}}"#
            ),
            ("initialize", BenchEra::Legacy) => write!(
                out,
                r#""result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{SERVER_INFO}}}}}"#
            ),
            ("ping", BenchEra::Legacy) => write!(out, r#""result":{{}}}}"#),
            _ => write!(
                out,
                r#""error":{{"code":-32601,"message":"no such method"}}}}"#
            ),
        }
    }
}

/// Keeps the core busy, as a server that does something would.
fn spin(time: Duration) {
    if time.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn call(params: &str, era: BenchEra, out: &mut Vec<u8>) -> std::io::Result<()> {
    let Ok(ToolParams {
        arguments: EchoWord { nonce },
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
        r#""result":{{{complete}"content":[{{"type":"text","text":{nonce}}}]}}}}"#
    )
}

/// Its description is as long as it takes to come to `bytes`.
fn tool(number: usize, bytes: usize) -> String {
    const SENTENCE: &str = "Gives back what it was given, to show what a call costs. ";
    let name = match number {
        0 => "echo".to_owned(),
        _ => format!("echo_{number:04}"),
    };
    let spell = |description: &str| {
        format!(
            r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"nonce":{{"type":"string","description":"Comes back as it is."}}}},"required":["nonce"]}}}}"#
        )
    };
    // One byte for the comma.
    let rest = bytes.saturating_sub(spell("").len() + 1);
    spell(&SENTENCE.chars().cycle().take(rest).collect::<String>())
}
