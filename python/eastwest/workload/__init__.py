"""Analysis and synthesis of traces in the normal form (`eastwest.traces.form`).

Access to data, shapes of jobs, arrivals, distances between traces; shorter, longer, smaller and
larger traces with the properties of a given one.
"""
