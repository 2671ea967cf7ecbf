//! LeaderAware, Term, Guard.
