//! Limits of sizes, counts and times, with defaults that suit one machine.

use std::collections::BTreeMap;
use std::time::Duration;

use super::reader::SettingsReader;
use super::values;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connect: Duration,
    pub health_interval: Duration,
    pub stop_grace: Duration,
    pub drain: Duration,
    pub max_body: usize,
    pub max_line: usize,
    pub max_response: usize,
    /// `None`: derived from the memory of the system.
    pub memory: Option<usize>,
    pub users: UserLimits,
    pub max_connections: usize,
    pub max_connections_per_ip: usize,
    pub first_byte: Duration,
    pub header: Duration,
    pub body: Duration,
    pub write: Duration,
    pub idle: Duration,
    pub session_idle: Duration,
    pub session_lifetime: Duration,
}

impl Limits {
    /// The limits of the environment, with defaults for unset ones.
    pub(super) fn read(from: &mut SettingsReader<'_>) -> Limits {
        const TICK: Duration = Duration::from_millis(10);
        const DAY: u64 = 86_400;
        Limits {
            connect: time(from, "PORTWAY_CONNECT_TIMEOUT", 60, TICK, 3_600),
            health_interval: time(from, "PORTWAY_HEALTH_INTERVAL", 30, TICK, DAY),
            stop_grace: time(from, "PORTWAY_STOP_GRACE", 5, Duration::ZERO, 600),
            drain: time(from, "PORTWAY_DRAIN", 10, Duration::ZERO, 3_600),
            first_byte: time(from, "PORTWAY_FIRST_BYTE_TIMEOUT", 5, TICK, 3_600),
            header: time(from, "PORTWAY_HEADER_TIMEOUT", 10, TICK, 3_600),
            body: time(from, "PORTWAY_BODY_TIMEOUT", 30, TICK, 3_600),
            write: time(from, "PORTWAY_WRITE_TIMEOUT", 30, TICK, 3_600),
            idle: time(from, "PORTWAY_IDLE_TIMEOUT", 120, TICK, DAY),
            session_idle: time(from, "PORTWAY_SESSION_IDLE", DAY / 2, TICK, 365 * DAY),
            session_lifetime: time(from, "PORTWAY_SESSION_LIFETIME", 7 * DAY, TICK, 365 * DAY),
            max_body: bytes(from, "PORTWAY_MAX_BODY", 4 << 20),
            max_line: bytes(from, "PORTWAY_MAX_LINE", 8 << 20),
            max_response: bytes(from, "PORTWAY_MAX_RESPONSE", 16 << 20),
            memory: memory(from),
            users: UserLimits {
                bytes: bytes(from, "PORTWAY_USER_BYTES", 8 << 20),
                records: places(from, "PORTWAY_USER_RECORDS", 2_000),
                entries: places(from, "PORTWAY_USER_ENTRIES", 200),
                bindings: places(from, "PORTWAY_USER_BINDINGS", 20_000),
            },
            max_connections: places(from, "PORTWAY_MAX_CONNECTIONS", 10_000),
            max_connections_per_ip: places(from, "PORTWAY_MAX_CONNECTIONS_PER_IP", 1_000),
        }
    }
}

/// Limits of the records of one user. The admin's have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserLimits {
    /// Tool records, and old records beside them.
    pub records: usize,
    pub entries: usize,
    pub bindings: usize,
    /// Bytes of the text of all of them.
    pub bytes: usize,
}

fn time(
    from: &mut SettingsReader<'_>,
    name: &str,
    default: u64,
    low: Duration,
    high: u64,
) -> Duration {
    let secs = Duration::from_secs;
    from.bounded(name, secs(default), low..=secs(high), values::duration)
}

fn bytes(from: &mut SettingsReader<'_>, name: &str, default: usize) -> usize {
    from.bounded(name, default, 1_024..=1 << 30, values::size)
}

fn memory(from: &mut SettingsReader<'_>) -> Option<usize> {
    const LEAST: usize = 16 << 20;
    const MOST: usize = 1 << 40;
    let name = "PORTWAY_MEMORY_BUDGET";
    from.text(name)?;
    Some(from.bounded(name, LEAST, LEAST..=MOST, values::size))
}

fn places(from: &mut SettingsReader<'_>, name: &str, default: usize) -> usize {
    from.bounded(name, default, 1..=1_000_000, values::count)
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::read(&mut SettingsReader::new(&BTreeMap::new()))
    }
}
