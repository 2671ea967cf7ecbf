//! An index of a ring's points: whose a place is takes one look and a step or two.

/// The points in order, and for each of equal stretches of the ring the first point that is not below it.
///
/// There are at most as many stretches as points and at least half as many, and the points are spread evenly by their
/// hash. So a stretch has one point or two, and a look-up steps over one of them or none.
pub(super) struct Index {
    /// By how many bits a place is shifted down to give its stretch.
    shift: u32,
    /// For each stretch, where in `points` the first one stands that is not below the stretch.
    first: Box<[u32]>,
    /// Ascending. At the end one more, at the ring's last place, stands for the first.
    points: Box<[Point]>,
}

/// A point and its bucket in 12 bytes; with the place in one piece it would be 16, and the caches matter more.
struct Point {
    high: u32,
    low: u32,
    bucket: u32,
}

impl Point {
    #[allow(clippy::cast_possible_truncation, reason = "the upper half is kept beside")]
    fn new(place: u64, bucket: u32) -> Self {
        Self { high: (place >> 32) as u32, low: place as u32, bucket }
    }

    fn place(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

impl Index {
    /// Of points in ascending order, each a place and the ordinal of its bucket. Of points at one place the first
    /// counts. There is at least one, and there are fewer than 2^31.
    pub(super) fn new(points: impl Iterator<Item = (u64, u32)>) -> Self {
        let mut points: Vec<Point> = points.map(|(place, bucket)| Point::new(place, bucket)).collect();
        let round = points.first().map_or(0, |first| first.bucket);
        points.push(Point::new(u64::MAX, round));

        // A power of two, and at least two: a shift by all 64 bits is none.
        let bits = points.len().ilog2().max(1);
        let shift = u64::BITS - bits;
        let mut at = 0_u32;
        let first = (0..1_u64 << bits).map(|stretch| {
            while points[at as usize].place() < stretch << shift {
                at += 1;
            }
            at
        });
        let first = first.collect();
        Self { shift, first, points: points.into() }
    }

    /// The ordinal of the bucket whose point is the first at or above `place`.
    #[inline]
    pub(super) fn owner(&self, place: u64) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "there are fewer stretches than 2^31")]
        let mut at = self.first[(place >> self.shift) as usize] as usize;
        // Ends: no place is above that of the last point.
        while self.points[at].place() < place {
            at += 1;
        }
        self.points[at].bucket as usize
    }
}
