"""Applications in Python: processes on hosts that exchange messages and react to them."""

from __future__ import annotations

import operator
import typing
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from eastwest.mechanisms.base import Base, Duration

_LONGEST = 2**63 - 1
#: Largest message in bytes (crates/workload/src/application/deployment.rs).
_LARGEST = 10**15
#: Names of the methods of an application that the simulator calls.
HOOKS = ("on_start", "on_message", "on_timer", "on_close")


class Message(Protocol):
    """A message that has arrived at a process of an application."""

    @property
    def sender(self) -> int:
        """Number of the sending process."""

    @property
    def bytes(self) -> int:
        """Size of the message in bytes."""

    @property
    def data(self) -> Any:
        """The object that the sender attached to the message; None if it attached none."""

    @property
    def sent_ps(self) -> int:
        """Time at which the message was sent, in ps."""

    @property
    def request(self) -> int | None:
        """Number of the request, if the sender of this message waits for a reply; else None."""

    @property
    def answers(self) -> int | None:
        """Number of the request that this message replies to, or None."""


class _NotStarted(list[tuple[Any, ...]]):
    """List of actions of a process before ``on_start``, which refuses all actions."""

    def append(self, act: tuple[Any, ...]) -> None:
        raise RuntimeError(
            f"{act[0]}() was called before the process has started: __init__ cannot request "
            "actions; call it in on_start or a later hook"
        )


