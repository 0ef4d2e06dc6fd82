"""Notes on requests of applications that got no reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastwest.results import pick
from eastwest.units import clean, count, plural

#: Texts that tell why requests have no reply, by the name of their number in
#: ``applications.W.requests``.
_REASONS = {
    "request_in_flight": "in flight to the server",
    "no_reply_sent": "not replied to by the server",
    "reply_in_flight": "with the reply in flight",
    "connection_failed": "on connections that TRANSPORT has aborted",
    "connection_closed": "on connections that the client has closed",
}


#: Names of transports in texts, by the value of ``applications.W.transport``.
_TRANSPORTS = {"tcp": "TCP", "rocev2": "RoCEv2"}


def reasons(own: Mapping[str, Any]) -> str:
    """Return why requests of an application have no reply, each with its number of requests.

    ``own`` are the numbers of the application in the summary.
    """
    found = {name: pick(own, "requests", name) for name in _REASONS}
    said = ", ".join(f"{count(n)} {_REASONS[name]}" for name, n in found.items() if n)
    return said.replace("TRANSPORT", _TRANSPORTS.get(str(own.get("transport")), "the transport"))


def end_of(own: Mapping[str, Any]) -> str:
    """Return a text: when the application with the numbers ``own`` in the summary ended."""
    return _ENDS.get(str(own.get("ended")), "at the end")


#: Texts for the end of an application, by the value of ``applications.W.ended``.
_ENDS = {
    "by itself": "when the application ended",
    "at the duration": "at the duration of the run",
    "with the run": "when the run ended",
}


def of_run(summary: Mapping[str, Any]) -> list[str]:
    """Return a note on each application with requests that have no reply at the end of the run."""
    applications = summary.get("applications")
    notes = []
    for workload, own in applications.items() if isinstance(applications, Mapping) else ():
        requests = own.get("requests") if isinstance(own, Mapping) else None
        none, sent = pick(requests, "unanswered"), pick(requests, "sent")
        if not none or not isinstance(requests, Mapping):
            continue
        note = (
            f"{clean(str(workload), 40)}: {count(none)} of {plural(sent, 'request')} had no reply "
            f"{end_of(own)} ({reasons(own)})"
        )
        if pick(summary, "faults", "failures"):
            note += "; links or nodes failed during the run"
        notes.append(note)
    return notes
