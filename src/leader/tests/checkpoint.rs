use super::support::{Author, SECOND, World, buckets, settle, soon};
use crate::leader::tenure::{Tenure, Told};
use crate::leader::{Checkpoint, CheckpointError, FencingToken, MAX_CHECKPOINT, Reason, Saved};
use futures::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn fresh() -> Arc<Checkpoint> {
    Checkpoint::new(Some(FencingToken::new(0, 7)), None)
}

fn going_on() -> Arc<Checkpoint> {
    let saved = Saved { position: "old".to_owned(), token: Some(FencingToken::new(0, 3)) };
    Checkpoint::new(Some(FencingToken::new(0, 7)), Some(saved))
}

/// As an elector writes it.
fn write(checkpoint: &Checkpoint) -> String {
    let (number, saved) = checkpoint.pending().expect("something is pending");
    assert_eq!(saved.token, Some(FencingToken::new(0, 7)), "in the name of the term that stored it");
    checkpoint.mark_written(number);
    saved.position
}

#[tokio::test(start_paused = true)]
async fn load_answers_the_last_of_this_term_else_what_the_last_holder_left() {
    assert_eq!(fresh().load(), None);
    let checkpoint = going_on();
    assert_eq!(checkpoint.load().as_deref(), Some("old"));
    assert_eq!(checkpoint.saved().unwrap().token, Some(FencingToken::new(0, 3)));
    checkpoint.store("new").unwrap();
    assert_eq!(checkpoint.load().as_deref(), Some("new"));
    assert_eq!(checkpoint.saved().unwrap().position, "old", "what was found stays readable");
}

#[tokio::test(start_paused = true)]
async fn pending_is_what_a_lease_does_not_hold_yet() {
    let checkpoint = going_on();
    assert_eq!(checkpoint.pending(), None, "what was found is there already");
    checkpoint.store("1").unwrap();
    checkpoint.store("2").unwrap();
    assert_eq!(write(&checkpoint), "2", "the last one only");
    assert_eq!(checkpoint.pending(), None);
    checkpoint.store("2").unwrap();
    assert_eq!(checkpoint.pending(), None, "the same again is no news");
    checkpoint.store("3").unwrap();
    checkpoint.store("2").unwrap();
    assert_eq!(write(&checkpoint), "2", "there and back is news");
}

#[tokio::test(start_paused = true)]
async fn a_store_while_a_write_is_under_way_stays_pending() {
    let checkpoint = going_on();
    checkpoint.store("1").unwrap();
    let (sent, _) = checkpoint.pending().unwrap();
    checkpoint.store("2").unwrap();
    checkpoint.mark_written(sent);
    assert_eq!(write(&checkpoint), "2");
    // An answer that comes late moves nothing back.
    checkpoint.mark_written(sent);
    assert_eq!(checkpoint.pending(), None);
}

#[tokio::test(start_paused = true)]
async fn the_first_of_a_bucket_is_urgent_and_the_later_ones_are_not() {
    let checkpoint = fresh();
    assert!(!checkpoint.is_urgent());
    assert!(checkpoint.wanted().now_or_never().is_none());
    checkpoint.store("1").unwrap();
    assert!(checkpoint.is_urgent());
    soon(checkpoint.wanted()).await;
    write(&checkpoint);
    assert!(!checkpoint.is_urgent());
    checkpoint.store("2").unwrap();
    assert!(!checkpoint.is_urgent());
    assert!(checkpoint.wanted().now_or_never().is_none());

    let checkpoint = going_on();
    checkpoint.store("1").unwrap();
    assert!(!checkpoint.is_urgent(), "the bucket has one");
}

#[tokio::test(start_paused = true)]
async fn a_store_before_the_elector_listens_is_not_missed() {
    let checkpoint = fresh();
    checkpoint.store("1").unwrap();
    soon(checkpoint.wanted()).await;
}

#[tokio::test(start_paused = true)]
async fn flush_asks_for_a_write_and_returns_when_it_stands() {
    let checkpoint = going_on();
    assert_eq!(checkpoint.flush().now_or_never(), Some(Ok(())), "nothing was stored");
    checkpoint.store("1").unwrap();
    let flush = tokio::spawn({
        let checkpoint = Arc::clone(&checkpoint);
        async move { checkpoint.flush().await }
    });
    soon(checkpoint.wanted()).await;
    assert!(checkpoint.is_urgent());
    settle().await;
    assert!(!flush.is_finished());
    write(&checkpoint);
    assert_eq!(soon(flush).await.unwrap(), Ok(()));
    assert_eq!(checkpoint.flush().now_or_never(), Some(Ok(())), "it stands already");
}

