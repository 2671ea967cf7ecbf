use super::*;
use crate::clock::sleep_until;
use std::sync::Barrier;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn moves_with_the_timers_and_only_with_them() {
    let clock = VirtualClock::starting_at(Instant::from_nanos(7));
    assert_eq!(clock.now(), Instant::from_nanos(7));
    tokio::task::yield_now().await;
    assert_eq!(clock.now(), Instant::from_nanos(7));
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(clock.now(), Instant::from_nanos(3_000_000_007));
}

#[tokio::test(start_paused = true)]
async fn a_suspend_moves_the_clock_and_no_timer() {
    let clock = VirtualClock::new();
    let (began, timer) = (clock.now(), Timer::now());
    let wall = clock.wall();
    clock.suspend(3600 * SECOND);
    assert_eq!(clock.now().since(began), 3600 * SECOND);
    assert_eq!(clock.wall(), wall + 3600 * SECOND);
    assert_eq!(timer.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_rate_counts_from_where_it_was_set() {
    let clock = VirtualClock::new();
    let began = clock.now();
    tokio::time::advance(10 * SECOND).await;
    clock.set_rate(1_010_000);
    tokio::time::advance(100 * SECOND).await;
    assert_eq!(clock.now().since(began), 111 * SECOND);
    clock.set_rate(0);
    tokio::time::advance(100 * SECOND).await;
    assert_eq!(clock.now().since(began), 111 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn looking_loses_no_fraction() {
    let clock = VirtualClock::new().with_rate(TRUE_RATE - 1);
    let began = clock.now();
    for _ in 0..1000 {
        tokio::time::advance(Duration::from_micros(1)).await;
        let _ = clock.now();
    }
    // 1 ms less one part in a million: 999,999 ns. Losing the fraction at each look would make 999,000 of it.
    assert_eq!(clock.now().since(began).as_nanos(), 999_999);
}

#[tokio::test(start_paused = true)]
async fn the_wall_clock_jumps_back_and_stands_and_the_other_goes_on() {
    let clock = VirtualClock::new();
    let began = clock.now();
    let start = clock.wall();
    clock.set_wall(start - 60 * SECOND);
    tokio::time::advance(SECOND).await;
    assert_eq!(clock.wall(), start - 59 * SECOND);
    clock.freeze_wall();
    tokio::time::advance(SECOND).await;
    clock.suspend(SECOND);
    assert_eq!(clock.wall(), start - 59 * SECOND);
    assert_eq!(clock.now().since(began), 3 * SECOND);
    clock.set_wall(start);
    tokio::time::advance(SECOND).await;
    assert_eq!(clock.wall(), start + SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_notices_a_suspend_within_a_second_of_running_time() {
    let clock = VirtualClock::new();
    let sleeper = tokio::spawn({
        let clock = clock.clone();
        async move { sleep_until(&clock, clock.now() + 3600 * SECOND).await }
    });
    tokio::time::advance(SECOND / 2).await;
    tokio::task::yield_now().await;
    clock.suspend(3600 * SECOND);
    let woken = Timer::now();
    sleeper.await.unwrap();
    assert!(woken.elapsed() <= SECOND, "woke after {:?}", woken.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_sleep_by_a_slow_or_a_fast_clock_ends_by_that_clock() {
    for rate in [500_000, 990_000, 1_010_000, 3_000_000] {
        let clock = VirtualClock::new().with_rate(rate);
        let at = clock.now() + 60 * SECOND;
        sleep_until(&clock, at).await;
        let late = clock.now().since(at);
        assert!(clock.now() >= at, "rate {rate}: woke early");
        assert!(late <= 3 * SECOND, "rate {rate}: late by {late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn clones_are_one_clock() {
    let clock = VirtualClock::new();
    let other = clock.shared();
    clock.suspend(SECOND);
    assert_eq!(other.now(), clock.now());
}

#[test]
fn never_goes_back_for_any_thread() {
    let clock = VirtualClock::new();
    let gate = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                gate.wait();
                let mut last = clock.now();
                for _ in 0..20_000 {
                    let now = clock.now();
                    assert!(now >= last, "{now:?} after {last:?}");
                    last = now;
                }
            });
        }
        scope.spawn(|| {
            gate.wait();
            for i in 0..2_000 {
                clock.set_rate([0, 500_000, 2_000_000][i % 3]);
                clock.suspend(Duration::from_nanos(10));
            }
        });
    });
}
