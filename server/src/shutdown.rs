//! How every task learns that the process ends.

use tokio::sync::watch;

/// True once the process is to end.
pub type Shutdown = watch::Receiver<bool>;

/// Waits for the end.
pub(crate) async fn over(shutdown: &mut Shutdown) {
    // If the sender is gone, so is whoever could still need us.
    let _ = shutdown.wait_for(|&is_over| is_over).await;
}
