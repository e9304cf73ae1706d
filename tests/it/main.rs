//! The one integration-test binary. Names start with the SPEC id they prove.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test fails by panicking, may talk, and tables have the types they have"
)]

mod a_away;
mod a_failing;
mod a_logs;
mod a_registration;
mod a_removal;
mod a_restart;
mod a_servers;
mod a_shutdown;
mod a_startup;
mod a_update;
mod app;
mod b_calls;
mod b_clients;
mod b_edits;
mod b_files;
mod b_handover;
mod b_history;
mod b_import;
mod b_layers;
mod b_many;
mod b_plan;
mod b_reload;
mod c_connections;
mod c_isolation;
mod c_questions;
#[path = "../../crates/store/src/tests/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod cluster;
mod conformance;
mod costs;
mod d_catalog;
mod d_control;
mod d_formats;
mod d_limits;
mod d_names;
mod d_tools;
mod e_door;
mod e_entries;
mod e_records;
mod e_served;
mod edge;
mod f_records;
mod f_replicas;
mod fidelity;
mod followed;
mod g_events;
mod g_hangups;
mod g_openapi;
mod g_rest;
mod g_secrets;
mod h_console;
mod i_rest;
mod idle;
mod k_access;
mod k_cli;
mod k_connect;
mod k_doctor;
mod k_lab;
mod k_program;
mod mcp_front;
mod memory;
mod mix_ups;
mod needs;
mod oracle;
mod parity;
mod process;
mod questions;
mod remote;
mod rooms;
mod t_reachable;
mod t_trust;
mod tidy;
mod tools;
mod traps;
mod u_first;
mod u_service;
mod unruly;
