"""Recorded workloads: readers of job histories, and their common normal form.

``form`` defines the normal form, which ``write`` writes and ``load`` opens. Each reader knows one
format and passes its records on in the columns of ``form``.
"""
