"""Exchanges: requests with their responses."""

from __future__ import annotations

import polars as pl

#: Columns with equal values in a request and its response. Some workloads use a tag again for later
#: exchanges, so that the occurrence of the tag (0, 1, …) is one of these columns.
_PAIR = ("workload", "connection", "tag", "occurrence")


def exchanges(flows: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame with a row for each request that has a response, in order of the responses.

    ``flows`` has the columns of the table of flows. Columns: ``workload``, ``client`` and
    ``server`` (numbers of hosts), ``request_bytes``, ``response_bytes``, ``start_s`` (the request
    is written), ``request_finish_s`` (the request has arrived), ``response_start_s`` (the response
    is written), ``finish_s`` (the response has arrived), ``exchange_us`` (``finish_s`` −
    ``start_s``), ``server_us`` (``response_start_s`` − ``request_finish_s``), ``retransmits`` and
    ``timeouts`` of both directions, and ``request`` and ``response``: the numbers of both flows.
    Results before format 8 have no ``tag``, so the frame of these results has no rows.
    """
    known = flows.filter(pl.col("tag").is_not_null())
    is_request = pl.col("purpose") == "request"
    requests = _numbered(known.filter(is_request))
    responses = _numbered(known.filter(~is_request))
    back = ["src", "dst"], ["dst", "src"]
    pairs = requests.join(
        responses,
        left_on=[*_PAIR, *back[0]],
        right_on=[*_PAIR, *back[1]],
        suffix="_of_response",
    )
    return pairs.select(
        "workload",
        client="src",
        server="dst",
        request_bytes="bytes",
        response_bytes="bytes_of_response",
        start_s="start_s",
        request_finish_s="finish_s",
        response_start_s="start_s_of_response",
        finish_s="finish_s_of_response",
        exchange_us=(pl.col("finish_s_of_response") - pl.col("start_s")) * 1e6,
        server_us=(pl.col("start_s_of_response") - pl.col("finish_s")) * 1e6,
        retransmits=pl.col("retransmits") + pl.col("retransmits_of_response"),
        timeouts=pl.col("timeouts") + pl.col("timeouts_of_response"),
        request="flow",
        response="flow_of_response",
    ).sort("response")


def _numbered(flows: pl.LazyFrame) -> pl.LazyFrame:
    """Return ``flows`` with a column ``occurrence``, which numbers flows of equal tag from 0.

    Flows are numbered in their order within each workload, connection, tag and sender.
    """
    same = ("workload", "connection", "tag", "src")
    return flows.with_columns(occurrence=pl.int_range(pl.len()).over(same))
