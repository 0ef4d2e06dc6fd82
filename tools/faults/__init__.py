"""Faults from outside: calls that fail, and processes that are killed. See ``check_faults.py``."""
