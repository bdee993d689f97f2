//! Names the machine that figures were measured on.

use std::{fs, process::Command, thread};

use crate::workspace::output;

/// Processor, cores, memory and compiler in one line.
pub(super) fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = field(&cpu, "model name").unwrap_or("unknown processor");
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_gib = field(&memory, "MemTotal")
        .and_then(|text| text.strip_suffix("kB")?.trim().parse::<f64>().ok())
        .map_or_else(String::new, |kib| format!(", {:.0} GiB", kib / f64::from(1 << 20)));
    let rustc = output(Command::new("rustc").arg("--version")).unwrap_or_else(|_| "unknown rustc".to_owned());
    format!("{cpu}, {cores} cores{memory_gib}, {rustc}")
}

/// The first `key : value` of a text of the kernel's.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: Some CPU @ 2.0GHz\n";
        assert_eq!(field(text, "model name"), Some("Some CPU @ 2.0GHz"));
        assert_eq!(field(text, "name"), None);
    }
}
