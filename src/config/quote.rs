//! Strings quoted as Go quotes them, since our error texts are to be the ones people search for.
//!
//! # Caveats
//! What counts as printable follows the Unicode version of this compiler, not that of a Go release: a character
//! assigned between the two is shown by one and escaped by the other.

use std::fmt::Write as _;

/// As package `time` quotes in its errors: every byte that is not printable ASCII as `\xNN`.
pub(super) fn time(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            // Go leaves DEL as it is here.
            b' '..=0x7f => out.push(char::from(byte)),
            _ => hex(&mut out, byte),
        }
    }
    out.push('"');
    out
}

/// As `strconv.Quote`.
pub(super) fn string(text: &str) -> String {
    quoted(text.chars(), '"')
}

/// As `strconv.QuoteRune`.
pub(super) fn rune(c: char) -> String {
    quoted(std::iter::once(c), '\'')
}

fn quoted(chars: impl Iterator<Item = char>, quote: char) -> String {
    let mut out = String::new();
    out.push(quote);
    for c in chars {
        match c {
            '\u{7}' => out.push_str(r"\a"),
            '\u{8}' => out.push_str(r"\b"),
            '\u{c}' => out.push_str(r"\f"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            '\u{b}' => out.push_str(r"\v"),
            c if c == quote || c == '\\' => out.extend(['\\', c]),
            '\0'..' ' | '\u{7f}' => hex(&mut out, u32::from(c).to_le_bytes()[0]),
            c if printable(c) => out.push(c),
            c if u32::from(c) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push(quote);
    out
}

fn hex(out: &mut String, byte: u8) {
    let _ = write!(out, "\\x{byte:02x}");
}

/// Letters, marks, numbers, punctuation, symbols and the ASCII blank: what both languages show as it is.
fn printable(c: char) -> bool {
    // Behind another character, so that a combining mark is not escaped for standing alone.
    c.is_ascii_graphic() || c == ' ' || String::from_iter(['a', c]).escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        assert_eq!(time("5\n\"\\µ\u{7f}"), "\"5\\x0a\\\"\\\\\\xc2\\xb5\u{7f}\"");
        assert_eq!(string("1\t\0\u{7f}\"'e\u{301}日\u{a0}\u{feff}"), "\"1\\t\\x00\\x7f\\\"'e\u{301}日\\u00a0\\ufeff\"");
        assert_eq!(string("\u{e0001}"), "\"\\U000e0001\"");
        assert_eq!(rune('\''), r"'\''");
        assert_eq!(rune('"'), "'\"'");
        assert_eq!(rune('\\'), r"'\\'");
    }
}
