//! Process ownership (SPEC A3, A5, A11, C8): nothing that a server starts
//! outlives it, whoever is killed and when.
//!
//! `PORTWAY_SOAK=1` raises the counts to those that a release is judged by.

mod end;
mod figures;
pub(crate) mod forest;
mod killed;
mod start;

pub(crate) use forest::rounds;
