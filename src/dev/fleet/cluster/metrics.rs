//! Lease requests by verb, out of what a kube-apiserver says of itself on /metrics.
//!
//! # Caveats
//! The counters have no namespace: on a shared cluster they count everybody's Leases (nodes renew theirs every ten
//! seconds), and behind a load balancer they are those of one server.

use super::Requests;

/// Sums `apiserver_request_total` over everything but the verb, for Leases. None where the metric is not there at all.
pub(super) fn lease_requests(text: &str) -> Option<Requests> {
    let mut requests = Requests::default();
    let mut there = false;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("apiserver_request_total{") else { continue };
        there = true;
        let Some((labels, value)) = labels(rest) else { continue };
        let label = |name| labels.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        if label("resource") != Some("leases") || label("group").is_some_and(|g| g != "coordination.k8s.io") {
            continue;
        }
        requests.add(label("verb").unwrap_or_default(), value);
    }
    there.then_some(requests)
}

/// The labels and the value of a sample, after its opening brace.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, u64)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(value) = rest.strip_prefix('}') {
            return Some((labels, count(value.split_whitespace().next()?)?));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((name, value));
        rest = after;
    }
}

/// A label's value and what follows its closing quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// A counter's value: exposition format writes 1.5e+06 for large ones.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts: whole, positive, far below 2^53")]
fn count(text: &str) -> Option<u64> {
    text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0).map(|v| v as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_leases_are_summed_by_verb() {
        let text = concat!(
            "# TYPE apiserver_request_total counter\n",
            "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"coordination.k8s.io\",resource=\"leases\",scope=\"resource\",subresource=\"\",verb=\"PUT\",version=\"v1\"} 7\n",
            "apiserver_request_total{code=\"409\",group=\"coordination.k8s.io\",resource=\"leases\",verb=\"PUT\",version=\"v1\"} 2\n",
            "apiserver_request_total{code=\"201\",group=\"coordination.k8s.io\",resource=\"leases\",verb=\"POST\"} 1.5e+03\n",
            "apiserver_request_total{code=\"200\",group=\"\",resource=\"pods\",verb=\"GET\"} 99\n",
            "apiserver_request_total{code=\"200\",group=\"other\",resource=\"leases\",verb=\"GET\"} 99\n",
            "apiserver_request_total{code=\"0\",group=\"coordination.k8s.io\",resource=\"leases\",verb=\"WATCH\",note=\"a \\\"} b\"} 3 1700000000\n",
        );
        let expected = Requests { update: 9, create: 1500, watch: 3, ..Requests::default() };
        assert_eq!(lease_requests(text), Some(expected));
    }

    #[test]
    fn a_server_without_the_metric_is_told_from_one_without_requests() {
        assert_eq!(lease_requests("up 1\n"), None);
        assert_eq!(
            lease_requests("apiserver_request_total{resource=\"pods\",verb=\"GET\"} 1\n"),
            Some(Requests::default())
        );
        assert_eq!(lease_requests("apiserver_request_total{resource=\"leases\n"), Some(Requests::default()));
    }
}
