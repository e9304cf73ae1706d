//! Records of another application, in any shape that it keeps them (SPEC E9):
//! at least a key, a name and a status.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::records::{ADMIN, EntryId, Instance};
use super::snapshot::SnapshotFile;
use super::{
    ApiKey, AtPath, DuringOperation, StoreErrorKind, StoreResult, Timestamp, file, postgres,
};
use config::Secret;

/// More than any application of this kind has.
pub(super) const MOST: usize = 100_000;

/// The names that each field may have; the first that is present counts.
const KEY: &[&str] = &["api_key", "apiKey", "apikey", "key", "access_key", "token"];
const NAME: &[&str] = &["name", "mcp_name", "display_name", "title"];
const STATUS: &[&str] = &["status", "enabled", "is_enabled", "active", "is_active"];
const OWNER: &[&str] = &["user_id", "userId", "owner_id", "owner", "uid"];
const ID: &[&str] = &["id", "mcp_instance_id", "uuid"];
const CREATED: &[&str] = &["created_at", "createdAt", "created"];
const EXPIRES: &[&str] = &["expires_at", "expiresAt", "expires"];
const TOOLS: &str = "register_tools";

/// A key shorter than this can be guessed.
const SAFE_KEY: usize = 16;
const LONGEST_KEY: usize = 512;
const LONGEST_TEXT: usize = 200;

/// One record, as far as it could be read.
#[derive(Debug)]
pub struct ForeignRecord {
    /// Its position, from 1.
    pub number: usize,
    /// The id that the other application gave it.
    pub id: Option<String>,
    pub name: Option<String>,
    /// The record as an old record of ours, without an id of ours; or why it
    /// cannot be used. The reason never holds a key.
    pub read: Result<Instance, String>,
    /// A problem of a record that can still be used.
    pub warning: Option<String>,
}

/// The records in a JSON text: a list, an object of objects by id or key, or
/// either of them in a member of an object, or of an object in an object.
pub(super) fn in_json(text: &[u8]) -> Result<Vec<ForeignRecord>, String> {
    // Some editors put a byte order mark first.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    let found = find(value, 0).ok_or(
        "no records found: expected a list of objects, or an object of objects, each with a key \
         (api_key, key), a name and a status",
    )?;
    if found.len() > MOST {
        return Err(format!("more than {MOST} records"));
    }
    let each = found.into_iter().enumerate();
    Ok(each
        .map(|(at, (label, value))| match value {
            Value::Object(members) => record(at + 1, label, &members),
            _ => unusable(at + 1, label, "not an object".into()),
        })
        .collect())
}

/// The records in a file, which this only reads.
pub fn foreign_file(path: &Path) -> StoreResult<Vec<ForeignRecord>> {
    // The user names the file, so a link may be followed.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let read = file::read(&real).at(path);
    let bytes = read.during("read the records")?;
    let shown = path.display();
    let records = match bytes {
        None => Err(format!("there is no file {shown}")),
        Some(bytes) if SnapshotFile::is_envelope(&bytes) => Err(format!(
            "{shown} is a file of Portway itself; run portway migrate without --from"
        )),
        Some(bytes) => in_json(&bytes).map_err(|reason| format!("{shown}: {reason}")),
    };
    records
        .map_err(StoreErrorKind::Setup)
        .during("read the records")
}

/// The records in a table of a database, oldest first. Only reads it.
pub async fn foreign_table(
    url: &Secret,
    schema: &str,
    table: &str,
) -> StoreResult<Vec<ForeignRecord>> {
    let rows = postgres::rows_of(url, schema, table).await?;
    let members = |text: &String| serde_json::from_str::<Map<String, Value>>(text).ok();
    let mut rows: Vec<Map<String, Value>> = rows.iter().filter_map(members).collect();
    rows.sort_by_key(|row| first(row, ID).and_then(Value::as_i64));
    let each = rows.iter().enumerate();
    Ok(each.map(|(at, row)| record(at + 1, None, row)).collect())
}

type LabelledValue = (Option<String>, Value);

