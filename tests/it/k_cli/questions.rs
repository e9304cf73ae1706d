//! What is asked and shown on a terminal.

use super::screen::{COLUMNS, Screen};
use super::{run, running};

#[tokio::test]
async fn k7_a_question_of_the_server_is_asked_on_the_terminal() {
    let app = running().await;
    for server in ["one", "two"] {
        let tool = format!("{server}:elicit");
        let mut screen = Screen::open(app.setup.path(), &["call", &tool], &[]);
        screen.shows("Who are you?").await;
        screen.shows("[c]ancel").await;
        screen.types("y\n");
        screen.shows("name: ").await;
        screen.types("\n");
        screen.shows("an answer is needed").await;
        screen.types("Anna\n");
        screen.shows("sure (y/n) [true]").await;
        screen.types("n\n");
        let (code, text) = screen.ended().await;
        assert_eq!(code, Some(0), "{text}");
        let answer = r#"{"action":"accept","content":{"name":"Anna","sure":false}}"#;
        assert!(text.contains(answer), "{text}");
    }
    let mut screen = Screen::open(app.setup.path(), &["call", "one:elicit", "mode=url"], &[]);
    screen.shows("https://example.org/agree").await;
    screen.types("n\n");
    let (code, text) = screen.ended().await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(r#"{"action":"decline"}"#), "{text}");
}

#[tokio::test]
async fn k7_without_a_terminal_a_question_is_declined() {
    let app = running().await;
    for server in ["one", "two"] {
        let said = run(&app, &["call", &format!("{server}:elicit")]).await;
        assert!(said.err.contains("Who are you?"), "{said:?}");
        assert!(said.err.contains("declined"), "{said:?}");
        assert_eq!(said.ok(), "{\"action\":\"decline\"}\n");
    }
    let asked = run(&app, &["call", "one:sample"]).await;
    asked.fails(1, "sampling");
}

#[tokio::test]
async fn k7_progress_is_shown_on_a_terminal_only() {
    let app = running().await;
    let args = ["call", "one:progress", "steps=4", "ms=120"];
    let (code, text) = Screen::open(app.setup.path(), &args, &[]).ended().await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\r\u{1b}[K25%  step 1"), "{text:?}");
    assert!(text.trim_end().ends_with("\r\u{1b}[K4 steps"), "{text:?}");
    let piped = run(&app, &args).await;
    assert_eq!(piped.err, "");
    assert_eq!(piped.ok(), "4 steps\n");
}

#[tokio::test]
async fn k7_colours_and_cuts_are_for_terminals() {
    let app = running().await;
    let (code, text) = Screen::open(app.setup.path(), &["ls"], &[]).ended().await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\u{1b}[32mconnected\u{1b}[0m"), "{text:?}");
    assert!(text.contains("\u{1b}[31merror\u{1b}[0m"), "{text:?}");

    let plain = [("NO_COLOR", "1")];
    let (_, text) = Screen::open(app.setup.path(), &["ls"], &plain)
        .ended()
        .await;
    assert!(
        text.contains("connected") && !text.contains('\u{1b}'),
        "{text:?}"
    );
    let widest = text
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max();
    assert_eq!(widest, Some(usize::from(COLUMNS)), "{text}");
    assert!(text.contains('…'), "{text}");

    let (_, text) = Screen::open(app.setup.path(), &["ls", "--json"], &[])
        .ended()
        .await;
    assert!(!text.contains('\u{1b}'), "{text:?}");
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let echo = ["call", "one:echo", r#"{"text": "\u001b[2J"}"#];
    let (_, text) = Screen::open(app.setup.path(), &echo, &[]).ended().await;
    assert_eq!(text.trim_end(), "\\u001b[2J");
}
