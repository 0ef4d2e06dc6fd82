"""Names of the formats of MPI traces."""

#: Description of each format of MPI traces, by the format's name for ``--format``.
FORMATS = {
    "ti": "time-independent traces of SimGrid: a file per rank, an archive, folder or "
    "list of such files, or one file",
    "dimemas": "Dimemas: a file with a #DIMEMAS header and records",
    "otf2": "OTF2: the anchor file of a trace, read by the otf2 library",
    "goal": "GOAL schedules of LogGOPSim: text or binary, one file",
    "chakra": "Chakra execution traces: protobuf or JSON, one file per rank",
}
