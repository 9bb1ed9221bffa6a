//! The owner's end of a link: sends orders until they are done, and takes the wire's lines into the owner's record, with
//! the owner's times.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use reprise_model::{NonceBook, Reply, Request, SnapshotFault, Stamp, TurnRule, WorkspaceId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Numbered, Opening, Order, Report};
use crate::WireLog;

/// How often a link that broke is dialled again before it is given up: about half a minute in all.
const ATTEMPTS: usize = 8;

/// How often a host is asked for a sign of life.
const PULSE: Duration = Duration::from_secs(5);

/// How long it may take to answer: a connection may be dead without anybody having said so.
const PATIENCE: Duration = Duration::from_secs(15);

/// A stream to a host.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Makes connections to a host.
#[async_trait]
pub trait Dial: Send + Sync {
    /// A new connection.
    ///
    /// # Errors
    /// If there is none to be had now.
    async fn dial(&self) -> io::Result<Box<dyn Stream>>;
}

/// What a link is for.
pub(crate) struct Remote {
    pub(crate) workspace: WorkspaceId,
    pub(crate) book: NonceBook,
    pub(crate) rule: TurnRule,
    pub(crate) wire: WireLog,
}

type Waiting = (Order, oneshot::Sender<()>);

/// A link to a host.
pub(crate) struct Link {
    orders: mpsc::Sender<Waiting>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    pub(crate) fn open(dial: Arc<dyn Dial>, remote: Remote) -> Self {
        let (orders, waiting) = mpsc::channel(16);
        let wire = remote.wire.clone();
        let mut end = End {
            remote,
            lines: 0,
            number: 0,
            pending: VecDeque::new(),
            clock: Clock::default(),
        };
        let task = tokio::spawn(async move {
            if let Err(error) = end.live(&*dial, waiting).await {
                wire.lost(&error);
            }
        });
        Self { orders, task }
    }

    async fn order(&self, order: Order) -> io::Result<()> {
        let gone = || {
            io::Error::new(
                io::ErrorKind::NotConnected,
                "the gateway's host is not reached any more",
            )
        };
        let (sender, done) = oneshot::channel();
        self.orders
            .send((order, sender))
            .await
            .map_err(|_| gone())?;
        done.await.map_err(|_| gone())
    }

    pub(crate) async fn set_epoch(&self, epoch: u32) -> io::Result<()> {
        self.order(Order::Epoch(epoch)).await
    }

    pub(crate) async fn break_turns(&self, faults: Vec<crate::ModelFault>) -> io::Result<()> {
        self.order(Order::Break(faults)).await
    }

    pub(crate) async fn break_snapshots(&self, fault: Option<SnapshotFault>) -> io::Result<()> {
        self.order(Order::Snapshots(fault)).await
    }

    pub(crate) async fn flush(&self) -> io::Result<()> {
        self.order(Order::Flush).await
    }
}

/// An order that is not done yet.
struct Pending {
    numbered: Numbered,
    /// When it was sent over this connection, by the owner's clock.
    sent: u64,
    /// When the connection is given up for want of an answer.
    until: Instant,
    done: oneshot::Sender<()>,
}

struct End {
    remote: Remote,
    /// How many lines were taken.
    lines: usize,
    number: u64,
    pending: VecDeque<Pending>,
    clock: Clock,
}

