//! What a test needs of the machine and may not find.

use std::io::Write;

/// Whether the machine has what the calling test needs. Where it does not, the
/// test fails, unless `PORTWAY_TEST_WITHOUT` (words separated by commas) names
/// what is missing: then the test is added to the list of skipped ones, which
/// `make test` prints at its end.
pub(crate) fn has(present: bool, what: &str) -> bool {
    if present {
        return true;
    }
    let without = std::env::var("PORTWAY_TEST_WITHOUT").unwrap_or_default();
    assert!(
        without.split(',').any(|word| word == what),
        "this machine has no {what}; PORTWAY_TEST_WITHOUT={what} skips the tests that need it"
    );
    if let Some(list) = std::env::var_os("PORTWAY_TEST_SKIPPED") {
        let test = std::thread::current();
        let line = format!("{}: no {what}\n", test.name().unwrap_or("a test"));
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(list);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of skipped tests can be written");
    }
    false
}
