/// A JSON number by value, exact at any size: sign, significant digits, and
/// the power of ten they are multiplied with. Zero has no digits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Number {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Number {
    /// None if the text is not a JSON number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (unsigned, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leading_zero || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let scaled = all.trim_end_matches('0');
        let digits = scaled.trim_start_matches('0').to_owned();
        let zero = digits.is_empty();
        let dropped = (all.len() - scaled.len()) as i64;
        Some(Self {
            negative: !zero && mantissa.starts_with('-'),
            exponent: if zero {
                0
            } else {
                exponent - fraction.len() as i64 + dropped
            },
            digits,
        })
    }

    /// Plain decimal digits, if this is an integer of a sensible length.
    pub(super) fn integer(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        let zeros = usize::try_from(self.exponent).ok()?;
        if self.digits.len() + zeros > 32 {
            return None;
        }
        let sign = if self.negative { "-" } else { "" };
        Some(format!("{sign}{}{}", self.digits, "0".repeat(zeros)))
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1 } else { 1 };
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse::<i64>().ok()?)
}
