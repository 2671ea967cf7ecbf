//! Ages, as Kubernetes shortens them for people: `5s`, `3m20s`, `47h`, `5d3h`, `2y`.

use jiff::Timestamp;

/// The time from `at` (RFC 3339) to `now`; `<unknown>` where `at` is no time.
pub(super) fn since(at: &str, now: Timestamp) -> String {
    match at.parse::<Timestamp>() {
        Ok(at) => short(now.duration_since(at).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

fn short(seconds: i64) -> String {
    let pair = |n: i64, big: &str, m: i64, small: &str| {
        if m == 0 { format!("{n}{big}") } else { format!("{n}{big}{m}{small}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        // A clock may be a second off.
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => pair(days, "d", hours % 24, "h"),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (seconds, wanted) in [
            (0, "0s"),
            (-1, "0s"),
            (-5, "<invalid>"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (183_600, "2d3h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
        ] {
            assert_eq!(short(seconds), wanted, "{seconds}");
        }
        assert_eq!(since("nonsense", Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
