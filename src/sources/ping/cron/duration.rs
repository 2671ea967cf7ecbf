//! Durations as Go's `time.ParseDuration` reads them, for `@every`.

use thiserror::Error;

use super::quote;

/// Why a duration was refused, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Not of the form `1h2m3.5s`, or beyond 292 years.
    #[error("time: invalid duration {}", quote::time(.0))]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {}", quote::time(.0))]
    MissingUnit(String),
    /// A unit other than `ns`, `us`, `µs`, `ms`, `s`, `m` and `h`. There are no days.
    #[error("time: unknown unit {} in duration {}", quote::time(.unit), quote::time(.text))]
    UnknownUnit {
        /// What stands where a unit should.
        unit: String,
        /// The whole duration.
        text: String,
    },
}

/// The magnitude of the least duration there is, in nanoseconds.
const LIMIT: u64 = 1 << 63;

/// Reads a duration, in nanoseconds.
pub(super) fn parse(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole;
        (whole, rest) = digits(rest);
        let mut fraction = "";
        if let Some(behind) = rest.strip_prefix('.') {
            (fraction, rest) = digits(behind);
        }
        // Go looks at the size of the whole part before it looks for a unit.
        let amount = if whole.is_empty() { 0 } else { integer(whole).ok_or_else(invalid)? };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        if end == 0 {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let unit;
        (unit, rest) = rest.split_at(end);
        let Some(nanos) = nanoseconds(unit) else {
            return Err(DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() });
        };
        let group = amount.checked_mul(nanos).and_then(|n| n.checked_add(part(fraction, nanos)));
        total = group.and_then(|n| total.checked_add(n)).filter(|n| *n <= LIMIT).ok_or_else(invalid)?;
    }
    if negative { Ok(0_i64.wrapping_sub_unsigned(total)) } else { i64::try_from(total).map_err(|_| invalid()) }
}

/// The ASCII digits in front, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A number of digits up to [`LIMIT`].
fn integer(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|n| *n <= LIMIT)
}

/// The nanoseconds in a decimal fraction of a unit, digits beyond the 63rd bit ignored; computed as Go does, in floating
/// point.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below one unit, at most 3.6e12")]
fn part(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1_f64);
    for digit in fraction.bytes() {
        let longer = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0')));
        let Some(next) = longer.filter(|v| *v <= LIMIT) else { break };
        (value, scale) = (next, scale * 10.0);
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// The length of a unit. Both ways of writing the micro sign count.
fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h15m30.918273645s", 4_530_918_273_645),
            ("1\u{b5}s1\u{3bc}s1us", 3_000),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.18446744073709551616s", 184_467_440),
        ] {
            assert_eq!(parse(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses_in_its_words() {
        for (text, error) in [
            ("", r#"time: invalid duration """#),
            ("-", r#"time: invalid duration "-""#),
            (".s", r#"time: invalid duration ".s""#),
            ("15", r#"time: missing unit in duration "15""#),
            ("1.5", r#"time: missing unit in duration "1.5""#),
            ("5 s", r#"time: unknown unit " s" in duration "5 s""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999999999999999", r#"time: invalid duration "99999999999999999999""#),
            ("2562048h", r#"time: invalid duration "2562048h""#),
            ("５s", r#"time: invalid duration "\xef\xbc\x95s""#),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), error);
        }
    }
}
