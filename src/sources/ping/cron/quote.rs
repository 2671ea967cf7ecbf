//! Text in double quotes as Go's error messages show it.

use std::fmt::Write as _;

/// As `strconv.Quote`: what cannot be printed is escaped, other text beyond ASCII stays.
pub(super) fn strconv(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            c if c.is_ascii() => hex(&mut out, "\\x", u32::from(c), 2),
            c if printable(c) => out.push(c),
            c if u32::from(c) <= 0xffff => hex(&mut out, "\\u", u32::from(c), 4),
            c => hex(&mut out, "\\U", u32::from(c), 8),
        }
    }
    out.push('"');
    out
}

fn hex(out: &mut String, prefix: &str, value: u32, digits: usize) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{prefix}{value:0digits$x}");
}

/// Whether a character beyond ASCII is shown as it is. The standard library's own table, asked behind a letter because
/// it escapes a combining mark only where nothing stands before it.
fn printable(c: char) -> bool {
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().nth(1) != Some('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strconv_escapes_what_cannot_be_printed() {
        assert_eq!(strconv("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(strconv("\0\x07\x08\t\n\x0b\x0c\r\x1b\x7f"), r#""\x00\a\b\t\n\v\f\r\x1b\x7f""#);
        assert_eq!(strconv("ü１e\u{301}"), "\"ü１e\u{301}\"");
        assert_eq!(strconv("\u{301}"), "\"\u{301}\"");
        assert_eq!(strconv("\u{feff}\u{200b}\u{a0}\u{e0001}"), r#""\ufeff\u200b\u00a0\U000e0001""#);
    }
}
