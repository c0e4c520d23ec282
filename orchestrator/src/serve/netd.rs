//! The thread that netd hands the gateway's listeners to.
//!
//! When netd is gone the runs under way are ended: their walls stand without their witness, and an agent does not
//! run without one. The thread connects again; what the core still wants it asks for again.

use std::sync::Arc;
use std::time::Duration;

use netd::client::{ClientError, Event, Role, Subscription};

use super::effects::Runs;
use crate::episode::host::Site;
use crate::gateway::{Caller, Gateway};

/// How long to wait before netd is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// Subscribes, and keeps the subscription up from a thread of its own. What it gives resolves when that thread is
/// gone: then no listener comes any more, and nothing can be served.
///
/// # Errors
/// [`ClientError`] where netd is not there to begin with.
pub(super) async fn subscribe(
    site: Site,
    gateway: Gateway,
    runs: Arc<Runs>,
) -> Result<impl Future<Output = ()> + Send + 'static, ClientError> {
    let runtime = tokio::runtime::Handle::current();
    let (sender, opened) = tokio::sync::oneshot::channel();
    let (living, gone) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        // Dropped with the thread, however it ends.
        let _living = living;
        let mut subscription = match Subscription::open(&site.netd_socket, Role::Gateway) {
            Ok(subscription) => {
                drop(sender.send(Ok(())));
                subscription
            }
            Err(error) => {
                drop(sender.send(Err(error)));
                return;
            }
        };
        loop {
            match subscription.next() {
                Ok(event) => take(&site, &gateway, &runtime, event),
                Err(error) => {
                    tracing::error!("cannot {}; runs are ended", crate::cli::with_causes(&error));
                    runs.stop_all();
                    subscription = again(&site);
                }
            }
        }
    });
    opened.await.unwrap_or(Err(ClientError::Unexpected))?;
    Ok(async move { drop(gone.await) })
}

fn again(site: &Site) -> Subscription {
    loop {
        std::thread::sleep(AGAIN);
        if let Ok(subscription) = Subscription::open(&site.netd_socket, Role::Gateway) {
            tracing::info!("netd is back");
            return subscription;
        }
    }
}

fn take(site: &Site, gateway: &Gateway, runtime: &tokio::runtime::Handle, event: Event) {
    match event {
        Event::Released { agent, generation } => site.doors.released(&agent, generation),
        Event::Listener { agent, generation, listener, .. } => {
            let Some((episode, end)) = site.doors.arrived(&agent, generation) else {
                tracing::info!(agent = %agent, generation, "a listener that no episode waits for is not served");
                return;
            };
            let _inside = runtime.enter();
            let listener =
                listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
            match listener {
                Ok(listener) => {
                    let (gateway, caller) = (gateway.clone(), Caller { agent, episode });
                    runtime.spawn(async move { gateway.serve(listener, caller, end).await });
                }
                Err(error) => tracing::error!(agent = %agent, "cannot serve a listener: {error}"),
            }
        }
    }
}
