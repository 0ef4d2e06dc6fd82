"""Names and explanations of the causes of TCP timeouts (docs/mechanisms/tcp-timeouts.md)."""

from __future__ import annotations

#: (short name, explanation) of each cause of a timeout, by the name of the cause in result tables.
WORDS = {
    "syn": ("lost SYN", "the SYN was lost"),
    "syn_ack": ("lost SYN-ACK", "the SYN-ACK, or the ACK that answers it, was lost"),
    "request": ("lost request", "the only segment of the message was lost"),
    "full_window": ("full window lost", "the whole window was lost"),
    "tail": ("lost tail", "the end of the message was lost, so no duplicate ACKs followed"),
    "few_duplicates": (
        "too few duplicate ACKs",
        "so few segments arrived after the lost one that there were fewer than "
        "three duplicate ACKs",
    ),
    "lost_retransmission": ("lost retransmission", "its retransmission was lost"),
    "recovery": ("before its repair", "fast retransmit had not reached this byte yet"),
    "fin": ("lost FIN", "a FIN was lost"),
    "ack": ("lost ACK", "the data had arrived, but its ACK was lost"),
    "spurious": ("spurious", "nothing was lost"),
}


def short(cause: str) -> str:
    """Return the short name of a cause, for texts such as ``3 full window lost``."""
    return WORDS[cause][0] if cause in WORDS else cause.replace("_", " ")


def long(cause: str) -> str:
    """Return the explanation of a cause; an unknown cause is returned with spaces for ``_``."""
    return WORDS[cause][1] if cause in WORDS else cause.replace("_", " ")
