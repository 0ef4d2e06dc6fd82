"""Analysis and synthesis of traces in the normal form (`eastwest.traces.form`).

It analyses access to data, shapes of jobs, arrivals and distances between traces, and makes
shorter, longer, smaller and larger traces with the properties of a given trace.
"""
