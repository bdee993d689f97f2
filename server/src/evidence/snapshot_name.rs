//! What the name of a snapshot of metrics says: when it was made, and of which process. Pure.

use std::path::Path;

use radixscope_model::id::Millis;
use time::{Date, Month, PrimitiveDateTime, Time};

/// Times that are one: 2001 to 2286, where seconds have ten digits.
const UNIX_S: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;

/// The process that a file is of, and when it was made, if its name or the folder's has that: as Unix time in seconds or milliseconds, or
/// as date and time (taken for UTC) with any or no signs between.
pub(super) fn read(path: &str) -> (String, Option<Millis>) {
    let path = path.rsplit('!').next().unwrap_or(path);
    let mut parts = Path::new(path).components().rev().filter_map(|part| match part {
        std::path::Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let name = parts.next().unwrap_or(path);
    let folder = parts.next().unwrap_or_default();
    let name = stem(name);
    let (rest, at) = without_time(name);
    let (rest, at) = match at {
        Some(_) => (rest, at),
        None => (name.to_owned(), without_time(folder).1),
    };
    let process = if rest.is_empty() { without_time(folder).0 } else { rest };
    (if process.is_empty() { "metrics".to_owned() } else { process }, at)
}

/// Without endings that say how it is written.
fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let endings = [".prom", ".txt", ".metrics", ".text"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// What is left of a name without its time.
fn without_time(name: &str) -> (String, Option<Millis>) {
    let is_part =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '_' | '.' | 'T' | 't' | 'Z' | 'z' | ' ');
    let starts = name.char_indices().filter(|&(at, c)| {
        c.is_ascii_digit() && !name[..at].ends_with(|before: char| before.is_ascii_digit())
    });
    for (start, _) in starts {
        let run = &name[start..];
        let run = &run[..run.find(|c| !is_part(c)).unwrap_or(run.len())];
        let Some((at, len)) = time_at(run) else { continue };
        let separators = |c: char| matches!(c, '-' | '_' | '.' | ' ' | ':');
        let before = name[..start].trim_end_matches(separators);
        let after = name[start + len..].trim_start_matches(separators);
        let between = if before.is_empty() || after.is_empty() { "" } else { "-" };
        return (format!("{before}{between}{after}"), Some(at));
    }
    (name.to_owned(), None)
}

/// The time that a text begins with, and the length of what is the time in it.
fn time_at(text: &str) -> Option<(Millis, usize)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits].parse::<u64>().ok()?;
    match digits {
        10 if UNIX_S.contains(&number) => return Some((Millis(number * 1_000), 10)),
        13 if UNIX_S.contains(&(number / 1_000)) => return Some((Millis(number), 13)),
        4 | 8 | 14 => {}
        _ => return None,
    }
    // Year, month, day, hour, minute, second: 14 digits, with signs between.
    let (mut found, mut end) = (String::new(), 0);
    for (at, c) in text.char_indices() {
        if c.is_ascii_digit() {
            found.push(c);
        }
        end = at + 1;
        if found.len() == 14 {
            break;
        }
    }
    let part = |range: std::ops::Range<usize>| found.get(range)?.parse::<u8>().ok();
    let month = Month::try_from(part(4..6)?).ok()?;
    let date = Date::from_calendar_date(found.get(..4)?.parse().ok()?, month, part(6..8)?).ok()?;
    let time = Time::from_hms(part(8..10)?, part(10..12)?, part(12..14)?).ok()?;
    let s = u64::try_from(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp()).ok()?;
    let has_zone = text[end..].starts_with(['Z', 'z']);
    UNIX_S.contains(&s).then_some((Millis(s * 1_000), end + usize::from(has_zone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_times_in_many_forms() {
        let s = 1_795_762_399;
        let rows: [(&str, &str, Option<u64>); 10] = [
            ("metrics/frontend-1795762399.prom", "frontend", Some(s * 1_000)),
            ("metrics/frontend/1795762399123.txt.gz", "frontend", Some(s * 1_000 + 123)),
            ("b.tar!metrics/worker1_2026-11-27T06:53:19Z.prom", "worker1", Some(s * 1_000)),
            ("20261127-065319-frontend.txt", "frontend", Some(s * 1_000)),
            ("2026-11-27_06-53-19/frontend.prom", "frontend", Some(s * 1_000)),
            ("a-20261127T065319Z-b.prom", "a-b", Some(s * 1_000)),
            ("frontend.prom", "frontend", None),
            ("worker-12.prom", "worker-12", None),
            ("20261399T995319.prom", "20261399T995319", None),
            ("", "metrics", None),
        ];
        for (name, process, at) in rows {
            assert_eq!(read(name), (process.to_owned(), at.map(Millis)), "{name}");
        }
    }
}
