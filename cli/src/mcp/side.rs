//! Running a command beside the protocol, which goes on being served.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use takeup_core::error::Exit;

use super::tools::Call;
use crate::reply::Failure;

/// How often a call that takes long says so.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Raises the flag when nobody waits for the work any more.
struct Raise(Arc<AtomicBool>);

impl Drop for Raise {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread of its own and says every second that `name` still runs, where the client wants to know.
///
/// A call that is cancelled is answered at once, and its work is told: a look at the tree and a wait end early, and what
/// has got further is one append, which happens or does not. A call that was cancelled before it began does nothing.
pub(super) async fn run<T: Send + 'static>(
    context: &RequestContext<RoleServer>,
    name: &str,
    call: &Call,
    work: impl FnOnce(&Call) -> T + Send + 'static,
) -> Result<T, Failure> {
    let cancelled = || Failure::new("cancelled", Exit::No, "the call was cancelled");
    if context.ct.is_cancelled() {
        return Err(cancelled());
    }
    let flag = Arc::new(AtomicBool::new(false));
    let call = Call {
        interrupt: Some(Arc::clone(&flag)),
        ..call.clone()
    };
    let _raise = Raise(flag);
    let mut running = tokio::task::spawn_blocking(move || work(&call));
    let token = context.meta.get_progress_token();
    let mut seconds = 0_u32;
    loop {
        tokio::select! {
            done = &mut running => {
                return done.map_err(|error| Failure::new("bug", Exit::Bug, error.to_string()));
            }
            () = context.ct.cancelled() => return Err(cancelled()),
            () = tokio::time::sleep(PROGRESS_EVERY), if token.is_some() => {
                seconds += 1;
                if let Some(token) = &token {
                    let progress = ProgressNotificationParam::new(token.clone(), f64::from(seconds))
                        .with_message(format!("{name} for {seconds} s"));
                    // A client that has gone needs no progress.
                    let _sent = context.peer.notify_progress(progress).await;
                }
            }
        }
    }
}
