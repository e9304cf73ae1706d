//! A client for everything that is not load: it sends one request and waits for
//! the answer.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, bail, ensure};

use crate::exchange::{self, find, whole};
use crate::lab::PATIENCE;
use crate::load::{INITIALIZE, INITIALIZED, next_cursor};

pub struct BlockingClient {
    socket: TcpStream,
    /// The headers of every request but for the length.
    headers: String,
    /// The part of them that belongs to no session.
    own_headers: usize,
}

impl BlockingClient {
    pub fn connect(address: &str, token: &str) -> anyhow::Result<BlockingClient> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let headers = format!(
            "host: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        );
        Ok(BlockingClient {
            socket,
            own_headers: headers.len(),
            headers,
        })
    }

    /// The status and the body of the answer.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        let (answer, parts) = self.exchange(method, path, body)?;
        let body = String::from_utf8(answer[parts.body].to_vec())?;
        Ok((exchange::status(&answer)?, body))
    }

    /// The body of an answer that must be a success.
    pub fn expect(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let (status, answer) = self.request(method, path, body)?;
        ensure!(
            (200..300).contains(&status),
            "{method} {path}: {status} {answer}"
        );
        Ok(answer)
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(Vec<u8>, exchange::Parts)> {
        self.send(method, path, body)?;
        let mut answer = Vec::new();
        loop {
            self.read(&mut answer)?;
            if let Some(parts) = whole(&answer)? {
                return Ok((answer, parts));
            }
        }
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<()> {
        let (headers, length) = (&self.headers, body.len());
        let request =
            format!("{method} {path} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Ok(self.socket.write_all(request.as_bytes())?)
    }

    fn read(&mut self, answer: &mut Vec<u8>) -> anyhow::Result<()> {
        let mut chunk = [0; 64 << 10];
        let read = self.socket.read(&mut chunk)?;
        ensure!(read > 0, "the connection was closed");
        answer.extend_from_slice(&chunk[..read]);
        Ok(())
    }

    /// Opens a legacy session, which every later request belongs to.
    pub fn open_session(&mut self, path: &str) -> anyhow::Result<()> {
        self.headers.truncate(self.own_headers);
        let (answer, parts) = self.exchange("POST", path, INITIALIZE)?;
        let status = exchange::status(&answer)?;
        ensure!(status == 200, "initialize: {status}");
        if let Some(session) = exchange::header(&answer[..parts.body.start], "mcp-session-id") {
            self.headers += &format!("mcp-session-id: {session}\r\n");
        }
        self.headers += "mcp-protocol-version: 2025-11-25\r\n";
        self.expect("POST", path, INITIALIZED)?;
        Ok(())
    }

    /// Opens the session's stream on this connection, which serves nothing else
    /// from then on.
    pub fn open_stream(&mut self, path: &str) -> anyhow::Result<()> {
        self.send("GET", path, "")?;
        let mut answer = Vec::new();
        while find(&answer, b"id: ").is_none() {
            self.read(&mut answer)?;
            let status = exchange::status(&answer)?;
            ensure!(
                status == 200,
                "the stream: {}",
                String::from_utf8_lossy(&answer)
            );
        }
        Ok(())
    }

    /// The status of the answer to a ping.
    pub fn ping(&mut self, path: &str) -> anyhow::Result<u16> {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        Ok(self.request("POST", path, body)?.0)
    }

    pub fn call(&mut self, path: &str, tool: &str) -> anyhow::Result<()> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"nonce":"1"}}}}}}"#
        );
        let answer = self.expect("POST", path, &body)?;
        ensure!(answer.contains(r#""content""#), "{tool}: {answer}");
        Ok(())
    }

    /// Whether a tool is in the list.
    pub fn lists(&mut self, path: &str, tool: &str) -> anyhow::Result<bool> {
        let tool = format!(r#""name":"{tool}""#);
        let mut params = String::new();
        // A list that changes between two pages begins anew.
        for _ in 0..1000 {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{params}}}}}"#
            );
            let answer = self.expect("POST", path, &body)?;
            if answer.contains(&tool) {
                return Ok(true);
            }
            match next_cursor(answer.as_bytes()) {
                Some(cursor) => params = format!(r#""cursor":"{cursor}""#),
                None if answer.contains("cursor: the list has changed") => params.clear(),
                None => return Ok(false),
            }
        }
        bail!("a list without an end")
    }

    /// Whether the peer has not closed the connection.
    pub fn is_open(&self) -> anyhow::Result<bool> {
        self.socket.set_nonblocking(true)?;
        let open = self.socket.peek(&mut [0]);
        self.socket.set_nonblocking(false)?;
        match open {
            Ok(read) => Ok(read > 0),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error).context("the connection"),
        }
    }
}
