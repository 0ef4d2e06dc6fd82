"""Lists of flows from records of routers and from packet captures, for ``kind = "flow-list"``.

* :mod:`eastwest.traces.flows.nfdump`: text of nfdump (csv, pipe, line, long, extended, biline).
* :mod:`eastwest.traces.flows.netflow`: export messages of NetFlow v5 and v9, and of IPFIX.
* :mod:`eastwest.traces.flows.sflow`: datagrams of sFlow v5.
* :mod:`eastwest.traces.flows.capture`: captures in the formats pcap and pcapng.
* :mod:`eastwest.traces.flows.collect`: joins records and packets to flows.

Each reader passes its records to one :class:`~eastwest.traces.flows.collect.Collector`.
"""
