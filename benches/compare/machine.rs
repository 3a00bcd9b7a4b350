//! The machine and the date of the measurement.

use std::fs;

/// Returns date, cores, processor and memory, as far as the system reports them.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = field("/proc/cpuinfo", "model name").unwrap_or("unknown processor".into());
    let memory = field("/proc/meminfo", "MemTotal");
    let memory = memory.and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok());
    let memory = memory
        .map_or(String::new(), |kib| format!(", {} GB of memory", kib * 1024 / 1_000_000_000));
    let day = chrono::Utc::now().format("%Y-%m-%d");
    format!("{day}, {}, {cores} cores ({processor}){memory}", std::env::consts::OS)
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
