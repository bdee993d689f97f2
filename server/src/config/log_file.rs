//! A log as the command line names it: `FILE`, `NAME=FILE`, `-` or `NAME=-`.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A log to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFile {
    /// Its name.
    pub name: String,
    /// Its path; `None`: standard input.
    pub path: Option<PathBuf>,
}

impl LogFile {
    /// Why these logs cannot be read together: a name or standard input is used twice.
    pub fn conflict(logs: &[Self]) -> Option<String> {
        for (i, log) in logs.iter().enumerate() {
            let before = &logs[..i];
            if log.path.is_none() && before.iter().any(|other| other.path.is_none()) {
                return Some("--logs: standard input can only be read once".to_owned());
            }
            if before.iter().any(|other| other.name == log.name) {
                let name = &log.name;
                return Some(format!(
                    "--logs: two logs have the name {name:?}; give each its own: a=FILE b=FILE"
                ));
            }
        }
        None
    }
}

/// As the command line has it: with its name if that is another one than its file's.
impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, path } = self;
        let shown = path.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let Ok(unnamed) = shown.parse::<Self>();
        if unnamed == *self { f.write_str(&shown) } else { write!(f, "{name}={shown}") }
    }
}

impl FromStr for LogFile {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_name = |name: &str| {
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            !name.is_empty() && name.chars().all(is_plain)
        };
        let (name, file) = match text.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, file)) => (Some(name.to_owned()), file),
            None => (None, text),
        };
        if file == "-" {
            return Ok(Self { name: name.unwrap_or_else(|| "stdin".to_owned()), path: None });
        }
        let path = PathBuf::from(file);
        let of_file =
            || path.file_name().map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_else(of_file), path: Some(path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>) {
        let Ok(LogFile { name, path }) = text.parse();
        (name, path.map(|path| path.display().to_string()))
    }

    #[test]
    fn a_log_is_named_by_its_file_unless_it_is_given_a_name() {
        for (text, name, path) in [
            ("/var/log/frontend.log", "frontend.log", Some("/var/log/frontend.log")),
            ("a=/var/log/frontend.log", "a", Some("/var/log/frontend.log")),
            ("./a=b", "a=b", Some("./a=b")),
            ("a=a=b", "a", Some("a=b")),
            ("-", "stdin", None),
            ("pod-0=-", "pod-0", None),
            ("..", "..", Some("..")),
        ] {
            assert_eq!(parts(text), (name.to_owned(), path.map(str::to_owned)), "{text}");
            let Ok(log) = text.parse::<LogFile>();
            assert_eq!(log.to_string(), text);
        }
    }

    #[test]
    fn logs_that_cannot_be_distinguished_are_refused() {
        let conflict = |texts: &[&str]| {
            let logs: Vec<LogFile> = texts.iter().map(|text| text.parse().unwrap()).collect();
            LogFile::conflict(&logs)
        };
        assert_eq!(conflict(&["a/x.log", "b=b/x.log", "-"]), None);
        assert!(conflict(&["a/x.log", "b/x.log"]).unwrap().contains("\"x.log\""));
        assert!(conflict(&["a=-", "b=-"]).unwrap().contains("standard input"));
    }
}
