//! Names: of a key, and of the Lease that is a bucket.
//!
//! A bucket's Lease is named as Knative names it (`standardBucketName` in `leaderelection/context.go`), so that a Go
//! and a Rust replica share the same Leases: `{prefix}.{ordinal:02}-of-{buckets:02}`, all in lower case. The prefix
//! is `{component}.{queue}` unless `map-lease-prefix.{component}.{queue}` gives another.

use super::NameError;

/// The key of an object: `namespace/name`, with the slash also where there is no namespace (`/name`).
///
/// This is what both hashes are asked about, as in Knative's `NamespacedName.String()`.
pub fn key(namespace: &str, name: &str) -> String {
    let mut key = String::with_capacity(namespace.len() + 1 + name.len());
    key.push_str(namespace);
    key.push('/');
    key.push_str(name);
    key
}

/// The name of the Lease of bucket `ordinal` (from 0) of `buckets`.
///
/// Lower case is Go's: rune by rune. It is not checked here: see [`check_lease_name`].
pub fn lease_name(prefix: &str, ordinal: u32, buckets: u32) -> String {
    format!("{}.{ordinal:02}-of-{buckets:02}", go_lower(prefix).collect::<String>())
}

/// The `(ordinal, buckets)` of a name that [`lease_name`] makes from this prefix; none for any other name.
///
/// Allocates nothing, since a watch asks it of every Lease in a namespace.
pub fn parse_lease_name(prefix: &str, name: &str) -> Option<(u32, u32)> {
    let rest = go_lower(prefix).try_fold(name, |rest, c| rest.strip_prefix(c))?;
    let (ordinal, buckets) = rest.strip_prefix('.')?.split_once("-of-")?;
    let (ordinal, buckets) = (two_digits(ordinal)?, two_digits(buckets)?);
    (ordinal < buckets).then_some((ordinal, buckets))
}

/// Whether a Lease can have this name: a DNS subdomain (RFC 1123) of at most [`NameError::MAX_BYTES`].
///
/// # Errors
/// The first thing that is wrong with it, with the whole name, the place, and what to do.
pub fn check_lease_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NameError::MAX_BYTES {
        return Err(NameError::TooLong { name: name.to_owned() });
    }
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
    if let Some((at, found)) = name.char_indices().find(|&(_, c)| !allowed(c)) {
        return Err(NameError::Character { name: name.to_owned(), found, at });
    }
    let mut at = 0;
    for part in name.split('.') {
        if part.is_empty() || part.starts_with('-') || part.ends_with('-') {
            return Err(NameError::Part { name: name.to_owned(), part: part.to_owned(), at });
        }
        at += part.len() + 1;
    }
    Ok(())
}

/// Reads a number as `{:02}` writes it, and nothing else: at least two digits, and more only without a leading zero.
fn two_digits(s: &str) -> Option<u32> {
    let canonical = s.len() == 2 || (s.len() > 2 && !s.starts_with('0'));
    (canonical && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse().ok()).flatten()
}

