//! Durations as Go writes them: `15s`, `1h15m30.5s`, `.5s`, `-2ms`.
//!
//! # Guarantees
//! - [`parse`] accepts what Go's `time.ParseDuration` accepts, gives the same nanoseconds to the last digit, and
//!   refuses the rest with Go's own text (test/vectors/durations.json, made by running Go).
//! - No input panics.
//!
//! # Why not `kube::core::Duration`
//! It is a parser for well-formed durations and was measured against the same table: it takes the blank, `--5s` and
//! `1e3s` for durations, reads the empty string as zero, loses nanoseconds above 2^53, panics where the sum leaves
//! the range, and its errors do not name what was found. The tests below hold a few of these, so that a later
//! release that mends them is noticed.

use std::fmt;
use std::time::Duration;

use super::quote;

/// What is wrong with a text that should be a duration; in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// It does not look like a duration, or is out of the range of signed 64-bit nanoseconds (292 years).
    #[error("time: invalid duration {}", quote::time(.text))]
    Invalid {
        /// The whole text.
        text: String,
    },
    /// A number stands without its unit.
    #[error("time: missing unit in duration {}", quote::time(.text))]
    MissingUnit {
        /// The whole text.
        text: String,
    },
    /// The unit is none of ns, us, µs, ms, s, m, h.
    #[error("time: unknown unit {} in duration {}", quote::time(.unit), quote::time(.text))]
    UnknownUnit {
        /// The unit that was found.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// Below zero, where that makes no sense. Ours: Go reads it.
    #[error("duration {} must not be negative", quote::time(.text))]
    Negative {
        /// The whole text.
        text: String,
    },
}

/// 2^63: one more than the largest duration, and the magnitude of the smallest.
const LIMIT: u64 = 1 << 63;

/// Reads a duration, in nanoseconds. Nothing is trimmed.
///
/// # Errors
/// [`DurationError`], with the text that Go's `time.ParseDuration` gives.
pub fn parse(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    // The one number that needs no unit.
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (group, after) = group(text, rest)?;
        rest = after;
        total = total.checked_add(group).filter(|&sum| sum <= LIMIT).ok_or_else(invalid)?;
    }
    if negative { Ok(0_i64.wrapping_sub_unsigned(total)) } else { i64::try_from(total).map_err(|_| invalid()) }
}

/// Reads a duration that cannot be negative: for command lines and for values of our own.
///
/// # Errors
/// [`DurationError`].
pub fn parse_positive(text: &str) -> Result<Duration, DurationError> {
    let nanos = parse(text)?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| DurationError::Negative { text: text.to_owned() })
}

/// One number with its unit at the head of `rest`: its nanoseconds and what follows.
fn group<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), DurationError> {
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let (whole, tail) = split_digits(rest);
    let (fraction, tail) = match tail.strip_prefix('.') {
        Some(tail) => split_digits(tail),
        None => ("", tail),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let whole = integer(whole).ok_or_else(invalid)?;
    let end = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
    let (unit, after) = tail.split_at(end);
    if unit.is_empty() {
        return Err(DurationError::MissingUnit { text: text.to_owned() });
    }
    let Some(unit) = nanos_of(unit) else {
        return Err(DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() });
    };
    let nanos = whole
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(part(fraction, unit)))
        .filter(|&nanos| nanos <= LIMIT)
        .ok_or_else(invalid)?;
    Ok((nanos, after))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A whole number of at most 2^63; no digits are zero.
fn integer(digits: &str) -> Option<u64> {
    digits
        .bytes()
        .try_fold(0_u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')).filter(|&n| n <= LIMIT))
}

/// The nanoseconds of `0.<digits>` of a unit, cut off below one. Digits that no longer fit 63 bits are ignored, and
/// the arithmetic is in `f64`, both because Go does so: more exact would be another answer in the last digit.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is at least zero and below one hour's nanoseconds"
)]
fn part(digits: &str, unit: u64) -> u64 {
    let (mut n, mut scale) = (0_u64, 1_f64);
    for digit in digits.bytes() {
        match n.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0'))) {
            Some(next) if n <= (LIMIT - 1) / 10 && next <= LIMIT => n = next,
            _ => break,
        }
        scale *= 10.0;
    }
    (n as f64 * (unit as f64 / scale)) as u64
}

fn nanos_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign, and the Greek letter that looks like it.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Signed nanoseconds, shown so that a person can read them and [`parse`] can too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub i64);

impl From<Duration> for Nanos {
    /// Saturates at 292 years.
    fn from(d: Duration) -> Self {
        Self(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:?}", Duration::from_nanos(self.0.unsigned_abs()))
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::vectors;
    use proptest::prelude::*;

    #[derive(serde::Deserialize)]
    struct Row {
        r#in: String,
        nanos: Option<i64>,
        error: Option<String>,
    }

    #[test]
    fn every_row_of_the_table_has_gos_answer() {
        let rows: Vec<Row> = vectors(include_str!("../../test/vectors/durations.json"));
        assert_eq!(rows.len(), 425);
        for row in rows {
            match (parse(&row.r#in), row.nanos, row.error) {
                (Ok(found), Some(expected), None) => assert_eq!(found, expected, "{:?}", row.r#in),
                (Err(found), None, Some(expected)) => assert_eq!(found.to_string(), expected),
                (found, nanos, error) => panic!("{:?}: {found:?}, but Go: {nanos:?} {error:?}", row.r#in),
            }
        }
    }

    #[test]
    fn fractions_are_cut_off_where_go_cuts_them_off() {
        for (text, nanos) in [
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.18446744073709551616s", 184_467_440),
            ("1\u{b5}s1\u{3bc}s1us", 3_000),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse(text), Ok(nanos), "{text}");
        }
        // Digits that are not ASCII are none, and shown byte by byte.
        assert_eq!(parse("５s").unwrap_err().to_string(), r#"time: invalid duration "\xef\xbc\x95s""#);
    }

    #[test]
    fn what_wraps_round_in_go_is_refused() {
        // Go adds 2^63 to 2^63 and finds zero.
        let text = "-9223372036854775808ns9223372036854775808ns";
        assert_eq!(parse(text), Err(DurationError::Invalid { text: text.into() }));
    }

    #[test]
    fn the_clients_own_parser_still_differs() {
        let kube = |text: &str| text.parse::<kube::core::Duration>();
        assert!(kube("").is_ok() && kube("--5s").is_ok() && kube("1e3s").is_err());
        assert_ne!(kube("1d").unwrap_err().to_string(), parse("1d").unwrap_err().to_string());
        assert_ne!(
            Duration::from(kube("9007199254.740993ms").unwrap()).as_nanos(),
            u128::try_from(parse("9007199254.740993ms").unwrap()).unwrap()
        );
    }

    #[test]
    fn a_negative_duration_is_not_positive() {
        assert_eq!(parse_positive("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_positive("-1s"), Err(DurationError::Negative { text: "-1s".into() }));
        assert_eq!(parse_positive("-0s"), Ok(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = parse(&text);
        }

        #[test]
        fn nothing_that_looks_like_a_duration_panics(text in "[-+]?([0-9]{0,22}(\\.[0-9]{0,22})?(ns|us|µs|ms|s|m|h|d|)){0,4}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_shown_can_be_read(nanos in any::<i64>()) {
            prop_assert_eq!(parse(&Nanos(nanos).to_string()), Ok(nanos));
        }
    }
}
