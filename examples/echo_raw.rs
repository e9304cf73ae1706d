//! An MCP server over stdio that gives back what it gets, text for text.
//!
//! `echo_raw ERA [TOOLS]` speaks one era, `legacy` or `modern`; the file TOOLS
//! holds the array of its tools. It looks at envelopes only: whatever is in
//! params it never parses, so what a test reads is what came over the pipe.
//!
//! A call is answered with its params, as a string, in the first content block,
//! followed by the members of its `arguments.answer`. With `arguments.error` it
//! is answered with that error object; with a progress token, the value of
//! `arguments.answer` is sent in a progress notification first.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::value::RawValue;

const TOOLS: &str = r#"[{"name":"echo","inputSchema":{"type":"object"}}]"#;

#[derive(Deserialize)]
struct EchoMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EchoParams<'a> {
    #[serde(borrow)]
    arguments: Option<EchoArguments<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<EchoMeta<'a>>,
}

#[derive(Deserialize)]
struct EchoArguments<'a> {
    #[serde(borrow)]
    answer: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EchoMeta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

struct EchoServer {
    modern: bool,
    tools: String,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let modern = args.next().as_deref() == Some("modern");
    let tools = match args.next().map(std::fs::read_to_string) {
        None => TOOLS.to_owned(),
        Some(Ok(tools)) => tools.replace('\n', " "),
        Some(Err(_)) => return ExitCode::from(2),
    };
    let server = EchoServer { modern, tools };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<EchoMessage<'_>>(&line) else {
            continue;
        };
        if let (Some(id), Some(method)) = (message.id, message.method) {
            let answer = server.answer(id.get(), method, message.params);
            if std::io::stdout().write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
    }
    ExitCode::SUCCESS
}

impl EchoServer {
    fn answer(&self, id: &str, method: &str, params: Option<&RawValue>) -> String {
        match (self.modern, method) {
            (true, "server/discover") => {
                let versions = r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#;
                self.result(id, &format!("{versions},{PUBLIC}"))
            }
            (false, "initialize") => {
                let info = r#""serverInfo":{"name":"echo_raw","version":"1"}"#;
                let agreed = r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}}"#;
                self.result(id, &format!("{agreed},{info}"))
            }
            (false, "ping") => self.result(id, ""),
            (true, "tools/list") => self.result(id, &format!(r#""tools":{},{PUBLIC}"#, self.tools)),
            (false, "tools/list") => self.result(id, &format!(r#""tools":{}"#, self.tools)),
            (_, "tools/call") => self.call(id, params.map_or("{}", RawValue::get)),
            _ => error(id, r#"{"code":-32601,"message":"Method not found"}"#),
        }
    }

    fn call(&self, id: &str, params: &str) -> String {
        let Ok(read) = serde_json::from_str::<EchoParams<'_>>(params) else {
            return error(id, r#"{"code":-32602,"message":"unreadable params"}"#);
        };
        let (answer, failure) = match &read.arguments {
            Some(arguments) => (arguments.answer, arguments.error),
            None => (None, None),
        };
        let answer = answer.map_or("{}", RawValue::get);
        let mut out = String::new();
        if let Some(token) = read.meta.and_then(|meta| meta.token) {
            let said = format!(r#"{{"progressToken":{token},"progress":1.0,"x":{answer}}}"#);
            out =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{said}}}"#);
            out.push('\n');
        }
        if let Some(failure) = failure {
            return out + &error(id, failure.get());
        }
        let quoted = serde_json::to_string(params).unwrap_or_default();
        let content = format!(r#""content":[{{"type":"text","text":{quoted}}}]"#);
        let more = answer
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let more = more.unwrap_or_default();
        let comma = if more.trim().is_empty() { "" } else { "," };
        out + &self.result(id, &format!("{content}{comma}{more}"))
    }

    /// A response with these members in its result.
    fn result(&self, id: &str, members: &str) -> String {
        let kind = match (self.modern, members.is_empty()) {
            (true, true) => r#""resultType":"complete""#,
            (true, false) => r#""resultType":"complete","#,
            (false, _) => "",
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{kind}{members}}}}}\n")
    }
}

const PUBLIC: &str = r#""ttlMs":60000,"cacheScope":"public""#;

fn error(id: &str, error: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n")
}
