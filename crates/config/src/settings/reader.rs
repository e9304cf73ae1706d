//! Reads the settings one by one and collects their problems.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use crate::check::nearest;

use super::{
    BadSetting, DEFAULT_LISTEN, LogFormat, SettingsError, StorageType, values, variable_names,
};

pub(super) struct SettingsReader<'a> {
    env: &'a BTreeMap<String, String>,
    pub(super) bad: Vec<BadSetting>,
}

impl<'a> SettingsReader<'a> {
    pub(super) fn new(env: &'a BTreeMap<String, String>) -> SettingsReader<'a> {
        SettingsReader {
            env,
            bad: Vec::new(),
        }
    }

    fn refuse(&mut self, name: &str, message: impl Into<String>) {
        self.bad.push(BadSetting {
            name: name.to_owned(),
            message: message.into(),
        });
    }

    /// Unknown variables with the prefix `PORTWAY_`, each with the setting it
    /// may be a typo of. They are not errors: Kubernetes sets `PORTWAY_PORT`
    /// and the like in every pod beside a service named `portway`.
    pub(super) fn unknown(&self) -> Vec<BadSetting> {
        // A server that is itself a Portway has the marker of its parent.
        let ours = |name: &&String| name.starts_with("PORTWAY_") && *name != "PORTWAY_INSTANCE";
        let names = self.env.keys().filter(ours).filter(|name| !is_known(name));
        let unknown = names.map(|name| BadSetting {
            name: name.clone(),
            message: match nearest(name, variable_names()) {
                Some(near) => format!("is not a setting and is ignored; did you mean {near}?"),
                None => "is not a setting and is ignored; `portway serve --help` lists them".into(),
            },
        });
        unknown.collect()
    }

    /// An empty value counts as unset: compose files write unset values so.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(is_known(name), "{name} is not listed");
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn read<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let outcome = parse(self.text(name)?);
        outcome.map_err(|message| self.refuse(name, message)).ok()
    }

    pub(super) fn bounded<T: PartialOrd + Copy + fmt::Debug>(
        &mut self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        let value = self.read(name, parse).unwrap_or(default);
        if !range.contains(&value) {
            let (low, high) = range.into_inner();
            self.refuse(name, format!("must be between {low:?} and {high:?}"));
        }
        value
    }

    pub(super) fn storage(&mut self) -> Result<StorageType, SettingsError> {
        match self.text("STORAGE_TYPE") {
            None | Some("json") => Ok(StorageType::Json),
            Some("supabase") => {
                if self.text("SUPABASE_DB_URL").is_none() {
                    self.refuse("SUPABASE_DB_URL", "is needed with STORAGE_TYPE=supabase");
                }
                Ok(StorageType::Supabase)
            }
            Some(other) => Err(SettingsError::UnsupportedStorage(other.to_owned())),
        }
    }

    pub(super) fn listen(&mut self, option: Option<&str>) -> SocketAddr {
        let default = SocketAddr::from(DEFAULT_LISTEN);
        let (name, text) = match option {
            Some(text) => ("--listen", Some(text)),
            None => ("PORTWAY_LISTEN", self.text("PORTWAY_LISTEN")),
        };
        match text.map_or(Ok(default), values::address) {
            Ok(address) => address,
            Err(message) => {
                self.refuse(name, message);
                default
            }
        }
    }

    pub(super) fn no_auth(&mut self, asked: bool, listen: SocketAddr) -> bool {
        if asked && !listen.ip().to_canonical().is_loopback() {
            let message = format!("works on a loopback address only, and {listen} is none");
            self.refuse("--no-auth", message);
        }
        asked
    }

    pub(super) fn log_format(&mut self, option: Option<&str>) -> LogFormat {
        match option {
            None | Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(other) => {
                self.refuse("--log-format", format!("`{other}` is not text or json"));
                LogFormat::Text
            }
        }
    }
}

fn is_known(name: &str) -> bool {
    variable_names().any(|known| known == name)
}
