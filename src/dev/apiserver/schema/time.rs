//! Times as Go's JSON has them.

use jiff::Timestamp;

/// Go's layout of `metav1.MicroTime`: exactly six decimals.
const MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";
/// Go's layout of `metav1.Time`.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";

/// Reads `YYYY-MM-DDTHH:MM:SS[.digits](Z|+hh:mm|-hh:mm)`, as Go's RFC 3339 layouts do: capital T and Z, two digits
/// each. Answers the instant and how many decimals there were.
fn rfc3339(text: &str) -> Option<(Timestamp, usize)> {
    let b = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    if b.len() < shape.len() + 1 || !text.is_ascii() {
        return None;
    }
    for (got, want) in b.iter().zip(shape) {
        let fits = if *want == b'0' { got.is_ascii_digit() } else { got == want };
        if !fits {
            return None;
        }
    }
    let rest = &b[shape.len()..];
    let decimals = match rest.first() {
        Some(b'.' | b',') => rest[1..].iter().take_while(|c| c.is_ascii_digit()).count(),
        _ => 0,
    };
    let zone = match rest.first() {
        Some(b'.' | b',') if decimals == 0 => return None,
        Some(b'.' | b',') => &rest[1 + decimals..],
        _ => rest,
    };
    let zone_fits = match zone {
        b"Z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|x| x.is_ascii_digit()),
        _ => false,
    };
    // Seconds of 60 and hours of 24 are no times to Go.
    let two = |at: usize| u32::from(b[at] - b'0') * 10 + u32::from(b[at + 1] - b'0');
    if !zone_fits || two(11) > 23 || two(17) > 59 {
        return None;
    }
    text.parse().ok().map(|t| (t, decimals))
}

fn error(text: &str, layout: &str) -> String {
    format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as {layout:?}")
}

/// A `metav1.MicroTime`, normalised to UTC.
///
/// # Errors
/// Go's words where it is none: among others, where it does not have exactly six decimals.
pub(crate) fn micro(text: &str) -> Result<String, String> {
    match rfc3339(text) {
        Some((t, 6)) => Ok(t.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
        Some(_) => {
            let rest = &text[19..];
            Err(format!("parsing time {text:?} as {MICRO:?}: cannot parse {rest:?} as \".000000\""))
        }
        None => Err(error(text, MICRO)),
    }
}

/// A `metav1.Time`, normalised to UTC and whole seconds.
///
/// # Errors
/// Go's words where it is none.
pub(crate) fn seconds(text: &str) -> Result<String, String> {
    match rfc3339(text) {
        Some((t, _)) => Ok(t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        None => Err(error(text, SECONDS)),
    }
}

/// Whether a text is a date and time at all.
pub(crate) fn is_date_time(text: &str) -> bool {
    rfc3339(&text.to_ascii_uppercase()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_times_have_six_decimals() {
        for (given, wanted) in [
            ("2024-01-01T00:00:00.000000Z", "2024-01-01T00:00:00.000000Z"),
            ("2024-01-01T01:00:00.123456+01:00", "2024-01-01T00:00:00.123456Z"),
            ("0001-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(micro(given).as_deref(), Ok(wanted), "{given}");
        }
        assert_eq!(
            micro("2024-01-01T00:00:00Z"),
            Err(
                "parsing time \"2024-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \
                 \".000000\""
                    .to_owned()
            )
        );
        for bad in [
            "",
            "now",
            "2024-01-01T00:00:00.000Z",
            "2024-01-01T00:00:00.0000000Z",
            "2024-01-01t00:00:00.000000Z",
            "2024-01-01T00:00:00.000000z",
            "2024-01-01 00:00:00.000000Z",
            "2024-13-01T00:00:00.000000Z",
            "2024-01-01T24:00:00.000000Z",
            "2024-01-01T00:00:60.000000Z",
            "2024-01-01T00:00:00.000000",
            "2024-01-01T00:00:00.000000+0100",
            "ä024-01-01T00:00:00.000000Z",
        ] {
            assert!(micro(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_cut_to_seconds() {
        assert_eq!(seconds("2024-01-01T00:00:00Z").as_deref(), Ok("2024-01-01T00:00:00Z"));
        assert_eq!(seconds("2024-01-01T01:00:00.999+01:00").as_deref(), Ok("2024-01-01T00:00:00Z"));
        assert!(seconds("2024-01-01").is_err());
    }
}
