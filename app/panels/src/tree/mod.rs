//! The tree: the picture's choices and gestures, the table, search, lists, the selected block, the open decision, lanes and legend.
//!
//! What is drawn on the canvas is `radixscope_icicle`'s; the page keeps the buffers.

mod block;
mod choice;
mod decision;
mod gestures;
mod grid;
mod how;
mod lanes;
mod legend;
mod lights;
mod lists;
mod moves;
mod redundancy;
mod search;
mod selected;
mod texts;

pub use block::BlockSummary;
pub use choice::{
    CONTROLS, Choice, HITS_WINDOW_MS, Hovered, Narrow, Segment, Segments, TreePlacement, key, known_requests,
};
pub use decision::{
    Bracket, CandidateLane, DecisionPath, DecisionStep, LaneTable, NONE_OPEN, OpenDecision, brackets,
    end_label, end_of_path, gone_text, next_with_path, no_path_text, path_note, path_text, pool_to_show,
    session_text, unattached_text,
};
pub use gestures::{
    Click, Hands, Leave, Looked, PointerMove, StagePlace, Steer, TreeKey, Wheel, WheelCommand, WheelUnit,
    box_at, step, zoom_step,
};
pub use grid::{
    COLUMNS, Column, GridMove, GridRow, RowKey, edge_after, is_sideways, line_after, line_of, lines, sideways,
};
pub use how::{How, LanePlace, Painting};
pub use lanes::{LANE_SECONDS, LaneContent, highest_rate};
pub use legend::{
    NO_SESSION, WorkerKey, hits_end_text, hits_unknown_text, oldest_text, picked_text, replica_steps,
    replicas_end,
};
pub use lights::{RequestsInFlight, lights_text, lights_title};
pub use lists::{EmptyList, LINES, LIST_HOLDERS, ListedBox, MOST_LINES, PrefixList, Ranked};
pub use moves::{
    Move, at, first_seen, first_wide, goal_text, is_held, neighbour, next_held, own_place, path_to, under,
};
pub use redundancy::{CopiesFigures, CopiesRow, CopiesTable};
pub use search::{Group, SearchKey, SearchResult, SearchResults, Way};
pub use selected::{Detail, HOLDERS, Subject, head, linked_block};
pub use texts::{
    ChangeKey, PathBar, PathItem, PauseReason, PictureFacts, SideTab, axis_unit, blocks_and_coverage,
    distinct_blocks, fill_text, hits_note, picture_sums, shared_text, showing, shown_of, tip_place,
    turn_text,
};
