//! `radixscope fleet`: who may read it, and members that cannot be.

use radixscope_tests::fleet::{TOKEN, at, fleet, refused_port};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

#[tokio::test]
async fn readers_of_a_fleet_need_its_token() {
    let fleet = fleet(&[("gone".to_owned(), at(refused_port().await))], &["--access-token", TOKEN]).await;
    for path in ["/api/v1/fleet", "/metrics", "/"] {
        assert_eq!(fleet.get(path).await.status, 401, "{path}");
        let headers = [("authorization", &*format!("Bearer {TOKEN}"))];
        assert_eq!(fleet.get_with(path, &headers).await.status, 200, "{path}");
    }
    let ready = wait::until("every member was asked", async || {
        let ready = fleet.get("/readyz").await;
        wait::expect(ready.status == 200, || ready.text().to_owned()).map(|()| ready.json())
    })
    .await;
    assert_eq!(ready["message"], "details need the access token or the trusted proxy");
}

#[test]
fn members_that_cannot_be_are_refused_before_anything_is_asked() {
    for (args, why) in [
        (&["fleet"][..], "give --member NAME=URL"),
        (&["fleet", "--member", "<script>=http://a"], "a name has 1 to 64 letters"),
        (&["fleet", "--member", "a=http://u:hidden@a"], "logins in the URL are not supported"),
        (&["fleet", "--member", "a=http://a", "--member", "a=http://b"], "two members have the name"),
        (&["fleet", "--member", "a=http://a,token-file=/nowhere/token"], "cannot be read"),
    ] {
        let output = Radixscope::run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && !said.contains("hidden"), "{said}");
    }
}
