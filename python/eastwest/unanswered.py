"""Notes on requests of applications that got no reply, for every place that shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastwest.results import pick
from eastwest.units import clean, count

#: Why a request has no reply, by the name of its number in ``applications.W.requests``.
_REASONS = {
    "request_in_flight": "request in flight to the server",
    "no_reply_sent": "no reply sent by the server",
    "reply_in_flight": "reply in flight to the client",
    "connection_failed": "connection aborted by TCP after too many timeouts",
    "connection_closed": "connection closed by the client before the reply",
}


def reasons(requests: Mapping[str, Any]) -> str:
    """Return why requests of an application have no reply, each with its number of requests."""
    found = {name: pick(requests, name) for name in _REASONS}
    return "; ".join(f"{_REASONS[name]}: {count(n)}" for name, n in found.items() if n)


#: What ended the run, by ``applications.W.ended``.
_ENDS = {
    "by itself": "the application had ended",
    "at the duration": "the run ended at its duration",
    "with the run": "the run ended before the application",
}


def unanswered(summary: Mapping[str, Any]) -> list[str]:
    """Return a note on each application with requests that have no reply at the end of the run."""
    applications = summary.get("applications")
    notes = []
    for workload, own in applications.items() if isinstance(applications, Mapping) else ():
        requests = own.get("requests") if isinstance(own, Mapping) else None
        none, sent = pick(requests, "unanswered"), pick(requests, "sent")
        if not none or not isinstance(requests, Mapping):
            continue
        note = (
            f"{clean(str(workload), 40)}: {count(none)} of {count(sent)} requests have no reply "
            f"({reasons(requests)})"
        )
        note += f"; {_ENDS[own['ended']]}" if own.get("ended") in _ENDS else ""
        if pick(summary, "faults", "failures"):
            note += "; links or nodes failed during the run"
        notes.append(note)
    return notes
