"""Models of a data centre from its own monitoring: spans of transactions, and time series.

``eastwest observe`` on the command line; the guides are docs/guide/observe.md and metrics.md.

Transactions: form.py defines the normal form of spans; take.py converts a source to it, with the
readers csv_spans, otlp_json, otlp_proto, jaeger and zipkin, and load.py opens it. mend.py repairs
the trees of spans, skew.py corrects clock skew. calls.py derives call pairs and messages;
nesting.py, convolution.py and grey.py infer transactions, truth.py measures their accuracy, and
infer.py runs a method from input to output.

Metric selection: metrics.py holds tables of time series and reads files, prometheus.py queries a
Prometheus server, run_metrics.py takes metrics from a result folder; information.py estimates
mutual information, lags.py finds for each metric the delay after which the target follows it,
mrmr.py selects metrics, stability.py repeats the selection on resampled rows, and select.py
combines these steps.

Export: openmetrics.py writes the metrics of a run as text, exporter.py serves them for scraping.
"""
