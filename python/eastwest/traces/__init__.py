"""Recorded workloads: readers of job histories, and the one form they are brought into.

``form`` says what that form is; ``write`` and ``load`` write and read it. Each reader knows one
format and hands on what it finds as ``form`` names it.
"""
