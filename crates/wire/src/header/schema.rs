use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::object::{each_element, each_member, member, text};
use crate::schema::{KeywordContent, MAX_DEPTH, keyword_content, mentions, without_keyword};

const ANNOTATION: &str = "x-mcp-header";

/// An argument that must be mirrored in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The whole header name, `Mcp-Param-…`.
    pub name: String,
    pub kind: ParamType,
    pub(super) path: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    String,
    Integer,
    Boolean,
}

/// The reason that a tool must not be offered over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnnotation {
    #[error("x-mcp-header at {0} is not a header name")]
    Name(String),
    #[error("x-mcp-header {0:?} is used twice")]
    Twice(String),
    #[error("x-mcp-header at {0} is on a property that is not a string, integer or boolean")]
    Type(String),
    #[error("x-mcp-header at {0} is not reached through properties alone")]
    Place(String),
    #[error("the schema is nested deeper than {MAX_DEPTH} levels")]
    Depth,
}

/// The annotations of a tool's input schema; an invalid one is an error.
pub fn param_headers(input_schema: &RawValue) -> Result<Vec<ParamHeader>, InvalidAnnotation> {
    // Nearly every schema.
    if !mentions(input_schema.get(), ANNOTATION) {
        return Ok(Vec::new());
    }
    let mut scan = AnnotationScan {
        path: Vec::new(),
        found: Vec::new(),
    };
    scan.schema(input_schema, true)?;
    Ok(scan.found)
}

/// The schema without annotations, for a tool whose arguments cannot be
/// mirrored: republished as it is, HTTP clients would drop the whole tool.
pub fn without_annotations(input_schema: &RawValue) -> Cow<'_, RawValue> {
    without_keyword(input_schema, ANNOTATION)
}

struct AnnotationScan {
    /// Keywords and names from the root, for the message; of a header's
    /// argument every second one is a property name.
    path: Vec<String>,
    found: Vec<ParamHeader>,
}

impl AnnotationScan {
    /// `reachable` while only `properties` lie between here and the root.
    fn schema(&mut self, schema: &RawValue, reachable: bool) -> Result<(), InvalidAnnotation> {
        if self.path.len() > 2 * MAX_DEPTH {
            return Err(InvalidAnnotation::Depth);
        }
        if schema.get().starts_with('[') {
            return self.list(schema);
        }
        for (keyword, value) in members(schema) {
            if keyword == ANNOTATION {
                if !reachable || self.path.is_empty() {
                    return Err(InvalidAnnotation::Place(self.place()));
                }
                self.annotation(value, schema)?;
                continue;
            }
            match keyword_content(&keyword) {
                KeywordContent::Data => {}
                KeywordContent::Named => {
                    let reachable = reachable && keyword == "properties";
                    self.named(&keyword, value, reachable)?;
                }
                // An unknown keyword may hold a schema too: an annotation
                // anywhere but under properties is invalid.
                KeywordContent::Schemas | KeywordContent::Unknown => {
                    self.step(keyword, |scan| scan.schema(value, false))?;
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, schemas: &RawValue) -> Result<(), InvalidAnnotation> {
        let (mut at, mut outcome) = (0, Ok(()));
        each_element(schemas, |element| {
            if outcome.is_ok() {
                outcome = self.step(at.to_string(), |scan| scan.schema(element, false));
            }
            at += 1;
        });
        outcome
    }

    fn named(
        &mut self,
        keyword: &str,
        schemas: &RawValue,
        reachable: bool,
    ) -> Result<(), InvalidAnnotation> {
        self.step(keyword.to_owned(), |scan| {
            for (name, schema) in members(schemas) {
                scan.step(name, |scan| scan.schema(schema, reachable))?;
            }
            Ok(())
        })
    }

    fn step(
        &mut self,
        name: String,
        inner: impl FnOnce(&mut Self) -> Result<(), InvalidAnnotation>,
    ) -> Result<(), InvalidAnnotation> {
        self.path.push(name);
        inner(self)?;
        self.path.pop();
        Ok(())
    }

    fn annotation(
        &mut self,
        value: &RawValue,
        property: &RawValue,
    ) -> Result<(), InvalidAnnotation> {
        let token = text(value).filter(|name| is_token(name));
        let token = token.ok_or_else(|| InvalidAnnotation::Name(self.place()))?;
        let kind = match member(property, "type").and_then(text).as_deref() {
            Some("string") => ParamType::String,
            Some("integer") => ParamType::Integer,
            Some("boolean") => ParamType::Boolean,
            _ => return Err(InvalidAnnotation::Type(self.place())),
        };
        let name = format!("Mcp-Param-{token}");
        if self
            .found
            .iter()
            .any(|other| other.name.eq_ignore_ascii_case(&name))
        {
            return Err(InvalidAnnotation::Twice(token.into_owned()));
        }
        let path = self.path.iter().skip(1).step_by(2).cloned().collect();
        self.found.push(ParamHeader { name, kind, path });
        Ok(())
    }

    fn place(&self) -> String {
        format!("#/{}", self.path.join("/"))
    }
}

fn members(raw: &RawValue) -> Vec<(String, &RawValue)> {
    let mut members = Vec::new();
    each_member(raw, |key, value| {
        members.push((key.decoded().into_owned(), value))
    });
    members
}

/// RFC 9110 `token`: one or more `tchar`.
fn is_token(name: &str) -> bool {
    let tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(tchar)
}
