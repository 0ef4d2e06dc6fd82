"""Tables of a result as attributes: made from their declarations by ``make reference``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


class Tables:
    """The tables of a result, read when first used."""

    def table(self, name: str) -> pl.DataFrame:
        """Read one table by name."""
        raise NotImplementedError

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row per finished job, in the order they finished."""
        return self.table("jobs")

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """One row per finished task, in the order they finished."""
        return self.table("tasks")

    @cached_property
    def counters(self) -> pl.DataFrame:
        """One row per finished job, in the order of ``jobs``."""
        return self.table("counters")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per message that has arrived whole, in order of arrival."""
        return self.table("flows")

    @cached_property
    def flow_parts(self) -> pl.DataFrame:
        """What the time of flows went into."""
        return self.table("flow_parts")

    @cached_property
    def flow_samples(self) -> pl.DataFrame:
        """What receivers got over time."""
        return self.table("flow_samples")

    @cached_property
    def events(self) -> pl.DataFrame:
        """One row for each thing that happened to a connection, in order of time."""
        return self.table("events")

    @cached_property
    def links(self) -> pl.DataFrame:
        """Two rows per cable, one for each direction, with the port that feeds it."""
        return self.table("links")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Who came to a port, was marked there or was lost there."""
        return self.table("drops")

    @cached_property
    def depths(self) -> pl.DataFrame:
        """What packets found waiting at the ports that ``measure.ports`` names."""
        return self.table("depths")

    @cached_property
    def sojourn(self) -> pl.DataFrame:
        """How long packets waited at the same ports."""
        return self.table("sojourn")

    @cached_property
    def link_samples(self) -> pl.DataFrame:
        """One row per interval and link that carried or lost anything in it."""
        return self.table("link_samples")

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row per link and sample where packets waited."""
        return self.table("queues")

    @cached_property
    def traffic(self) -> pl.DataFrame:
        """One row per interval and tier, at the same interval."""
        return self.table("traffic")

    @cached_property
    def power(self) -> pl.DataFrame:
        """One row per interval and tier, at the same interval as in ``traffic``."""
        return self.table("power")

    @cached_property
    def latency(self) -> pl.DataFrame:
        """Histograms of the latency of packets."""
        return self.table("latency")

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """One row per finished round of synchronized reads."""
        return self.table("rounds")

    @cached_property
    def transactions(self) -> pl.DataFrame:
        """One row per finished transaction."""
        return self.table("transactions")

    @cached_property
    def calls(self) -> pl.DataFrame:
        """One row per call of a finished transaction, transactions in the order of their ends."""
        return self.table("calls")

    @cached_property
    def mpi_ranks(self) -> pl.DataFrame:
        """One row per rank of an MPI program that is through, in the order of their ends."""
        return self.table("mpi_ranks")

    @cached_property
    def mpi_states(self) -> pl.DataFrame:
        """What ranks of MPI programs did when."""
        return self.table("mpi_states")

    @cached_property
    def mpi_messages(self) -> pl.DataFrame:
        """Messages between ranks of MPI programs."""
        return self.table("mpi_messages")

    @cached_property
    def tcp_trace(self) -> pl.DataFrame:
        """The windows of the senders named in ``measure.tcp_trace``."""
        return self.table("tcp_trace")

    @cached_property
    def lpi(self) -> pl.DataFrame:
        """Every time that a link slept whose port is named in ``measure.lpi``, by link and time."""
        return self.table("lpi")

    @cached_property
    def streams(self) -> pl.DataFrame:
        """A row for every stream of raw Ethernet frames that has sent one."""
        return self.table("streams")

    @cached_property
    def pfc(self) -> pl.DataFrame:
        """A row for every link and priority that was of use, where ports have PFC or QCN."""
        return self.table("pfc")

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """Every pause by PFC of the ports that ``measure.pauses`` names, by link."""
        return self.table("pauses")
