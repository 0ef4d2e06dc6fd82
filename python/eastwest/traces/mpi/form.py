"""Names of the formats of MPI traces."""

#: Formats of MPI traces, by their name for ``--format``.
FORMATS = {
    "ti": "time-independent traces of SimGrid: rank files, an archive or folder of them, one file",
    "dimemas": "Dimemas: #DIMEMAS header and records",
    "otf2": "OTF2, through the otf2 library: its anchor file",
    "chakra": "Chakra execution traces: protobuf or JSON, a file per rank",
}
