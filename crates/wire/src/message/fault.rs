use serde_json::value::RawValue;

use super::{BadId, Id, MAX_BATCH, MAX_DEPTH, code};
use crate::object::MAX_MEMBERS;

/// The reason that a message is refused, and the id that its sender waits for.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{fault}")]
pub struct Malformed {
    pub fault: Fault,
    id: Option<Box<RawValue>>,
    answers: bool,
}

impl Malformed {
    pub(super) fn new(fault: Fault, id: Option<Id<'_>>, answers: bool) -> Self {
        Self {
            fault,
            id: id.map(|id| id.raw().to_owned()),
            answers,
        }
    }

    /// The JSON-RPC code of the answer.
    pub fn code(&self) -> i64 {
        self.fault.code()
    }

    /// The id of the refused message, where it could be read.
    pub fn id(&self) -> Option<&RawValue> {
        self.id.as_deref()
    }

    /// The id of the request that a response nested too deep belongs to.
    pub fn deep_answer(&self) -> Option<&RawValue> {
        let deep = self.answers && self.fault == Fault::TooDeep;
        self.id().filter(|_| deep)
    }

    /// The id of a request that is nested too deep.
    pub fn deep_request(&self) -> Option<&RawValue> {
        let deep = !self.answers && self.fault == Fault::TooDeep;
        self.id().filter(|_| deep)
    }
}

impl<F: Into<Fault>> From<F> for Malformed {
    fn from(fault: F) -> Self {
        Self {
            fault: fault.into(),
            id: None,
            answers: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("empty message")]
    Empty,
    #[error("not UTF-8")]
    NotUtf8,
    #[error("starts with a byte order mark")]
    ByteOrderMark,
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("not JSON at line {line} column {column}")]
    Syntax { line: usize, column: usize },

    #[error("batches are not supported here")]
    Batch,
    #[error("not a batch")]
    NotABatch,
    #[error("empty batch")]
    EmptyBatch,
    #[error("more than {MAX_BATCH} messages in a batch")]
    LongBatch,
    #[error("not an object")]
    NotAnObject,
    #[error("member `{0}` occurs twice")]
    Duplicate(&'static str),
    #[error("`jsonrpc` must be \"2.0\"")]
    JsonRpc,
    #[error("`id` {0}")]
    Id(#[from] BadId),
    #[error("`method` must be a string")]
    Method,
    #[error("`params` must be an object")]
    Params,
    #[error("`error` must have an integer `code` and a string `message`")]
    Error,
    #[error("none of `method`, `result`, `error`")]
    NoPurpose,
    #[error("more than one of `method`, `result`, `error`")]
    TwoPurposes,

    #[error("`params` and `_meta` must be objects of at most {MAX_MEMBERS} members")]
    Wide,
    #[error("params member `{0}` occurs twice")]
    DuplicateParam(String),
    #[error("`params._meta` must be an object")]
    Meta,
    #[error("`params._meta` lacks {}", .0.join(", "))]
    MissingMeta(Vec<&'static str>),
    #[error("`params._meta` has a bad value for {0}")]
    BadMeta(&'static str),
}

impl Fault {
    pub fn code(&self) -> i64 {
        match self {
            Self::Empty
            | Self::NotUtf8
            | Self::ByteOrderMark
            | Self::TooDeep
            | Self::Syntax { .. } => code::PARSE,
            Self::Wide
            | Self::DuplicateParam(_)
            | Self::Meta
            | Self::MissingMeta(_)
            | Self::BadMeta(_) => code::INVALID_PARAMS,
            _ => code::INVALID_REQUEST,
        }
    }
}

// The text of a serde_json error may quote the input; its position does not.
impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax {
            line: error.line(),
            column: error.column(),
        }
    }
}
