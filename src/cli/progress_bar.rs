//! Shows a progress bar on standard error if an operation takes longer than half a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt::{self, Phase, Unit};
use stvc::progress::Monitor;

const PATIENCE: Duration = Duration::from_millis(500);

pub struct Bar {
    visible: bool,
    begun: Instant,
    phase: Phase,
    bar: Option<ProgressBar>,
}

impl Bar {
    pub fn visible_if(visible: bool) -> Self {
        Self { visible, begun: Instant::now(), phase: Phase::default(), bar: None }
    }

    fn begin_phase(&mut self, phase: Phase) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.phase = phase;
        self.show();
    }

    fn show(&mut self) {
        interrupt::set_phase(&self.phase);
        if !self.visible || self.begun.elapsed() < PATIENCE {
            return;
        }
        let Phase { what, steps, unit, done } = &self.phase;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = match steps {
                Some(steps) => ProgressBar::new(*steps).with_style(style(match unit {
                    Unit::Steps => "{msg} [{bar:30}] {pos}/{len} {eta}",
                    Unit::Bytes => {
                        "{msg} [{bar:20}] {decimal_bytes} of {decimal_total_bytes}, {eta} left"
                    }
                })),
                None => ProgressBar::new_spinner().with_style(style("{msg} {pos} {spinner}")),
            };
            bar.with_message(what.clone())
        });
        bar.set_position(*done);
    }
}

impl Monitor for Bar {
    fn begin(&mut self, what: &str, steps: Option<u64>) {
        self.begin_phase(Phase { what: what.to_owned(), steps, ..Phase::default() });
    }

    fn begin_bytes(&mut self, what: &str, bytes: u64) {
        let (what, steps, unit) = (what.to_owned(), Some(bytes), Unit::Bytes);
        self.begin_phase(Phase { what, steps, unit, done: 0 });
    }

    fn advance(&mut self, steps: u64) {
        self.phase.done += steps;
        self.show();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
