"""A real Hadoop in network namespaces, compared with the simulator (``make hadoop-check``).

Needs root, Linux with network namespaces, ``ip``, ``tc``, ``unshare``, a Java runtime and Maven,
which fetches Hadoop from Maven Central. It takes some minutes and 5 GB of memory.
"""
