//! Runs of `radixscope check`.

use std::ffi::OsString;
use std::process::Output;

use crate::radixscope::Radixscope;

/// Bytes that have to be text.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Runs a check to its end while other tasks go on.
pub async fn check(args: Vec<OsString>) -> Output {
    let run = || Radixscope::command().arg("check").args(args).output().expect("the program can be started");
    tokio::task::spawn_blocking(run).await.expect("it ran")
}
