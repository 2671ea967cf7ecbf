//! Media types as Go's `mime.ParseMediaType` takes them, which is what Knative's client asks of a content type.

/// Why a text is no media type. The words are those of Go's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentTypeError {
    /// Nothing before the slash.
    #[error("no media type")]
    NoType,
    /// A word, and then something other than a slash.
    #[error("expected slash after first token")]
    NoSlash,
    /// Nothing behind the slash.
    #[error("expected token after slash")]
    NoSubtype,
    /// More than a type and a subtype.
    #[error("unexpected content after media subtype")]
    Trailing,
    /// A parameter that is not of the form `; name=value`.
    #[error("invalid media parameter")]
    Parameter,
    /// A parameter given twice, with two values.
    #[error("duplicate parameter name")]
    Twice,
    /// A character that a header cannot carry.
    #[error("a control character")]
    Character,
}

/// The content type without white space around it; `None` if that leaves nothing.
///
/// As in Go, a type without a subtype passes, and so do a semicolon at the end and a parameter given twice alike.
/// Unlike Go's, what is accepted can always be sent.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn checked(text: &str) -> Result<Option<&str>, ContentTypeError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (media_type, parameters) = text.split_at(text.find(';').unwrap_or(text.len()));
    check_type(media_type.trim())?;
    check_parameters(parameters)?;
    if text.chars().any(|c| c.is_ascii_control() && c != '\t') {
        return Err(ContentTypeError::Character);
    }
    Ok(Some(text))
}

fn check_type(text: &str) -> Result<(), ContentTypeError> {
    let (kind, rest) = token(text);
    if kind.is_empty() {
        return Err(ContentTypeError::NoType);
    }
    if rest.is_empty() {
        return Ok(());
    }
    let (subtype, rest) = token(rest.strip_prefix('/').ok_or(ContentTypeError::NoSlash)?);
    if subtype.is_empty() {
        return Err(ContentTypeError::NoSubtype);
    }
    if rest.is_empty() { Ok(()) } else { Err(ContentTypeError::Trailing) }
}

fn check_parameters(mut rest: &str) -> Result<(), ContentTypeError> {
    let mut seen: Vec<(String, String)> = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.trim_end() == ";" {
            return Ok(());
        }
        let (name, value);
        (name, value, rest) = parameter(rest).ok_or(ContentTypeError::Parameter)?;
        match seen.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if *other != value => return Err(ContentTypeError::Twice),
            Some(_) => {}
            None => seen.push((name, value)),
        }
    }
}

/// One `; name=value`, and what follows.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.strip_prefix(';')?.trim_start());
    if name.is_empty() {
        return None;
    }
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None => Some(token(rest)).filter(|(value, _)| !value.is_empty()).map(|(v, rest)| (v.to_owned(), rest))?,
    };
    Some((name.to_ascii_lowercase(), value, rest))
}

/// A quoted text whose first quote has been taken, and what follows it. A backslash counts before a special character
/// only: elsewhere it is taken for part of a path.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\r' | '\n' => return None,
            '\\' if text[at + 1..].starts_with(is_special) => value.extend(chars.next().map(|(_, special)| special)),
            c => value.push(c),
        }
    }
    None
}

/// The longest token in front (RFC 2045), perhaps none, and what follows.
fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_graphic() || is_special(c)).unwrap_or(text.len()))
}

/// The `tspecials` of RFC 2045.
fn is_special(c: char) -> bool {
    "()<>@,;:\\\"/[]?=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn takes_what_go_takes() {
        for text in [
            "text/plain",
            "garbage",
            "TEXT/PLAIN",
            "text/plain;",
            "text/plain ;",
            "text/plain; charset=utf-8",
            "text/plain;charset=\"utf-8\"\t; q=1",
            "text/plain; a=\"b;c=\\\"d\\\" \\e\"",
            "text/plain; a=b; A=b",
            "text/plain; a=\"\"",
            "text/plain; a=\"é\"",
            "a/b ; c = d",
        ] {
            assert_eq!(checked(text), Ok(Some(text)));
        }
        assert_eq!(checked(" text/plain\n"), Ok(Some("text/plain")));
        assert_eq!(checked(" \t"), Ok(None));
    }

    #[test]
    fn refuses_what_go_refuses() {
        use ContentTypeError::{Character, NoSlash, NoSubtype, NoType, Parameter, Trailing, Twice};
        for (text, error) in [
            ("/", NoType),
            (";", NoType),
            ("é/x", NoType),
            ("text plain", NoSlash),
            ("text/", NoSubtype),
            ("text/;a=b", NoSubtype),
            ("text/a/b", Trailing),
            ("text/plain, text/html", Trailing),
            ("text/pläin", Trailing),
            ("text/plain;charset", Parameter),
            ("text/plain; a=", Parameter),
            ("text/plain; a=\"b", Parameter),
            ("text/plain; a=\"b\nc\"", Parameter),
            ("text/plain; a=b c", Parameter),
            ("text/plain;; a=b", Parameter),
            ("text/plain; a=b; a=c", Twice),
            ("text/plain; a=b; A=\"c\"", Twice),
            ("a/b; =d", Parameter),
            // Go takes this, and then cannot send it.
            ("text/plain; a=\"\u{1}\"", Character),
        ] {
            assert_eq!(checked(text), Err(error), "{text}");
        }
    }

    #[derive(Deserialize)]
    struct Vectors {
        rows: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        source: Source,
        requests: Vec<Request>,
        send_result: Option<String>,
    }
    #[derive(Deserialize)]
    struct Source {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        content_type: Option<String>,
    }
    #[derive(Deserialize)]
    struct Request {
        headers: std::collections::BTreeMap<String, String>,
    }

    #[test]
    fn what_knatives_client_takes_is_taken_and_no_more() {
        let rows =
            serde_json::from_str::<Vectors>(include_str!("../../../test/vectors/ping-events.json")).unwrap().rows;
        let (mut taken, mut refused) = (0, 0);
        for (n, row) in rows.iter().enumerate() {
            let Some(text) = &row.source.spec.content_type else { continue };
            // An event without data is sent without its content type.
            if row.requests.iter().any(|r| r.headers.get("Content-Length").is_some_and(|l| l == "0")) {
                continue;
            }
            let header = row.requests.first().map(|r| r.headers.get("Content-Type").map(String::as_str));
            match (checked(text), header) {
                (Ok(ours), Some(theirs)) => {
                    assert_eq!(ours, theirs, "row {n}");
                    taken += 1;
                }
                (Err(_), None) => {
                    assert!(row.send_result.as_ref().is_some_and(|r| r.starts_with("datacontenttype")), "row {n}");
                    refused += 1;
                }
                // Refused for something else than its content type.
                (Ok(_), None) => {
                    assert!(!row.send_result.as_ref().is_some_and(|r| r.contains("datacontenttype")), "row {n}");
                }
                (Err(e), Some(_)) => panic!("row {n} {text:?}: {e}"),
            }
        }
        assert!(taken > 10 && refused == 7, "{taken} {refused}");
    }
}
