//! What the API server refuses this replica: said once for each verb, in the log, a metric and the readiness page, and on the
//! page for as long as it lasts.

use super::{Action, Ask, Core, Now, Target};
use crate::clock::Instant;
use crate::lease::{Failure, GRANTS};
use std::collections::BTreeMap;

/// The refusals that last, by verb.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<&'static str, Refusal>);

#[derive(Debug)]
struct Refusal {
    /// Of the notice, and the topic of the readiness page.
    code: &'static str,
    text: String,
    /// Refused again then.
    last: Instant,
}

impl Refusals {
    /// What the page says under `code`.
    fn sentence(&self, code: &str) -> Option<String> {
        let texts: Vec<&str> = self.0.values().filter(|r| r.code == code).map(|r| r.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

impl Ask {
    fn verb(&self) -> &'static str {
        match self.target {
            _ if self.creates => "create",
            _ if self.writes => "update",
            Target::Queue => "list",
            Target::Bucket(_) | Target::Layout | Target::Judge => "get",
        }
    }
}

impl Core {
    /// A request failed. What a server refuses, it refuses until somebody does something: a person is told.
    pub(super) fn refused(&mut self, failure: &Failure, ask: &Ask, now: Now) {
        let verb = ask.verb();
        let (code, text) = match failure {
            Failure::Forbidden(message) => (
                "forbidden",
                format!(
                    "the API server forbids to {verb} Leases: {message}. Grant {GRANTS}; tried again every retry-period"
                ),
            ),
            // To a POST that means the namespace; to a PUT, that the Lease was deleted.
            Failure::NotFound if ask.creates => (
                "no-namespace",
                "the namespace of the Leases, which SYSTEM_NAMESPACE names, does not exist: no Lease can be made in it. Create it, or \
                 mend SYSTEM_NAMESPACE; tried again"
                    .to_owned(),
            ),
            Failure::Refused { code, message } => {
                ("refused", format!("the API server refused to {verb} a Lease with {code}: {message}"))
            }
            _ => return,
        };
        // The server's message names the Lease: the next bucket's is no news.
        let known = self.refusals.0.get_mut(verb).filter(|r| r.code == code);
        if let Some(refusal) = known {
            refusal.last = now.at;
            return;
        }
        let before = self.refusals.0.insert(verb, Refusal { code, text: text.clone(), last: now.at });
        if let Some(before) = before {
            self.say_refusals(before.code);
        }
        self.say_refusals(code);
        self.notice(code, text);
    }

    /// A request succeeded. One verb says nothing of the others.
    pub(super) fn accepted(&mut self, ask: &Ask) {
        if let Some(refusal) = self.refusals.0.remove(ask.verb()) {
            self.say_refusals(refusal.code);
        }
    }

    /// What is refused is tried again every retry-period: a verb that was not refused for much longer is not needed any more.
    pub(super) fn forget_refusals(&mut self, now: Now) {
        let lasts = 2 * self.settings.renew_deadline;
        let over: Vec<&'static str> =
            self.refusals.0.iter().filter(|(_, r)| now.at >= r.last + lasts).map(|(verb, _)| *verb).collect();
        for verb in over {
            if let Some(refusal) = self.refusals.0.remove(verb) {
                self.say_refusals(refusal.code);
            }
        }
        if let Some(next) = self.refusals.0.values().map(|r| r.last + lasts).min() {
            self.wake_at(next, now);
        }
    }

    fn say_refusals(&mut self, code: &'static str) {
        let sentence = self.refusals.sentence(code);
        self.out.push(Action::Say(code, sentence));
    }
}
