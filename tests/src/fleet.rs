//! `radixscope fleet` with members of a test: started, and read through its API and its page.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::Value;
use tokio::net::TcpListener;

/// Asked often, so that no test waits.
pub const OFTEN: [&str; 4] = ["--poll-interval", "0.2", "--poll-timeout", "0.5"];
/// Access token of a member.
pub const TOKEN: &str = "k7PnnL2t-a.token.for.tests";

/// A port that refuses.
pub async fn refused_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

/// Starts a fleet of these members: name and port, with more keys.
pub async fn fleet(members: &[(String, String)], more: &[&str]) -> Radixscope {
    let mut args = vec!["fleet".to_owned()];
    for (name, address) in members {
        args.extend(["--member".to_owned(), format!("{name}={address}")]);
    }
    args.extend(OFTEN.iter().chain(more).map(|arg| (*arg).to_owned()));
    Radixscope::start(args).await
}

/// Address of a port of this machine.
pub fn at(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// What `/api/v1/fleet` says of a member.
pub async fn member(fleet: &Radixscope, name: &str) -> Value {
    let report = fleet.json("/api/v1/fleet").await;
    let members = report["members"].as_array().expect("members");
    members.iter().find(|member| member["name"] == name).unwrap_or_else(|| panic!("{name}: {report}")).clone()
}

/// Waits until a member is in a state, and gives it.
pub async fn until_state(fleet: &Radixscope, name: &str, state: &str) -> Value {
    wait::until(&format!("{name} is {state}"), async || {
        let member = member(fleet, name).await;
        wait::expect(member["state"] == state, || member.to_string()).map(|()| member)
    })
    .await
}

/// What is shown in the cells of a member's row, by column.
pub async fn cells(page: &Page, name: &str) -> Vec<String> {
    page.texts(&format!("[data-name='{name}'] > *")).await
}