class Application(Base):
    """Base class of applications: each host of a role runs a process, an object of the class.

    The simulator calls the hooks ``on_start``, ``on_message``, ``on_timer`` and ``on_close``;
    override those that the application needs. The other methods send messages, start timers and
    count. Processes communicate only by messages. The simulator sets ``number``, ``role``,
    ``hosts``, ``members`` and ``now_ps`` before it calls ``__init__``, which has no arguments.
    """

    roles: ClassVar[Mapping[str, str]] = {"hosts": "Hosts of the processes."}
    """Name and meaning of each role. In a scenario, the name is the key with the list of hosts that
    run a process of this role; without the key, all hosts do."""

    counters: ClassVar[Mapping[str, str] | None] = None
    """Name and meaning of every counter, or None: not declared. A declared counter begins at 0. If
    counters are declared, a call of :meth:`count` with another name ends the run with an error, and
    goals with another name are refused before the run."""

    measures: ClassVar[Mapping[str, str] | None] = None
    """Name (without ``_us``) and meaning of every measure, or None: not declared. If measures are
    declared, :meth:`measure` with another name ends the run with an error, and goals with another
    name are refused before the run."""

    if typing.TYPE_CHECKING:
        number: int
        """Number of the process, from 0, role by role."""
        role: str
        """Role of the process."""
        hosts: list[int]
        """Host of each process; the index is the number of the process."""
        members: dict[str, list[int]]
        """Numbers of the processes of each role."""
        now_ps: int
        """Simulated time in ps."""
        _next: int

    #: Actions that the present hook has requested.
    _acts: list[tuple[Any, ...]] = _NotStarted()

    def on_start(self) -> None:
        """Start the process; called at the time ``start`` of the workload."""

    def on_message(self, message: Message) -> None:
        """Handle a message whose last byte has arrived.

        Messages of one connection arrive in the order in which they were sent.
        """

    def on_timer(self, data: Any) -> None:
        """Handle the expiry of a timer; ``data`` is the object that was passed to :meth:`timer`."""

    def on_close(self, peer: int, failed: bool) -> None:
        """Handle the end of a connection with the process ``peer``.

        If ``failed`` is false, ``peer`` has closed the connection, and all messages of ``peer``
        have arrived. If ``failed`` is true, the transport has given up, and the messages of both
        directions that had not arrived are lost.
        """

    def send(self, to: int, bytes: int, data: Any = None, *, connection: int = 0) -> None:
        """Send a message of ``bytes`` bytes to the process ``to``.

        ``data`` is any object; the receiver gets the object itself, not a copy. Messages to ``to``
        with equal ``connection`` (a number from 0 to 65535) arrive in order: each waits for the
        messages before it. Raises ``ValueError`` for a process, size or connection out of range.
        """
        self._send("send", to, bytes, data, connection)

    def request(self, to: int, bytes: int, data: Any = None, *, connection: int = 0) -> int:
        """Send a request, and return its number, which the reply has in :attr:`Message.answers`.

        The arguments are those of :meth:`send`.
        """
        return self._send("request", to, bytes, data, connection)

    def reply(self, request: Message, bytes: int, data: Any = None) -> None:
        """Reply to a request, now or later. A second reply to a request ends the run with an error.

        Raises ``ValueError`` for a message that is no request, or a size out of range.
        """
        if request.request is None:
            raise ValueError("reply() needs a request: this message has request = None")
        self._acts.append(("reply", request.request, self._size(bytes), data))

    def timer(self, delay: int | str, data: Any = None) -> int:
        """Start a timer that expires after ``delay`` (ps, or ``"10 ms"``); return its number.

        ``data`` is any object, which is passed to :meth:`on_timer`. Raises ``ValueError`` for a
        negative or too long delay, or a text that is no time.
        """
        delay_ps = Duration(delay) if isinstance(delay, str) else _whole("a delay in ps", delay)
        if not 0 <= delay_ps <= _LONGEST:
            raise ValueError(f"the delay of a timer is {delay_ps} ps; allowed: 0 to {_LONGEST} ps")
        self._acts.append(("timer", int(delay_ps), data))
        return self._numbered()

    def cancel(self, timer: int) -> None:
        """Cancel a timer of this process; a timer that has expired is not affected."""
        self._acts.append(("cancel", self._natural("timer", timer)))

    def close(self, peer: int, *, connection: int = 0) -> None:
        """Close the connection over which this process sends to ``peer``, after its last message.

        The next message to ``peer`` opens a new connection.
        """
        self._acts.append(("close", self._process(peer), self._connection(connection)))

    def stop(self) -> None:
        """End the whole application now.

        Without a call of ``stop``, the application ends when no message is in flight and no timer
        is pending.
        """
        self._acts.append(("stop",))

    def count(self, counter: str, by: int = 1) -> None:
        """Add ``by`` to a counter.

        The summary has the counter as ``applications.W.counters.COUNTER``; W is the name of the
        workload.
        """
        self._acts.append(("count", counter, self._natural("by", by)))

    def measure(self, name: str, took_ps: int) -> None:
        """Add a duration in ps to a measure, such as the time from a query to its answer.

        The summary has count and percentiles of a measure, in µs, as ``applications.W.NAME_us``; W
        is the name of the workload.
        """
        self._acts.append(("measure", name, self._natural("took_ps", took_ps)))

    def plan(self, units: int) -> None:
        """Add ``units`` to the application's total of units of work, which progress bars show."""
        self._acts.append(("plan", self._natural("units", units)))

    def begin(self, units: int = 1) -> None:
        """Add ``units`` to the units of work, such as queries, that have begun.

        The summary has the number as ``applications.W.operations.begun``; W is the workload.
        """
        self._acts.append(("begin", self._natural("units", units)))

    def complete(self, units: int = 1) -> None:
        """Add ``units`` to the units of work, such as queries, that are completed.

        The summary has the number as ``applications.W.operations.completed``; W is the workload.
        The run ends with an error if more units are completed than ``plan`` has announced.
        """
        self._acts.append(("complete", self._natural("units", units)))

    def _send(self, act: str, to: int, size: int, data: Any, connection: int) -> int:
        where = self._process(to), self._size(size), self._connection(connection)
        self._acts.append((act, *where, data))
        return self._numbered()

    def _numbered(self) -> int:
        # The simulator numbers messages and timers in the same order: the order of the calls.
        self._next += 1
        return self._next - 1

    def _process(self, number: int) -> int:
        number = _whole("the number of a process", number)
        if not 0 <= number < len(self.hosts):
            raise ValueError(
                f"there is no process {number}: processes are 0 to {len(self.hosts) - 1}"
            )
        return number

    @staticmethod
    def _size(size: int) -> int:
        size = _whole("the size of a message", size)
        if not 1 <= size <= _LARGEST:
            raise ValueError(f"the size of a message is {size} bytes; allowed: 1 to {_LARGEST}")
        return size

    @staticmethod
    def _connection(connection: int) -> int:
        connection = _whole("the number of a connection", connection)
        if not 0 <= connection <= 0xFFFF:
            raise ValueError(f"the number of a connection is {connection}; allowed: 0 to 65535")
        return connection

    @staticmethod
    def _natural(name: str, value: int) -> int:
        value = _whole(name, value)
        if not 0 <= value <= _LONGEST:
            raise ValueError(f"{name} is {value}: it must be 0 to {_LONGEST}")
        return value

    def _step(self, now_ps: int, following: int, hook: str, *given: Any) -> list[tuple[Any, ...]]:
        """Call the method ``hook`` with ``given``, and return the actions that it requested.

        The simulator (crates/bindings/src/sketch) calls this method and executes the actions, such
        as sends and timers. ``following`` is the number of the next message or timer.
        """
        self.now_ps, self._next, self._acts = now_ps, following, []
        try:
            getattr(self, hook)(*given)
        except Exception as error:
            role, host = self.role, self.hosts[self.number]
            error.add_note(
                f"in process {self.number} ({role}, host {host}) at {now_ps / 1e6:.6f} us"
            )
            raise
        return self._acts


def _whole(name: str, value: Any) -> int:
    """Return a value as a whole number; raise ``TypeError`` for other values."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} must be a whole number, not {value!r:.60}: use // or int()"
        ) from None
