//! The first messages of a connection, made safe: whatever a client tries before it settles on a protocol version is
//! answered, and the server lives on.
use std::collections::VecDeque;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, JsonRpcMessage, ProtocolVersion,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{QuitReason, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::{Transport, async_rw::AsyncRwTransport, stdio_pipes};
use rmcp::{RoleServer, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite, Empty};
use tokio::task::JoinHandle;

use super::lines::{Came, Lines};
use super::server::Server;

/// Serves the client on standard input and output until its input ends.
pub(super) async fn serve(server: Server) -> Result<(), String> {
    let (read, write) = stdio_pipes();
    serve_on(server, read, write).await
}

/// Serves the client at the other end of these until `read` ends.
pub(super) async fn serve_on(
    server: Server,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), String> {
    let transport = Opening {
        lines: Lines::new(read),
        came: VecDeque::new(),
        refusing: None,
        out: AsyncRwTransport::new_server(tokio::io::empty(), write),
        settled: false,
    };
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // The client went away before it said anything of use: no failure of ours.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let ended = running.waiting().await;
    // What still runs was cancelled by now: let it hear of that.
    tokio::task::yield_now().await;
    match ended {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(error.to_string()),
        Ok(_) => Ok(()),
    }
}

/// A transport that answers what is no message, and lets only requests through until one of them settles the protocol
/// version. Notifications and answers before that have no meaning, and would end rmcp's handshake.
struct Opening<R, W: AsyncWrite> {
    lines: Lines<R>,
    /// What was read and not yet handed on.
    came: VecDeque<Came>,
    /// A refusal on its way: handing on is given up and begun anew at any moment, and must not lose it.
    refusing: Option<JoinHandle<()>>,
    out: AsyncRwTransport<RoleServer, Empty, W>,
    settled: bool,
}

impl<R, W> Opening<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn refuse(&mut self, error: ErrorData, id: Option<RequestId>) {
        let answer: ServerJsonRpcMessage = JsonRpcMessage::error(error, id);
        let send = self.out.send(answer);
        self.refusing = Some(tokio::spawn(async move {
            // A client that is gone needs no answer.
            drop(send.await);
        }));
    }
}

impl<R, W> Transport<RoleServer> for Opening<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.out.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                drop(refusing.await);
                self.refusing = None;
            }
            let message = match self.came.pop_front() {
                Some(Came::Message(message)) => *message,
                Some(Came::Refused(error, id)) => {
                    self.refuse(error, id);
                    continue;
                }
                None => {
                    let came = self.lines.next().await?;
                    self.came.extend(came);
                    continue;
                }
            };
            if self.settled {
                return Some(message);
            }
            let ClientJsonRpcMessage::Request(request) = &message else {
                continue;
            };
            self.settled = settles(&request.request);
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.out.close()
    }
}

/// Tells whether a request settles the version: `initialize`, or one that carries the whole metadata of 2026-07-28.
fn settles(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                .is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}
