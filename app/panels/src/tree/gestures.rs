//! Wheel, pointers and keys into movements of the camera and the selection: plain events in, commands out. Knows no element.

use radixscope_icicle::camera::{Axes, Camera, Goal};
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::lanes::Lanes;
use radixscope_icicle::viewport::Region;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::Forest;

use super::choice::{Hovered, TreePlacement};
use super::moves::{Move, first_seen, is_held, next_held, own_place, under};

/// A pointer that moves farther than this while it is down drags and does not click, CSS pixels.
const DRAG_FROM: f64 = 4.0;
/// A wheel's notch of this many pixels zooms by e.
const WHEEL_PX_PER_E: f64 = 480.0;
/// The same for a pinch on a trackpad, which the browser tells as a wheel with Ctrl in small steps.
const PINCH_PX_PER_E: f64 = 100.0;
/// One event of a wheel zooms no more than this.
const MOST_E: f64 = 0.7;
/// One press of a button or a key zooms by this.
const STEP: f64 = 1.8;
/// A click on what is too narrow to be distinguished zooms in by this.
const INTO_RUN: f64 = 4.0;
/// A line of a wheel that counts in lines, CSS pixels.
const LINE_PX: f64 = 33.0;

/// The picture on the screen, CSS pixels: of its places, those are meant that count from its upper left corner, the axis included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StagePlace<'a> {
    /// Width of the picture, without the axis.
    pub width: f64,
    /// Its height, or that of one of its lanes.
    pub height: f64,
    /// Width of the axis at its left.
    pub axis: f64,
    /// Its lanes; `None`: there are none.
    pub lanes: Option<&'a Lanes>,
}

impl<'a> StagePlace<'a> {
    /// Of a frame, the axis included.
    pub fn of(frame: (f64, f64), axis: f64, lanes: Option<&'a Lanes>) -> Self {
        let (width, height) = frame;
        let height = lanes.map_or(height, |lanes| lanes.height);
        Self { width: (width - axis).max(1.0), height: height.max(1.0), axis, lanes }
    }

    /// A place as shares of the window.
    pub fn share(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let down = self.lanes.map_or(y / self.height, |lanes| lanes.share(y));
        (((x - self.axis) / self.width).clamp(0.0, 1.0), down.clamp(0.0, 1.0))
    }
}

/// A movement of the camera by hand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Steer {
    /// By shares of the window, to the right and downward.
    Pan(f64, f64),
    /// By a factor around a place, as shares of the window; whether it is a journey.
    Zoom {
        /// Above 1: closer.
        factor: f64,
        /// What stays where it is.
        at: (f64, f64),
        /// What changes.
        axes: Axes,
        /// Whether the camera goes there step by step.
        is_eased: bool,
    },
}

impl Steer {
    /// Moves a camera.
    pub fn apply(self, camera: &mut Camera) {
        match self {
            Steer::Pan(right, down) => camera.pan(right, down),
            Steer::Zoom { factor, at, axes, is_eased } => camera.zoom(factor, at, axes, is_eased),
        }
    }
}

/// In what a wheel counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WheelUnit {
    /// CSS pixels.
    Pixel,
    /// Lines of text.
    Line,
    /// Heights of the picture.
    Page,
}

/// A turn of a wheel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wheel {
    /// How far to the right and downward.
    pub by: (f64, f64),
    /// In what.
    pub unit: WheelUnit,
    /// Ctrl: a pinch on a trackpad.
    pub has_ctrl: bool,
    /// Shift: sideways.
    pub has_shift: bool,
    /// Alt: across alone.
    pub has_alt: bool,
    /// Where the pointer is.
    pub at: (f64, f64),
}

/// What a turn of a wheel does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WheelCommand {
    /// Moves the camera.
    Steer(Steer),
    /// Scrolls the lanes, CSS pixels.
    ScrollLanes(f64),
}

