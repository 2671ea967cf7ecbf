//! Wall clocks that jump.

use super::support::{SECOND, World, seconds};
use crate::sources::ping::position::{back, forth};
use crate::sources::ping::testing::Logged;
use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_jump_ahead_is_caught_up_within_bounds_and_said_in_a_line() {
    let world = World::new(1);
    world.publish((0..500).map(|i| world.source(&format!("n/{i:03}"), 1, None)));
    let began = world.now();
    let _held = world.take().await;
    tokio::time::sleep(3 * SECOND + SECOND / 2).await;
    let left = world.now();
    let logged = Logged::here();
    world.clock.set_wall(forth(left, 30 * MINUTE));
    tokio::time::sleep(3 * SECOND).await;
    let mut all = seconds(began, left, 1);
    let caught_up = seconds(back(world.now(), MINUTE + 4 * SECOND), world.now(), 1);
    let fired = world.sink.of("n/007");
    all.extend(caught_up.into_iter().filter(|at| fired.contains(at)));
    assert_eq!(fired, all);
    assert!(fired.len() >= 4 + 60, "{}", fired.len());
    assert_eq!(logged.with("left out").len(), 1, "one line for 500 sources of 1740 ticks each");
    assert_eq!(logged.with("gaps=500").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_small_step_back_repeats_nothing() {
    let world = World::new(1);
    world.publish([world.source("n/a", 1, None)]);
    let began = world.now();
    let held = world.take().await;
    for _ in 0..3 {
        tokio::time::sleep(20 * SECOND + SECOND / 2).await;
        world.clock.set_wall(back(world.now(), 15 * SECOND));
    }
    // A source that becomes known before the clock has caught up is no reason to fire anything again.
    world.publish([world.source("n/a", 1, None)]);
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(world.sink.of("n/a"), seconds(began, world.now(), 1));
    held.release().await;
    world.clock.set_wall(back(world.now(), 15 * SECOND));
    let _held = world.take().await;
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(world.sink.of("n/a"), seconds(began, world.now(), 1), "nor is another holder");
}

#[tokio::test(start_paused = true)]
async fn a_large_step_back_counts_from_there() {
    let world = World::new(1);
    world.publish([world.source("n/a", 1, None), world.source("n/b", 3600, None)]);
    let held = world.take().await;
    tokio::time::sleep(10 * SECOND + SECOND / 2).await;
    let logged = Logged::here();
    let stepped = back(world.now(), 20 * MINUTE);
    world.clock.set_wall(stepped);
    let sent = world.sink.of("n/a").len();
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(world.sink.of("n/a")[sent..], seconds(stepped, world.now(), 1));
    assert_eq!(logged.with("went back").len(), 1);
    // The checkpoint went back with it: the next holder goes on from there.
    held.release().await;
    tokio::time::sleep(5 * SECOND).await;
    let _held = world.take().await;
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(world.sink.of("n/a")[sent..], seconds(stepped, world.now(), 1));
    assert_eq!(logged.with("lies in the future").len(), 0);
}

/// Where nothing was fired at the wrong time either: an hour's source must not wait for the wrong hour.
#[tokio::test(start_paused = true)]
async fn a_jump_back_and_forth_starves_no_source() {
    let world = World::new(1);
    tokio::time::sleep(10 * MINUTE).await;
    world.publish([world.source("n/b", 1800, None)]);
    let _held = world.take().await;
    tokio::time::sleep(3 * SECOND).await;
    let right = world.now();
    world.clock.set_wall(forth(right, 90 * MINUTE));
    tokio::time::sleep(3 * SECOND).await;
    world.clock.set_wall(forth(right, 3 * SECOND));
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(world.sink.of("n/b"), seconds(right, world.now(), 1800));
}
