"""Traces of MPI programs, brought into time-independent traces: a folder with a file a rank.

``ranks`` writes that form; each reader knows one format. What drives a simulation is the folder:
``trace`` of ``kind = "mpi"``.
"""
