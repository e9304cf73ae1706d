//! Tables for people: aligned by displayed width, cut to the terminal's width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Terminal, Tint};
use upstream::printable;

const GAP: usize = 2;
/// A column is not cut below this, whatever the terminal's width.
const NARROWEST: usize = 8;

pub(in crate::cli) struct Cell {
    text: String,
    tint: Tint,
    cut: fn(&str, usize) -> String,
}

impl Cell {
    /// Any text: it becomes one line that is safe to show.
    pub(in crate::cli) fn new(text: &str, tint: Tint) -> Cell {
        Cell {
            text: in_one_line(text),
            tint,
            cut: clip,
        }
    }

    /// A cell whose end is as important as its start.
    pub(in crate::cli) fn with_end(text: &str) -> Cell {
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

pub(in crate::cli) struct Table<const N: usize> {
    heads: [&'static str; N],
    rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    pub(in crate::cli) fn new(heads: [&'static str; N]) -> Table<N> {
        Table {
            heads,
            rows: Vec::new(),
        }
    }

    pub(in crate::cli) fn row(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    pub(in crate::cli) fn to_text(&self, out: &Terminal) -> String {
        let widths = self.widths(out.width());
        let heads = self.heads.map(|head| Cell::new(head, Tint::Strong));
        let mut text = line(&heads, &widths, out);
        for row in &self.rows {
            text += &line(row, &widths, out);
        }
        text
    }

    pub(in crate::cli) fn print(&self, out: &mut Terminal) {
        let text = self.to_text(out);
        out.write(text.as_bytes());
    }

    fn widths(&self, limit: Option<usize>) -> [usize; N] {
        let mut widths = self.heads.map(UnicodeWidthStr::width);
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = cell.text.width().max(*widest);
            }
        }
        let Some(limit) = limit else {
            return widths;
        };
        let room = limit.saturating_sub(GAP * N.saturating_sub(1));
        // The last column is cut first, then the widest.
        while let total = widths.iter().sum::<usize>()
            && total > room
        {
            let last = N - 1;
            let widest = if widths[last] > NARROWEST * 2 {
                last
            } else {
                (0..N).max_by_key(|at| widths[*at]).unwrap_or(last)
            };
            if widths[widest] <= NARROWEST {
                break;
            }
            widths[widest] -= 1;
        }
        widths
    }
}

fn line<const N: usize>(cells: &[Cell; N], widths: &[usize; N], out: &Terminal) -> String {
    let mut line = String::new();
    // Trailing spaces would wrap in a narrow terminal.
    let end = cells.iter().rposition(|cell| !cell.text.is_empty());
    for (at, (cell, room)) in cells.iter().zip(widths).enumerate() {
        if end.is_none_or(|end| at > end) {
            break;
        }
        let text = (cell.cut)(&cell.text, *room);
        line += &out.paint(cell.tint, &text);
        if Some(at) != end {
            line += &blank(&text, room + GAP);
        }
    }
    line.push('\n');
    line
}

/// The spaces that pad a text to a column of this width.
pub(in crate::cli) fn blank(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(text.width()))
}

/// Text of several lines as one line that is safe to show.
pub(in crate::cli) fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    printable(&lines.join(" | ").replace('\t', " "))
}

/// At most `room` columns; a mark replaces the rest.
pub(in crate::cli) fn clip(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < room
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

/// As [`clip`], but cuts the middle out.
pub(in crate::cli) fn clip_inside(text: &str, room: usize) -> String {
    const WORTH_IT: usize = 24;
    if text.width() <= room || room < WORTH_IT {
        return clip(text, room);
    }
    let start = clip(text, room / 2);
    let mut left = room - start.width();
    let fits = |c: &char| {
        let fits = c.width().unwrap_or(0) <= left;
        left = left.saturating_sub(c.width().unwrap_or(0));
        fits
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    start + &end.into_iter().rev().collect::<String>()
}

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
            assert_eq!(text.width(), columns, "{text:?}");
        }
    }

    #[test]
    fn k7_what_is_cut_fits_and_says_so() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdef", 4), "abc…");
        assert_eq!(clip("文件系统", 4), "文…");
        assert_eq!(clip("文件系统", 5), "文件…");
        for room in 1..9 {
            assert!(clip("a文b件c系", room).width() <= room);
        }
        let long = "started with 参数 and ended with exit code 3";
        assert_eq!(clip_inside(long, 24), "started wit… exit code 3");
        for room in 1..60 {
            assert!(clip_inside(long, room).width() <= room, "{room}");
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
