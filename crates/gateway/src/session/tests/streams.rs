//! The messages that a stream keeps, for which reader, and for how long.

use super::*;

fn text(number: usize) -> Bytes {
    Bytes::from(format!("message {number}"))
}

async fn read(reader: &mut StreamReader) -> Option<(u64, String)> {
    let limit = Duration::from_secs(30);
    let event = tokio::time::timeout(limit, reader.next()).await.unwrap()?;
    let message = String::from_utf8(event.message.whole().into_owned()).unwrap();
    Some((event.number, message))
}

/// Whether nothing comes, as far as one can tell without waiting.
async fn is_quiet(reader: &mut StreamReader) -> bool {
    let soon = Duration::from_millis(20);
    tokio::time::timeout(soon, reader.next()).await.is_err()
}

#[tokio::test]
async fn messages_come_in_order_and_again_from_anywhere() {
    let session = live(&sessions());
    let stream = session.stream();
    session.announce(&stream);
    for number in 1..=5 {
        stream.push(text(number), number == 5).await;
    }
    stream.close();
    session.retire(&stream);
    let mut reader = stream.read().unwrap();
    assert!(stream.read().is_none(), "one message goes to one reader");
    for number in 1..=5 {
        let (at, message) = read(&mut reader).await.unwrap();
        assert_eq!((at, message), (number, format!("message {number}")));
    }
    assert_eq!(read(&mut reader).await, None);
    drop(reader);
    for after in 0..5 {
        let found = session.find_stream(stream.id()).unwrap();
        let mut again = found.resume(after).unwrap();
        assert_eq!(read(&mut again).await.unwrap().0, after + 1);
    }
    assert!(stream.resume(5).is_none(), "nothing is left");
    assert!(stream.resume(99).is_none());
    let other = live(&sessions());
    assert!(other.find_stream(stream.id()).is_none());
}

#[tokio::test]
async fn a_client_that_comes_back_takes_over() {
    let session = live(&sessions());
    let own = session.own().clone();
    session.send(text(1));
    let mut first = own.read().unwrap();
    assert_eq!(read(&mut first).await.unwrap().0, 1);
    assert!(own.read().is_none());
    let mut second = own.resume(0).unwrap();
    assert_eq!(read(&mut first).await, None, "it is another's now");
    assert_eq!(read(&mut second).await.unwrap().0, 1);
    // The old connection's end does not end the new one.
    drop(first);
    assert!(own.is_read());
    session.send(text(2));
    assert_eq!(read(&mut second).await.unwrap().0, 2);
    drop(second);
    session.send(text(3));
    let mut third = own.resume_unread().unwrap();
    assert_eq!(read(&mut third).await.unwrap().0, 3);
    assert!(is_quiet(&mut third).await);
    session.end();
    assert_eq!(read(&mut third).await, None);
}

#[tokio::test]
async fn the_answer_is_kept_whatever_came_before_it() {
    let session = live(&sessions());
    let stream = session.stream();
    session.announce(&stream);
    let big = Bytes::from(vec![b'x'; 3 << 20]);
    for number in 1..2000 {
        stream.push(text(number), false).await;
    }
    stream.push(big.clone(), true).await;
    stream.close();
    let mut reader = stream.resume(0).unwrap();
    let mut last = None;
    let mut count = 0;
    while let Some(event) = reader.next().await {
        count += 1;
        last = Some(event);
    }
    assert!(count <= 257, "{count}");
    let last = last.unwrap();
    assert_eq!((last.number, last.answer), (2000, true));
    assert_eq!(last.message, big);
}

#[tokio::test]
async fn a_slow_reader_slows_the_writer_and_loses_nothing() {
    let session = live(&sessions());
    let stream = session.stream();
    let mut reader = stream.read().unwrap();
    let writer = {
        let stream = stream.clone();
        tokio::spawn(async move {
            for number in 1..=1000 {
                stream.push(text(number), number == 1000).await;
            }
            stream.close();
        })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!writer.is_finished());
    for number in 1..=1000 {
        assert_eq!(read(&mut reader).await.unwrap().0, number);
    }
    assert_eq!(read(&mut reader).await, None);
    writer.await.unwrap();
}

