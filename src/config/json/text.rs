//! The text of a JSON string whose syntax has been checked.

/// Undoes the escapes. A surrogate without its other half becomes U+FFFD.
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, escaped)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = escaped.chars();
        rest = match chars.next() {
            Some('u') => {
                let (c, length) = unicode(escaped);
                out.push(c);
                escaped.get(length..).unwrap_or_default()
            }
            Some(c) => {
                out.push(match c {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    same => same,
                });
                chars.as_str()
            }
            None => "",
        };
    }
    out.push_str(rest);
    out
}

/// The character of `uXXXX`, or of two of them that are one, and how much of the text that is.
fn unicode(text: &str) -> (char, usize) {
    let Some(first) = unit(text) else { return (char::REPLACEMENT_CHARACTER, text.len()) };
    let second = text.get(5..).and_then(|rest| rest.strip_prefix('\\')).and_then(unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match (char::from_u32(first.into()), pair) {
        (Some(c), _) => (c, 5),
        (None, Some(c)) => (c, 11),
        (None, None) => (char::REPLACEMENT_CHARACTER, 5),
    }
}

fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        for (raw, text) in [
            (r#"a\"\\\/\b\f\n\r\tz"#, "a\"\\/\u{8}\u{c}\n\r\tz"),
            (r"\u0041\u00e9", "Aé"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ude00x", "\u{fffd}x"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"日\n", "日\n"),
            ("", ""),
        ] {
            assert_eq!(unescape(raw), text, "{raw}");
        }
    }
}
