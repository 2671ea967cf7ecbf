//! Clocks that jump, and processes that get no time.

use super::{S, all_held, cut_off, held, init, judge, lost, ms, terms};
use crate::world::{Character, World, timing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A wall clock that jumps an hour, either way, changes nothing.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_changes_nothing() {
    let world = World::new(40, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    let b = world.replica(Character::default());
    all_held(&world, &[&a, &b], S).await;
    for hours in [1, -1, 0, -2, 5] {
        a.clock.set_wall_off(jiff::SignedDuration::from_hours(hours));
        tokio::time::sleep(30 * S).await;
    }
    assert_eq!((held(&[&a, &b]), terms(&world)), (3, 3));
    judge(&world).await;
}

/// A machine asleep for an hour: its clock has gone on, its timers have not, and nothing it knows is news. A holder has
/// lost its terms; who waited must not take what others have renewed all the while.
#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_an_hour() {
    let world = World::new(320, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(5 * S).await;
    // The standby: no packet reaches it, and nothing of it runs.
    for asleep in [20, 3600] {
        let net = cut_off(&b);
        b.ice.freeze();
        // The last minute of it is played.
        let played = asleep.min(60);
        b.clock.sleep((asleep - played) * S);
        tokio::time::sleep(played * S).await;
        b.ice.thaw();
        tokio::time::sleep(ms(300)).await;
        b.faults.remove(net);
        tokio::time::sleep(20 * S).await;
        assert_eq!((a.held(), b.held(), lost(&world)), (3, 0, 0));
    }
    // The holder: others have taken over long ago.
    let net = cut_off(&a);
    a.ice.freeze();
    tokio::time::sleep(60 * S).await;
    assert_eq!(b.held(), 3);
    a.ice.thaw();
    a.faults.remove(net);
    tokio::time::sleep(60 * S).await;
    assert_eq!((a.held(), b.held(), terms(&world)), (0, 3, 6));
    judge(&world).await;
}

/// The boot clock leaps an hour under a holder, again and again: each time it stops, and takes anew what is still its own.
#[tokio::test(start_paused = true)]
async fn a_boot_clock_that_leaps_an_hour() {
    let world = World::new(321, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    for _ in 0..5 {
        let before = terms(&world);
        a.clock.sleep(3600 * S);
        world.until("taken anew", 5 * S, || terms(&world) == before + 3 && a.held() == 3).await;
        tokio::time::sleep(ms(2300)).await;
    }
    judge(&world).await;
}

/// A frozen election (all cores busy, a stopped thread): what it decides late is decided by the time that it then is.
#[tokio::test(start_paused = true)]
async fn a_starved_elector_gives_no_guard_too_late() {
    let world = World::new(108, 3, timing(15, 10, 2));
    init(&world, 3).await.expect("opened");
    let a = world.replica(Character::default());
    all_held(&world, &[&a], S).await;
    let b = world.replica(Character::default());
    tokio::time::sleep(10 * S).await;
    for _ in 0..5 {
        let (holder, other) = if a.held() == 3 { (&a, &b) } else { (&b, &a) };
        holder.ice.freeze();
        all_held(&world, &[other], 20 * S).await;
        holder.ice.thaw();
        tokio::time::sleep(ms(1700)).await;
    }
    assert_eq!(held(&[&a, &b]), 3);
    // Starved a little all the time, it loses nothing.
    let lost_before = lost(&world);
    for _ in 0..60 {
        for (r, ice) in [(&a, 3100), (&b, 2300)] {
            r.ice.freeze();
            tokio::time::sleep(ms(ice)).await;
            r.ice.thaw();
        }
    }
    assert_eq!(lost(&world), lost_before);
    judge(&world).await;
}

/// The same on real time, with every core kept busy by twice as many threads: nothing is acted on twice, and all is held
/// when they are done.
#[test]
fn all_cores_busy() {
    let stop = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let spin = |stop: Arc<AtomicBool>| {
        move || {
            let mut n = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                n = std::hint::black_box(n.wrapping_mul(31).wrapping_add(7));
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let world = World::new(322, 10, timing(5, 4, 1));
        init(&world, 10).await.expect("opened");
        let a = world.replica(Character::default());
        let b = world.replica(Character::default());
        all_held(&world, &[&a, &b], 60 * S).await;
        let busy: Vec<_> = (0..2 * cores).map(|_| std::thread::spawn(spin(Arc::clone(&stop)))).collect();
        tokio::time::sleep(6 * S).await;
        a.kill();
        all_held(&world, &[&b], 120 * S).await;
        stop.store(true, Ordering::Relaxed);
        for thread in busy {
            thread.join().expect("it ends");
        }
        // The checker's own notes are late on such a machine: only what two did at one time counts.
        let found: Vec<_> = world.history.violations().into_iter().filter(|v| v.0 == "S1" || v.0 == "S9").collect();
        assert!(found.is_empty(), "{found:#?}");
    });
}
