use std::str::FromStr;

/// Least to most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

const LEVELS: [(LogLevel, &str); 8] = [
    (LogLevel::Debug, "debug"),
    (LogLevel::Info, "info"),
    (LogLevel::Notice, "notice"),
    (LogLevel::Warning, "warning"),
    (LogLevel::Error, "error"),
    (LogLevel::Critical, "critical"),
    (LogLevel::Alert, "alert"),
    (LogLevel::Emergency, "emergency"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a log level")]
pub struct BadLogLevel;

impl FromStr for LogLevel {
    type Err = BadLogLevel;

    fn from_str(name: &str) -> Result<Self, BadLogLevel> {
        let found = LEVELS.iter().find(|(_, known)| *known == name);
        found.map(|(level, _)| *level).ok_or(BadLogLevel)
    }
}

impl LogLevel {
    pub fn as_str(self) -> &'static str {
        LEVELS[self as usize].1
    }
}
