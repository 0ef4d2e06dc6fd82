"""Conversion of traces of MPI programs to time-independent traces: a folder with a file per rank.

Each reader knows one format; the module ``ranks`` writes the files of ranks. A workload with
``kind = "mpi"`` replays the folder, which is the value of its key ``trace``.
"""
