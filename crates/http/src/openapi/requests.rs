//! Schemas of bodies, headers and paths: as exact as the rules in `records` and
//! `config::body`, so that valid input is accepted.

use serde_json::{Value, json};

use super::schemas::{named, object};
use crate::records::OURS;
use config::schema::request;

/// UTC, to the second or finer; only days that exist in the calendar.
const MOMENT: &str = concat!(
    "^((19[7-9][0-9]|[2-8][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])",
    "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
    "|(19(7[26]|8[048]|9[26])|[2-8][0-9](0[48]|[2468][048]|[13579][26])",
    "|([2468][048]|[357][26])00)-02-29)",
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$"
);
/// A key that the admin chooses: visible, and not a number, which would be an id.
const GIVEN_KEY: &str = "^[!-~]*[!-/:-~][!-~]*$";
/// At least one visible character, and no control characters.
const VISIBLE: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
const PROSE: &str = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$";
const NO_NUL: &str = r"^[^\x00]*$";

/// The schema of values whose shape the client chooses.
fn free() -> Value {
    json!({
        "description": "Any JSON, without NUL characters",
        "anyOf": [
            {"type": ["null", "boolean", "number"]},
            {"type": "string", "pattern": NO_NUL},
            {"type": "array", "items": named("Json")},
            {"type": "object", "propertyNames": {"pattern": NO_NUL}, "additionalProperties": named("Json")},
        ],
    })
}

pub(super) fn schemas() -> Value {
    let tool = json!({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$"});
    let entry = json!({"type": "string", "pattern": VISIBLE, "maxLength": 200});
    let upstream = json!({"type": "string", "pattern": VISIBLE, "maxLength": 512});
    let prose = json!({"type": ["string", "null"], "pattern": PROSE, "maxLength": 16384});
    let server = request::name();
    let status = json!({"enum": [true, false, 1, 0]});
    let maybe_status = json!({"enum": [true, false, 1, 0, null]});
    let moment = json!({"type": ["string", "null"], "pattern": MOMENT});
    let future =
        json!({"type": ["string", "null"], "pattern": MOMENT, "description": "Not in the past"});
    let exposes = json!({"anyOf": [named("GivenExposes"), {"type": "null"}]});
    let filter = json!({"anyOf": [named("GivenFilter"), {"type": "null"}]});
    let patterns = json!({"type": "array", "maxItems": 100, "items": {"type": "string",
        "pattern": r"^[^\s\x00-\x1f\x7f-\x9f]*[:*][^\s\x00-\x1f\x7f-\x9f]*$", "maxLength": 60,
        "description": "A glob over server:tool, of at most 256 bytes"}});
    let mut some_patterns = patterns.clone();
    some_patterns["minItems"] = json!(1);
    let bindings = json!({"type": "array", "items": named("NewBinding"), "maxItems": 1000});
    let servers = json!({"type": "array", "items": server, "maxItems": 1000});
    let allow_missing = json!({"type": ["boolean", "null"],
        "description": "Take servers and tools that are not there"});
    let entry_fields = [
        ("status", &maybe_status),
        ("expires_at", &future),
        ("exposes", &exposes),
        ("filter", &filter),
        ("allow_missing", &allow_missing),
    ];
    json!({
        "Json": free(),
        "NewTool": object(
            &[("name", &tool), ("server", &server), ("tool", &upstream)],
            &[("description", &prose), ("allow_missing", &allow_missing)],
        ),
        "ToolChange": object(&[], &[
            ("name", &tool), ("description", &prose), ("server", &server), ("tool", &upstream),
            ("allow_missing", &allow_missing),
        ]),
        "GivenExposes": object(&[], &[("resources", &servers), ("prompts", &servers)]),
        "GivenFilter": {"anyOf": [
            object(&[("allow", &some_patterns)], &[("deny", &patterns)]),
            object(&[("deny", &some_patterns)], &[("allow", &patterns)]),
        ]},
        "NewEntry": object(&[("name", &entry)], &entry_fields),
        "NewBoundEntry": object(&[("name", &entry), ("bindings", &bindings)], &entry_fields),
        "EntryChange": object(&[], &[
            ("name", &entry), ("status", &status), ("expires_at", &moment), ("exposes", &exposes),
            ("filter", &filter), ("allow_missing", &allow_missing),
        ]),
        "NewKey": object(&[], &[("expires_at", &future)]),
        "NewBinding": object(&[("tool_id", &json!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": i64::MAX},
            {"type": "string", "pattern": "^0*[1-9][0-9]*$", "maxLength": 18},
        ]}))], &[("status", &status)]),
        "NewBindings": {"anyOf": [named("NewBinding"), object(&[("bindings", &bindings)], &[])]},
        "BindingChange": object(&[("status", &status)], &[]),
        "NewOld": old(json!({"name": entry, "status": maybe_status}), &["name"], &json!(false)),
        "OldChange": old(json!({"name": entry, "status": status}), &[], &named("Json")),
        "NewServer": request::registration(),
        "Definition": request::replacement(),
        "DefinitionChange": request::patch(),
        "Candidate": {"anyOf": [
            {"type": "object", "required": ["file"], "properties": {"file": {
                "type": "string", "description": "The text of an .mcp.json",
            }}},
            {"type": "object", "required": ["mcpServers"], "properties": {
                "mcpServers": {"type": ["object", "null"]}, "file": false,
            }},
            named("NewServer"),
        ]},
        "WantedResource": object(&[("uri", &json!({"type": "string"}))], &[]),
        "WantedPrompt": object(&[("name", &json!({"type": "string"}))], &[("arguments", &json!({
            "type": "object", "additionalProperties": {"type": "string"},
        }))]),
        "Message": {"type": ["object", "array"], "description": "JSON-RPC, as MCP defines it"},
    })
}

/// An old record: any fields beside its own, and `ours` in those that Portway
/// sets. The admin may choose owner and key.
fn old(mut properties: Value, required: &[&str], ours: &Value) -> Value {
    for name in OURS {
        properties[name] = ours.clone();
    }
    properties["user_id"] = json!({"anyOf": [
        {"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX},
        {"type": "string", "pattern": VISIBLE, "maxLength": 200},
        {"type": "null"},
    ]});
    properties["api_key"] = json!({
        "type": "string", "pattern": GIVEN_KEY, "minLength": 8, "maxLength": 512,
    });
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "propertyNames": {"pattern": NO_NUL},
        "additionalProperties": named("Json"),
    })
}
