"""Command group ``eastwest bundle``: archives with which others repeat results."""

from __future__ import annotations

from eastwest.cli.lazy import group

app = group(
    "Write results into an archive with which others repeat them; check such archives.\n\n"
    "eastwest bundle RESULT|SWEEP|STUDY is short for eastwest bundle create.",
    {
        "create": "bundle_create:create",
        "verify": "bundle_verify:verify",
        "rerun": "bundle_verify:rerun",
    },
    default="create",
)
