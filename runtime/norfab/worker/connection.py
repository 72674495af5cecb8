"""Connection of the worker to a broker: registration, keepalives in both directions, and reconnecting.

A connection begins with OPEN and READY. The worker does not wait for the answer to OPEN, which deployed
brokers do not send: it considers itself registered when it receives anything but DISCONNECT. After
DISCONNECT, a loss, or silence, it sends nothing more, and opens a new connection after a pause. A lost
broker is tried for `WorkerSettings.patience_s`, then the brokers of the list take turns.

The routing id of a worker is its name on every connection. libzmq ignores a new connection while the
broker's socket has not released the previous one with the same id: the new one stays silent, without an
error. So a new connection may be silent for a shorter time (`hello_s`) than a registered one. After
that time, the worker asks with OPEN, on a connection with another routing id, whether its name
is taken. Only our own brokers answer this question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from specwire.runtime.norfab.bodies import read_open_reply
from specwire.runtime.norfab.commands import Command, Disconnect, Keepalive, Open, Ready
from specwire.runtime.norfab.worker import bodies
from specwire.runtime.norfab.worker.actions import Close, Connect, Send
from specwire.runtime.norfab.worker.events import Connected, Disconnected

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine


class Connection:
    """Keeps the worker registered at one broker of a list.

    Attributes:
        broker: index of the broker, or of the one that is tried next.
        registered: the broker has sent something on this connection.
        registered_at: when it first did.
        introduced: it has answered OPEN on this connection.
        asking: this connection is only for asking whether the worker's name is taken.
    """

    __slots__ = (
        "_beat_at",
        "_engine",
        "_failures",
        "_heard_at",
        "_mute",
        "_retry_at",
        "_spread",
        "_trouble_at",
        "_up",
        "asking",
        "broker",
        "introduced",
        "keepalives_in",
        "keepalives_out",
        "registered",
        "registered_at",
        "registrations",
    )

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine
        self.broker = self.registrations = self.keepalives_in = self.keepalives_out = 0
        self._up = self.registered = self.introduced = self.asking = False
        self._retry_at: float | None = None
        self._trouble_at: float | None = None  # when the broker that had registered this worker was lost
        self._failures = self._mute = 0
        self.registered_at = self._heard_at = self._beat_at = 0.0
        # Workers that lose a broker at the same time do not reconnect at the same time.
        self._spread = 0.75 + crc32(engine.name.encode()) / 2**33

    @property
    def up(self) -> bool:
        """Whether there is a connection under the worker's name."""
        return self._up and not self.asking

    @property
    def label(self) -> str:
        """Endpoint of the broker, or of the one that is tried next."""
        return self._engine.brokers[self.broker]

    def open(self) -> None:
        """Connect, then register or, if `asking`, ask whether the name is taken."""
        engine = self._engine
        self._up, self.registered, self.introduced, self._retry_at = True, False, False, None
        self._heard_at = self._beat_at = engine.now
        engine.out.append(Connect(self.broker, named=not self.asking))
        if self.asking:
            engine.out.append(Send(Open(bodies.name_query(engine.name))))
            return
        self.introduce()
        engine.out.append(Send(Ready(engine.service)))

    def introduce(self) -> None:
        """Send the resources that the worker manages."""
        if self.up:
            self._engine.out.append(Send(Open(bodies.introduction(self._engine.resources))))

    def hear(self, *, answers_open: bool) -> None:
        """Handle a message that is not DISCONNECT."""
        engine = self._engine
        self._heard_at = engine.now
        self.introduced = self.introduced or answers_open
        if self.registered:
            return
        self.registered, self.registered_at = True, engine.now
        self.registrations += 1
        self._mute = 0
        engine.report(Connected(self.label, engine.service))

    def answer(self, command: Command) -> None:
        """Handle the answer of the broker that was asked about the name, and end the connection."""
        name = self._engine.name
        if type(command) is Open and read_open_reply(command.body).taken:
            reason = f"another worker named {name} is connected: stop that one, or choose another name"
        else:
            reason = f"the broker answers, but did not register a worker named {name}"
        self.end(reason)

    def end(self, reason: str, *, ask: bool = False) -> None:
        """Give up the connection, and open a new one after a pause.

        Args:
            ask: use the new connection to ask the same broker whether the worker's name is taken.
        """
        if not self._up:
            return
        engine, settings = self._engine, self._engine.settings
        engine.out.append(Close())
        engine.acks.clear()
        if self.registered and engine.now - self.registered_at >= settings.keepalive_s:
            self._failures, self._trouble_at = 0, engine.now  # it was not rejected at once
        elif self.registered and self._trouble_at is None:
            self._trouble_at = engine.now
        self._up = self.registered = self.introduced = False
        self.asking = ask
        if not ask:
            self._choose()
        delay = min(settings.first_retry_s * 2.0 ** min(self._failures, 16), settings.longest_retry_s)
        self._failures += 1
        self._retry_at = engine.now + delay * self._spread
        engine.report(Disconnected(reason, self.label, round(delay * self._spread, 3)))

    def _choose(self) -> None:
        """Choose the next broker: for some time the lost one, then each in turn."""
        trouble = self._trouble_at
        if trouble is None or self._engine.now - trouble >= self._engine.settings.patience_s:
            self.broker = (self.broker + 1) % len(self._engine.brokers)

    def leave(self) -> None:
        """Send DISCONNECT. Nothing may be sent on this connection after it."""
        if self.up:
            self._engine.out.append(Send(Disconnect(self._engine.service)))

    def close(self) -> None:
        """Close the connection, and open no other."""
        if self._up:
            self._engine.out.append(Close())
        self._up = self.registered = False
        self._retry_at = None

    def excuse(self, seconds: float) -> None:
        """Ignore so many seconds of silence, in which this process was suspended."""
        self._heard_at += seconds

    def tick(self) -> None:
        """Connect again, send a keepalive, or detect a silent broker."""
        now, settings = self._engine.now, self._engine.settings
        if not self._up:
            if self._retry_at is not None and now >= self._retry_at:
                self.open()
            return
        silent = now - self._heard_at
        if self.registered and silent >= settings.expiry_s:
            self.end(f"the broker was silent for {settings.expiry_s:g} s")
        elif not self.registered and silent >= self._hello_s():
            reason = f"the broker did not answer within {self._hello_s():g} s"
            ask = not self.asking
            self._mute += ask
            self.end(reason, ask=ask)
        elif now - self._beat_at >= settings.keepalive_s and not self.asking:
            # Relative to the due time, so that late ticks do not add up, unless this one is very late.
            due = self._beat_at + settings.keepalive_s
            self._beat_at = due if now - due < settings.keepalive_s else now
            self.keepalives_out += 1
            self._engine.out.append(Send(Keepalive(self._engine.service)))

    def _hello_s(self) -> float:
        settings = self._engine.settings
        if self.asking:
            return settings.hello_s
        return min(settings.hello_s * 2.0 ** min(self._mute, 16), settings.expiry_s)
