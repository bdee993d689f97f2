//! The options of ECharts, as far as the page's charts go: `charming`'s types in the parts of an option that are used.
//!
//! `charming`'s own `Chart` writes every part and every kind of series that ECharts knows: some 20 kB compressed in the first
//! program, more than its budget has left (docs/measurements.md). Methods are named as there.

use charming::component::{Axis, Grid};
use charming::element::{AxisPointer, Tooltip, Trigger};
use charming::series::{Line, Scatter};
use serde::Serialize;

/// An option of ECharts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartOption {
    tooltip: Tooltip,
    #[serde(skip_serializing_if = "Option::is_none")]
    axis_pointer: Option<AxisPointer>,
    grid: Vec<Grid>,
    x_axis: Vec<Axis>,
    y_axis: Vec<Axis>,
    series: Vec<Series>,
}

/// A series; `charming`'s types say themselves of which kind they are.
#[derive(Serialize)]
#[serde(untagged)]
enum Series {
    Line(Box<Line>),
    Scatter(Box<Scatter>),
}

impl ChartOption {
    /// An empty chart whose tooltip follows `trigger`.
    pub fn new(trigger: Trigger) -> Self {
        Self {
            tooltip: Tooltip::new().trigger(trigger),
            axis_pointer: None,
            grid: Vec::new(),
            x_axis: Vec::new(),
            y_axis: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Sets the line at the pointer.
    pub fn axis_pointer(mut self, pointer: AxisPointer) -> Self {
        self.axis_pointer = Some(pointer);
        self
    }

    /// Adds an area with axes of its own.
    pub fn grid(mut self, grid: Grid) -> Self {
        self.grid.push(grid);
        self
    }

    /// Adds a horizontal axis.
    pub fn x_axis(mut self, axis: Axis) -> Self {
        self.x_axis.push(axis);
        self
    }

    /// Adds a vertical axis.
    pub fn y_axis(mut self, axis: Axis) -> Self {
        self.y_axis.push(axis);
        self
    }

    /// Adds a line.
    pub fn line(mut self, line: Line) -> Self {
        self.series.push(Series::Line(Box::new(line)));
        self
    }

    /// Adds points.
    pub fn scatter(mut self, points: Scatter) -> Self {
        self.series.push(Series::Scatter(Box::new(points)));
        self
    }
}
