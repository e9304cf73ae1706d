use proptest::prelude::*;

use super::*;

fn decode(limit: usize, chunks: &[&[u8]]) -> Result<Vec<Event>, EventTooLong> {
    let mut decoder = Decoder::new(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, |event| events.push(event))?;
    }
    Ok(events)
}

/// `name|data|id|retry`, with `-` for an absent field.
fn show(event: &Event) -> String {
    format!(
        "{}|{}|{}|{}",
        event.name.as_deref().unwrap_or("-"),
        String::from_utf8_lossy(&event.data),
        event.id.as_deref().unwrap_or("-"),
        event
            .retry
            .map_or("-".to_owned(), |retry| retry.to_string()),
    )
}

const STREAMS: &[(&str, &[&str])] = &[
    ("data: a\n\n", &["-|a|-|-"]),
    ("data:a\r\n\r\n", &["-|a|-|-"]),
    ("data: a\r\rdata: b\r\r", &["-|a|-|-", "-|b|-|-"]),
    ("data:  two spaces\n\n", &["-| two spaces|-|-"]),
    ("\u{feff}data: bom\n\n", &["-|bom|-|-"]),
    ("\u{feff}: comment after bom\ndata: a\n\n", &["-|a|-|-"]),
    ("data: \u{feff}later\n\n", &["-|\u{feff}later|-|-"]),
    (
        "data: a\ndata: b\ndata\ndata:\ndata: c\n\n",
        &["-|a\nb\n\n\nc|-|-"],
    ),
    (
        "event: endpoint\ndata: /messages?id=1\n\n",
        &["endpoint|/messages?id=1|-|-"],
    ),
    (
        "event: message\nid: s1-1\ndata: {}\n\n",
        &["message|{}|s1-1|-"],
    ),
    ("id: s1-0\ndata:\n\n", &["-||s1-0|-"]),
    ("id: 7\nretry: 1500\n\n", &["-||7|1500"]),
    ("retry: 5\n\n", &["-||-|5"]),
    ("id\ndata: x\n\n", &["-|x||-"]),
    ("id: a\0b\ndata: x\n\n", &["-|x|-|-"]),
    ("retry: 12x\ndata: x\n\n", &["-|x|-|-"]),
    ("retry: 99999999999999999999999\ndata: x\n\n", &["-|x|-|-"]),
    ("event:\ndata: x\n\n", &["-|x|-|-"]),
    ("event: lost\n\ndata: x\n\n", &["-|x|-|-"]),
    (
        ":\n\n: keep-alive\n\n:data: no\n\ndata: x\n\n",
        &["-|x|-|-"],
    ),
    (
        "nonsense: 1\nDATA: no\nspace in name: 2\ndata: x\n\n",
        &["-|x|-|-"],
    ),
    ("data: a\n\ndata: never finished\n", &["-|a|-|-"]),
    ("\n\n\n\r\n\r\r\ndata: x\n\n\n\n", &["-|x|-|-"]),
    ("data: é🦀\n\n", &["-|é🦀|-|-"]),
];

#[test]
fn streams_are_read_as_written() {
    for (stream, expected) in STREAMS {
        let events = decode(1024, &[stream.as_bytes()]).unwrap();
        let shown: Vec<String> = events.iter().map(show).collect();
        assert_eq!(&shown, expected, "{stream:?}");
    }
}

