"""``@NAME@``: an application in Python: queries to many workers, answered at a deadline.

Run it with ``eastwest run scenario.toml --with @FILE@``. The guide of Eastwest ("Your own
application") lists the attributes and methods of a process.
"""

from typing import ClassVar

import eastwest as ew


class MyMechanism(ew.Application):
    """Front ends ask all workers and answer when all have responded, or at the deadline."""

    name = "@NAME@"
    # Keys of the scenario: each lists hosts, and each host runs a process with this role.
    roles: ClassVar = {
        "front_ends": "Hosts that send queries to workers.",
        "workers": "Hosts that respond to queries.",
    }

    # All counters and measures: goals with another name are refused before the run.
    counters: ClassVar = {"missed": "Queries that were not complete at their deadline."}
    measures: ClassVar = {"query": "Time from a query to its answer."}

    # Parameters, which the scenario may set in the table of the workload.
    queries: int = 100
    gap: ew.Duration = ew.Duration("1 ms")
    deadline: ew.Duration = ew.Duration("10 ms")
    request_bytes: int = 1600
    response_bytes: int = 2000

    def __init__(self) -> None:
        self.asked = 0
        #: For each query without an answer: its time in ps, its timer, number of missing responses.
        self.open: dict[int, tuple[int, int, int]] = {}

    def on_start(self) -> None:
        """Start the process; every process is a separate object of this class."""
        if self.role == "front_ends":
            self.plan(self.queries)
            self.await_query()

    def await_query(self) -> None:
        """Start the timer for the next query, unless all queries have been sent."""
        if self.asked < self.queries:
            self.timer(self.random.exponential(self.gap), "next")

    def on_timer(self, data: object) -> None:
        """Send the next query, or answer a query at its deadline."""
        if data == "next":
            number, workers = self.asked, self.members["workers"]
            for worker in workers:
                self.request(worker, self.request_bytes, number)
            deadline = self.timer(self.deadline, number)
            self.open[number] = self.now_ps, deadline, len(workers)
            self.asked += 1
            self.begin()
            self.await_query()
        elif isinstance(data, int):
            self.count("missed")
            self.answer(data)

    def on_message(self, message: ew.Message) -> None:
        """Respond to a request, or collect a response."""
        if message.request is not None:
            self.reply(message, self.response_bytes, message.data)
        elif message.data in self.open:
            asked, deadline, missing = self.open[message.data]
            self.open[message.data] = asked, deadline, missing - 1
            if missing == 1:
                self.cancel(deadline)
                self.answer(message.data)

    def answer(self, number: int) -> None:
        """Answer a query: record its duration and count it as done."""
        asked, _, _ = self.open.pop(number)
        self.measure("query", self.now_ps - asked)
        self.complete()
