"""Traces of MPI programs, converted to time-independent traces: a folder with a file per rank.

``ranks`` writes this form; each reader knows one format. The folder is the input of a simulation:
the key ``trace`` of a workload with ``kind = "mpi"``.
"""
