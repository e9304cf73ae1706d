//! A name in the characters that models' APIs accept: letters of other scripts
//! are transliterated, all other characters become `_`.

use std::borrow::Cow;

use deunicode::deunicode_char;

pub(crate) fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The name as it is where it fits. Syllables of Chinese, and other words that
/// one character stands for, are separated by `_`: 文件 becomes `wen_jian`.
pub(super) fn spelled(name: &str) -> Cow<'_, str> {
    if name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    let mut spelling = Transliteration::default();
    for c in name.chars() {
        match c {
            c if is_allowed(c) => spelling.letter(c),
            c if c.is_ascii() => spelling.replacement(),
            c => match deunicode_char(c) {
                Some(text) => spelling.transliteration(text),
                None => spelling.replacement(),
            },
        }
    }
    Cow::Owned(spelling.done())
}

#[derive(Default)]
struct Transliteration {
    out: String,
    /// A word has ended: whatever follows is separated from it.
    word_ended: bool,
}

impl Transliteration {
    fn letter(&mut self, c: char) {
        if self.word_ended && c != '_' {
            self.separate();
        }
        self.word_ended = false;
        self.out.push(c);
    }

    fn replacement(&mut self) {
        self.word_ended = false;
        if !self.out.ends_with('_') {
            self.out.push('_');
        }
    }

    fn separate(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('_') {
            self.out.push('_');
        }
    }

    /// `text` ends in a space where it is a whole word.
    fn transliteration(&mut self, text: &str) {
        let word = text.strip_suffix(' ').filter(|word| !word.is_empty());
        if word.is_some() {
            self.separate();
            self.word_ended = false;
        }
        for c in word.unwrap_or(text).chars() {
            match c {
                // Soft signs and breathings, which are no letters.
                '\'' | '`' | '"' => {}
                c if is_allowed(c) && word.is_some() => self.letter(c.to_ascii_lowercase()),
                c if is_allowed(c) => self.letter(c),
                _ => self.replacement(),
            }
        }
        self.word_ended |= word.is_some();
    }

    fn done(mut self) -> String {
        if self.out.is_empty() {
            self.out.push('_');
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn d2_other_scripts_are_transliterated() {
        for (name, wanted) in [
            ("read_file", "read_file"),
            ("__a--b__", "__a--b__"),
            ("文件", "wen_jian"),
            ("文件系统服务", "wen_jian_xi_tong_fu_wu"),
            ("数据库服务", "shu_ju_ku_fu_wu"),
            ("读文件2", "du_wen_jian_2"),
            ("my文件server", "my_wen_jian_server"),
            ("文件_读", "wen_jian_du"),
            ("文件.读", "wen_jian_du"),
            ("文件-v2", "wen_jian_-v2"),
            ("Café", "Cafe"),
            ("Cafe\u{301}", "Cafe"),
            ("Übergröße", "Ubergrosse"),
            ("читать", "chitat"),
            ("안녕", "annyeong"),
            ("read.file", "read_file"),
            ("read / file", "read_file"),
            ("read()", "read_"),
            (".hidden", "_hidden"),
            ("🦄 x", "unicorn_x"),
            ("\u{e000}", "_"),
            ("\u{301}", "_"),
            ("", ""),
        ] {
            assert_eq!(spelled(name), wanted, "{name}");
        }
    }

    proptest! {
        #[test]
        fn d2_spellings_are_valid_and_spelled_alike_again(name in "\\PC{1,80}") {
            let once = spelled(&name).into_owned();
            prop_assert!(!once.is_empty() && once.chars().all(is_allowed), "{}", once);
            prop_assert_eq!(spelled(&once), once.as_str());
        }
    }
}