#[test]
fn every_cut_gives_the_same_events() {
    for (stream, _) in STREAMS {
        let bytes = stream.as_bytes();
        let whole = decode(1024, &[bytes]).unwrap();
        for at in 0..bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(
                decode(1024, &[left, right]).unwrap(),
                whole,
                "{stream:?} at {at}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(1024, &single).unwrap(), whole, "{stream:?}");
    }
}

#[test]
fn only_data_under_the_default_name_is_a_message() {
    let events = decode(
        1024,
        &[b"data: {}\n\nevent: message\ndata: {}\n\nevent: endpoint\ndata: x\n\nid: 1\ndata:\n\n"],
    );
    let messages: Vec<bool> = events.unwrap().iter().map(Event::is_message).collect();
    assert_eq!(messages, [true, true, false, false]);
}

#[test]
fn events_are_handed_out_one_at_a_time() {
    let mut decoder = Decoder::new(1024);
    let mut input: &[u8] = b"data: a\n\ndata: b\n\ndata: c";
    assert_eq!(decoder.next(&mut input).unwrap().unwrap().data, b"a");
    assert_eq!(input, b"data: b\n\ndata: c");
    assert_eq!(decoder.next(&mut input).unwrap().unwrap().data, b"b");
    assert_eq!(decoder.next(&mut input).unwrap(), None);
    assert_eq!(input, b"");
}

#[test]
fn t_f3_an_endless_event_is_an_error_and_never_held() {
    let piece = vec![b'x'; 1000];
    let endless: [(&[u8], &[u8]); 4] = [
        (b"data: ", b""),     // one line without end
        (b"", b"\ndata: "),   // many lines, no blank one
        (b"unknown: ", b""),  // a field nobody asked for
        (b"id: ", b"\nid: "), // never more than a line, but long ones
    ];
    for (at, (start, glue)) in endless.into_iter().enumerate() {
        let mut decoder = Decoder::new(10_000);
        let mut pushed = 0;
        let mut result = decoder.push(start, |_| {});
        while result.is_ok() && pushed < 1_000_000 {
            result = decoder
                .push(&piece, |_| {})
                .and_then(|()| decoder.push(glue, |_| {}));
            pushed += piece.len();
        }
        let bounded = decoder.line.capacity() + decoder.event.data.capacity() < 64_000;
        assert!(bounded, "case {at}");
        // A field that is replaced each time stays small on its own.
        assert_eq!(result.is_err(), at != 3, "case {at} after {pushed} bytes");
    }
}

#[test]
fn an_endless_comment_is_not_held() {
    let mut decoder = Decoder::new(100);
    decoder.push(b": ", |_| {}).unwrap();
    for _ in 0..1000 {
        decoder.push(&[b'x'; 1000], |_| {}).unwrap();
    }
    assert!(decoder.line.capacity() < 100);
    let mut events = 0;
    decoder.push(b"\ndata: x\n\n", |_| events += 1).unwrap();
    assert_eq!(events, 1);
}

#[test]
fn the_limit_is_exact_enough() {
    let event = |size: usize| format!("data: {}\n\n", "x".repeat(size));
    assert!(decode(100, &[event(99).as_bytes()]).is_ok());
    assert_eq!(
        decode(100, &[event(100).as_bytes()]),
        Err(EventTooLong { limit: 100 })
    );
    // Each event has the limit to itself.
    let many = event(90).repeat(50);
    assert_eq!(decode(100, &[many.as_bytes()]).unwrap().len(), 50);
}

#[test]
fn events_are_written_so_that_they_cannot_be_broken_out_of() {
    let encoded = |name, id, retry, data: &str| {
        let mut out = Vec::new();
        encode(name, id, retry, data.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(encoded(None, None, None, "{}"), "data: {}\n\n");
    assert_eq!(
        encoded(None, Some("s-0"), Some(3), ""),
        "id: s-0\nretry: 3\ndata: \n\n"
    );
    assert_eq!(
        encoded(Some("message"), None, None, "a\r\nb\rc\n\nd"),
        "event: message\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\n\n"
    );
    assert_eq!(
        encoded(Some("x\ndata: y"), Some("\r\n\0"), None, ""),
        "event: xdata: y\nid: \ndata: \n\n"
    );
    let mut out = Vec::new();
    comment(&mut out);
    assert_eq!(decode(10, &[&out]).unwrap(), []);
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        stream in "((data|event|id|retry|x)?:? ?[a-z0-9é]{0,6}(\n|\r\n|\r){0,2}){0,20}",
        cuts in prop::collection::vec(1usize..8, 0..80),
    ) {
        let bytes = stream.as_bytes();
        let mut chunks = Vec::new();
        let mut rest = bytes;
        for cut in cuts {
            let (chunk, tail) = rest.split_at(cut.min(rest.len()));
            chunks.push(chunk);
            rest = tail;
        }
        chunks.push(rest);
        prop_assert_eq!(decode(4096, &chunks), decode(4096, &[bytes]));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)
    ) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let _ = decode(64, &chunks);
    }

    #[test]
    fn what_is_encoded_decodes(
        name in prop::option::of("[a-z]{1,8}"),
        id in prop::option::of("[!-~]{0,12}"),
        retry in prop::option::of(any::<u64>()),
        data in "[ -~é\n]{0,60}",
    ) {
        let mut out = Vec::new();
        encode(name.as_deref(), id.as_deref(), retry, data.as_bytes(), &mut out);
        let event = Event { name, data: data.into_bytes(), id, retry };
        prop_assert_eq!(decode(4096, &[&out]).unwrap(), vec![event]);
    }
}