/// The characters of `s` in lower case as Go's `strings.ToLower` has them: each by Unicode's *simple* mapping, without
/// a look at its neighbours. Rust's `str::to_lowercase` differs for a Σ that ends a word, and both of Rust's for İ.
fn go_lower(s: &str) -> impl Iterator<Item = char> {
    s.chars().map(|c| match c {
        // The one character whose full mapping has several characters; its simple one is a plain i.
        'İ' => 'i',
        c => c.to_lowercase().next().unwrap_or(c),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_always_has_its_slash() {
        assert_eq!(key("default", "a"), "default/a");
        assert_eq!(key("", "cluster-scoped"), "/cluster-scoped");
        assert_eq!(key("", ""), "/");
    }

    #[test]
    fn lease_names_are_those_of_go() {
        assert_eq!(
            lease_name("pingsource-mt-adapter.knative.dev.eventing.pkg.adapter.mtping.Reconciler", 1, 2),
            "pingsource-mt-adapter.knative.dev.eventing.pkg.adapter.mtping.reconciler.01-of-02"
        );
        assert_eq!(lease_name("q", 100, 120), "q.100-of-120");
        assert_eq!(lease_name("q", 7, 120), "q.07-of-120");
    }

    #[test]
    fn lower_case_is_go_s() {
        assert_eq!(lease_name("İ.ΟΔΟΣ.\u{212a}", 0, 1), "i.οδοσ.k.00-of-01");
        // Were there a second character like İ, its lower case would be cut here unnoticed.
        let long: Vec<char> = ('\0'..=char::MAX).filter(|c| c.to_lowercase().count() != 1).collect();
        assert_eq!(long, ['İ']);
    }

    #[test]
    fn only_our_own_names_are_read_back() {
        let parse = |name| parse_lease_name("C.Queue", name);
        assert_eq!(parse("c.queue.00-of-01"), Some((0, 1)));
        assert_eq!(parse("c.queue.119-of-120"), Some((119, 120)));
        assert_eq!(parse("c.queue.07-of-120"), Some((7, 120)));
        for other in [
            "c.queue",
            "c.queue.",
            "c.queue.00",
            "c.queue.00-of-",
            "c.queue.-of-01",
            "c.queue.0-of-1",
            "c.queue.00-of-1",
            "c.queue.000-of-001",
            "c.queue.007-of-120",
            "c.queue.+1-of-02",
            "c.queue.01-of-01",
            "c.queue.00-of-00",
            "c.queue.00-of-01.x",
            "c.queue.00-of-02-of-03",
            "c.queue.00-of-4294967296",
            "c.queue2.00-of-01",
            "c.queuex00-of-01",
            "C.Queue.00-of-01",
            "x.c.queue.00-of-01",
            "c.queue.٠٠-of-٠١",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_is_checked_and_never_cut() {
        for good in ["a", "0", "a-b.c", "c.queue.00-of-01", &"a".repeat(253), "a--b", "1.2.3"] {
            assert_eq!(check_lease_name(good), Ok(()), "{good}");
        }
        let at = |name: &str| match check_lease_name(name) {
            Err(NameError::Character { at, .. } | NameError::Part { at, .. }) => at,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(at("c.Queue.00-of-01"), 2);
        assert_eq!(at("c.a_b"), 3);
        assert_eq!(at("c.é"), 2);
        assert_eq!(at("c..00-of-01"), 2);
        assert_eq!(at(".c"), 0);
        assert_eq!(at("c."), 2);
        assert_eq!(at("c.-a"), 2);
        assert_eq!(at("c.a-.b"), 2);
        assert_eq!(check_lease_name(""), Err(NameError::Empty));
        let long = "é".repeat(127);
        assert_eq!(check_lease_name(&long), Err(NameError::TooLong { name: long.clone() }));
        assert!(check_lease_name(&long).unwrap_err().to_string().contains(&format!("\"{long}\" has 254 bytes")));
        assert_eq!(
            check_lease_name("c.a_b").unwrap_err().to_string(),
            "the Lease name \"c.a_b\" has '_' at byte 3, and the API server takes only a-z, 0-9, '-' and '.': rename \
             the component or the queue, or choose a prefix with `map-lease-prefix.<component>.<queue>`"
        );
    }

    proptest! {
        #[test]
        fn what_is_named_is_read_back(prefix in "\\PC{0,20}", buckets in 1..=u32::MAX, at in 0.0..1.0f64) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let ordinal = ((f64::from(buckets) * at) as u32).min(buckets - 1);
            prop_assert_eq!(parse_lease_name(&prefix, &lease_name(&prefix, ordinal, buckets)), Some((ordinal, buckets)));
        }

        #[test]
        fn what_is_read_is_what_is_named(prefix in "[a-zA-Z.-]{0,4}", name in "[a-z.-]{0,4}\\.[0-9]{0,3}-of-[0-9]{0,3}") {
            if let Some((ordinal, buckets)) = parse_lease_name(&prefix, &name) {
                prop_assert_eq!(lease_name(&prefix, ordinal, buckets), name);
            }
        }

        #[test]
        fn any_string_is_checked(name in "\\PC{0,300}") {
            if check_lease_name(&name).is_ok() {
                prop_assert!(name.len() <= 253 && name.is_ascii());
            }
        }
    }
}
