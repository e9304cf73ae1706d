//! What a list is held against: a file of the same size, served by Portway's
//! own listener, guard and router, at the place of the console's files.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::get;
use clap::Args;
use portway::http::{self, Access, EdgeLimits, Guard, HostPolicy};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[derive(Args)]
pub struct Options {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    bytes: usize,
}

pub async fn serve(options: &Options) -> anyhow::Result<()> {
    let file = Bytes::from(vec![b'x'; options.bytes]);
    let files = Router::new().route(
        "/list.json",
        get(move || {
            let file = file.clone();
            async move { file }
        }),
    );
    let listener = TcpListener::bind(options.listen).await?;
    let hosts = HostPolicy::new(listener.local_addr()?, Vec::new(), Vec::new());
    let guard = Arc::new(Guard::new(Access::Open, hosts, 4 << 20));
    let router = http::router(guard, Arc::new(|| 0), http::Console::missing(), files);
    http::serve(
        listener,
        router,
        EdgeLimits::default(),
        CancellationToken::new(),
    )
    .await;
    Ok(())
}
