"""Tables of a result as attributes: made from their declarations by ``make reference``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


class Tables:
    """The tables of a result, read when first used.

    docs/reference/results.md has the meaning and the unit of each column.
    """

    def table(self, name: str) -> pl.DataFrame:
        """Read one table by name."""
        raise NotImplementedError

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row for each finished job, in the order in which they finished.

        Columns: job, workload, name, kind, class, submitted_s, started_s, finished_s, runtime_s,
        maps, reduces, input_bytes, shuffle_bytes, shuffle_local_bytes, output_bytes, failed.
        """
        return self.table("jobs")

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """One row for each finished task, in the order in which they finished.

        Columns: job, workload, task, kind, host, assigned_s, started_s, input_done_s, finished_s,
        locality, bytes_in, bytes_out, computed_s, merged_s, spills, file_bytes_read,
        file_bytes_written, cpu_s.
        """
        return self.table("tasks")

    @cached_property
    def counters(self) -> pl.DataFrame:
        """One row for each finished job, in the order of the table ``jobs``.

        Columns: job, workload, FILE_BYTES_READ, FILE_BYTES_WRITTEN, HDFS_BYTES_READ,
        HDFS_BYTES_WRITTEN, TOTAL_LAUNCHED_MAPS, TOTAL_LAUNCHED_REDUCES, NUM_FAILED_MAPS,
        NUM_FAILED_REDUCES, NUM_KILLED_MAPS, NUM_KILLED_REDUCES, DATA_LOCAL_MAPS, RACK_LOCAL_MAPS,
        OTHER_LOCAL_MAPS, MAP_OUTPUT_BYTES, MAP_OUTPUT_MATERIALIZED_BYTES, SPILLED_RECORDS,
        REDUCE_SHUFFLE_BYTES, SHUFFLED_MAPS, FAILED_SHUFFLE, CPU_MILLISECONDS.
        """
        return self.table("counters")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row for each data message that has arrived completely, in order of arrival.

        Columns: flow, workload, purpose, class, src, dst, bytes, start_s, finish_s, fct_us,
        slowdown, retransmits, timeouts, job, connection, stream_start, lost_windows,
        lost_ack_windows, tag.
        """
        return self.table("flows")

    @cached_property
    def flow_parts(self) -> pl.DataFrame:
        """Parts of the completion times of flows.

        Columns: flow, stream, workload, class, src, dst, bytes, loss, completion_us, injection_us,
        queueing_us, flight_us, retransmission_us, application_us, earlier_us, host_queue_us,
        pacing_us, delayed_ack_us, handshake_us, slow_start_us, slow_start_trips,
        congestion_window_us, congestion_window_trips, receiver_window_us, receiver_window_trips,
        transmission_us, propagation_us, processing_us, cores_us, send_core_queue_us, send_core_us,
        interrupt_delay_us, receive_core_queue_us, receive_core_us.
        """
        return self.table("flow_parts")

    @cached_property
    def flow_hops(self) -> pl.DataFrame:
        """Waiting times in switches of the flows of ``flow_parts``, by link.

        Columns: flow, stream, link, queueing_us.
        """
        return self.table("flow_hops")

    @cached_property
    def flow_samples(self) -> pl.DataFrame:
        """Throughput at receivers over time.

        Columns: time_s, connection, stream, workload, class, src, dst, bytes.
        """
        return self.table("flow_samples")

    @cached_property
    def packet_hops(self) -> pl.DataFrame:
        """The way of single packets.

        Columns: packet, hop, connection, src, dst, kind, stream_start, bytes, link, arrived_s,
        waited_us, transmission_us, propagation_us.
        """
        return self.table("packet_hops")

    @cached_property
    def events(self) -> pl.DataFrame:
        """One row for each event of a connection or datagram, such as a drop or a timeout.

        Columns: time_s, what, connection, src, dst, kind, stream_start, bytes, link, cause.
        """
        return self.table("events")

    @cached_property
    def links(self) -> pl.DataFrame:
        """Two rows per cable, one for each direction.

        Columns: link, name, tier, src, dst, rate_bps, packets, bytes, utilisation, drops,
        drops_data, drops_retransmission, drops_ack, drops_ece_ack, drops_syn, drops_syn_ack,
        drops_fin, drops_datagram, queue_max_us, queue_max_bytes, drops_queue_full, lost_random,
        lost_down, lost_no_route, drops_early, drops_shared_buffer, drops_sojourn, marks, energy_j,
        energy_always_on_j, energy_ideal_j, awake_s, falling_asleep_s, asleep_s, waking_s, wakes.
        """
        return self.table("links")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Arrivals, marks and losses of packets at ports.

        Columns: link, class, kind, ect, arrivals, marks, drops, drops_queue_full, lost_random,
        lost_down, lost_no_route, drops_early, drops_shared_buffer, drops_sojourn.
        """
        return self.table("drops")

    @cached_property
    def depths(self) -> pl.DataFrame:
        """Queue length that arriving packets found at the ports that ``measure.ports`` names.

        Columns: link, class, unit, most, count.
        """
        return self.table("depths")

    @cached_property
    def sojourn(self) -> pl.DataFrame:
        """Waiting times of packets at the ports that ``measure.ports`` names.

        Columns: link, class, upper_us, count.
        """
        return self.table("sojourn")

    @cached_property
    def link_samples(self) -> pl.DataFrame:
        """One row for each interval and link in which the link carried, lost or marked a packet.

        Columns: time_s, link, bytes, drops, marks.
        """
        return self.table("link_samples")

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row for each sample and link at which packets waited.

        Columns: time_s, link, packets, bytes.
        """
        return self.table("queues")

    @cached_property
    def traffic(self) -> pl.DataFrame:
        """One row for each interval and tier of links.

        Columns: time_s, tier, bytes.
        """
        return self.table("traffic")

    @cached_property
    def power(self) -> pl.DataFrame:
        """One row for each interval and tier of links.

        Columns: time_s, tier, energy_j, energy_always_on_j, energy_ideal_j, awake_s,
        falling_asleep_s, asleep_s, waking_s.
        """
        return self.table("power")

    @cached_property
    def latency(self) -> pl.DataFrame:
        """Histograms of the latency of packets.

        Columns: class, kind, upper_us, count.
        """
        return self.table("latency")

    @cached_property
    def application_times(self) -> pl.DataFrame:
        """Histograms of the measures of applications, such as the time of a query.

        Columns: workload, measure, upper_us, count.
        """
        return self.table("application_times")

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """One row for each finished round of a synchronized read.

        Columns: workload, round, started_s, finished_s, bytes.
        """
        return self.table("rounds")

    @cached_property
    def transactions(self) -> pl.DataFrame:
        """One row per finished transaction.

        Columns: transaction, workload, name, recorded, client, arrived_s, finished_s, response_us,
        network_us, compute_us, queued_us, calls.
        """
        return self.table("transactions")

    @cached_property
    def calls(self) -> pl.DataFrame:
        """One row per call of a finished transaction, ordered by the end of the transaction.

        Columns: transaction, workload, call, parent, component, service, operation, host,
        request_bytes, response_bytes, sent_s, arrived_s, answered_s, done_s, network_us,
        compute_us.
        """
        return self.table("calls")

    @cached_property
    def mpi_ranks(self) -> pl.DataFrame:
        """One row for each rank of an MPI program that has finished.

        Columns: workload, rank, host, finished_s, compute_s, sleep_s, send_s, receive_s, wait_s,
        collective_s, messages, bytes, collective_messages, collective_bytes, collectives.
        """
        return self.table("mpi_ranks")

    @cached_property
    def mpi_states(self) -> pl.DataFrame:
        """States of the ranks of MPI programs over time.

        Columns: workload, rank, state, call, began_s, ended_s.
        """
        return self.table("mpi_states")

    @cached_property
    def mpi_messages(self) -> pl.DataFrame:
        """Messages between ranks of MPI programs.

        Columns: workload, from, to, tag, call, bytes, protocol, over, sent_s, matched_s, arrived_s,
        received_s.
        """
        return self.table("mpi_messages")

    @cached_property
    def mpi_collectives(self) -> pl.DataFrame:
        """Collective calls of MPI programs that all their ranks have left.

        Columns: workload, group, number, call, ranks, bus_bytes, entered_s, complete_s, last_rank,
        ended_s, bus_bandwidth_bps.
        """
        return self.table("mpi_collectives")

    @cached_property
    def mpi_iterations(self) -> pl.DataFrame:
        """Iterations of the ranks of MPI programs that are graphs.

        Columns: workload, rank, iteration, began_s, ended_s, compute_s, exposed_s.
        """
        return self.table("mpi_iterations")

    @cached_property
    def tcp_trace(self) -> pl.DataFrame:
        """Congestion windows of the senders that ``measure.tcp_trace`` names.

        Columns: time_s, connection, src, dst, cwnd_bytes, ssthresh_bytes, srtt_us, rto_us,
        in_flight_bytes, phase.
        """
        return self.table("tcp_trace")

    @cached_property
    def lpi(self) -> pl.DataFrame:
        """Low-power idle periods of the links whose ports ``measure.lpi`` names.

        Columns: link, falls_asleep_s, asleep_s, wakes_s, awake_s.
        """
        return self.table("lpi")

    @cached_property
    def streams(self) -> pl.DataFrame:
        """One row for each stream of raw Ethernet frames that has sent a frame.

        Columns: workload, class, src, dst, frames_sent, bytes_sent, frames_received,
        bytes_received, frames_lost, frames_reordered, resequenced, resequenced_most,
        resequenced_mean, first_s, last_s, throughput_bps, latency_us_mean, latency_us_max,
        jitter_us, fate.
        """
        return self.table("streams")

    @cached_property
    def pfc(self) -> pl.DataFrame:
        """One row for each link and priority that carried packets, if ports have PFC or QCN.

        Columns: link, priority, output_most_bytes, pauses, paused_s, input_most_bytes, input_bytes,
        xoff_sent, xon_sent, xoff_repeated, headroom_bytes, qcn_samples, qcn_messages.
        """
        return self.table("pfc")

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """Pauses by PFC of the ports that ``measure.pauses`` names, ordered by link.

        Columns: link, priority, began_s, until_s, ended.
        """
        return self.table("pauses")
