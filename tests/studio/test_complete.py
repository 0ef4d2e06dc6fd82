"""Completion and explanation of settings in texts that may be incomplete; | is the cursor."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from eastwest import shipped
from eastwest.studio.complete import MOST_ITEMS, complete, hover
from eastwest.studio.toml_text import Steps, scan
from studio_client import Client

FABRIC = """schema = 1
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 2
spines = 1
host_rate = "1 Gbit/s"
uplink_rate = "1 Gbit/s"
"""
INCAST = f'{FABRIC}[[workload]]\nname = "w"\nkind = "incast"\n'


def at_cursor(marked: str) -> tuple[str, int]:
    offset = marked.index("|")
    return marked.replace("|", "", 1), offset


def labels(marked: str) -> list[str]:
    return [item["label"] for item in complete(*at_cursor(marked))["items"]]


def applied(marked: str, label: str) -> str:
    """Return a text in which the completion ``label`` was chosen."""
    text, offset = at_cursor(marked)
    found = complete(text, offset)
    (item,) = [item for item in found["items"] if item["label"] == label]
    return str(text[: found["start"]] + item["insert"] + text[found["end"] :])


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ("|", ["schema"]),
        ("sch|", ["schema"]),
        ("dura|", ["duration"]),
        ("[fab|", ["[fabric]"]),
        ("[fab|]", ["[fabric]"]),
        ("[[work|", ["[[workload]]"]),
        ("[[work|]]", ["[[workload]]"]),
        ("[fabric.host_q|]", ["[fabric.host_queue]"]),
        ("[fabric]\n|", ["leaves", "hosts_per_leaf", "spines", "host_rate", "uplink_rate", "kind"]),
        ('[fabric]\nkind = "star"\n|', ["hosts", "host_rate"]),
        ('[fabric]\nkind = "fat-|"', ["fat-tree"]),
        ('[fabric]\nkind = "fat-|', ["fat-tree"]),
        ("[fabric]\nkind = |", ["leaf-spine", "star", "fat-tree"]),
        ("[fabric]\nkind =|", ["leaf-spine", "star", "fat-tree"]),
        (f"{FABRIC}host_de|", ["host_delay"]),
        (f"{FABRIC}queue = {{ |", ["kind", "limit"]),
        (f'{FABRIC}queue = {{ kind = "codel", | }}', ["limit", "target"]),
        (f'{FABRIC}queue = {{ kind = "codel", tar| }}', ["target"]),
        (f'{FABRIC}queue = {{ kind = "r|', ["red"]),
        (f"{FABRIC}queue.kind = |", ["drop-tail"]),
        (f"{FABRIC}queue.|", ["kind", "limit"]),
        (f"{FABRIC}[fabric.queue]\n|", ["kind", "limit"]),
        (f'{FABRIC}[fabric.queue]\nkind = "red"\nmi|', ["min"]),
        (f"{INCAST}|", ["receiver", "block_bytes"]),
        (f"{INCAST}receiver = |", ["h0", "h1", "h2", "h3"]),
        (f'{INCAST}receiver = "h2|"', ["h2"]),
        (f'{INCAST}senders = ["h0", "h|"]', ["h0", "h1", "h2", "h3"]),
        (f"{INCAST}senders = [|]", ["h0", "h1", "h2", "h3"]),
        (f'{INCAST}senders = ["h0",\n  "h3|"\n]\n', ["h3"]),
        (f"broken = = \n{INCAST}receiver = |", ["h0", "h1", "h2", "h3"]),
        ("[tcp]\nsack = |", ["true", "false"]),
        ("[tcp]\nsack = f|", ["false"]),
        ("[tcp]\nmin_rto = |", ["200 ms"]),
        ('[tcp]\nmin_rto = "10 |"', ["10 ps", "10 ns", "10 us", "10 ms", "10 s"]),
        ('[tcp]\nmin_rto = "10 m|"', ["10 ms", "10 min"]),
        ("duration = 5|", ["5 ps", "5 ns", "5 us", "5 ms", "5 s"]),
        ('[[workload]]\nkind = "mapreduce"\n[workload.hd|]', ["[workload.hdfs]"]),
        ('[[workload]]\nkind = "mapreduce"\n[workload.hdfs]\nrep|', ["replication"]),
    ],
)
def test_the_best_completions_come_first(marked: str, first: list[str]) -> None:
    assert labels(marked)[: len(first)] == first


@pytest.mark.parametrize(
    "marked",
    [
        "# fab|",
        'name = "a # |"',
        "[fabric]\nkind = 'star' # |",
        "nothing = |",
        "x.y.z = |",
        "zzzzz|",
    ],
)
def test_places_without_completions(marked: str) -> None:
    assert labels(marked) == []


def test_keys_that_the_table_has_are_left_out() -> None:
    assert "leaves" not in labels(f"{FABRIC}|")
    assert "leaves" in labels("[fabric]\nleav| = 3\n")
    assert "kind" not in labels(f'{FABRIC}queue = {{ kind = "red", | }}')


def test_keys_fit_to_the_kind_of_their_table() -> None:
    assert "receiver" not in labels('[[workload]]\nkind = "stride"\n|')
    assert "[workload.hdfs]" not in labels('[[workload]]\nkind = "stride"\n[workload.|]')
    two = f'{INCAST}[[workload]]\nkind = "stride"\n|'
    assert "receiver" not in labels(two) and "stride" in labels(two)


@pytest.mark.parametrize(
    ("marked", "label", "wanted"),
    [
        ("[fab|]", "[fabric]", "[fabric]"),
        ("[work|", "[[workload]]", "[[workload]]"),
        ('[fabric]\nkind = "fa|', "fat-tree", '[fabric]\nkind = "fat-tree"'),
        ("[fabric]\nkind =|", "star", '[fabric]\nkind = "star"'),
        ("[fabric]\nkind = |\nhosts = 3", "star", '[fabric]\nkind = "star"\nhosts = 3'),
        ("[fabric]\nki|nd = 3", "kind", "[fabric]\nkind =  = 3"),
        ("[fabric]\nho|", "hosts_per_leaf", "[fabric]\nhosts_per_leaf = "),
        ('[tcp]\nmin_rto = "1|0"', "10 ms", '[tcp]\nmin_rto = "10 ms"'),
        (f"{FABRIC}queue.ki|", "kind", f"{FABRIC}queue.kind = "),
        ('x = "é😀"\n[fabric]\nkind = "fa|"', "fat-tree", 'x = "é😀"\n[fabric]\nkind = "fat-tree"'),
    ],
)
def test_a_completion_replaces_what_was_typed(marked: str, label: str, wanted: str) -> None:
    assert applied(marked, label) == wanted


@pytest.mark.parametrize("name", shipped.names())
def test_every_place_of_a_shipped_scenario_can_be_completed(name: str) -> None:
    text = (shipped.SCENARIOS / f"{name}.toml").read_text()
    for offset in range(0, len(text), 37):
        for cut in (text, text[:offset]):
            found = complete(cut, offset)
            assert 0 <= found["start"] <= found["end"] <= len(cut)
            assert len(found["items"]) <= MOST_ITEMS
            hover(cut, offset)


def leaves(tree: object, steps: Steps = ()) -> dict[Steps, object]:
    if isinstance(tree, dict):
        return {k: v for key, each in tree.items() for k, v in leaves(each, (*steps, key)).items()}
    if isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        parts = [leaves(each, (*steps, place)) for place, each in enumerate(tree)]
        return {k: v for part in parts for k, v in part.items()}
    return {steps: tree}


@pytest.mark.parametrize("name", shipped.names())
def test_the_scan_of_a_text_finds_every_value(name: str) -> None:
    text = (shipped.SCENARIOS / f"{name}.toml").read_text()
    found = scan(text)
    for steps, value in leaves(tomllib.loads(text)).items():
        place = found.values[steps]
        read = tomllib.loads(f"x = {text[place.start : place.end]}")["x"]
        assert read == value, steps
        assert place.line == text.count("\n", 0, place.start) + 1


@pytest.mark.parametrize(
    "text",
    [
        "[", "]", "[[", "=", '"', "'''", '"""', "a = [", "a = {", "a = [[[[{", "a.b.", ".",
        "{" * 500, "[" * 500, "a = " + "[" * 500, "a = " + "{b = " * 500,
        "\r\n[a]\r\nb = 1\r\n", "a = [1,\n# c\n",
        "\0", "a = '\0", "🙂 = 1", "[a.'b.c'.\"d\"]\nx = 1", "a = 1 b = 2", "[a]]", "[[a]", "a = }",
    ],
)  # fmt: skip
def test_no_text_makes_the_scan_fail(text: str) -> None:
    for offset in range(min(len(text), 60) + 1):
        complete(text, offset)
        hover(text, offset)