impl Wheel {
    /// What it does on a stage.
    pub fn command(self, stage: &StagePlace<'_>) -> WheelCommand {
        let line = match self.unit {
            WheelUnit::Line => LINE_PX,
            WheelUnit::Page => stage.height,
            WheelUnit::Pixel => 1.0,
        };
        let (dx, dy) = (self.by.0 * line, self.by.1 * line);
        let sideways = if self.has_shift && dx == 0.0 { dy } else { dx };
        if !self.has_ctrl && (self.has_shift || dx.abs() > dy.abs()) {
            // Sideways there are drags and keys; the lanes below have but this.
            if self.has_shift && stage.lanes.is_some() {
                return WheelCommand::ScrollLanes(sideways);
            }
            return WheelCommand::Steer(Steer::Pan(sideways / stage.width, 0.0));
        }
        let per_e = if self.has_ctrl { PINCH_PX_PER_E } else { WHEEL_PX_PER_E };
        let axes = if self.has_alt { Axes::Across } else { Axes::Both };
        let factor = (-dy / per_e).clamp(-MOST_E, MOST_E).exp();
        let at = stage.share(self.at);
        WheelCommand::Steer(Steer::Zoom { factor, at, axes, is_eased: false })
    }
}

/// What pointers that are down are doing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hands {
    /// Id and last place of each pointer that is down.
    down: Vec<(i32, (f64, f64))>,
    /// Where the first went down.
    began: (f64, f64),
    is_dragging: bool,
}

/// What a movement of a pointer does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PointerMove {
    /// It is not down: what is under it is described.
    Hovers,
    /// It is down, and has not moved far enough to drag.
    Rests,
    /// It drags the picture.
    Drags {
        /// Whether that begins now.
        begins: bool,
        /// Moves the camera.
        pan: Steer,
        /// Zooms too, where two pointers are down.
        zoom: Option<Steer>,
    },
}

impl Hands {
    /// A pointer goes down.
    pub fn down(&mut self, id: i32, at: (f64, f64)) {
        if self.down.is_empty() {
            (self.began, self.is_dragging) = (at, false);
        }
        self.down.push((id, at));
    }

    /// A pointer moves.
    pub fn moved(&mut self, id: i32, at: (f64, f64), stage: &StagePlace<'_>) -> PointerMove {
        let ((x_before, y_before), apart_before) = self.pinch();
        let Some(mine) = self.down.iter_mut().find(|(of, _)| *of == id) else { return PointerMove::Hovers };
        mine.1 = at;
        let far = (at.0 - self.began.0).hypot(at.1 - self.began.1);
        let begins = !self.is_dragging && (far > DRAG_FROM || self.down.len() > 1);
        self.is_dragging |= begins;
        if !self.is_dragging {
            return PointerMove::Rests;
        }
        let ((x, y), apart) = self.pinch();
        let pan = Steer::Pan((x_before - x) / stage.width, (y_before - y) / stage.height);
        let zoom = apart.zip(apart_before).map(|(now, before)| Steer::Zoom {
            factor: now / before,
            at: stage.share((x, y)),
            axes: Axes::Both,
            is_eased: false,
        });
        PointerMove::Drags { begins, pan, zoom }
    }

    /// A pointer goes up, or is taken away by the browser. Says whether none is down any longer.
    pub fn up(&mut self, id: i32) -> bool {
        self.down.retain(|(of, _)| *of != id);
        self.down.is_empty()
    }

    /// Whether the picture was dragged since the first pointer went down: then no click follows.
    pub const fn is_dragging(&self) -> bool {
        self.is_dragging
    }

    /// Middle of the pointers that are down, and how far apart the first two are.
    fn pinch(&self) -> ((f64, f64), Option<f64>) {
        match self.down.as_slice() {
            [] => ((0.0, 0.0), None),
            [(_, at)] => (*at, None),
            [(_, a), (_, b), ..] => {
                let apart = (a.0 - b.0).hypot(a.1 - b.1).max(1.0);
                (((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0), Some(apart))
            }
        }
    }
}

/// What the picture shows, and what of it is selected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Looked<'a> {
    /// What the camera goes to.
    pub goal: Goal,
    /// What it shows now.
    pub region: Option<Region>,
    /// What it shows once a journey is over.
    pub heading: Option<Region>,
    /// Boxes from the top to the one that spans the window, or that is looked at.
    pub path: &'a [Crumb],
    /// The block that is selected.
    pub selected: Option<Crumb>,
}

/// What a click does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Click {
    /// Nothing: it ended a drag, or met nothing.
    Nothing,
    /// Zooms in on boxes that are too narrow to be distinguished.
    Steer(Steer),
    /// Selects a block, or none.
    Select(Option<Crumb>),
    /// Lets go of the selection and zooms to a box.
    ZoomTo(Crumb),
    /// Lets go of the selection and goes one level up.
    Leave,
}

