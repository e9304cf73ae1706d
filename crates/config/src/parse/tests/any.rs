//! Any file content gives a result or an error, never a panic.

use super::*;

proptest::proptest! {
    #[test]
    fn any_text_gives_an_answer(text in "\\PC{0,200}") {
        let _ = parse_file(&text, Dialect::Mcp);
        let _ = parse_file(&format!("{{\"mcpServers\": {{\"x\": {text}}}}}"), Dialect::Kode);
    }

    #[test]
    fn any_value_of_any_field_gives_an_answer(
        field in proptest::sample::select(crate::definition::known_fields().collect::<Vec<_>>()),
        value in proptest::sample::select(vec![
            "null", "1", "-1", "1e9", "true", "\"\"", "\"x\"", "[]", "[1]", "[\"x\"]", "[[]]", "{}",
            "{\"A\":1}", "{\"A\":\"b\"}", "\"\\ud800\"", "\"http://h\"", "\"${A}\"",
        ]),
        base in proptest::sample::select(vec!["\"command\":\"c\"", "\"url\":\"http://h\""]),
    ) {
        let text = format!("{{\"mcpServers\": {{\"x\": {{{base},\"{field}\":{value}}}}}}}");
        if let Ok(parsed) = parse_file(&text, Dialect::Mcp)
            && let Err(problems) = &parsed.servers["x"]
        {
            assert!(!problems.is_empty());
        }
    }
}
