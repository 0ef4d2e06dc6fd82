"""Recorded workloads: readers of job histories, and their common normal form.

``form`` defines the normal form; ``write`` and ``load`` write and read it. Each reader knows one
format and passes its records on in the columns of ``form``.
"""
