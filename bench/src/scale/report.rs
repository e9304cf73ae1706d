//! The tables and the charts of the scale run.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;

use super::{Axis, ScalePoint};
use crate::chart::{Chart, ChartLine};
use crate::table::line;

/// One figure of every point.
struct Curve {
    /// The name of the chart's file.
    file: &'static str,
    title: &'static str,
    unit: &'static str,
    value: fn(&ScalePoint) -> f64,
}

const CURVES: [Curve; 5] = [
    Curve {
        file: "call",
        title: "Cost of a call",
        unit: "CPU µs",
        value: |point| point.call,
    },
    Curve {
        file: "list",
        title: "Cost of a list",
        unit: "CPU µs",
        value: |point| point.list,
    },
    Curve {
        file: "change-tool",
        title: "Change of a tool until a list shows it",
        unit: "ms",
        value: |point| point.changes.tool,
    },
    Curve {
        file: "change-binding",
        title: "Change of a binding until a list shows it",
        unit: "ms",
        value: |point| point.changes.binding,
    },
    Curve {
        file: "change-server",
        title: "Change of a server until a list shows it",
        unit: "ms",
        value: |point| point.changes.server,
    },
];

/// Appends the tables to the page, and writes the charts below `directory`.
pub fn write(
    page: &mut String,
    points: &[ScalePoint],
    directory: Option<&Path>,
) -> anyhow::Result<()> {
    line!(
        page,
        "\n## Scale\n\nOne gateway per size: one server over stdio with ten tools, one entry and no idle client, but for\n\
         what grows. Clients of 2025. A list of more than 2,000 tools has several pages."
    );
    for axis in Axis::ALL {
        table(page, points, axis);
    }
    line!(page, "");
    for curve in &CURVES {
        line!(page, "![{}](charts/{}.svg)", curve.title, curve.file);
    }
    let Some(directory) = directory else {
        return Ok(());
    };
    let directory = directory.join("charts");
    std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    for curve in &CURVES {
        let file = directory.join(format!("{}.svg", curve.file));
        std::fs::write(&file, chart(curve, points)).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn table(page: &mut String, points: &[ScalePoint], axis: Axis) {
    line!(
        page,
        "\n| {} | Call, CPU µs | List, CPU µs | Tool changed, ms | Binding changed, ms | Server changed, ms |",
        axis.name()
    );
    line!(page, "|---:|---:|---:|---:|---:|---:|");
    for point in points.iter().filter(|point| point.axis == axis) {
        let _ = write!(page, "| {} |", point.size);
        for curve in &CURVES {
            let _ = write!(page, " {:.1} |", (curve.value)(point));
        }
        line!(page, "");
    }
}

fn chart(curve: &Curve, points: &[ScalePoint]) -> String {
    let lines = Axis::ALL.map(|axis| {
        let of_axis = points.iter().filter(|point| point.axis == axis);
        ChartLine {
            name: axis.name(),
            points: of_axis
                .map(|point| (point.size as f64, (curve.value)(point)))
                .collect(),
        }
    });
    let chart = Chart {
        title: curve.title,
        x: "number of servers, tools, entries, clients",
        y: curve.unit,
        lines: &lines,
    };
    chart.svg()
}
