//! The file of named filters, followed like the other files. Its last good
//! content stays in force while it cannot be read; if it could never be read,
//! every request that it might forbid is refused.

use std::path::Path;
use std::sync::Arc;

use super::report::SourceReport;
use super::sources::{read_file, text_of};
use config::filters::{Filters, parse_filters};
use config::{Problem, SourceKind};
use store::ReadError;

/// The file, its last good content, and its current problem.
#[derive(Clone, Default)]
pub(super) struct FilterFile {
    good: Option<Arc<[u8]>>,
    pub parsed: Arc<Filters>,
    problem: Option<Problem>,
    /// The existence of the file has been checked once.
    looked: bool,
    /// The file could not be read; it is retried even without a change.
    pub unread: bool,
}

impl FilterFile {
    /// Reads the file again.
    pub(super) async fn reload(&self, path: &Path) -> FilterFile {
        self.take(read_file(path).await)
    }

    /// Reads the file without an earlier state. Blocks on the disk.
    pub(super) fn load_now(path: &Path) -> FilterFile {
        FilterFile::default().take(store::read_trusted(path))
    }

    fn take(&self, read: Result<Option<Vec<u8>>, ReadError>) -> FilterFile {
        let unread = matches!(read, Err(ReadError::Io(_)));
        let passing = matches!(&read, Err(ReadError::Io(error)) if store::is_passing(error));
        let file = match read {
            Ok(Some(bytes)) => self.judge(bytes),
            // Usually an editor is saving; a person removes filters by emptying it.
            Ok(None) if self.good.is_some() => self.kept(Problem::new("", "is gone")),
            // The same value, so that no receiver takes it for a change.
            Ok(None) if self.problem.is_none() => self.clone(),
            Ok(None) => FilterFile::default(),
            // The error says nothing about the file: the last state stays in force.
            Err(error) if passing && self.looked => FilterFile {
                problem: Some(Problem::new("", error.to_string())),
                ..self.clone()
            },
            Err(error) => self.kept(Problem::new("", error.to_string())),
        };
        FilterFile {
            looked: self.looked || !passing,
            unread,
            ..file
        }
    }

    fn judge(&self, bytes: Vec<u8>) -> FilterFile {
        if self.good.as_deref() == Some(&*bytes) {
            return FilterFile {
                problem: None,
                ..self.clone()
            };
        }
        match text_of(&bytes).and_then(parse_filters) {
            Ok(parsed) => FilterFile {
                good: Some(bytes.into()),
                parsed: Arc::new(parsed),
                ..FilterFile::default()
            },
            Err(problem) => self.kept(problem),
        }
    }

    fn kept(&self, problem: Problem) -> FilterFile {
        let parsed = match &self.good {
            Some(_) => self.parsed.clone(),
            None if self.parsed.unreadable.as_ref() == Some(&problem) => self.parsed.clone(),
            None => Arc::new(Filters {
                unreadable: Some(problem.clone()),
                ..Filters::default()
            }),
        };
        FilterFile {
            good: self.good.clone(),
            parsed,
            problem: Some(problem),
            ..FilterFile::default()
        }
    }

    /// The report for the API; `None` if there is no such file.
    pub(super) fn report(&self, path: &Path) -> Option<SourceReport> {
        if self.good.is_none() && self.problem.is_none() {
            return None;
        }
        let told = self.parsed.all_problems();
        Some(SourceReport {
            path: path.display().to_string(),
            kind: SourceKind::Filters,
            error: self.problem.clone(),
            problems: match self.good {
                Some(_) => told.cloned().collect(),
                None => Vec::new(),
            },
            servers: Vec::new(),
        })
    }

    /// Logs new problems.
    pub(super) fn tell(&self, path: &Path, before: &FilterFile) {
        let file = path.display();
        match &self.problem {
            Some(problem) if before.problem.as_ref() != Some(problem) => {
                let stays = match self.good {
                    Some(_) => "its last good state stays",
                    None if self.parsed.unreadable.is_none() => "it is tried again",
                    None => "nothing is shown to clients of all servers",
                };
                tracing::error!(%file, "{file} cannot be used, {stays}: {problem}");
            }
            None if before.problem.is_some() => tracing::info!(%file, "{file} can be used again"),
            _ => {}
        }
        if !Arc::ptr_eq(&self.parsed, &before.parsed) {
            for problem in self.parsed.all_problems() {
                tracing::error!(%file, "{file}: {problem}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32) -> Result<Option<Vec<u8>>, ReadError> {
        Err(std::io::Error::from_raw_os_error(code).into())
    }

    #[test]
    fn d7_b7_a_file_that_cannot_be_read_now_is_unchanged_and_tried_again() {
        let none = FilterFile::default().take(Ok(None));
        let starved = none.take(failed(libc::EMFILE));
        assert!(starved.unread && starved.problem.is_some());
        assert!(Arc::ptr_eq(&starved.parsed, &none.parsed));
        assert_eq!(starved.parsed.find(None), Ok(None), "nothing was forbidden");
        let text = r#"{"filters":{"a":{"allow":["x:*"]}},"default":"a"}"#;
        let good = starved.take(Ok(Some(text.into())));
        assert!(!good.unread && good.problem.is_none());
        assert!(good.parsed.find(None).unwrap().is_some());
        let starved = good.take(failed(libc::EIO));
        assert!(starved.unread);
        assert!(Arc::ptr_eq(&starved.parsed, &good.parsed));

        // Nothing is known yet, and the file may forbid much.
        let first = FilterFile::default().take(failed(libc::EMFILE));
        assert!(first.unread && first.parsed.find(None).is_err());
        let denied = none.take(failed(libc::EACCES));
        assert!(denied.unread && denied.parsed.find(None).is_err());
    }

    #[tokio::test]
    async fn d7_a_file_that_breaks_keeps_its_last_good_state() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".portway.json");
        let none = FilterFile::default().reload(&path).await;
        assert_eq!(none.parsed.find(None), Ok(None));
        assert!(Arc::ptr_eq(&none.parsed, &none.reload(&path).await.parsed));

        std::fs::write(&path, "{").unwrap();
        let broken = none.reload(&path).await;
        assert!(broken.parsed.find(None).is_err());
        assert!(Arc::ptr_eq(
            &broken.parsed,
            &broken.reload(&path).await.parsed
        ));

        std::fs::write(
            &path,
            r#"{"filters":{"a":{"allow":["x:*"]}},"default":"a"}"#,
        )
        .unwrap();
        let good = broken.reload(&path).await;
        let filter = good.parsed.find(None).unwrap().cloned();
        assert!(filter.is_some());

        for damage in [Some("{"), None] {
            match damage {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let kept = good.reload(&path).await;
            assert!(kept.problem.is_some());
            assert_eq!(kept.parsed.find(None).unwrap().cloned(), filter);
            assert!(Arc::ptr_eq(&kept.parsed, &good.parsed));
        }
    }
}
