//! The bucket follows from the pod's ordinal: Knative's STATEFUL_* environment (`leaderelection/context.go`), no Leases.
//!
//! # Assumptions
//! The StatefulSet has exactly as many replicas as there are buckets, and never two pods of one ordinal.
//!
//! # Caveats
//! A pod that is down leaves its bucket without owner; so does every ordinal that no replica has. No fencing token.

use super::fixed::Fixed;
use super::{BuildError, Elector, Queue, Strategy};
use crate::bucket::BucketSet;
use crate::leader::observe::{self, Event};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatefulSet {
    set: String,
    ordinal: u32,
    service: String,
    port: String,
    protocol: String,
    namespace: String,
    domain: String,
}

impl StatefulSet {
    /// Reads STATEFUL_CONTROLLER_ORDINAL, STATEFUL_SERVICE_NAME, STATEFUL_SERVICE_PORT (80), STATEFUL_SERVICE_PROTOCOL
    /// (http), SYSTEM_NAMESPACE and CLUSTER_DOMAIN through `var`, as Knative does. `resolv` is the text of
    /// `/etc/resolv.conf`, for the cluster's domain where CLUSTER_DOMAIN is not set.
    ///
    /// # Errors
    /// Which variable is missing or cannot be read, and what it should be.
    pub fn from_env(var: impl Fn(&str) -> Option<String>, resolv: &str) -> Result<Self, BuildError> {
        let need = |name: &str, what: &str| {
            var(name).filter(|v| !v.is_empty()).ok_or_else(|| {
                BuildError::Other(format!("strategy statefulset needs {name} ({what}), which is not set"))
            })
        };
        let pod = need("STATEFUL_CONTROLLER_ORDINAL", "the pod's name, `<set>-<n>`")?;
        let parsed = pod.rsplit_once('-').and_then(|(set, n)| Some((set.to_owned(), n.parse::<u32>().ok()?)));
        let (set, ordinal) = parsed.ok_or_else(|| {
            BuildError::Other(format!("{pod:?} is not a valid stateful set controller ordinal (STATEFUL_CONTROLLER_ORDINAL): expected `<set>-<n>`"))
        })?;
        let or = |name: &str, default: &str| var(name).filter(|v| !v.is_empty()).unwrap_or_else(|| default.to_owned());
        let domain = var("CLUSTER_DOMAIN").filter(|v| !v.is_empty()).unwrap_or_else(|| domain_of(resolv));
        Ok(Self {
            set,
            ordinal,
            service: need("STATEFUL_SERVICE_NAME", "the headless service")?,
            port: or("STATEFUL_SERVICE_PORT", "80"),
            protocol: or("STATEFUL_SERVICE_PROTOCOL", "http"),
            namespace: need("SYSTEM_NAMESPACE", "the namespace of the set")?,
            domain,
        })
    }

    fn bucket_name(&self, ordinal: u32) -> String {
        let Self { set, service, port, protocol, namespace, domain, .. } = self;
        format!("{protocol}://{set}-{ordinal}.{service}.{namespace}.svc.{domain}:{port}")
    }
}

/// The first search domain that begins with `svc.`, as `knative.dev/pkg/network` finds it; else `cluster.local`.
fn domain_of(resolv: &str) -> String {
    resolv
        .lines()
        .filter_map(|line| line.trim().strip_prefix("search"))
        .flat_map(str::split_whitespace)
        .find_map(|entry| entry.strip_prefix("svc."))
        .map_or_else(|| "cluster.local".to_owned(), |d| d.trim_end_matches('.').to_owned())
}

impl Strategy for StatefulSet {
    fn name(&self) -> &'static str {
        "statefulset"
    }

    fn build(&self, queue: Queue) -> Result<Box<dyn Elector>, BuildError> {
        let config = queue.config.borrow().clone();
        if self.ordinal >= config.buckets {
            return Err(BuildError::Other(format!(
                "ordinal {} is out of range [0, {}): the StatefulSet has more replicas than there are buckets; set `buckets` to its replicas",
                self.ordinal, config.buckets
            )));
        }
        // The pod's bucket is the one at its ordinal of the names sorted as text, which with more than ten replicas is
        // not the one that carries its ordinal. So Knative has it, and both must agree.
        let mut names: Vec<String> = (0..config.buckets).map(|i| self.bucket_name(i)).collect();
        names.sort();
        let set = BucketSet::new(config.hash, names)?;
        let bucket = set.bucket(self.ordinal as usize);
        let text = format!(
            "ordinal {} of {} buckets assumes bucket {bucket}; ordinals that no replica has leave their buckets without owner, so the \
             StatefulSet needs {} replicas",
            self.ordinal, config.buckets, config.buckets
        );
        tracing::warn!(%bucket, ordinal = self.ordinal, "{text}");
        queue.status.say("layout", text.clone());
        observe::tell(&*queue.observer, &Event::Assumed { bucket: bucket.clone(), ordinal: self.ordinal });
        observe::tell(&*queue.observer, &Event::Notice { code: "statefulset-ordinal", text });
        Ok(Box::new(Fixed { queue, bucket }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn reads_what_knative_reads() {
        let env = vars(&[
            ("STATEFUL_CONTROLLER_ORDINAL", "as-1-2"),
            ("STATEFUL_SERVICE_NAME", "autoscaler"),
            ("STATEFUL_SERVICE_PORT", ""),
            ("SYSTEM_NAMESPACE", "ns"),
        ]);
        let s = StatefulSet::from_env(env, "nameserver 10.0.0.1\nsearch ns.svc.x.y svc.x.y. x.y\n").expect("valid");
        assert_eq!(s.ordinal, 2);
        assert_eq!(s.bucket_name(7), "http://as-1-7.autoscaler.ns.svc.x.y:80");
    }

    #[test]
    fn says_what_is_missing_or_wrong() {
        for (env, part) in [
            (vars(&[]), "STATEFUL_CONTROLLER_ORDINAL"),
            (vars(&[("STATEFUL_CONTROLLER_ORDINAL", "as")]), "\"as\" is not a valid stateful set controller ordinal"),
            (vars(&[("STATEFUL_CONTROLLER_ORDINAL", "as-x")]), "\"as-x\" is not"),
            (vars(&[("STATEFUL_CONTROLLER_ORDINAL", "as-1")]), "STATEFUL_SERVICE_NAME"),
            (vars(&[("STATEFUL_CONTROLLER_ORDINAL", "as-1"), ("STATEFUL_SERVICE_NAME", "s")]), "SYSTEM_NAMESPACE"),
        ] {
            let error = StatefulSet::from_env(env, "").expect_err("invalid").to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(domain_of(""), "cluster.local");
    }
}
