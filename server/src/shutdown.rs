//! The shutdown signal that every task waits for.

use tokio::sync::watch;

/// True once the process shuts down.
pub type Shutdown = watch::Receiver<bool>;

/// Waits for shutdown.
pub(crate) async fn over(shutdown: &mut Shutdown) {
    // If the sender is dropped, the process is ending too.
    let _ = shutdown.wait_for(|&is_over| is_over).await;
}
