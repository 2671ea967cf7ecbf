use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{Store, Window};
use crate::dev::apiserver::object::Key;

fn store(changes: usize) -> Store {
    Store::new(100, Window { changes, bytes: 1 << 20, age: Duration::from_mins(5) }, Instant::now())
}

#[test]
fn one_revision_for_all_tables() {
    let mut s = store(100);
    let (a, b) = (s.table_id("", "as"), s.table_id("g", "bs"));
    assert_eq!(s.table_id("", "as"), a);
    let now = Instant::now();
    assert_eq!(s.put(a, Key::new("x", "1"), json!({}), now).revision(), 101);
    assert_eq!(s.put(b, Key::new("x", "1"), json!({}), now).revision(), 102);
    assert_eq!(s.delete(a, &Key::new("x", "1"), now).expect("is there").revision(), 103);
    assert!(s.delete(a, &Key::new("x", "1"), now).is_none());
    assert_eq!(s.revision(), 103, "a delete of nothing is no change");
}

#[test]
fn an_older_revision_can_be_read_back_until_it_is_compacted() {
    let mut s = store(100);
    let a = s.table_id("", "as");
    let now = Instant::now();
    s.put(a, Key::new("x", "1"), json!({"v": 1}), now);
    s.put(a, Key::new("x", "2"), json!({"v": 1}), now);
    s.put(a, Key::new("x", "1"), json!({"v": 2}), now);
    s.delete(a, &Key::new("x", "2"), now);
    let then = s.table(a).at(102);
    assert_eq!(then.len(), 2);
    assert_eq!(then[&Key::new("x", "1")].value()["v"], 1);
    assert_eq!(s.table(a).get_at(&Key::new("x", "2"), 103).expect("not yet deleted").revision(), 102);
    assert!(s.table(a).get_at(&Key::new("x", "2"), 104).is_none());
    assert_eq!(s.table(a).at(100).len(), 0);
    s.compact(103);
    assert!(s.readable(102).is_err());
    assert!(s.readable(103).is_ok());
    assert_eq!(s.table(a).changes_after(103).count(), 1);
}

#[test]
fn the_log_is_bounded_by_number() {
    let mut s = store(8);
    let a = s.table_id("", "as");
    for i in 0..100 {
        s.put(a, Key::new("x", "1"), json!({"v": i}), Instant::now());
        assert!(s.table(a).changes_after(0).count() <= 8);
    }
    assert!(s.compacted() >= 190, "{}", s.compacted());
    assert!(s.readable(s.revision()).is_ok());
}

#[test]
fn the_log_is_bounded_by_age_as_etcds_is() {
    let mut s = store(1000);
    let a = s.table_id("", "as");
    let t0 = Instant::now();
    s.put(a, Key::new("x", "1"), json!({}), t0);
    s.put(a, Key::new("x", "2"), json!({}), t0 + Duration::from_secs(301));
    assert_eq!(s.compacted(), 100, "the first mark was the start");
    s.put(a, Key::new("x", "3"), json!({}), t0 + Duration::from_secs(602));
    assert_eq!(s.compacted(), 101);
}

#[test]
fn a_restore_goes_back_in_revision_and_content() {
    let mut s = store(100);
    let a = s.table_id("", "as");
    let now = Instant::now();
    s.put(a, Key::new("x", "1"), json!({"v": 1}), now);
    let snapshot = s.snapshot();
    s.put(a, Key::new("x", "1"), json!({"v": 2}), now);
    let b = s.table_id("", "bs");
    s.put(b, Key::new("x", "1"), json!({}), now);
    s.restore(&snapshot, now);
    assert_eq!((s.revision(), s.incarnation()), (101, 1));
    assert_eq!(s.table(a).get(&Key::new("x", "1")).expect("kept").value()["v"], 1);
    assert_eq!(s.table(b).range(None, None).count(), 0);
    assert_eq!(s.put(a, Key::new("x", "2"), json!({}), now).revision(), 102, "revisions repeat");
}

#[test]
fn the_log_is_bounded_by_size() {
    let mut s = Store::new(1, Window { changes: 10_000, bytes: 10_000, age: Duration::from_mins(5) }, Instant::now());
    let a = s.table_id("", "as");
    for i in 0..100 {
        s.put(a, Key::new("x", "1"), json!({"v": i, "text": "x".repeat(1000)}), Instant::now());
        assert!(s.table(a).changes_after(0).count() <= 10);
    }
    s.put(a, Key::new("x", "1"), json!({"text": "x".repeat(20_000)}), Instant::now());
    assert!(s.table(a).remembers(s.revision()), "the newest change is kept, however large");
}
