//! Configuration: reads files into server definitions plus problems, and
//! edits a file without changing anything else in it. Pure: the environment
//! is an argument.

pub mod authority;
pub mod body;
mod check;
mod database;
mod definition;
pub mod edit;
pub mod environment;
pub mod expand;
mod fields;
pub mod filters;
pub mod globs;
pub mod import;
pub mod layers;
mod mask;
pub mod parse;
pub mod problem;
pub mod redact;
mod reference;
pub mod schema;
pub mod secret;
pub mod settings;
pub mod spec;
mod tree;
pub mod view;

pub use body::{Registration, ServerChange, merge_patch, parse_body, parse_replacement};
pub use check::{distance, typo_distance, unknown_field};
pub use database::DatabaseSchema;
pub use edit::{EditError, remove_server, rename_server, set_server};
pub use environment::child_env;
pub use expand::{Launch, LaunchTarget, expand};
pub use layers::{Layer, MergedServer, Source, SourceKind};
pub use parse::{Definition, Dialect, ServerDefinitions, ServerFile, parse_file};
pub use problem::Problem;
pub use redact::Redactor;
pub use schema::schema;
pub use secret::Secret;
pub use spec::{
    Containment, DEFAULT_TIMEOUT, EraChoice, Isolation, MASK, Privileges, RemoteKind, ServerName,
    ServerSpec, Target, TransportKind,
};
pub use view::masked_config;
