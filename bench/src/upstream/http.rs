//! The server over HTTP: keep-alive, one write per answer.

use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{BenchAnswers, UpstreamOptions};
use crate::BenchEra;
use crate::exchange::{self, whole};

/// What one read can bring; every request here is smaller.
const CHUNK: usize = 16 << 10;

pub async fn serve(address: SocketAddr, options: &UpstreamOptions) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let answers = Rc::new(BenchAnswers::new(options));
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            loop {
                let (socket, _) = listener.accept().await?;
                socket.set_nodelay(true)?;
                let answers = answers.clone();
                tokio::task::spawn_local(async move {
                    // A client that goes away is no news.
                    let _ = connection(socket, &answers).await;
                });
            }
        })
        .await
}

async fn connection(mut socket: TcpStream, answers: &BenchAnswers) -> anyhow::Result<()> {
    let mut buffer = Vec::with_capacity(CHUNK);
    let (mut body, mut out) = (Vec::new(), Vec::new());
    loop {
        if socket.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let mut at = 0;
        while let Some(parts) = whole(&buffer[at..])? {
            let request = &buffer[at..];
            if request.starts_with(b"POST") {
                answers.answer(&request[parts.body.clone()], &mut body)?;
                write_head(answers.era, &request[..parts.body.start], &body, &mut out)?;
                out.append(&mut body);
            } else {
                out.extend_from_slice(other(request, answers.streams));
            }
            at += parts.end;
        }
        buffer.drain(..at);
        if !out.is_empty() {
            socket.write_all(&out).await?;
            out.clear();
        }
    }
}

/// The response to a request that is no POST. A stream consists of its first
/// event; nginx forwards it at once because of the last header.
fn other(request: &[u8], streams: bool) -> &'static [u8] {
    if request.starts_with(b"DELETE") {
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    } else if streams {
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
          x-accel-buffering: no\r\n\r\n7\r\nid: 1\n\n\r\n"
    } else {
        b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
    }
}

fn write_head(
    era: BenchEra,
    request: &[u8],
    body: &[u8],
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    if body.is_empty() {
        out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
        return Ok(());
    }
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n");
    if era == BenchEra::Legacy && exchange::header(request, "mcp-session-id").is_none() {
        out.extend_from_slice(b"mcp-session-id: bench\r\n");
    }
    write!(out, "content-length: {}\r\n\r\n", body.len())
}
