use super::support::{Author, Log, SECOND, World, settle};
use crate::clock::virtual_time::VirtualClock;
use crate::leader::tenure::Told;
use crate::leader::{Chain, DynLeaderAware, Reason, Term};
use std::sync::Arc;

fn world(links: impl FnOnce(&Log) -> Vec<Author>) -> World {
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let links = links(&log).into_iter().map(|link| Arc::new(link) as Arc<dyn DynLeaderAware>);
    World::with(Arc::new(Chain::new(links)), clock, log)
}

fn authors_lines(world: &World) -> Vec<String> {
    world.log.lines().into_iter().filter(|l| !l.starts_with("event")).collect()
}

#[tokio::test(start_paused = true)]
async fn promoted_in_order_and_demoted_in_reverse_one_after_the_other() {
    let mut world = world(|log| {
        ["a", "b", "c"]
            .map(|name| {
                Author::named(name, log)
                    .promoting(|_| async {
                        tokio::time::sleep(SECOND).await;
                        Ok(())
                    })
                    .demoting(|_| tokio::time::sleep(SECOND))
            })
            .into()
    });
    let (tenure, _) = world.begin_promoted().await;
    tenure.end(Reason::Resharded);
    world.ended().await;
    assert_eq!(
        authors_lines(&world),
        [
            "a promote",
            "a promote ok",
            "b promote",
            "b promote ok",
            "c promote",
            "c promote ok",
            "c demote resharded",
            "c demote returned",
            "b demote resharded",
            "b demote returned",
            "a demote resharded",
            "a demote returned",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn where_one_refuses_those_before_it_are_demoted_in_reverse_and_those_after_it_never_asked() {
    let mut world = world(|log| {
        vec![
            Author::named("a", log),
            Author::named("b", log).demoting(|_| tokio::time::sleep(SECOND)),
            Author::named("c", log).promoting(|_| async { Err("c will not".into()) }),
            Author::named("d", log),
        ]
    });
    let _tenure = world.begin();
    assert!(matches!(world.next().await, Told::PromoteFailed(_)));
    assert!(world.ended().await.clean);
    assert_eq!(
        authors_lines(&world),
        [
            "a promote",
            "a promote ok",
            "b promote",
            "b promote ok",
            "c promote",
            "c promote err",
            "b demote released",
            "b demote returned",
            "a demote released",
            "a demote returned",
        ]
    );
    assert!(world.log.has("event: promote failed: c will not"));
}

/// The end of the term overtook the first link: the second would begin what has to stop at once.
#[tokio::test(start_paused = true)]
async fn a_term_that_ends_on_the_way_promotes_no_further_link() {
    let mut world = world(|log| {
        vec![
            Author::named("a", log).promoting(|term: Term| async move {
                term.cancelled().await;
                Ok(())
            }),
            Author::named("b", log),
        ]
    });
    let (tenure, _) = world.begin();
    settle().await;
    tenure.end(Reason::Released);
    assert!(world.ended().await.clean);
    assert_eq!(authors_lines(&world), ["a promote", "a promote ok", "a demote released", "a demote returned"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_chain_promotes() {
    let mut world = world(|_| Vec::new());
    let (tenure, _) = world.begin_promoted().await;
    assert!(tenure.term().is_current());
}

#[tokio::test(start_paused = true)]
async fn chains_may_stand_in_chains() {
    let clock = VirtualClock::new();
    let log = Log::new(&clock);
    let link = |name| Arc::new(Author::named(name, &log)) as Arc<dyn DynLeaderAware>;
    let inner = Chain::new([link("a"), link("b")]);
    let outer = Chain::new([Arc::new(inner) as Arc<dyn DynLeaderAware>, link("c")]);
    let mut world = World::with(Arc::new(outer), clock, log);
    let (tenure, _) = world.begin_promoted().await;
    tenure.end(Reason::Lost);
    world.ended().await;
    let lines = authors_lines(&world);
    let demotes: Vec<_> = lines.iter().filter(|l| l.ends_with("demote lost")).collect();
    assert_eq!(demotes, ["c demote lost", "b demote lost", "a demote lost"]);
}
