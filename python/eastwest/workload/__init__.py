"""Analysis and synthesis of traces in the normal form (`eastwest.traces.form`).

Access to data, shapes of jobs, arrivals, distances between traces; shorter, longer, smaller and
larger traces like a given one.
"""
