"""From monitoring to models: what a data centre's own measurements tell.

``eastwest observe`` on the command line; the guide is docs/guide/metrics.md.

Metric selection: metrics.py holds tables of time series and reads files, prometheus.py asks a
Prometheus server, run_metrics.py takes them from a result folder; information.py estimates mutual
information, lags.py finds by how much a metric leads the target, mrmr.py selects, stability.py
repeats the selection on resampled rows, and select.py puts all of it together.

Export: openmetrics.py writes a run's metrics as text, exporter.py serves them to be scraped.
"""
