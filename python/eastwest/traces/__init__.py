"""Recorded workloads: readers for several formats, and the normal form into which they convert.

The module ``form`` defines the tables and columns of the normal form; ``write`` writes a trace in
this form, and ``load`` opens it. Each reader knows one format.
"""
