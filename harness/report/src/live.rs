//! What is going on, while it goes on: a line for each cell on a terminal, plain lines elsewhere.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use reprise_model::{Cell, Event, Judgement, Outcome};

use crate::text::{plain, seconds};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Spinners, redrawn in place.
    Terminal,
    /// Lines, for logs.
    Lines,
    /// Nothing.
    Silent,
}

/// Shows events on standard error as they come.
pub struct Live {
    style: Style,
    bars: MultiProgress,
    cells: Mutex<HashMap<Cell, ProgressBar>>,
    preparing: Mutex<Option<ProgressBar>>,
}

impl Live {
    /// A view in that style.
    #[must_use]
    pub fn new(style: Style) -> Self {
        Self {
            style,
            bars: MultiProgress::new(),
            cells: Mutex::default(),
            preparing: Mutex::default(),
        }
    }

    /// Shows one event.
    pub fn show(&self, event: &Event) {
        match self.style {
            Style::Silent => {}
            Style::Lines => {
                if let Some(line) = line(event) {
                    // Nobody may be reading any more; the run goes on.
                    let _ = writeln!(anstream::stderr(), "{line}");
                }
            }
            Style::Terminal => self.draw(event),
        }
    }

    fn spinner(&self, prefix: &str) -> ProgressBar {
        let style = ProgressStyle::with_template("{spinner} {prefix:.bold} {wide_msg} {elapsed}")
            .expect("the template is well formed");
        let bar = self.bars.add(ProgressBar::new_spinner());
        bar.set_style(style);
        bar.set_prefix(prefix.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    fn draw(&self, event: &Event) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let mut preparing = self
            .preparing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Preparing { what } => preparing
                .get_or_insert_with(|| self.spinner("preparing"))
                .set_message(what.clone()),
            Event::CellStarted { cell } => {
                if let Some(bar) = preparing.take() {
                    bar.finish_and_clear();
                }
                cells.insert(cell.clone(), self.spinner(&cell.to_string()));
            }
            Event::StepStarted { cell, act } => {
                if let Some(bar) = cells.get(cell) {
                    bar.set_message(act.to_string());
                }
            }
            Event::CellEnded { result } => {
                if let Some(bar) = cells.remove(&result.cell) {
                    bar.finish_and_clear();
                }
                if let Some(line) = line(event) {
                    // The terminal may be gone; then nobody misses the line.
                    let _ = self.bars.println(line);
                }
            }
            Event::RunEnded { .. } => {
                if let Some(bar) = preparing.take() {
                    bar.finish_and_clear();
                }
                cells.drain().for_each(|(_, bar)| bar.finish_and_clear());
            }
            Event::RunStarted { .. } | Event::StepEnded { .. } | Event::CellNotMeasured { .. } => {}
        }
    }
}

fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::RunStarted {
            run,
            cells,
            directory,
        } => format!("run {run}: {cells} cells, recorded in {directory}"),
        Event::Preparing { what } => format!("preparing: {what}"),
        Event::CellStarted { cell } => format!("{cell}: started"),
        Event::StepStarted { .. } => return None,
        Event::StepEnded {
            cell,
            act,
            outcome,
            millis,
        } => {
            let how = match outcome {
                Outcome::Ok => String::new(),
                Outcome::Failed { reason } => format!(": failed: {}", first_line(reason)),
                Outcome::Unknown { reason } => format!(": unknown: {}", first_line(reason)),
            };
            format!("{cell}: {act} ({}){how}", seconds(*millis))
        }
        Event::CellEnded { result } => {
            let failed: Vec<&str> = result
                .verdicts
                .iter()
                .filter(|verdict| verdict.judgement == Judgement::Fail)
                .map(|verdict| verdict.check.as_str())
                .collect();
            let failed = if failed.is_empty() {
                String::new()
            } else {
                format!(": {}", failed.join(", "))
            };
            format!(
                "{}: {}{failed} ({})",
                result.cell,
                result.judgement,
                seconds(result.millis)
            )
        }
        Event::CellNotMeasured { what } => {
            format!("{}: not measured: {}", what.cell, first_line(&what.reason))
        }
        Event::RunEnded { cancelled: true } => "the run was cut short".to_owned(),
        Event::RunEnded { cancelled: false } => return None,
    })
}

fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default())
}