impl End {
    /// Keeps the link up until nobody is left to give orders.
    async fn live(
        &mut self,
        dial: &dyn Dial,
        mut waiting: mpsc::Receiver<Waiting>,
    ) -> io::Result<()> {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(8))
            .with_max_times(ATTEMPTS);
        let mut left = pauses.build();
        loop {
            let before = self.lines + usize::try_from(self.number).unwrap_or(0);
            let ended = match dial.dial().await {
                Ok(stream) => self.speak(stream, &mut waiting).await,
                Err(error) => Err(error),
            };
            let Err(error) = ended else {
                return Ok(());
            };
            if self.lines + usize::try_from(self.number).unwrap_or(0) > before {
                // It worked for a while: what broke is new.
                left = pauses.build();
            }
            match left.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    async fn speak(
        &mut self,
        stream: Box<dyn Stream>,
        waiting: &mut mpsc::Receiver<Waiting>,
    ) -> io::Result<()> {
        let (read, mut write) = tokio::io::split(stream);
        let mut reports = BufReader::new(read).lines();
        let opening = Opening::Link {
            workspace: self.remote.workspace,
            book: Box::new(self.remote.book),
            rule: self.remote.rule,
            lines: self.lines,
        };
        send(&mut write, &opening).await?;
        let now = self.remote.wire.now().us;
        for pending in &mut self.pending {
            pending.sent = now;
            pending.until = Instant::now() + PATIENCE;
            send(&mut write, &pending.numbered).await?;
        }
        // The first tick is at once: lines need the host's clock from the first on.
        let mut pulse = tokio::time::interval(PULSE);
        loop {
            let until = self
                .pending
                .front()
                .map_or_else(|| Instant::now() + PATIENCE, |pending| pending.until);
            tokio::select! {
                () = tokio::time::sleep_until(until) => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                _ = pulse.tick() => {
                    if self.pending.is_empty() {
                        let (sender, _) = oneshot::channel();
                        self.send(&mut write, Order::Flush, sender).await?;
                    }
                }
                wanted = waiting.recv() => {
                    let Some((order, done)) = wanted else {
                        return Ok(());
                    };
                    self.send(&mut write, order, done).await?;
                }
                line = reports.next_line() => {
                    let Some(line) = line? else {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    };
                    self.take(&line)?;
                }
            }
        }
    }

    async fn send(
        &mut self,
        write: &mut (impl AsyncWrite + Unpin),
        order: Order,
        done: oneshot::Sender<()>,
    ) -> io::Result<()> {
        self.number += 1;
        let numbered = Numbered {
            number: self.number,
            have: self.lines,
            order,
        };
        let sent = self.remote.wire.now().us;
        // Kept before it is sent: what breaks off is sent again.
        self.pending.push_back(Pending {
            numbered: numbered.clone(),
            sent,
            until: Instant::now() + PATIENCE,
            done,
        });
        send(write, &numbered).await
    }

    fn take(&mut self, line: &str) -> io::Result<()> {
        match serde_json::from_str(line)? {
            Report::Done { number, us } => {
                while let Some(pending) = self.pending.pop_front() {
                    if pending.numbered.number > number {
                        self.pending.push_front(pending);
                        break;
                    }
                    self.clock.hear(pending.sent, self.remote.wire.now().us, us);
                    // Who asked may have given up.
                    let _ = pending.done.send(());
                }
                Ok(())
            }
            Report::Line { number, line } if number == self.lines => {
                self.lines += 1;
                self.record(line)
            }
            Report::Line { .. } => Ok(()),
        }
    }

    fn record(&self, line: &RawValue) -> io::Result<()> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            request: Option<&'a RawValue>,
            reply: Option<Reply>,
        }
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            body: &'a RawValue,
        }
        let wire = &self.remote.wire;
        let line: Line<'_> = serde_json::from_str(line.get())?;
        if let Some(request) = line.request {
            let body: Body<'_> = serde_json::from_str(request.get())?;
            let mut request: Request = serde_json::from_str(request.get())?;
            request.at = self.clock.here(request.at, wire.now());
            wire.request(request, body.body.get().as_bytes());
        }
        if let Some(mut reply) = line.reply {
            reply.at = self.clock.here(reply.at, wire.now());
            wire.reply(reply);
        }
        Ok(())
    }
}

async fn send(
    write: &mut (impl AsyncWrite + Unpin),
    message: &impl serde::Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    write.flush().await
}

/// What is known of the host's clock: of all questions the one that was answered soonest tells most, and is off by half of
/// the time it took at most.
#[derive(Debug, Default)]
struct Clock {
    /// How long the question took, and by how much the host's clock is ahead.
    best: Option<(u64, i128)>,
}

impl Clock {
    fn hear(&mut self, asked: u64, answered: u64, there: u64) {
        let took = answered.saturating_sub(asked);
        let ahead = i128::from(there) - i128::from(asked) - i128::from(took / 2);
        if self.best.is_none_or(|(best, _)| took < best) {
            self.best = Some((took, ahead));
        }
    }

    /// A moment of the host's by the owner's clock. It cannot lie ahead of `now`.
    fn here(&self, there: Stamp, now: Stamp) -> Stamp {
        let ahead = self.best.map_or(0, |(_, ahead)| ahead);
        let us = u64::try_from(i128::from(there.us) - ahead)
            .unwrap_or(0)
            .min(now.us);
        let ago = i64::try_from(now.us - us).unwrap_or(i64::MAX);
        Stamp {
            us,
            wall: now.wall - jiff::SignedDuration::from_micros(ago),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_answered_soonest_sets_the_clock() {
        let mut clock = Clock::default();
        clock.hear(1_000, 3_000, 502_500);
        clock.hear(5_000, 5_200, 505_100);
        let now = Stamp::literal(6_000);
        assert_eq!(clock.here(Stamp::literal(505_600), now).us, 5_600);
        assert_eq!(
            clock.here(Stamp::literal(900_000), now).us,
            6_000,
            "never ahead"
        );
        assert_eq!(
            clock.here(Stamp::literal(0), now).us,
            0,
            "never before the beginning"
        );
    }
}