impl Click {
    /// A click at shares of the window. `announced`: what a pointer that rests there was told; that is meant.
    pub fn of(
        form: TreePlacement,
        at: (f64, f64),
        announced: Option<Hovered>,
        looked: &Looked<'_>,
        (tree, forest): (&Tree, &Forest),
    ) -> Self {
        if let Some(Hovered::NarrowBoxes(_)) = announced {
            return Click::Steer(Steer::Zoom { factor: INTO_RUN, at, axes: Axes::Both, is_eased: true });
        }
        if form == TreePlacement::Overview {
            return match box_at(at, looked.region, (tree, forest)) {
                None => Click::Nothing,
                Some(crumb) if looked.goal == Goal::Block(crumb) => Click::Leave,
                Some(crumb) => Click::ZoomTo(crumb),
            };
        }
        let block = || {
            let (crumb, id) = match announced {
                Some(Hovered::Block(crumb)) => (crumb, crumb.chain(tree)?),
                _ => {
                    let (id, position) = under(forest, looked.region?, at)?;
                    (Crumb::at(tree, tree.block_at(forest.chain(id), position), position), id)
                }
            };
            is_held(tree, forest, id).then_some(crumb)
        };
        Click::Select(block())
    }
}

/// The box at shares of the window, if it is cached anywhere.
pub fn box_at(at: (f64, f64), region: Option<Region>, (tree, forest): (&Tree, &Forest)) -> Option<Crumb> {
    let (id, _) = under(forest, region?, at)?;
    is_held(tree, forest, id).then(|| Crumb::of(tree, forest, id))
}

/// What a key means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeKey {
    /// Zooms by so many steps.
    Zoom(i32),
    /// Makes a move.
    Move(Move),
}

impl TreeKey {
    /// Of a key's name; `None`: it is not the tree's.
    pub fn of(key: &str) -> Option<Self> {
        match key {
            "+" | "=" => Some(TreeKey::Zoom(1)),
            "-" => Some(TreeKey::Zoom(-1)),
            key => Move::of(key).map(TreeKey::Move),
        }
    }
}

/// A zoom by so many steps around what is selected, if it is seen, else around the middle.
pub fn zoom_step(steps: i32, looked: &Looked<'_>, seen: Option<(&Tree, &Forest)>) -> Steer {
    let selected = seen.and_then(|(tree, forest)| {
        let (region, crumb) = (looked.heading?, looked.selected?);
        let own = own_place(forest, crumb.chain(tree)?);
        let at = (
            ((own.x0 + own.x1) / 2.0 - region.x0) / (region.x1 - region.x0),
            (f64::from(crumb.position) + 0.5 - region.top) / (region.bottom - region.top),
        );
        [at.0, at.1].into_iter().all(|share| (0.0..=1.0).contains(&share)).then_some(at)
    });
    let at = selected.unwrap_or((0.5, 0.5));
    Steer::Zoom { factor: STEP.powi(steps), at, axes: Axes::Both, is_eased: true }
}

/// What one level up is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Leave {
    /// The camera goes there.
    LookAt(Goal),
    /// The selection is let go of.
    Deselect,
    /// The worker that is picked out is let go of.
    Unpick,
}

impl Leave {
    /// One level up; where everything is seen, lets go of the selection, then of the worker picked out. `None`: there is nothing to do,
    /// so that the key keeps its ordinary meaning.
    pub fn of(looked: &Looked<'_>, is_worker_picked: bool) -> Option<Self> {
        match looked.goal {
            Goal::All if looked.selected.is_some() => Some(Leave::Deselect),
            Goal::All => is_worker_picked.then_some(Leave::Unpick),
            goal => {
                let path = looked.path.iter();
                let above = match goal {
                    Goal::Block(at) => path.rev().find(|crumb| crumb.position < at.position),
                    Goal::All | Goal::Free | Goal::Path(_) => path.last(),
                };
                Some(Leave::LookAt(above.map_or(Goal::All, |&crumb| Goal::Block(crumb))))
            }
        }
    }
}

/// The next box in a direction, and the place to bring into sight; without a selection the box to begin with.
pub fn step(to: Move, looked: &Looked<'_>, (tree, forest): (&Tree, &Forest)) -> Option<(Crumb, Region)> {
    let selected = looked.selected.and_then(|crumb| crumb.chain(tree));
    let next = match selected {
        Some(at) => next_held(tree, forest, at, to)?,
        None => first_seen(tree, forest, looked.path, looked.heading)?,
    };
    Some((Crumb::of(tree, forest, next), own_place(forest, next)))
}