/// The write under way carries an older position: the flush asks again.
#[tokio::test(start_paused = true)]
async fn a_write_of_something_older_does_not_answer_a_flush() {
    let checkpoint = going_on();
    checkpoint.store("1").unwrap();
    let (sent, _) = checkpoint.pending().unwrap();
    checkpoint.store("2").unwrap();
    let flush = tokio::spawn({
        let checkpoint = Arc::clone(&checkpoint);
        async move { checkpoint.flush().await }
    });
    soon(checkpoint.wanted()).await;
    checkpoint.mark_written(sent);
    soon(checkpoint.wanted()).await;
    assert!(checkpoint.is_urgent());
    assert!(!flush.is_finished());
    assert_eq!(write(&checkpoint), "2");
    assert_eq!(soon(flush).await.unwrap(), Ok(()));
}

/// Whoever stores faster than a Lease is written gets an answer all the same.
#[tokio::test(start_paused = true)]
async fn stores_after_a_flush_do_not_hold_it_up() {
    let checkpoint = going_on();
    checkpoint.store("1").unwrap();
    let flush = tokio::spawn({
        let checkpoint = Arc::clone(&checkpoint);
        async move { checkpoint.flush().await }
    });
    soon(checkpoint.wanted()).await;
    let (sent, _) = checkpoint.pending().unwrap();
    checkpoint.store("2").unwrap();
    checkpoint.mark_written(sent);
    assert_eq!(soon(flush).await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_is_dropped_is_written_all_the_same() {
    let checkpoint = going_on();
    checkpoint.store("1").unwrap();
    assert!(checkpoint.flush().now_or_never().is_none());
    soon(checkpoint.wanted()).await;
    assert!(checkpoint.is_urgent());
    assert_eq!(write(&checkpoint), "1");
}

#[tokio::test(start_paused = true)]
async fn many_flushes_are_answered_by_one_write() {
    let checkpoint = going_on();
    checkpoint.store("1").unwrap();
    let flushes: Vec<_> = (0..3)
        .map(|_| {
            let checkpoint = Arc::clone(&checkpoint);
            tokio::spawn(async move { checkpoint.flush().await })
        })
        .collect();
    settle().await;
    write(&checkpoint);
    for flush in flushes {
        assert_eq!(soon(flush).await.unwrap(), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn too_large_is_refused_and_changes_nothing() {
    let checkpoint = fresh();
    checkpoint.store(&"x".repeat(MAX_CHECKPOINT)).unwrap();
    let error = checkpoint.store(&"x".repeat(MAX_CHECKPOINT + 1)).unwrap_err();
    assert_eq!(error, CheckpointError::TooLarge(MAX_CHECKPOINT + 1));
    assert!(error.to_string().contains("16385"), "{error}");
    assert_eq!(checkpoint.load().unwrap().len(), MAX_CHECKPOINT);
    // Bytes, not characters.
    assert!(checkpoint.store(&"ä".repeat(MAX_CHECKPOINT / 2 + 1)).is_err());
}

async fn ends(tenure: &Tenure, world: &mut World, reason: Reason) -> bool {
    tenure.end(reason);
    world.ended().await.clean
}

#[tokio::test(start_paused = true)]
async fn an_ended_term_takes_nothing_more_and_keeps_its_last_for_the_release() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let checkpoint = tenure.term().checkpoint();
    checkpoint.store("1").unwrap();
    assert!(ends(&tenure, &mut world, Reason::Released).await);
    assert_eq!(checkpoint.store("2"), Err(CheckpointError::Ended));
    assert_eq!(soon(checkpoint.flush()).await, Err(CheckpointError::Ended));
    let (number, saved) = checkpoint.pending().unwrap();
    assert_eq!(saved.position, "1");
    checkpoint.mark_written(number);
    assert_eq!(soon(checkpoint.flush()).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_demote_stores_goes_with_the_release() {
    let mut world = World::new(Author::new());
    let stores = Arc::new(std::sync::Mutex::new(None::<crate::leader::Term>));
    let seen = Arc::clone(&stores);
    let author = Author::named("a", &world.log)
        .promoting(move |term| {
            *seen.lock().unwrap() = Some(term);
            async { Ok(()) }
        })
        .demoting(move |_| {
            let term = stores.lock().unwrap().clone().unwrap();
            async move { term.checkpoint().store("last").unwrap() }
        });
    world.around.aware = Arc::new(author);
    let (tenure, _) = world.begin_promoted().await;
    assert!(ends(&tenure, &mut world, Reason::Shutdown).await);
    assert_eq!(tenure.term().checkpoint().pending().unwrap().1.position, "last");
}

/// Nothing is ever written for a lost term, so a flush in its demote, or under a guard, would wait for ever, and what
/// waits for ever there ends the process.
#[tokio::test(start_paused = true)]
async fn a_flush_in_a_lost_term_is_answered_at_once() {
    let answered = Arc::new(AtomicBool::new(false));
    let term = Arc::new(std::sync::Mutex::new(None::<crate::leader::Term>));
    let (seen, told) = (Arc::clone(&term), Arc::clone(&answered));
    let mut world = World::new(
        Author::new()
            .promoting(move |term| {
                *seen.lock().unwrap() = Some(term);
                async { Ok(()) }
            })
            .demoting(move |_| {
                let (term, told) = (term.lock().unwrap().clone().unwrap(), Arc::clone(&told));
                async move {
                    assert_eq!(term.checkpoint().flush().await, Err(CheckpointError::Ended));
                    told.store(true, Ordering::SeqCst);
                }
            }),
    );
    let (tenure, _) = world.begin_promoted().await;
    tenure.term().checkpoint().store("1").unwrap();
    let guard = tenure.term().guard().unwrap();
    let flush = tokio::spawn(async move {
        let result = guard.term().checkpoint().flush().await;
        drop(guard);
        result
    });
    settle().await;
    assert!(!flush.is_finished());
    tenure.end(Reason::Lost);
    assert_eq!(soon(flush).await.unwrap(), Err(CheckpointError::Ended));
    assert_eq!(tenure.term().checkpoint().store("2"), Err(CheckpointError::Ended));
    assert!(!world.ended().await.clean);
    assert!(answered.load(Ordering::SeqCst));
    assert!(!world.log.lines().iter().any(|l| l.starts_with("fatal")), "{:#?}", world.log);
}

#[tokio::test(start_paused = true)]
async fn a_flush_in_a_drain_is_still_written() {
    let mut world = World::new(Author::new());
    let (tenure, _) = world.begin_promoted().await;
    let checkpoint = Arc::clone(tenure.term().checkpoint());
    let guard = tenure.term().guard().unwrap();
    let flush = tokio::spawn(async move {
        guard.term().checkpoint().store("1").unwrap();
        let result = guard.term().checkpoint().flush().await;
        drop(guard);
        result
    });
    settle().await;
    tenure.end(Reason::Released);
    tokio::time::sleep(SECOND).await;
    assert!(!flush.is_finished());
    write(&checkpoint);
    assert_eq!(soon(flush).await.unwrap(), Ok(()));
    assert!(world.ended().await.clean);
}

#[tokio::test(start_paused = true)]
async fn promote_is_handed_what_the_last_holder_left() {
    let mut world = World::new(Author::new());
    let saved = Saved { position: "41".to_owned(), token: None };
    let (term, _) = world.term_of(buckets(1).bucket(0), Some(saved.clone()));
    let _tenure = Tenure::begin(term, super::support::LIMITS, world.around.clone());
    let Told::Promoted(term) = world.next().await else { panic!("not promoted") };
    assert_eq!(term.checkpoint().saved(), Some(&saved));
    assert_eq!(term.checkpoint().load().as_deref(), Some("41"));
}

/// Stores, flushes and writes from several threads: no flush waits for ever, and what stands last was stored last.
#[test]
fn no_wake_up_is_lost_between_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap();
    runtime.block_on(async {
        let checkpoint = fresh();
        let writer = tokio::spawn({
            let checkpoint = Arc::clone(&checkpoint);
            async move {
                let mut last = String::new();
                loop {
                    checkpoint.wanted().await;
                    while let Some((number, saved)) = checkpoint.pending() {
                        tokio::task::yield_now().await;
                        last = saved.position;
                        checkpoint.mark_written(number);
                    }
                    if last == "end" {
                        return;
                    }
                }
            }
        });
        let authors: Vec<_> = (0..2)
            .map(|who| {
                let checkpoint = Arc::clone(&checkpoint);
                tokio::spawn(async move {
                    for i in 0..2_000 {
                        checkpoint.store(&format!("{who}-{i}")).unwrap();
                        checkpoint.flush().await.unwrap();
                    }
                })
            })
            .collect();
        let bounded = tokio::time::timeout(std::time::Duration::from_mins(2), async {
            for author in authors {
                author.await.unwrap();
            }
            checkpoint.store("end").unwrap();
            checkpoint.flush().await.unwrap();
            writer.await.unwrap();
        });
        bounded.await.expect("every flush was answered");
        assert_eq!(checkpoint.pending(), None);
    });
}
