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
