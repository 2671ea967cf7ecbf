//! Whether a content type is one that Knative's client sends: Go's mime.ParseMediaType decides there.

/// The media type without blanks around it, if it is one; None for blanks alone.
///
/// A word without a slash passes, and so do a semicolon at the end and what stands in quotes: Go takes them.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn checked(text: &str) -> Result<Option<&str>, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (essence, parameters) = text.split_at(text.find(';').unwrap_or(text.len()));
    let mut parts = essence.trim().splitn(2, '/');
    if !parts.all(is_token) {
        return Err("it is not a type and a subtype with a slash between them");
    }
    check_parameters(parameters)?;
    Ok(Some(text))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// RFC 2045: no blank, no control character, none of the characters that separate.
fn is_token_byte(b: u8) -> bool {
    b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b)
}

fn check_parameters(mut rest: &str) -> Result<(), &'static str> {
    let mut seen: Vec<String> = Vec::new();
    while !rest.trim().is_empty() {
        let Some(parameter) = rest.trim_start().strip_prefix(';') else {
            return Err("there is more after a parameter");
        };
        let parameter = parameter.trim_start();
        if parameter.is_empty() {
            break;
        }
        let (name, value) = take(parameter, is_token_byte);
        let value = value.trim_start().strip_prefix('=').filter(|_| !name.is_empty());
        let value = value.ok_or("a parameter is not written as name=value")?.trim_start();
        rest = match value.strip_prefix('"') {
            Some(quoted) => after_quoted(quoted)?,
            None => match take(value, is_token_byte) {
                ("", _) => return Err("a parameter has no value"),
                (_, rest) => rest,
            },
        };
        let name = name.to_ascii_lowercase();
        if seen.contains(&name) {
            return Err("a parameter stands there twice");
        }
        seen.push(name);
    }
    Ok(())
}

fn take(text: &str, wanted: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|b| !wanted(b)).unwrap_or(text.len()))
}

fn after_quoted(text: &str) -> Result<&str, &'static str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\r' | '\n' => break,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(&text[at + 1..]),
            _ => {}
        }
    }
    Err("a quoted value does not end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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

    #[test]
    fn parameters_are_read_as_go_reads_them() {
        for good in ["a/b; c=d", "a/b;c=\"d;e=\\\"f\" ; g=h", "a/b ; c = d", "a/b; c=\"é\""] {
            assert_eq!(checked(good), Ok(Some(good)), "{good}");
        }
        for bad in
            ["a/b; c", "a/b; =d", "a/b; c=", "a/b; c=\"d", "a/b; c=d e", "a/b; c=d; C=e", "a/b/c", "a/b; c=\"\n\""]
        {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
