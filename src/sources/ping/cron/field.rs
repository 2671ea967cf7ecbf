//! The fields of a schedule: lists of numbers, names, ranges and steps, each kept as a set of bits.

use super::error::{CronError, IntError};

/// What one field may be.
#[derive(Debug)]
pub(super) struct Bounds {
    min: u32,
    max: u32,
    /// Names, in lower case, and what they stand for.
    names: &'static [(&'static str, u64)],
}

/// Seconds, and minutes.
pub(super) const SECONDS: Bounds = Bounds { min: 0, max: 59, names: &[] };
/// Minutes.
pub(super) const MINUTES: Bounds = SECONDS;
/// Hours.
pub(super) const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
/// Days of the month.
pub(super) const DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
/// Months.
pub(super) const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &[
        ("jan", 1),
        ("feb", 2),
        ("mar", 3),
        ("apr", 4),
        ("may", 5),
        ("jun", 6),
        ("jul", 7),
        ("aug", 8),
        ("sep", 9),
        ("oct", 10),
        ("nov", 11),
        ("dec", 12),
    ],
};
/// Days of the week, from Sunday, 0, to Saturday, 6. There is no 7.
pub(super) const WEEKDAYS: Bounds = Bounds {
    min: 0,
    max: 6,
    names: &[("sun", 0), ("mon", 1), ("tue", 2), ("wed", 3), ("thu", 4), ("fri", 5), ("sat", 6)],
};

/// The values a field matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Set {
    bits: u64,
    /// Whether a `*` or `?` without a step stands in it: of the two fields for days, one that has it does not restrict.
    star: bool,
}

impl Set {
    /// Every value within the bounds, as `*` says it.
    pub(super) const fn all(bounds: &Bounds) -> Self {
        Self { bits: run(bounds.min, bounds.max), star: true }
    }

    /// One value.
    pub(super) const fn only(value: u32) -> Self {
        Self { bits: 1 << value, star: false }
    }

    /// Whether the value is in it.
    pub(super) const fn has(self, value: u32) -> bool {
        value < 64 && self.bits >> value & 1 == 1
    }

    /// The least value that is at least `from`.
    pub(super) const fn at_least(self, from: u32) -> Option<u32> {
        if from >= 64 {
            return None;
        }
        let left = self.bits >> from << from;
        if left == 0 { None } else { Some(left.trailing_zeros()) }
    }

    const fn is_empty(self) -> bool {
        self.bits == 0
    }
}

/// The bits from `min` to `max`, which is below 63.
const fn run(min: u32, max: u32) -> u64 {
    (1 << (max + 1)) - (1 << min)
}

/// A schedule's six fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) second: Set,
    pub(super) minute: Set,
    pub(super) hour: Set,
    pub(super) day: Set,
    pub(super) month: Set,
    pub(super) weekday: Set,
}

impl Fields {
    /// Whether it has a field that nothing matches (a list of nothing, as `,` is), so that it is never due. Left out are
    /// the fields for days, of which one may be empty.
    pub(super) const fn never(&self) -> bool {
        self.second.is_empty() || self.minute.is_empty() || self.hour.is_empty() || self.month.is_empty()
    }

    /// Whether the day matches: both fields for days if one is unrestricted, else either.
    pub(super) fn on(&self, date: jiff::civil::Date) -> bool {
        let day = self.day.has(date.day().unsigned_abs().into());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset().unsigned_abs().into());
        if self.day.star || self.weekday.star { day && weekday } else { day || weekday }
    }
}

/// Reads one field. Empty items of the list do not count.
pub(super) fn parse(field: &str, bounds: &Bounds) -> Result<Set, CronError> {
    let mut set = Set { bits: 0, star: false };
    for expr in field.split(',').filter(|expr| !expr.is_empty()) {
        let item = range(expr, bounds)?;
        set = Set { bits: set.bits | item.bits, star: set.star || item.star };
    }
    Ok(set)
}

/// Reads one item of a list: `*`, `?`, a value or a range, with a step or none.
fn range(expr: &str, bounds: &Bounds) -> Result<Set, CronError> {
    let mut parts = expr.split('/');
    // Splitting yields at least one part, if an empty one.
    let ends = parts.next().unwrap_or_default();
    let (low, high) = ends.split_once('-').map_or((ends, None), |(low, high)| (low, Some(high)));
    let (min, max) = (u64::from(bounds.min), u64::from(bounds.max));

    // What follows the hyphen of `*-5` is not looked at.
    let mut star = low == "*" || low == "?";
    let (start, mut end) = if star {
        (min, max)
    } else {
        let start = value(low, bounds)?;
        match high {
            None => (start, start),
            Some(high) if high.contains('-') => return Err(CronError::Hyphens { expr: expr.to_owned() }),
            Some(high) => (start, value(high, bounds)?),
        }
    };
    let step = match (parts.next(), parts.next()) {
        (None, _) => 1,
        (Some(step), None) => {
            let step = number(step)?;
            // One value with a step means from there to the end.
            if high.is_none() {
                end = max;
            }
            star = star && step <= 1;
            step
        }
        (Some(_), Some(_)) => return Err(CronError::Slashes { expr: expr.to_owned() }),
    };

    let expr = || expr.to_owned();
    if start < min {
        return Err(CronError::Below { start, min: bounds.min, expr: expr() });
    }
    if end > max {
        return Err(CronError::Above { end, max: bounds.max, expr: expr() });
    }
    if start > end {
        return Err(CronError::Backwards { start, end, expr: expr() });
    }
    if step == 0 {
        return Err(CronError::Step { expr: expr() });
    }
    // A step beyond the bounds leaves the first value, as does one of 64.
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value);
    Ok(Set { bits, star })
}

/// A name that the field knows, in any case, or a number.
fn value(expr: &str, bounds: &Bounds) -> Result<u64, CronError> {
    // Go lowers `İ` to a plain `i`; no other letter beyond ASCII becomes one that the names have.
    let lower = |c: char| if c == '\u{130}' { 'i' } else { c.to_ascii_lowercase() };
    match bounds.names.iter().find(|(name, _)| name.chars().eq(expr.chars().map(lower))) {
        Some((_, value)) => Ok(*value),
        None => number(expr),
    }
}

/// A number as Go's `strconv.Atoi` reads it: a sign or none, and ASCII digits.
fn number(expr: &str) -> Result<u64, CronError> {
    let fail = |reason| CronError::Int { expr: expr.to_owned(), reason };
    let (negative, digits) = match expr.as_bytes().first() {
        Some(b'-') => (true, &expr[1..]),
        Some(b'+') => (false, &expr[1..]),
        _ => (false, expr),
    };
    if digits.is_empty() {
        return Err(fail(IntError::Syntax));
    }
    let mut magnitude: u64 = 0;
    for digit in digits.bytes() {
        if !digit.is_ascii_digit() {
            return Err(fail(IntError::Syntax));
        }
        // As soon as it leaves 64 bits, what follows is no longer looked at.
        magnitude = magnitude
            .checked_mul(10)
            .and_then(|m| m.checked_add(u64::from(digit - b'0')))
            .ok_or_else(|| fail(IntError::Range))?;
    }
    if negative && magnitude > 0 {
        let number = 0_i64.checked_sub_unsigned(magnitude).ok_or_else(|| fail(IntError::Range))?;
        return Err(CronError::Negative { number, expr: expr.to_owned() });
    }
    if i64::try_from(magnitude).is_err() {
        return Err(fail(IntError::Range));
    }
    Ok(magnitude)
}
