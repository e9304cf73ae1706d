//! The server over stdio: what came together is answered together.

use std::io::{Read, Write};

use super::{BenchAnswers, UpstreamOptions};

pub fn serve(options: &UpstreamOptions) -> anyhow::Result<()> {
    let answers = BenchAnswers::new(options);
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut buffer = Vec::new();
    let (mut chunk, mut out) = (vec![0; 64 << 10], Vec::new());
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&chunk[..read]);
        let mut at = 0;
        while let Some(end) = buffer[at..].iter().position(|b| *b == b'\n') {
            let before = out.len();
            answers.answer(&buffer[at..at + end], &mut out)?;
            if out.len() > before {
                out.push(b'\n');
            }
            at += end + 1;
        }
        buffer.drain(..at);
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
}
