//! Recorded traffic of real Dynamo through ingest and fold: the figures that were computed independently of this
//! code, snapshots on the way, and the records' round trip through the socket's frames.

mod delays;
mod figures;
mod findings;
mod hits;
mod joined;
mod late;
mod late_player;
mod logged;
mod policy;
mod recent_window;
mod replay;
mod reuse;
mod routing;
mod selections;
mod sessions;
mod signals;
mod topologies;
mod topology_findings;
mod watch;
mod ways;
