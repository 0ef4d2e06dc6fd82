"""The ns-2 program made from a list of flows, and a run of it where ns-2 is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from project_paths import ROOT


@pytest.fixture(scope="module")
def arbiter() -> ModuleType:
    """Import tools/ns2_arbiter.py."""
    path = ROOT / "tools" / "ns2_arbiter.py"
    spec = importlib.util.spec_from_file_location("ns2_arbiter", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["ns2_arbiter"] = module
    spec.loader.exec_module(module)
    return module


def write(folder: Path, *rows: str) -> Path:
    """Write a list of flows."""
    path = folder / "flows.csv"
    path.write_text("\n".join(["src,dst,bytes,start_s", *rows]) + "\n", encoding="utf-8")
    return path


def test_the_program_has_links_and_agents(arbiter: ModuleType, tmp_path: Path) -> None:
    flows = arbiter.read_flows(write(tmp_path, "h0,h3,1461,0", "1,2,1460,0.5"), 4)
    # Sizes become whole segments: 1461 B are two.
    assert [f.size for f in flows] == [2920, 1460]
    text = arbiter.tcl(arbiter.Fabric(4, 2, limit=50), flows, 9.0)
    # Hosts 0 to 3, leaves 4 and 5, spine 6: six cables, each with two directions.
    assert text.count("simplex-link") == 12
    assert "simplex-link $n(1) $n(4) 1.0Gb 5.0us DropTail" in text
    assert "simplex-link $n(6) $n(5) 10.0Gb 5.0us DropTail" in text
    # ns-2's DropTail counts the arriving packet, so limits are one larger.
    assert "queue-limit $n(4) $n(1) 51" in text and "queue-limit $n(1) $n(4) 100001" in text
    assert "attach-agent $n(0) $a; $ns attach-agent $n(3) $b" in text
    assert '$ns at 0.500000000 "$a sendmsg 1460 DAT_EOF"' in text
    red = arbiter.tcl(arbiter.Fabric(4, red=(5, 15), ecn=True, limit=50), flows, 9.0)
    assert red.count("Gb 5.0us RED") == 4 and "queue-limit $n(4) $n(1) 50" in red
    assert "set mark_p_ 0.1" in red and "set setbit_ true" in red and "set ecn_ 1" in red


@pytest.mark.parametrize("row", ["h0;exit,h1,1,0", "h0,h9,1,0", "h0,h1,[exec ls],0", "h0,h1,1,$x"])
def test_no_text_of_a_list_reaches_tcl(arbiter: ModuleType, tmp_path: Path, row: str) -> None:
    with pytest.raises(ValueError):
        arbiter.read_flows(write(tmp_path, row), 4)


def test_one_flow_takes_as_long_in_ns_2(
    arbiter: ModuleType, tmp_path: Path, tool: Callable[..., str]
) -> None:
    tool("ns")
    fabric = arbiter.Fabric(3, limit=200)
    flows = arbiter.read_flows(write(tmp_path, "h1,h0,146000,0"), 3)
    ns2, ours = arbiter.run_ns2(fabric, flows, 10.0), arbiter.run_ours(fabric, flows, [])
    assert ns2.finished == ours.finished == 1
    assert ours.mean_fct_s == pytest.approx(ns2.mean_fct_s, rel=0.05)
