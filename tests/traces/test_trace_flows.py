"""Connection matrices of htsim become lists of flows, or are refused with their line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.traces import matrix

#: A file of the form of the examples that htsim has.
MADE = """# made by hand
Nodes 8
Connections 3
Failures 1

1->0 id 1 start 0 size 20000
2->0 id 2 start 1500000000 size 30000 prio 3
7->3 size 1448 start 2000000.000000
failure switch_type TOR switch_id 0 link_id 1
"""


def test_a_matrix_runs_as_a_list_of_flows(tmp_path: Path) -> None:
    (tmp_path / "made.cm").write_text(MADE)
    command = ["trace", "flows", str(tmp_path / "made.cm"), "-o", str(tmp_path / "flows.csv")]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "made.cm:9: a failure, which a list of flows cannot express" in refused.output
    made = CliRunner().invoke(app, [*command, "--lossy"])
    assert made.exit_code == 0, made.output
    assert "3 flows of 51.4 kB, hosts 0 to 7" in made.output
    assert "noted 1 × priority of a connection: made.cm:7" in made.output
    assert "changed 1 × a failure, which a list of flows cannot express: made.cm:9" in made.output
    (tmp_path / "s.toml").write_text(
        'schema = 1\n[fabric]\nkind = "star"\nhosts = 8\nhost_rate = "1 Gbit/s"\n'
        '[[workload]]\nname = "htsim"\nkind = "flow-list"\nfile = "flows.csv"\n'
    )
    ran = ew.run(tmp_path / "s.toml", out=tmp_path / "out").flows.sort("start_s")
    rows = ran.select("src", "dst", "bytes", "start_s").rows()
    assert rows == [(1, 0, 20000, 0.0), (7, 3, 1448, 2e-6), (2, 0, 30000, 0.0015)]
    again = [*command, "--lossy"]
    assert CliRunner().invoke(app, again).exit_code == 2
    assert CliRunner().invoke(app, [*again, "--force"]).exit_code == 0


def test_starts_are_picoseconds_unless_said_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "t.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 start 2.5 size 9\n")
    assert matrix.read(file).connections[0].start_s == 2.5e-12
    assert matrix.read(file, "us").connections[0].start_s == 2.5e-6
    with pytest.raises(InputError, match="must be one of ps, us"):
        matrix.read(file, "ms")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0->1 trigger 1 size 5", "begins at a trigger"),
        ("0->1 start 0 size 0", "0 means a flow without end"),
        ("0->1 start 0", "size must be a whole number"),
        ("0->1 start 0 size -5", "size must be a whole number"),
        ("0->1 size 5", "start is ''"),
        ("0->1 start nan size 5", "start is 'nan'"),
        ("0->1 start 1e30 size 5", "allowed: a number that means 0 to 480 h"),
        ("0->9 start 0 size 5", "host 9 does not exist; allowed: 0 to 3"),
        ("2->2 start 0 size 5", "the source and target are both host 2"),
        ("0-1 start 0 size 5", "not SRC->DST"),
        ("0->1 begin 0 size 5", "'begin' is not a key of a connection"),
        ("0->1 start 0 size 5 size 6", "size is given twice"),
        ("0->1 start 0 size 5 prio", "prio has no value"),
        ("Nodes many", "expected Nodes and a whole number"),
    ],
)
def test_what_a_list_cannot_say_is_told_with_its_line(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.cm"
    file.write_text(f"Nodes 4\nConnections 1\n{line}\n")
    with pytest.raises(InputError, match=said) as raised:
        matrix.read(file)
    assert "x.cm: line 3" in str(raised.value)


def test_counts_must_agree(tmp_path: Path) -> None:
    file = tmp_path / "x.cm"
    file.write_text("Nodes 4\nConnections 2\n0->1 start 0 size 5\n")
    with pytest.raises(InputError, match="the header states Connections 2, but the file has 1"):
        matrix.read(file)
    file.write_text("Nodes 4\nConnections 0\n")
    with pytest.raises(InputError, match="has no connection"):
        matrix.read(file)
    file.write_text("Connections 0\n")
    with pytest.raises(InputError, match="the line Nodes is missing"):
        matrix.read(file)
    file.write_text("Connections 1\n0->1 start 0 size 5\nNodes 4\n")
    with pytest.raises(InputError, match="line 2: a connection before the line Nodes"):
        matrix.read(file)
    with pytest.raises(InputError, match="No such file"):
        matrix.read(tmp_path / "none.cm")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(MADE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    file = tmp_path / "d.cm"
    file.write_bytes(bytes(content[: data.draw(st.integers(1, len(content)))]))
    try:
        assert matrix.read(file).connections
    except InputError as error:
        assert "\x1b" not in str(error)
