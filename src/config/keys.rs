//! The keys of config-leader-election: Knative's, Knative's older spellings, and ours.

/// How long a Lease holds after its last renewal.
pub(super) const LEASE_DURATION: &str = "lease-duration";
/// How long a holder goes on after its last renewal.
pub(super) const RENEW_DEADLINE: &str = "renew-deadline";
/// How often a holder renews.
pub(super) const RETRY_PERIOD: &str = "retry-period";
/// The number of buckets.
pub(super) const BUCKETS: &str = "buckets";
/// Begins every key that maps one prefix of Lease names to another.
pub(super) const MAP_LEASE_PREFIX: &str = "map-lease-prefix";
/// Explains the others; never read.
pub(super) const EXAMPLE: &str = "_example";

/// The three durations: the older spelling, and the one that wins over it.
pub(super) const TIMING: [(&str, &str); 3] =
    [("leaseDuration", LEASE_DURATION), ("renewDeadline", RENEW_DEADLINE), ("retryPeriod", RETRY_PERIOD)];

/// Who decides which replica holds what.
pub(super) const STRATEGY: &str = "strategy";
/// How a key finds its bucket.
pub(super) const BUCKET_HASH: &str = "bucket-hash";
/// How long a join is waited for before held buckets move.
pub(super) const REBALANCE_DELAY: &str = "rebalance-delay";
/// How long a term that ends in good order waits for its guards.
pub(super) const DRAIN_TIMEOUT: &str = "drain-timeout";
/// What is added to the duration of a holder that is not one of us.
pub(super) const FOREIGN_GRACE: &str = "foreign-grace";
/// How often a changed checkpoint is written at most.
pub(super) const CHECKPOINT_INTERVAL: &str = "checkpoint-interval";

/// Ours: each can stand in the environment too.
pub(super) const OWN: [&str; 6] =
    [STRATEGY, BUCKET_HASH, REBALANCE_DELAY, DRAIN_TIMEOUT, FOREIGN_GRACE, CHECKPOINT_INTERVAL];

/// What is shown for a mapping, whose key is different for each queue.
const MAPPING_SHAPE: &str = "map-lease-prefix.<component>.<queue>";

/// The fields of K_LEADER_ELECTION_CONFIG.
pub(super) const JSON_FIELDS: [&str; 7] =
    ["Component", "Buckets", "LeaseDuration", "RenewDeadline", "RetryPeriod", "Identity", "LeaseNamesPrefixMapping"];

/// The variable that overrides one of [`OWN`]: LEASEHOLD_DRAIN_TIMEOUT for `drain-timeout`.
pub(super) fn variable(own: &str) -> String {
    format!("LEASEHOLD_{}", own.to_ascii_uppercase().replace('-', "_"))
}

/// Every key with a meaning, the current spellings first, so that a tie is not settled for an old one.
fn known() -> impl Iterator<Item = &'static str> {
    let timing = TIMING.iter().map(|&(_, dashed)| dashed);
    let legacy = TIMING.iter().map(|&(legacy, _)| legacy);
    timing.chain([BUCKETS]).chain(OWN).chain([EXAMPLE]).chain(legacy)
}

/// Whether a key of the ConfigMap means something to us (or to the webhook). Mappings are judged where they are read.
pub(super) fn is_known(key: &str) -> bool {
    known().any(|known| known == key)
}

/// The known key that is the fewest edits away, upper and lower case being alike. Of a mapping only what stands before
/// the first dot counts.
pub(super) fn nearest(key: &str) -> &'static str {
    let head = key.split('.').next().unwrap_or(key);
    let nearest = closest(key, known()).unwrap_or(BUCKETS);
    if edits(head, MAP_LEASE_PREFIX) < edits(key, nearest) { MAPPING_SHAPE } else { nearest }
}

/// The field of K_LEADER_ELECTION_CONFIG that is the fewest edits away.
pub(super) fn nearest_field(name: &str) -> &'static str {
    closest(name, JSON_FIELDS).unwrap_or(JSON_FIELDS[1])
}

fn closest(found: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    known.into_iter().min_by_key(|known| edits(found, known))
}

fn edits(found: &str, known: &str) -> usize {
    // No known name is longer than this: what follows makes none of them nearer than another.
    let found: String = found.chars().take(64).collect();
    strsim::damerau_levenshtein(&found.to_ascii_lowercase(), &known.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_what_was_meant() {
        for (found, meant) in [
            ("lease-duraton", LEASE_DURATION),
            ("lease_duration", LEASE_DURATION),
            ("Lease-Duration", LEASE_DURATION),
            ("lease-duration ", LEASE_DURATION),
            ("LeaseDuration", "leaseDuration"),
            ("bucket", BUCKETS),
            ("BUCKETS", BUCKETS),
            ("bucket_hash", BUCKET_HASH),
            ("renew-dealdine", RENEW_DEADLINE),
            ("retry-perod", RETRY_PERIOD),
            ("example", EXAMPLE),
            ("startegy", STRATEGY),
            ("drain-timout", DRAIN_TIMEOUT),
            ("foreign_grace", FOREIGN_GRACE),
            ("checkpoint-intervall", CHECKPOINT_INTERVAL),
            ("rebalance-dealy", REBALANCE_DELAY),
            ("map-lease-prefix", MAPPING_SHAPE),
            ("Map-Lease-Prefix.a.b", MAPPING_SHAPE),
            ("map-leaseprefix.a.b", MAPPING_SHAPE),
        ] {
            assert_eq!(nearest(found), meant, "{found}");
        }
        assert_eq!(nearest_field("Bucket"), "Buckets");
        assert_eq!(nearest_field("lease-duration"), "LeaseDuration");
    }

    #[test]
    fn a_variable_is_named_after_its_key() {
        assert_eq!(variable(CHECKPOINT_INTERVAL), "LEASEHOLD_CHECKPOINT_INTERVAL");
        assert_eq!(variable(STRATEGY), "LEASEHOLD_STRATEGY");
    }
}
