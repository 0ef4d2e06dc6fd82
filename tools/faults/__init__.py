"""Faults made from outside a command: calls that fail, and kills; ``check_faults.py`` uses them."""
