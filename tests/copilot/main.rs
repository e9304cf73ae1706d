//! SPEC D8 with GitHub's own Copilot runtime: a test binary of its own, for
//! the SDK takes long to build.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../it/app.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod app;
mod model;
#[path = "../it/process"]
#[allow(dead_code, reason = "others use the rest")]
mod process {
    pub(crate) mod forest;
}
mod embedded;
mod followed;
mod runtime;
mod scripted;
mod used;
