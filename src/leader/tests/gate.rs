use super::support::{settle, soon};
use crate::leader::gate::Gate;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

#[test]
fn a_new_gate_is_shut() {
    let gate = Gate::new();
    assert!(!gate.is_open());
    assert!(!gate.enter());
    assert_eq!(gate.inside(), 0, "who was refused is not counted");
}

#[test]
fn an_open_gate_counts_who_is_inside() {
    let gate = Gate::new();
    assert!(gate.open());
    assert!(gate.enter());
    assert!(gate.enter());
    gate.enter_again();
    assert_eq!(gate.inside(), 3);
    gate.leave();
    assert_eq!(gate.inside(), 2);
    assert!(gate.is_open());
}

#[test]
fn a_close_is_final() {
    let gate = Gate::new();
    assert!(gate.open());
    gate.close();
    assert!(!gate.enter());
    assert!(!gate.open(), "a gate that was closed does not open again");
    assert!(!gate.is_open());
    assert!(!gate.enter());
}

#[test]
fn a_gate_closed_before_it_opened_never_opens() {
    let gate = Gate::new();
    gate.close();
    assert!(!gate.open());
    assert!(!gate.enter());
}

#[test]
fn those_inside_stay_counted_over_a_close() {
    let gate = Gate::new();
    gate.open();
    assert!(gate.enter());
    gate.close();
    assert_eq!(gate.inside(), 1);
    gate.enter_again();
    assert_eq!(gate.inside(), 2);
}

#[tokio::test(start_paused = true)]
async fn drained_waits_for_the_last_one() {
    let gate = Arc::new(Gate::new());
    gate.open();
    assert!(gate.enter());
    assert!(gate.enter());
    gate.close();
    let drained = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { gate.drained().await }
    });
    settle().await;
    assert!(!drained.is_finished());
    gate.leave();
    settle().await;
    assert!(!drained.is_finished(), "one is still inside");
    gate.leave();
    soon(drained).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drained_of_an_open_gate_waits_for_its_close() {
    let gate = Arc::new(Gate::new());
    gate.open();
    let drained = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { gate.drained().await }
    });
    settle().await;
    assert!(!drained.is_finished(), "nobody is inside, but somebody may yet go in");
    gate.close();
    soon(drained).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drained_may_be_dropped_and_asked_again_and_answers_all() {
    let gate = Arc::new(Gate::new());
    gate.open();
    assert!(gate.enter());
    gate.close();
    for _ in 0..3 {
        tokio::select! {
            biased;
            () = gate.drained() => panic!("one is inside"),
            () = settle() => {}
        }
    }
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.drained().await })
        })
        .collect();
    settle().await;
    gate.leave();
    for one in waiting {
        soon(one).await.unwrap();
    }
    soon(gate.drained()).await;
}

/// Threads go in and out while others close the gate: from the moment that `drained` returned nobody is inside.
#[test]
fn nobody_is_inside_a_drained_gate_under_contention() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut entered = 0;
    for round in 0..400_u32 {
        let gate = Gate::new();
        let over = AtomicBool::new(false);
        let times = AtomicU64::new(0);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    while !over.load(Ordering::SeqCst) {
                        if gate.enter() {
                            times.fetch_add(1, Ordering::Relaxed);
                            assert!(!over.load(Ordering::SeqCst), "went in after the gate had drained");
                            gate.enter_again();
                            gate.leave();
                            std::thread::yield_now();
                            assert!(!over.load(Ordering::SeqCst), "drained while one was inside");
                            gate.leave();
                        }
                    }
                });
            }
            start.wait();
            assert!(gate.open());
            for _ in 0..round % 50 {
                std::thread::yield_now();
            }
            if round % 2 == 0 {
                gate.close();
                runtime.block_on(gate.drained());
            } else {
                // Waited for before the close, which comes from another thread.
                scope.spawn(|| gate.close());
                runtime.block_on(gate.drained());
            }
            over.store(true, Ordering::SeqCst);
        });
        assert_eq!(gate.inside(), 0);
        entered += times.load(Ordering::Relaxed);
    }
    assert!(entered > 0, "nobody ever went in: the test showed nothing");
}

#[test]
fn an_open_and_a_close_at_one_time_leave_it_closed() {
    for _ in 0..1000 {
        let gate = Gate::new();
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                gate.open();
            });
            start.wait();
            gate.close();
        });
        assert!(!gate.is_open());
        assert!(!gate.enter());
    }
}
