//! What a replica tells the judge of a fleet: one JSON line per thing that happened, on a unix socket.
//!
//! # Guarantees
//! - Every time is CLOCK_BOOTTIME in nanoseconds, so the lines of all replicas on one machine compare.
//! - One line is one [`Line`]; whoever reads them parses the type that wrote them.
//!
//! # Caveats
//! A process that is killed ends its lines without [`Line::TermEnded`]: such a term ended at its last deadline or with
//! its process, whichever came first.

use crate::leader::{FencingToken, Reason};
use serde::{Deserialize, Serialize};

/// The variable that names the unix socket. Unset: nothing is reported.
pub const LEASEHOLD_REPORT: &str = "LEASEHOLD_REPORT";

/// One line of a report. `at` and the other points in time are CLOCK_BOOTTIME nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Line {
    /// The first line: who writes here. Written once the ports are bound and before any term begins.
    Hello {
        /// The process id.
        pid: u32,
        /// `<POD_NAME or hostname>_<uuid>`, as it stands in the Leases.
        identity: String,
        /// The component, e.g. `pingsource-mt-adapter`.
        component: String,
        /// The port on which the probes answer; none where they are switched off.
        probe_port: Option<u16>,
        /// The port on which the metrics are; none where they are switched off.
        metrics_port: Option<u16>,
        /// When.
        at: u64,
    },
    /// A take was answered and judged: the term stands, its gate still shut.
    TermBegun {
        /// The bucket's name; empty for the one of strategy `unopposed`.
        bucket: String,
        /// Its fencing token; none in strategies without Leases.
        token: Option<FencingToken>,
        /// When the take was judged.
        at: u64,
        /// The first deadline; `u64::MAX` where there is none.
        deadline: u64,
    },
    /// `promote` returned and the gate is open: from here on the replica acts.
    Promoted {
        /// The bucket's name.
        bucket: String,
        /// The token of the term.
        token: Option<FencingToken>,
        /// When.
        at: u64,
    },
    /// `promote` failed or hung: the term never acts.
    PromoteFailed {
        /// The bucket's name.
        bucket: String,
        /// The author's error, or that it hung.
        why: String,
        /// When it was told.
        at: u64,
    },
    /// A renewal counted.
    DeadlineMoved {
        /// The bucket's name.
        bucket: String,
        /// The token of the term.
        token: Option<FencingToken>,
        /// The deadline as it now stands.
        deadline: u64,
        /// When it was told.
        at: u64,
    },
    /// The gate has shut.
    GuardsOut {
        /// The bucket's name.
        bucket: String,
        /// The token of the term.
        token: Option<FencingToken>,
        /// How many guards were out.
        guards: u64,
        /// When.
        at: u64,
    },
    /// The gate is shut, the last guard is in and `demote` has returned.
    TermEnded {
        /// The bucket's name.
        bucket: String,
        /// The token of the term.
        token: Option<FencingToken>,
        /// Why.
        #[serde(with = "reason")]
        reason: Reason,
        /// Until when anything acted at the latest; never later than the deadline.
        acted_until: u64,
        /// When the term was over, `demote` included.
        at: u64,
    },
    /// Something a person should know.
    Notice {
        /// A stable code, such as `foreign-holder`.
        code: String,
        /// The sentence.
        text: String,
        /// When it was told.
        at: u64,
    },
    /// A line of a later version.
    #[serde(other)]
    Unknown,
}

/// [`Reason`] by the name that metrics and logs use.
mod reason {
    use crate::leader::Reason;
    use serde::{Deserialize, Deserializer, Serializer, de};

    const ALL: [Reason; 4] = [Reason::Released, Reason::Lost, Reason::Resharded, Reason::Shutdown];

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde's `with` calls")]
    pub(super) fn serialize<S: Serializer>(reason: &Reason, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(reason.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Reason, D::Error> {
        let name = String::deserialize(d)?;
        ALL.into_iter()
            .find(|r| r.as_str() == name)
            .ok_or_else(|| de::Error::unknown_variant(&name, &["released", "lost", "resharded", "shutdown"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_its_reader_expects() {
        let token = Some(FencingToken::new(0, 7));
        let bucket = || "c.q.00-of-01".to_owned();
        for (line, json) in [
            (
                Line::Hello {
                    pid: 1,
                    identity: "p_u".into(),
                    component: "c".into(),
                    probe_port: Some(8080),
                    metrics_port: None,
                    at: 5,
                },
                r#"{"event":"hello","pid":1,"identity":"p_u","component":"c","probe_port":8080,"metrics_port":null,"at":5}"#,
            ),
            (
                Line::TermBegun { bucket: bucket(), token, at: 1, deadline: u64::MAX },
                r#"{"event":"term_begun","bucket":"c.q.00-of-01","token":"00000000000000000000000007","at":1,"deadline":18446744073709551615}"#,
            ),
            (
                Line::Promoted { bucket: String::new(), token: None, at: 2 },
                r#"{"event":"promoted","bucket":"","token":null,"at":2}"#,
            ),
            (
                Line::TermEnded { bucket: bucket(), token, reason: Reason::Resharded, acted_until: 3, at: 4 },
                r#"{"event":"term_ended","bucket":"c.q.00-of-01","token":"00000000000000000000000007","reason":"resharded","acted_until":3,"at":4}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&line).unwrap(), json);
            assert_eq!(serde_json::from_str::<Line>(json).unwrap(), line);
        }
    }

    #[test]
    fn a_line_of_a_later_version_is_no_error_and_a_broken_one_is() {
        assert_eq!(serde_json::from_str::<Line>(r#"{"event":"moved","to":3}"#).unwrap(), Line::Unknown);
        let reason = r#"{"event":"term_ended","bucket":"b","token":null,"reason":"bored","acted_until":3,"at":4}"#;
        assert!(serde_json::from_str::<Line>(reason).unwrap_err().to_string().contains("bored"));
        for broken in
            ["", "{}", r#"{"event":"promoted","bucket":1}"#, r#"{"event":"promoted","bucket":"b","token":"7","at":1}"#]
        {
            assert!(serde_json::from_str::<Line>(broken).is_err(), "{broken}");
        }
    }
}
