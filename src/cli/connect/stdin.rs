//! The client's input, line by line. A thread reads it: reads from a terminal
//! or a file cannot be made asynchronous as those from a socket can.

use std::io::{BufRead, BufReader, Read};

use bytes::Bytes;
use tokio::sync::mpsc;

pub(super) enum ClientLine {
    Whole(Bytes),
    TooLong,
}

/// The number of lines in the queue.
const WAITING: usize = 4;

/// The lines until stdin ends.
pub(super) fn lines(longest: usize) -> mpsc::Receiver<ClientLine> {
    let (sender, receiver) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(64 << 10, std::io::stdin().lock());
        while let Ok(Some(line)) = next(&mut input, longest) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn next(input: &mut impl BufRead, longest: usize) -> std::io::Result<Option<ClientLine>> {
    let mut line = Vec::new();
    let limit = longest as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() > longest {
        drop(line);
        input.skip_until(b'\n')?;
        return Ok(Some(ClientLine::TooLong));
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Ok(Some(ClientLine::Whole(line.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k5_lines_are_bounded_and_a_long_one_costs_itself_only() {
        let text = b"one\r\n\nexactly10!\nthis is too long for it\nlast";
        for capacity in [1, 3, 100] {
            let mut input = BufReader::with_capacity(capacity, &text[..]);
            let mut got = Vec::new();
            while let Some(line) = next(&mut input, 10).unwrap() {
                got.push(match line {
                    ClientLine::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                    ClientLine::TooLong => "-".into(),
                });
            }
            assert_eq!(got, ["one", "", "exactly10!", "-", "last"]);
        }
    }
}
