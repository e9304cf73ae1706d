//! Detects Portway among a client's servers: importing it would make a loop.

use url::{Host, Url};

use super::super::spec::{ServerSpec, Target};

/// Whether a definition refers to the Portway at `base`, or starts one.
pub fn is_portway(spec: &ServerSpec, base: &str) -> bool {
    match &spec.target {
        Target::Stdio { command, args, .. } => {
            let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
            let program = program.strip_suffix(".exe").unwrap_or(program);
            program == "portway" && args.iter().any(|arg| arg == "connect")
        }
        Target::Remote { url, .. } => match (Url::parse(url), Url::parse(base)) {
            (Ok(url), Ok(base)) => same_place(&url, &base) && is_endpoint(url.path()),
            _ => false,
        },
    }
}

fn same_place(a: &Url, b: &Url) -> bool {
    let local = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        None => false,
    };
    let host = a.host() == b.host() || (local(a) && local(b));
    host && a.port_or_known_default() == b.port_or_known_default()
}

/// Whether a path may be an MCP endpoint of Portway.
pub fn is_endpoint(path: &str) -> bool {
    let inside = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ["/mcp", "/sse", "/servers", "/api/v1/mcp_v2"]
        .into_iter()
        .any(inside)
}
