"""Analysis and synthesis of traces in the normal form (`eastwest.traces.form`).

The package analyses access to data, groups of similar jobs, arrivals, and distances between traces.
The package also makes shorter, longer, smaller and larger traces with the properties of a given
trace.
"""
