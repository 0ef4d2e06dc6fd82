"""From monitoring to models: what a data centre's own measurements tell.

``eastwest observe`` on the command line; the guides are docs/guide/observe.md and metrics.md.

Transactions: form.py says what the form of spans is; take.py brings a source into it, with a reader
each for csv_spans, otlp_json, otlp_proto, jaeger and zipkin, and load.py opens it. mend.py and
skew.py put right what is wrong with spans. calls.py makes call pairs and messages of them;
nesting.py, convolution.py and grey.py infer transactions, truth.py says how well, and infer.py
does it all.

Metric selection: metrics.py holds tables of time series and reads files, prometheus.py asks a
Prometheus server, run_metrics.py takes them from a result folder; information.py estimates mutual
information, lags.py finds by how much a metric leads the target, mrmr.py selects, stability.py
repeats the selection on resampled rows, and select.py puts all of it together.

Export: openmetrics.py writes a run's metrics as text, exporter.py serves them to be scraped.
"""
