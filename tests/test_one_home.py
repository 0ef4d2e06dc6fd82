"""How many files a new thing takes: each is added to a scratch copy, which the compiler checks."""

from __future__ import annotations

