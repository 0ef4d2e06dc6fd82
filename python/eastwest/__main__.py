"""Main program of ``python -m eastwest``, which is the command ``eastwest``."""

from eastwest.cli import main

main()
