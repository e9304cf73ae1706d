//! What the files say: text to specs plus problems, and text and one change
//! to text with everything else kept. Pure: the environment is an argument.

pub mod spec;

pub use spec::{Containment, EraChoice, Isolation, ServerName, ServerSpec, Target, TransportKind};
