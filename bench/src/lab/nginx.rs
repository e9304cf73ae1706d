//! nginx as a plain proxy.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{BenchProcess, Core, PATIENCE, Upstream, free_address, until_listening, words};

/// A path with buffers for a large answer, so that none goes to a file, as is
/// nginx's default.
pub const BUFFERED: &str = "/buffered";

/// nginx as a plain reverse proxy with one worker: a port per upstream.
pub struct Nginx {
    pub addresses: Vec<SocketAddr>,
    process: BenchProcess,
    _dir: tempfile::TempDir,
}

impl Nginx {
    pub fn start(binary: &str, upstreams: &[&Upstream]) -> anyhow::Result<Nginx> {
        let dir = tempfile::tempdir()?;
        let mut addresses = Vec::new();
        let mut servers = String::new();
        for (number, upstream) in upstreams.iter().enumerate() {
            let address = free_address()?;
            servers += &format!(
                "upstream u{number} {{ server {}; keepalive 256; keepalive_requests 100000000; }}\n\
                 server {{ listen {address}; location / {{ proxy_pass http://u{number}; }} \
                 location {BUFFERED} {{ proxy_pass http://u{number}; proxy_buffers 16 64k; \
                 proxy_max_temp_file_size 0; }} }}\n",
                upstream.address
            );
            addresses.push(address);
        }
        let at = dir.path().display();
        let text = format!(
            "worker_processes 1;\nworker_rlimit_nofile 12000;\ndaemon off;\npid {at}/pid;\n\
             error_log {at}/error.log;\nevents {{ worker_connections 12000; }}\n\
             http {{\naccess_log off;\nkeepalive_requests 100000000;\n\
             proxy_http_version 1.1;\nproxy_set_header Connection \"\";\nclient_body_temp_path {at}/b;\nproxy_temp_path {at}/p;\nfastcgi_temp_path {at}/f;\n\
             uwsgi_temp_path {at}/u;\nscgi_temp_path {at}/s;\n{servers}}}\n"
        );
        let config = dir.path().join("nginx.conf");
        std::fs::write(&config, text)?;
        let program = words(&[
            binary,
            "-c",
            &config.display().to_string(),
            "-e",
            &dir.path().join("error.log").display().to_string(),
        ]);
        let process = BenchProcess::start(Core::Gateway, &program, Stdio::null())?;
        for address in &addresses {
            until_listening(*address)?;
        }
        Ok(Nginx {
            addresses,
            process,
            _dir: dir,
        })
    }

    /// The process that does the work.
    pub fn worker(&self) -> anyhow::Result<u32> {
        let pid = self.process.pid();
        let start = Instant::now();
        loop {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
            if let Some(worker) = children.split_whitespace().next() {
                return Ok(worker.parse()?);
            }
            ensure!(start.elapsed() < PATIENCE, "nginx has no worker");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
