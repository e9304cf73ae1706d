//! A model on loopback that does what it is told: `call TOOL {arguments}` in a
//! message makes it call the tool, and then say what came back. It keeps what
//! it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

pub(crate) struct Model {
    pub url: String,
    asked: Arc<Mutex<Vec<Value>>>,
    _task: AbortOnDropHandle<()>,
}

impl Model {
    pub(crate) async fn start() -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::default());
        let task = tokio::spawn(serve(listener, asked.clone()));
        Model {
            url,
            asked,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// The names of the tools that it was offered last.
    pub(crate) fn offered(&self) -> Vec<String> {
        let asked = self.asked();
        let tools = asked.last().and_then(|asked| asked["tools"].as_array());
        let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
        tools.into_iter().flatten().map(name).collect()
    }
}

async fn serve(listener: TcpListener, asked: Arc<Mutex<Vec<Value>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let asked = asked.clone();
        let service = service_fn(move |request| answer(request, asked.clone()));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Arc<Mutex<Vec<Value>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = reply(&request);
    let reason = match message.get("tool_calls") {
        Some(_) => "tool_calls",
        None => "stop",
    };
    let streamed = request["stream"] == true;
    asked.lock().unwrap().push(request);
    let (kind, part) = match streamed {
        true => ("chat.completion.chunk", "delta"),
        false => ("chat.completion", "message"),
    };
    let answer = json!({
        "id": "c1", "object": kind, "created": 1, "model": "fake",
        "choices": [{"index": 0, part: message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    });
    let (kind, text) = match streamed {
        true => (
            "text/event-stream",
            format!("data: {answer}\n\ndata: [DONE]\n\n"),
        ),
        false => ("application/json", answer.to_string()),
    };
    let response = Response::builder().header("content-type", kind);
    Ok(response.body(Full::from(text)).unwrap())
}

/// What it says to a conversation.
fn reply(request: &Value) -> Value {
    let empty = Vec::new();
    let messages = request["messages"].as_array().unwrap_or(&empty);
    let told = messages
        .iter()
        .rposition(|one| one["role"] == "user" && command(one).is_some());
    let Some(told) = told else {
        return json!({"role": "assistant", "content": "nothing to do"});
    };
    if let Some(result) = messages[told..].iter().find(|one| one["role"] == "tool") {
        return json!({"role": "assistant", "content": format!("it says: {}", text(result))});
    }
    let (tool, arguments) = command(&messages[told]).unwrap_or_default();
    let call = json!({
        "index": 0, "id": format!("call_{}", messages.len()), "type": "function",
        "function": {"name": tool, "arguments": arguments},
    });
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

/// `call TOOL {arguments}`, on a line of its own.
fn command(message: &Value) -> Option<(String, String)> {
    let text = text(message);
    let order = text.lines().find_map(|line| line.strip_prefix("call "))?;
    let (tool, arguments) = order.split_once(' ')?;
    Some((tool.to_owned(), arguments.to_owned()))
}

/// All text of a message, whichever way it is spelled.
pub(crate) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts = parts.iter().filter_map(|part| part["text"].as_str());
            parts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
