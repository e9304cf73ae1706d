//! Tables for people: aligned by what a terminal shows, cut to its width.

use super::out::{Out, Tint};
use upstream::printable;

const GAP: usize = 2;
/// A column is not cut below this, whatever the terminal's width.
const NARROWEST: usize = 8;

pub(super) struct Cell {
    text: String,
    tint: Tint,
    cut: fn(&str, usize) -> String,
}

impl Cell {
    /// Whatever text: it becomes one line that is safe to show.
    pub(super) fn new(text: &str, tint: Tint) -> Cell {
        Cell {
            text: in_one_line(text),
            tint,
            cut: clip,
        }
    }

    /// One whose end says as much as its start.
    pub(super) fn with_end(text: &str) -> Cell {
        Cell {
            cut: clip_inside,
            ..Cell::from(text)
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::new(text, Tint::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::from(text.as_str())
    }
}

pub(super) struct Table<const N: usize> {
    heads: [&'static str; N],
    rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(heads: [&'static str; N]) -> Table<N> {
        Table {
            heads,
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    pub(super) fn print(&self, out: &mut Out) {
        let widths = self.widths(out.width());
        let heads = self.heads.map(|head| Cell::new(head, Tint::Strong));
        let mut text = line(&heads, &widths, out);
        for row in &self.rows {
            text += &line(row, &widths, out);
        }
        out.write(text.as_bytes());
    }

    fn widths(&self, limit: Option<usize>) -> [usize; N] {
        let mut widths = self.heads.map(width);
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = width(&cell.text).max(*widest);
            }
        }
        let Some(limit) = limit else {
            return widths;
        };
        let room = limit.saturating_sub(GAP * N.saturating_sub(1));
        // The last column is the one that runs on; then whichever is widest.
        while let total = widths.iter().sum::<usize>()
            && total > room
        {
            let last = N - 1;
            let widest = match widths[last] > NARROWEST * 2 {
                true => last,
                false => (0..N).max_by_key(|at| widths[*at]).unwrap_or(last),
            };
            if widths[widest] <= NARROWEST {
                break;
            }
            widths[widest] -= 1;
        }
        widths
    }
}

fn line<const N: usize>(cells: &[Cell; N], widths: &[usize; N], out: &Out) -> String {
    let mut line = String::new();
    // Blanks at the end of a line would wrap in a narrow terminal.
    let end = cells.iter().rposition(|cell| !cell.text.is_empty());
    for (at, (cell, room)) in cells.iter().zip(widths).enumerate() {
        if end.is_none_or(|end| at > end) {
            break;
        }
        let text = (cell.cut)(&cell.text, *room);
        line += &out.paint(cell.tint, &text);
        if Some(at) != end {
            let blank = room.saturating_sub(width(&text)) + GAP;
            line.extend(std::iter::repeat_n(' ', blank));
        }
    }
    line.push('\n');
    line
}

/// Text of several lines, as one that is safe to show.
pub(super) fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    printable(&lines.join(" | ").replace('\t', " "))
}

/// At most so many columns; what is cut off leaves a mark.
pub(super) fn clip(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += char_width(*c);
        used < room
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

/// The same, with what is cut off taken from the middle.
fn clip_inside(text: &str, room: usize) -> String {
    const WORTH_IT: usize = 24;
    if width(text) <= room || room < WORTH_IT {
        return clip(text, room);
    }
    let start = clip(text, room / 2);
    let mut left = room - width(&start);
    let fits = |c: &char| {
        let fits = char_width(*c) <= left;
        left = left.saturating_sub(char_width(*c));
        fits
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    start + &end.into_iter().rev().collect::<String>()
}

/// Columns of a terminal.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    let within = |ranges: &[(u32, u32)]| {
        let code = c as u32;
        ranges
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&code))
    };
    match c {
        ' '..='~' => 1,
        _ if within(UNSEEN) => 0,
        _ if within(WIDE) => 2,
        _ => 1,
    }
}

/// Marks that stand on the character before them.
const UNSEEN: &[(u32, u32)] = &[
    (0x0300, 0x036f),
    (0x0483, 0x0489),
    (0x0591, 0x05bd),
    (0x064b, 0x065f),
    (0x0e34, 0x0e3a),
    (0x0e47, 0x0e4e),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x20d0, 0x20ff),
    (0x3099, 0x309a),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
    (0xe0100, 0xe01ef),
];

/// East Asian wide and full-width characters, and pictures.
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x23e9, 0x23ec),
    (0x2614, 0x2615),
    (0x26a1, 0x26a1),
    (0x2705, 0x2705),
    (0x274c, 0x274c),
    (0x2728, 0x2728),
    (0x2e80, 0x303e),
    (0x3041, 0x33ff),
    (0x3400, 0x4dbf),
    (0x4e00, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe10, 0xfe19),
    (0xfe30, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x1f300, 0x1f64f),
    (0x1f680, 0x1f6ff),
    (0x1f7e0, 0x1f7eb),
    (0x1f900, 0x1f9ff),
    (0x1fa70, 0x1faff),
    (0x20000, 0x3fffd),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_columns_are_counted_as_terminals_do() {
        for (text, columns) in [
            ("", 0),
            ("ls", 2),
            ("文件", 4),
            ("한글", 4),
            ("ｶﾅ", 2),
            ("e\u{301}", 1),
            ("🦀!", 3),
            ("…", 1),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn k7_what_is_cut_fits_and_says_so() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdef", 4), "abc…");
        assert_eq!(clip("文件系统", 4), "文…");
        assert_eq!(clip("文件系统", 5), "文件…");
        for room in 1..9 {
            assert!(width(&clip("a文b件c系", room)) <= room);
        }
        let long = "started with 参数 and ended with exit code 3";
        assert_eq!(clip_inside(long, 24), "started wit… exit code 3");
        for room in 1..60 {
            assert!(width(&clip_inside(long, room)) <= room, "{room}");
        }
    }

    #[test]
    fn k7_a_narrow_terminal_cuts_the_last_column_first() {
        let mut table = Table::new(["NAME", "STATUS", "ERROR"]);
        let long = "x".repeat(200);
        table.row(["文件".into(), "error".into(), long.as_str().into()]);
        assert_eq!(table.widths(None), [4, 6, 200]);
        assert_eq!(table.widths(Some(60)), [4, 6, 46]);
        let narrow = table.widths(Some(10));
        assert!(narrow[2] >= NARROWEST, "{narrow:?}");
    }

    #[test]
    fn k7_a_cell_is_one_safe_line() {
        let cell = Cell::from("one\n\n two\u{1b}[2J\tthree");
        assert_eq!(cell.text, "one | two\\u001b[2J three");
    }
}
