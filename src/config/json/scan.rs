//! The syntax of JSON, with Go's errors.

use std::borrow::Cow;

use super::JsonError;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// Go's word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// What is met on the way through a text. Depth is the number of arrays and objects around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event<'a> {
    /// A member's name; the raw text between the quotes.
    Key { raw: &'a str, depth: usize },
    /// A value; raw is the text of it, between the quotes for a string, and empty for an array or an object, whose
    /// members follow, one deeper.
    Value { kind: Kind, raw: &'a str, depth: usize },
    /// The end of an array or an object at this depth.
    End { depth: usize },
}

const MAX_DEPTH: usize = 10_000;

/// What may come next.
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    Separator,
}

/// Walks through the whole of a text and tells `met` what it finds, in order.
pub(super) fn scan<'a>(text: &'a str, mut met: impl FnMut(Event<'a>)) -> Result<(), JsonError> {
    let mut at = Cursor { text, pos: 0 };
    let mut around: Vec<Kind> = Vec::new();
    let mut next = Next::Value;
    loop {
        at.skip_blank();
        let Some(c) = at.peek() else {
            let done = around.is_empty() && matches!(next, Next::Separator);
            return if done { Ok(()) } else { Err(JsonError::UnexpectedEnd) };
        };
        next = match (next, c) {
            (Next::ValueOrEnd, ']') | (Next::KeyOrEnd, '}') => {
                at.bump(c);
                around.pop();
                met(Event::End { depth: around.len() });
                Next::Separator
            }
            (Next::Value | Next::ValueOrEnd, '[' | '{') => {
                at.bump(c);
                let kind = if c == '[' { Kind::Array } else { Kind::Object };
                met(Event::Value { kind, raw: "", depth: around.len() });
                around.push(kind);
                if around.len() > MAX_DEPTH {
                    return Err(JsonError::TooDeep);
                }
                if kind == Kind::Array { Next::ValueOrEnd } else { Next::KeyOrEnd }
            }
            (Next::Value | Next::ValueOrEnd, _) => {
                let (kind, raw) = at.scalar(c)?;
                met(Event::Value { kind, raw, depth: around.len() });
                Next::Separator
            }
            (Next::Key | Next::KeyOrEnd, '"') => {
                let raw = at.string()?;
                met(Event::Key { raw, depth: around.len() });
                Next::Colon
            }
            (Next::Key | Next::KeyOrEnd, _) => return Err(invalid(c, "looking for beginning of object key string")),
            (Next::Colon, ':') => {
                at.bump(c);
                Next::Value
            }
            (Next::Colon, _) => return Err(invalid(c, "after object key")),
            (Next::Separator, _) => match (around.last(), c) {
                (Some(Kind::Array), ',') => {
                    at.bump(c);
                    Next::Value
                }
                (Some(Kind::Object), ',') => {
                    at.bump(c);
                    Next::Key
                }
                (Some(Kind::Array), ']') | (Some(Kind::Object), '}') => {
                    at.bump(c);
                    around.pop();
                    met(Event::End { depth: around.len() });
                    Next::Separator
                }
                (Some(Kind::Array), _) => return Err(invalid(c, "after array element")),
                (Some(_), _) => return Err(invalid(c, "after object key:value pair")),
                (None, _) => return Err(invalid(c, "after top-level value")),
            },
        };
    }
}

fn invalid(found: char, place: impl Into<Cow<'static, str>>) -> JsonError {
    JsonError::InvalidCharacter { found, place: place.into() }
}

/// A place in the text, always between two characters.
struct Cursor<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self, c: char) {
        self.pos += c.len_utf8();
    }

    fn skip_blank(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn skip_digits(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    }

    fn scalar(&mut self, first: char) -> Result<(Kind, &'a str), JsonError> {
        match first {
            '"' => self.string().map(|raw| (Kind::String, raw)),
            '-' | '0'..='9' => self.number().map(|raw| (Kind::Number, raw)),
            'n' => self.literal("null").map(|raw| (Kind::Null, raw)),
            't' => self.literal("true").map(|raw| (Kind::Bool, raw)),
            'f' => self.literal("false").map(|raw| (Kind::Bool, raw)),
            other => Err(invalid(other, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<&'a str, JsonError> {
        let start = self.pos;
        for expected in word.chars() {
            match self.peek() {
                Some(c) if c == expected => self.bump(c),
                Some(c) => return Err(invalid(c, format!("in literal {word} (expecting '{expected}')"))),
                None => return Err(JsonError::UnexpectedEnd),
            }
        }
        Ok(&self.text[start..self.pos])
    }

    fn number(&mut self) -> Result<&'a str, JsonError> {
        let start = self.pos;
        if self.peek() == Some('-') {
            self.bump('-');
        }
        // A zero ends the whole part: what follows it is judged by whoever comes next.
        match self.peek() {
            Some('0') => self.bump('0'),
            _ => self.some_digits()?,
        }
        if self.peek() == Some('.') {
            self.bump('.');
            self.some_digits()?;
        }
        if let Some(e @ ('e' | 'E')) = self.peek() {
            self.bump(e);
            if let Some(sign @ ('+' | '-')) = self.peek() {
                self.bump(sign);
            }
            self.some_digits()?;
        }
        Ok(&self.text[start..self.pos])
    }

    fn some_digits(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(c) if c.is_ascii_digit() => self.skip_digits(),
            Some(c) => return Err(invalid(c, "in numeric literal")),
            None => return Err(JsonError::UnexpectedEnd),
        }
        Ok(())
    }

    /// The text between the quotes.
    fn string(&mut self) -> Result<&'a str, JsonError> {
        self.bump('"');
        let start = self.pos;
        loop {
            let c = self.peek().ok_or(JsonError::UnexpectedEnd)?;
            match c {
                '"' => {
                    let raw = &self.text[start..self.pos];
                    self.bump(c);
                    return Ok(raw);
                }
                '\\' => self.escape()?,
                '\0'..' ' => return Err(invalid(c, "in string")),
                c => self.bump(c),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let mut chars = self.rest().char_indices().skip(1);
        let length = match chars.next() {
            Some((_, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => 2,
            Some((_, 'u')) => {
                for _ in 0..4 {
                    match chars.next() {
                        Some((_, c)) if c.is_ascii_hexdigit() => {}
                        Some((at, c)) => return Err(self.bad_escape(at + c.len_utf8())),
                        None => return Err(JsonError::UnexpectedEnd),
                    }
                }
                6
            }
            Some((at, c)) => return Err(self.bad_escape(at + c.len_utf8())),
            None => return Err(JsonError::UnexpectedEnd),
        };
        self.pos += length;
        Ok(())
    }

    fn bad_escape(&self, length: usize) -> JsonError {
        JsonError::InvalidEscape { found: self.rest().get(..length).unwrap_or_default().to_owned() }
    }
}
