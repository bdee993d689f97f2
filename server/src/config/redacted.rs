//! Option values that may contain credentials: errors do not repeat them.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;

/// Reads a value; an error names the option and the reason, which must not repeat the value.
#[derive(Clone, Copy)]
pub(super) struct Redacted<F>(pub(super) F);

impl<F, T> TypedValueParser for Redacted<F>
where
    F: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let why = match value.to_str().map(&self.0) {
            Some(Ok(read)) => return Ok(read),
            Some(Err(why)) => why,
            None => "not text in UTF-8".to_owned(),
        };
        let option = arg.map(ToString::to_string).unwrap_or_default();
        let message = format!("invalid value for '{option}': {why}");
        Err(cmd.clone().error(ErrorKind::ValueValidation, message))
    }
}

/// `text` without the credentials of the URLs in it: for errors about arguments that belong to no option.
pub(crate) fn without_logins(text: &str) -> String {
    const HIDDEN: &str = "(not shown)";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        out.push_str(before);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"' | ',' | '?' | '#');
        let authority = after.split(is_end).next().unwrap_or_default();
        match authority.rfind('@') {
            Some(login) => {
                out.push_str(HIDDEN);
                rest = &after[login..];
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_left_out_wherever_they_stand() {
        let message = "unexpected argument 'nats://bob:x@y@h:1/p' found, and https://t@h, http://h/a@b";
        let hidden =
            "unexpected argument 'nats://(not shown)@h:1/p' found, and https://(not shown)@h, http://h/a@b";
        assert_eq!(without_logins(message), hidden);
        assert_eq!(without_logins("://"), "://");
    }
}