/// Each value with its member name in an object.
fn find(value: Value, depth: usize) -> Option<Vec<LabelledValue>> {
    match value {
        Value::Array(items) => {
            let like = items.is_empty() || items.iter().any(is_like_a_record);
            like.then(|| items.into_iter().map(|item| (None, item)).collect())
        }
        Value::Object(members) if is_record(&members) && has(&members, KEY) => {
            Some(vec![(None, Value::Object(members))])
        }
        Value::Object(members) if members.values().any(is_like_a_record) => {
            let labelled = |(name, value)| (Some(name), value);
            Some(members.into_iter().map(labelled).collect())
        }
        // Looks deeper: the other application may wrap its records.
        Value::Object(members) if depth < 2 => members
            .into_iter()
            .filter(|(_, value)| value.is_array() || value.is_object())
            .find_map(|(_, value)| find(value, depth + 1).filter(|found| !found.is_empty())),
        _ => None,
    }
}

fn is_like_a_record(value: &Value) -> bool {
    value.as_object().is_some_and(is_record)
}

fn is_record(members: &Map<String, Value>) -> bool {
    has(members, NAME) && has(members, STATUS)
}

fn has(members: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().any(|name| members.contains_key(*name))
}

fn unusable(number: usize, id: Option<String>, reason: String) -> ForeignRecord {
    ForeignRecord {
        number,
        id,
        name: None,
        read: Err(reason),
        warning: None,
    }
}

/// `label`: the member name of the record in an object; it is the id, or the
/// key if the record has an id of its own or no other key.
pub(super) fn record(
    number: usize,
    label: Option<String>,
    members: &Map<String, Value>,
) -> ForeignRecord {
    let labels_key = label.is_some() && first(members, KEY).is_none();
    let id = first(members, ID).and_then(shown);
    let id = id.or_else(|| label.clone().filter(|_| !labels_key));
    let name = first(members, NAME).and_then(Value::as_str);
    let label = label.filter(|_| labels_key).map(Value::String);
    let key = first(members, KEY).or(label.as_ref());
    let length = key.and_then(Value::as_str).map(str::len);
    let short = length.filter(|length| *length < SAFE_KEY).map(|length| {
        format!("its key has only {length} characters and can be guessed: rotate it")
    });
    let read = instance(members, key);
    let lost = read.as_ref().map_or(0, Instance::unregistered);
    let lost = (lost > 0).then(|| {
        format!("{lost} of its {TOOLS} are not written as \"server:tool\" and are left out")
    });
    let warnings: Vec<String> = short.into_iter().chain(lost).collect();
    ForeignRecord {
        number,
        id,
        name: name.map(str::to_owned),
        warning: (read.is_ok() && !warnings.is_empty()).then(|| warnings.join("; ")),
        read,
    }
}

fn first<'m>(members: &'m Map<String, Value>, names: &[&str]) -> Option<&'m Value> {
    let mut found = names.iter().filter_map(|name| members.get(*name));
    found.find(|value| !value.is_null())
}

/// A text, or a number as a text.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn instance(members: &Map<String, Value>, key: Option<&Value>) -> Result<Instance, String> {
    let now = Timestamp::now();
    let key = ApiKey::given(key_text(key)?);
    let expires_at = match first(members, EXPIRES) {
        None => None,
        // A key that has expired must not open anything again.
        Some(value) => Some(moment(value).ok_or("expires_at: not a moment")?),
    };
    let created_at = first(members, CREATED).and_then(moment).unwrap_or(now);
    let owner: Arc<str> = match first(members, OWNER) {
        None => ADMIN.into(),
        Some(value) => shown(value)
            .filter(|text| is_visible(text))
            .ok_or("user_id: must be a text or a number")?
            .into(),
    };
    let mut stored = key.record(expires_at).made(now);
    stored.created_at = created_at;
    let tools = members
        .get(TOOLS)
        .map(|tools| (TOOLS.to_owned(), unquoted(tools)));
    Ok(Instance {
        id: EntryId(0),
        owner,
        name: name(members)?,
        enabled: status(first(members, STATUS))?,
        key: stored,
        extra: tools.into_iter().collect(),
        created_at,
        updated_at: now,
    })
}