@pytest.mark.parametrize(
    "part",
    [
        '"',
        "a.",
        "[],",
        "{b=1},",
        "[",
        "{b=",
        "=",
        "\n",
        "#\n",
        "[a]\n",
        "[[a.b]]\n",
        "a=[\n",
        'a="\n',
    ],
)
def test_long_texts_are_scanned_in_linear_time(part: str) -> None:
    # With a time that grows with the square of the length, these texts take minutes.
    text = f"a = [{part * 10_000}"
    for each in (text, part * 10_000):
        complete(each, len(each))
        hover(each, len(each) // 2)


def test_a_hover_explains_a_setting() -> None:
    told = hover(*at_cursor('[tcp]\nmin_|rto = "1 ms"'))
    assert told["path"] == "tcp.min_rto" and told["default"] == "200 ms" and told["doc"]
    assert hover(*at_cursor('[tcp]\nmin_rto = "1 |ms"'))["path"] == "tcp.min_rto"
    assert hover(*at_cursor("[fab|ric]"))["path"] == "fabric"
    chosen = hover(*at_cursor(f'{FABRIC}queue = {{ kind = "r|ed" }}'))
    assert chosen["path"] == "fabric.queue.kind" and chosen["choice"]["name"] == "red"
    assert hover(*at_cursor("# com|ment")) == {}
    assert hover(*at_cursor("noth|ing = 1")) == {}


def test_the_limits_follow_the_kind() -> None:
    torus = hover(*at_cursor('[fabric]\nkind = "torus"\nhosts_per_|switch = 1'))
    assert torus["kinds"] == ["torus"]


def test_completion_is_reached_over_http(client: Client) -> None:
    text, offset = at_cursor("[fab|")
    assert client.post("/api/complete", text=text, offset=offset)["items"][0]["label"] == "[fabric]"
    assert client.post("/api/hover", text=text, offset=offset) == {}
    assert client.post("/api/complete", text=text, offset=10**9)["start"] <= len(text)
    for body in ({"text": text}, {"text": text, "offset": "1"}, {"offset": 1}):
        assert client.refused("POST", "/api/complete", body)[0] == 400


def test_the_module_reads_no_file(tmp_path: Path) -> None:
    graph = FABRIC.replace('kind = "leaf-spine"', f'kind = "graph"\nfile = "{tmp_path}/x"')
    assert labels(f'{graph}[[workload]]\nkind = "incast"\nreceiver = |') == []
