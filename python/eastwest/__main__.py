"""``python -m eastwest`` is the command ``eastwest``."""

from eastwest.cli import main

main()