/// A text column may hold JSON.
fn unquoted(value: &Value) -> Value {
    let within = value.as_str().map(serde_json::from_str::<Value>);
    match within {
        Some(Ok(within @ Value::Array(_))) => within,
        _ => value.clone(),
    }
}

fn key_text(key: Option<&Value>) -> Result<&str, String> {
    let key = key.ok_or_else(|| format!("no key (looked for {})", KEY.join(", ")))?;
    let text = key.as_str().unwrap_or_default();
    let fits =
        (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits {
        return Ok(text);
    }
    Err(format!(
        "key: must be a text of 1 to {LONGEST_KEY} visible ASCII characters"
    ))
}

fn name(members: &Map<String, Value>) -> Result<String, String> {
    let found = first(members, NAME).and_then(Value::as_str);
    let name = found.ok_or_else(|| format!("no name (looked for {})", NAME.join(", ")))?;
    if !is_visible(name) {
        return Err(format!(
            "name: empty, longer than {LONGEST_TEXT} characters, or with control characters"
        ));
    }
    Ok(name.to_owned())
}

fn is_visible(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= LONGEST_TEXT
        && !text.chars().any(char::is_control)
}

fn status(value: Option<&Value>) -> Result<bool, String> {
    let value = value.ok_or_else(|| format!("no status (looked for {})", STATUS.join(", ")))?;
    let text = match value {
        Value::Bool(status) => return Ok(*status),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    match text.as_str() {
        "1" | "t" | "true" | "y" | "yes" | "on" | "enabled" | "active" | "running" => Ok(true),
        "0" | "f" | "false" | "n" | "no" | "off" | "disabled" | "inactive" | "stopped" => Ok(false),
        _ => Err("status: must be true or false, 1 or 0, or a word such as active".into()),
    }
}

/// A time with or without an offset, or seconds or milliseconds since 1970.
fn moment(value: &Value) -> Option<Timestamp> {
    const MILLIS_FROM: u64 = 100_000_000_000;
    if let Some(number) = value.as_u64() {
        let millis = if number < MILLIS_FROM {
            number * 1000
        } else {
            number
        };
        return Some(Timestamp::from_millis(millis));
    }
    let text = value.as_str()?;
    let moment = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let local: jiff::civil::DateTime = text.parse().ok()?;
        Some(local.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    });
    u64::try_from(moment?.as_millisecond())
        .ok()
        .map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Vec<ForeignRecord> {
        in_json(value.to_string().as_bytes()).unwrap()
    }

    fn names(value: &Value) -> Vec<String> {
        let usable = |found: ForeignRecord| found.read.unwrap().name;
        read(value).into_iter().map(usable).collect()
    }

    #[test]
    fn e9_records_are_found_in_every_usual_shape() {
        let one = json!({"api_key": "key-one", "name": "one", "status": 1});
        let two = json!({"key": "key-two", "name": "two", "status": true});
        let keyless = json!({"name": "three", "status": "active"});
        let both = ["one", "two"];
        assert_eq!(names(&json!([one, two])), both);
        assert_eq!(names(&json!({"1": one, "2": two})), both);
        assert_eq!(names(&json!({"version": 3, "instances": [one, two]})), both);
        assert_eq!(names(&json!({"mcp_instances": {"a": one, "b": two}})), both);
        assert_eq!(names(&json!({"data": {"mcp": [one, two]}})), both);
        let marked = format!("\u{feff}{}", json!([one, two]));
        assert_eq!(in_json(marked.as_bytes()).unwrap().len(), 2);
        assert_eq!(names(&one), ["one"]);
        let by_key = json!({"key-three": keyless});
        let found = read(&by_key).remove(0).read.unwrap();
        assert_eq!(found.key.digest, ApiKey::given("key-three").digest());
        assert!(read(&json!([])).is_empty());
        for none in [json!({}), json!(7), json!({"servers": {}}), json!([1, 2])] {
            let error = in_json(none.to_string().as_bytes()).unwrap_err();
            assert!(error.contains("no records"), "{error}");
        }
    }

    #[test]
    fn e9_fields_are_read_under_their_other_names() {
        let record = json!([{
            "id": 7, "apiKey": "key-of-the-old-application", "title": "seven", "is_active": "f",
            "userId": 9_007_199_254_740_993_i64, "createdAt": "2024-02-29T10:00:00+02:00",
            "expires_at": 4_102_444_800_u64, "register_tools": ["files:read"], "port": 4000,
        }]);
        let found = read(&record).remove(0);
        assert_eq!((found.number, found.id.as_deref()), (1, Some("7")));
        assert_eq!(found.warning, None);
        let old = found.read.unwrap();
        assert_eq!((&*old.owner, old.enabled), ("9007199254740993", false));
        assert_eq!(old.created_at.to_string(), "2024-02-29T08:00:00.000Z");
        assert_eq!(
            old.key.expires_at.unwrap().to_string(),
            "2100-01-01T00:00:00.000Z"
        );
        assert_eq!(old.registered(), [("files", "read")]);
        for (text, is) in [
            (json!("2024-01-02 03:04:05.5"), "2024-01-02T03:04:05.500Z"),
            (json!("2024-01-02T03:04:05"), "2024-01-02T03:04:05.000Z"),
            (json!(1_700_000_000_123_u64), "2023-11-14T22:13:20.123Z"),
        ] {
            assert_eq!(moment(&text).unwrap().to_string(), is);
        }
    }

    #[test]
    fn e9_tools_that_do_not_come_along_are_told() {
        let with = |tools: Value| {
            let record = json!([{"api_key": "a-key-that-is-long-enough", "name": "n",
                "status": 1, "register_tools": tools}]);
            let found = read(&record).remove(0);
            let tools = found.read.unwrap().registered().len();
            (tools, found.warning)
        };
        let both = json!("[\"files:read\", \"git:log\"]");
        assert_eq!(with(both), (2, None));
        for none in [json!(null), json!([]), json!(""), json!("[]")] {
            assert_eq!(with(none), (0, None));
        }
        for (odd, usable, lost) in [
            (json!("files:read, git:log"), 0, 1),
            (json!(["files:read", "read", 7, ":x"]), 1, 3),
            (json!({"files": ["read"]}), 0, 1),
        ] {
            let (tools, warning) = with(odd);
            assert_eq!(tools, usable);
            let words = format!("{lost} of its register_tools");
            assert!(warning.unwrap().contains(&words));
        }
    }

    #[test]
    fn e9_what_cannot_be_used_says_why_and_shows_no_key() {
        let good = json!({"api_key": "hunter2", "name": "n", "status": 0});
        let with = |name: &str, value: Value| {
            let mut record = good.clone();
            record[name] = value;
            record
        };
        let table = [
            (with("api_key", json!(null)), "no key"),
            (with("api_key", json!("hunter2 ")), "key: "),
            (with("api_key", json!("")), "key: "),
            (with("name", json!(" ")), "name: "),
            (with("name", json!(null)), "no name"),
            (with("status", json!("archived")), "status: "),
            (with("status", json!(null)), "no status"),
            (with("status", json!(2)), "status: "),
            (with("expires_at", json!("tomorrow")), "expires_at: "),
            (with("user_id", json!({})), "user_id: "),
        ];
        for (record, words) in table {
            let found = read(&json!([good, record])).remove(1);
            let reason = found.read.unwrap_err();
            assert!(reason.starts_with(words), "{reason}");
            assert!(!reason.contains("hunter2"));
        }
        let short = read(&json!([good])).remove(0);
        assert!(short.warning.as_ref().unwrap().contains("7 characters"));
        assert!(!format!("{short:?}").contains("hunter2"));
        let odd = read(&json!([good, 7])).remove(1);
        assert_eq!(odd.read.unwrap_err(), "not an object");
    }
}