#[tokio::test]
async fn a_writer_does_not_wait_for_a_reader_that_is_gone() {
    let session = live(&sessions());
    let stream = session.stream();
    let reader = stream.read().unwrap();
    let writer = {
        let stream = stream.clone();
        tokio::spawn(async move {
            for number in 1..=1000 {
                stream.push(text(number), false).await;
            }
        })
    };
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!writer.is_finished());
    drop(reader);
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, writer).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_told_to_nobody_is_bounded_and_not_said_twice() {
    let sessions = sessions();
    let session = live(&sessions);
    let changed =
        Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let log = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#);
    for _ in 0..10 {
        session.send(changed.clone());
        session.send(log.clone());
    }
    let mut reader = session.own().read().unwrap();
    let mut messages = Vec::new();
    for _ in 0..11 {
        messages.push(read(&mut reader).await.unwrap().1);
    }
    assert!(is_quiet(&mut reader).await);
    let said = messages.iter().filter(|m| m.contains("list_changed"));
    assert_eq!(said.count(), 1);
    drop(reader);
    // Once read, it can be sent again.
    session.send(changed);
    assert!(read(&mut session.own().read().unwrap()).await.is_some());
    for number in 0..10_000 {
        session.send(text(number));
    }
    let (_, bytes) = sessions.load();
    assert!(bytes < 64 * 1024, "{bytes}");
    let mut reader = session.own().read().unwrap();
    assert_eq!(read(&mut reader).await.unwrap().1, "message 9744");
}

#[tokio::test]
async fn all_streams_together_are_bounded() {
    let sessions = sessions();
    let session = live(&sessions);
    let mib = Bytes::from(vec![b'x'; 1 << 20]);
    let mut streams = Vec::new();
    for _ in 0..200 {
        let stream = session.stream();
        session.announce(&stream);
        stream.answer(mib.clone());
        stream.close();
        session.retire(&stream);
        streams.push(Arc::downgrade(&stream));
        assert!(sessions.load().1 <= 66 << 20);
    }
    assert!(streams[0].upgrade().is_none());
    assert!(streams[199].upgrade().is_some());
    session.end();
    drop(session);
    assert_eq!(sessions.load().1, 0, "all is given back");
}

#[tokio::test]
async fn t_f6_slow_readers_together_are_bounded_too() {
    let sessions = sessions();
    let session = live(&sessions);
    let part = Bytes::from(vec![b'x'; 256 << 10]);
    let mut open = Vec::new();
    for _ in 0..200 {
        let stream = session.stream();
        open.push(stream.read().unwrap());
        let part = part.clone();
        tokio::spawn(async move {
            for _ in 0..4 {
                stream.push(part.clone(), false).await;
            }
            stream.close();
        });
    }
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    let (_, bytes) = sessions.load();
    assert!(bytes < 120 << 20, "{bytes}");
    // No reader is stuck: each gets everything.
    for mut reader in open {
        for number in 1..=4 {
            assert_eq!(read(&mut reader).await.unwrap().0, number);
        }
        assert_eq!(read(&mut reader).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_stream_is_kept_for_a_while() {
    let sessions = Arc::new(sessions());
    let tending = sessions.clone();
    let tending = tokio::spawn(async move { tending.tend().await });
    let session = live(&sessions);
    let stream = session.stream();
    stream.answer(text(1));
    stream.close();
    session.retire(&stream);
    // The client learns of the stream only now: it is kept all the same.
    session.announce(&stream);
    let id = stream.id();
    drop(stream);
    tokio::time::sleep(Duration::from_secs(110)).await;
    assert!(session.find_stream(id).unwrap().resume(0).is_some());
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(session.find_stream(id).is_none());
    assert_eq!(sessions.load().1, 0);
    tending.abort();
}

#[tokio::test]
async fn a_pipe_keeps_nothing_that_was_read() {
    let sessions = sessions();
    let pipe = sessions.pipe();
    let session = sessions.attached(&admin(), LEGACY[0], &raw("{}"), &pipe);
    let mut reader = pipe.read().unwrap();
    session.send(text(1));
    pipe.push(text(2), true).await;
    assert_eq!(read(&mut reader).await.unwrap().1, "message 1");
    assert_eq!(read(&mut reader).await.unwrap().1, "message 2");
    assert_eq!(sessions.load(), (0, 0));
}
