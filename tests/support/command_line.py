"""Calls the command line within this process."""

from __future__ import annotations

from typer.testing import CliRunner

from eastwest.cli import app


def invoke(*args: str) -> tuple[int, str, str]:
    done = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, list(args))
    return done.exit_code, done.stdout, done.stderr
