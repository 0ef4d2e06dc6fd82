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
        """One row per finished job, in the order of the table ``jobs``."""
        return self.table("counters")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per message that has arrived whole, in order of arrival."""
        return self.table("flows")

    @cached_property
    def flow_parts(self) -> pl.DataFrame:
        """Parts of the completion times of flows."""
        return self.table("flow_parts")

    @cached_property
    def flow_hops(self) -> pl.DataFrame:
        """Waiting times in switches of the flows of ``flow_parts``, by link."""
        return self.table("flow_hops")

    @cached_property
    def flow_samples(self) -> pl.DataFrame:
        """Throughput at receivers over time."""
        return self.table("flow_samples")

    @cached_property
    def events(self) -> pl.DataFrame:
        """One row for each event of a connection, such as a drop or a timeout, in order of time."""
        return self.table("events")

    @cached_property
    def links(self) -> pl.DataFrame:
        """Two rows per cable, one for each direction, with the port that feeds it."""
        return self.table("links")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Arrivals, marks and losses of packets at ports."""
        return self.table("drops")

    @cached_property
    def depths(self) -> pl.DataFrame:
        """Queue length that arriving packets found at the ports that ``measure.ports`` names."""
        return self.table("depths")

    @cached_property
    def sojourn(self) -> pl.DataFrame:
        """Waiting times of packets at the ports that ``measure.ports`` names."""
        return self.table("sojourn")

    @cached_property
    def link_samples(self) -> pl.DataFrame:
        """One row per interval and link in which the link carried, lost or marked a packet."""
        return self.table("link_samples")

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row per link and sample where packets waited."""
        return self.table("queues")

    @cached_property
    def traffic(self) -> pl.DataFrame:
        """One row per interval and tier."""
        return self.table("traffic")

    @cached_property
    def power(self) -> pl.DataFrame:
        """One row per interval and tier."""
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
        """One row per call of a finished transaction, ordered by the end of the transaction."""
        return self.table("calls")

    @cached_property
    def mpi_ranks(self) -> pl.DataFrame:
        """One row per rank of an MPI program that has finished."""
        return self.table("mpi_ranks")

    @cached_property
    def mpi_states(self) -> pl.DataFrame:
        """States of the ranks of MPI programs over time, ordered by their ends."""
        return self.table("mpi_states")

    @cached_property
    def mpi_messages(self) -> pl.DataFrame:
        """Messages between ranks of MPI programs."""
        return self.table("mpi_messages")

    @cached_property
    def tcp_trace(self) -> pl.DataFrame:
        """Congestion windows of the senders that ``measure.tcp_trace`` names."""
        return self.table("tcp_trace")

    @cached_property
    def lpi(self) -> pl.DataFrame:
        """Low-power idle periods of the links whose ports ``measure.lpi`` names."""
        return self.table("lpi")

    @cached_property
    def streams(self) -> pl.DataFrame:
        """One row for every stream of raw Ethernet frames that has sent a frame."""
        return self.table("streams")

    @cached_property
    def pfc(self) -> pl.DataFrame:
        """One row for each link and priority that carried packets, if ports have PFC or QCN."""
        return self.table("pfc")

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """Pauses by PFC of the ports that ``measure.pauses`` names, ordered by link."""
        return self.table("pauses")
