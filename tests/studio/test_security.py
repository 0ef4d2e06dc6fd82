"""Requests that the studio refuses: without its token, from other pages, outside its folder."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eastwest.errors import InputError
from eastwest.report.page import fabric_svg
from eastwest.report.topology import Topology, outline
from eastwest.studio import Session
from studio_client import Client, studio

TEXT = """schema = 1
[fabric]
kind = "star"
hosts = 3
host_rate = "1 Gbit/s"
[[workload]]
name = "w"
kind = "permutation"
bytes = "1 KB"
"""
ADDRESSES = [
    ("GET", "/"),
    ("GET", "/api/state"),
    ("GET", "/api/file?shipped=first"),
    ("PUT", "/api/file"),
    ("POST", "/api/check"),
    ("POST", "/api/complete"),
    ("POST", "/api/hover"),
    ("POST", "/api/topology"),
    ("POST", "/api/runs"),
    ("GET", "/api/runs"),
    ("GET", "/api/runs/1"),
    ("DELETE", "/api/runs/1"),
    ("GET", "/api/runs/1/stream"),
    ("POST", "/api/runs/1/control"),
    ("GET", "/api/runs/1/report"),
    ("GET", "/api/runs/1/result.zip"),
    ("GET", "/api/compare?runs=1,2"),
    ("GET", "/nothing"),
]


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_nothing_is_answered_without_the_token(client: Client, method: str, path: str) -> None:
    body = None if method == "GET" else {"text": TEXT, "path": "x.toml", "hash": None}
    joint = "&" if "?" in path else "?"
    for target, headers in (
        (path, {}),
        (path, {"X-Eastwest-Token": ""}),
        (path, {"X-Eastwest-Token": client.session.token[:-1]}),
        (path, {"X-Eastwest-Token": "é" * 43}),
        (f"{path}{joint}token=", {}),
        (f"{path}{joint}token=wrong", {}),
        (f"{path}{joint}token={client.session.token}&token=wrong", {}),
    ):
        answer = client.ask(method, target, body, headers=headers, token=False)
        assert answer.status == 403, (target, headers)
        assert "token" in answer.json["error"]
    assert not (client.folder / "x.toml").exists()


def test_the_token_of_another_session_is_refused(client: Client, tmp_path: Path) -> None:
    with Session(tmp_path) as other:
        headers = {"X-Eastwest-Token": other.token}
    answer = client.ask("GET", "/api/state", headers=headers, token=False)
    assert answer.status == 403


def test_a_token_in_the_address_is_for_get_only(client: Client) -> None:
    token = client.session.token
    assert client.ask("GET", f"/?token={token}", token=False).status == 200
    assert client.ask("GET", f"/api/state?token={token}", token=False).status == 200
    answer = client.ask("POST", f"/api/check?token={token}", {"text": TEXT}, token=False)
    assert answer.status == 403


@pytest.mark.parametrize(
    "host", ["eastwest.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{port}", "[::1]"]
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    named = host.format(port=client.session.port)
    assert client.ask("GET", "/api/state", headers={"Host": named}).status == 403
    local = f"localhost:{client.session.port}"
    assert client.ask("GET", "/api/state", headers={"Host": local}).status == 200


def test_two_hosts_are_refused(client: Client) -> None:
    own = f"127.0.0.1:{client.session.port}"
    request = (
        f"GET /api/state?token={client.session.token} HTTP/1.1\r\n"
        f"Host: {own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", client.session.port)) as raw:
        raw.sendall(request.encode())
        assert raw.recv(100).split()[1] in {b"400", b"403"}


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}"])
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    headers = {"Origin": origin.format(port=client.session.port)}
    assert client.ask("POST", "/api/check", {"text": TEXT}, headers=headers).status == 403
    own = {"Origin": f"http://127.0.0.1:{client.session.port}"}
    assert client.ask("POST", "/api/check", {"text": TEXT}, headers=own).status == 200


def test_every_answer_has_the_headers_of_security(client: Client) -> None:
    for path in ("/", "/api/state", "/nothing", "/api/runs/99"):
        headers = client.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers and "access-control-allow-origin" not in headers
    page = client.ask("GET", "/").headers["content-security-policy"]
    assert "unsafe" not in page and "sha256-" in page


def test_large_requests_are_refused(client: Client) -> None:
    big = b" " * 1_200_000
    connection = http.client.HTTPConnection("127.0.0.1", client.session.port, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest("POST", "/api/check")
        connection.putheader("X-Eastwest-Token", client.session.token)
        connection.putheader("Content-Length", str(10**15))
        connection.endheaders()
        assert connection.getresponse().status == 413
    chunks = (big[at : at + 65_536] for at in range(0, len(big), 65_536))
    connection = http.client.HTTPConnection("127.0.0.1", client.session.port, timeout=60)
    with contextlib.closing(connection):
        headers = {"X-Eastwest-Token": client.session.token}
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", "/api/check", chunks, headers, encode_chunked=True)
        assert connection.getresponse().status == 413


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b"[" * 100_000, b'{"text": 1}', b"\xff"])
def test_requests_without_an_object_of_json_are_refused(client: Client, body: bytes) -> None:
    for path in ("/api/check", "/api/complete", "/api/runs", "/api/topology"):
        answer = client.ask("POST", path, body)
        assert answer.status == 400 and answer.json["error"], path


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../x.toml",
        "a/../../x.toml",
        "..",
        "",
        "x",
        "x.toml/../../y.toml",
        "a\\..\\x.toml",
        "a\0.toml",
        "a\n.toml",
        ".hidden.toml",
        ".git/x.toml",
        "x.toml\0.png",
        "a" * 5000 + ".toml",
        "link.toml",
        "out/x.toml",
        "fifo.toml",
        "null.toml",
        "loop.toml",
        "folder.toml",
        17,
        None,
        ["x.toml"],
    ],
)
def test_files_outside_the_folder_are_refused(client: Client, name: object) -> None:
    outside = client.folder.parent / "outside"
    if not outside.exists():
        outside.mkdir()
        (outside / "x.toml").write_text(TEXT)
        (client.folder / "link.toml").symlink_to(outside / "x.toml")
        (client.folder / "out").symlink_to(outside)
        (client.folder / "null.toml").symlink_to("/dev/null")
        (client.folder / "loop.toml").symlink_to("loop.toml")
        (client.folder / "folder.toml").mkdir()
        os.mkfifo(client.folder / "fifo.toml")
    body = {"text": "# changed", "path": name, "hash": None}
    status, message = client.refused("PUT", "/api/file", body)
    assert status in {400, 403} and message
    for path in ("/api/check", "/api/runs", "/api/topology"):
        if name is not None:
            assert client.refused("POST", path, {"text": TEXT, "path": name})[0] in {400, 403}
    assert (outside / "x.toml").read_text() == TEXT
    assert not (client.folder.parent / "x.toml").exists()


@pytest.mark.parametrize(
    "setting",
    [
        'fabric = { kind = "graph", file = "/etc/passwd" }',
        'fabric = { kind = "graph", file = "../outside.toml" }',
        'fabric = { kind = "graph", file = "/dev/zero" }',
        'fabric = { kind = "graph", file = "a-link.toml" }',
        'fabric = { kind = "graph", file = "a-pipe" }',
        'fabric = { kind = "star", hosts = 3, host_rate = "1 Gbit/s", routes = "/dev/zero" }',
    ],
)
def test_scenarios_read_only_files_of_their_folder(client: Client, setting: str) -> None:
    link, pipe = client.folder / "a-link.toml", client.folder / "a-pipe"
    if not pipe.exists():
        link.symlink_to("/etc/passwd")
        os.mkfifo(pipe)
    workload = '[[workload]]\nname = "w"\nkind = "permutation"\nbytes = "1 KB"\n'
    text = f"schema = 1\n{setting}\n{workload}"
    problems = client.post("/api/check", text=text)["problems"]
    assert {p["path"] for p in problems} == {
        "fabric.routes" if "routes" in setting else "fabric.file"
    }
    end = client.end(text)
    assert end["state"] == "failed" and "root:" not in json.dumps(end)


@pytest.mark.parametrize("kind", ["mapreduce", "mpi"])
def test_traces_outside_of_the_folder_are_refused(client: Client, kind: str) -> None:
    traces = client.folder / f"trace-{kind}"
    if not traces.exists():
        traces.mkdir()
        (traces / "rank0").symlink_to("/etc/passwd")
        (traces / "jobs.parquet").symlink_to("/etc/passwd")
    for name in ("/etc", "/etc/passwd", "../outside", traces.name, f"{traces.name}/rank0"):
        text = f'{TEXT}[[workload]]\nname = "t"\nkind = "{kind}"\ntrace = "{name}"\n'
        found = client.post("/api/check", text=text)
        assert any("trace" in p["path"] for p in found["problems"]), found["problems"]
        assert "root:" not in json.dumps(found)


def test_settings_of_a_request_read_only_files_of_the_folder(client: Client) -> None:
    for path, value in (
        ("fabric", '{ kind = "graph", file = "/etc/passwd" }'),
        ("workload.0.trace", "/etc/passwd"),
        ("fabric.routes", "/dev/zero"),
    ):
        found = client.post("/api/check", text=TEXT, set=[[path, value]])
        assert found["problems"] and "root:" not in json.dumps(found)


#: Names that would be markup, leave a text in quotes, or change the direction of a text.
HOSTILE = [
    "<script>alert(1)</script>",
    "\"onload='x'",
    "&amp;</svg>",
    "a\u202eb",
    "a\u2066b\u2069",
    "tab\\tend",
    "\\u0007bell",
]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_escaped_in_json_and_in_reports(client: Client, name: str) -> None:
    (client.folder / "hostile.toml").write_text(f'hosts = [{quoted(name)}]\nswitches = ["s"]\n')
    graph = TEXT.replace('kind = "star"', 'kind = "graph"\nfile = "hostile.toml"')
    answer = client.ask("POST", "/api/check", {"text": graph})
    assert answer.headers["content-type"] == "application/json" and answer.json["problems"]
    text = TEXT.replace("schema = 1", f"schema = 1\nname = {quoted(name)}")
    for each in (text, TEXT.replace('"w"', quoted(name))):
        run = client.start(each, replace=True, label=name)
        end = client.stream(run)[-1]
        row = client.get("/api/runs")[0]
        assert row["label"].isprintable()
        if end["state"] == "done":
            page = client.ask("GET", f"/api/runs/{run}/report")
            assert b"<script>alert" not in page.body and b"onload='x" not in page.body
            assert "sandbox" in page.headers["content-security-policy"]
            assert "allow-same-origin" not in page.headers["content-security-policy"]
            for story in (
                client.post(f"/api/runs/{run}/explain", kind="link", id=0),
                client.post(f"/api/runs/{run}/explain", kind="flow", id=0),
            ):
                lines = [line for section in story["sections"] for line in section["lines"]]
                assert all(line.isprintable() for line in [story["title"], story["text"], *lines])


def test_the_drawing_escapes_names() -> None:
    drawn = Topology(HOSTILE, [(host, "s<w>") for host in HOSTILE])
    names = [edge.name for edge in drawn.edges]
    svg = fabric_svg(outline(drawn, names, names), "")
    titles = [each.text for each in ElementTree.fromstring(svg).iter() if "title" in each.tag]
    assert set(names) <= set(titles)
    assert "<script" not in svg and "<w>" not in svg


def test_the_browser_learns_the_token_from_a_file_of_this_user(client: Client) -> None:
    with client.session.opener() as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert client.session.token in path.read_text()
    assert not path.exists()


def test_the_server_listens_on_the_loopback_only(client: Client) -> None:
    assert client.session._socket.getsockname()[0] == "127.0.0.1"


def test_a_file_outside_of_the_folder_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "x.toml").write_text(TEXT)
    with pytest.raises(InputError, match="is not inside the folder"):
        Session(tmp_path / "inside", str(tmp_path / "x.toml"))
    with pytest.raises(InputError, match="no scenario file 'frist'"):
        Session(tmp_path / "inside", "frist")


def test_a_port_in_use_is_an_error(client: Client, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"port {client.session.port} of 127.0.0.1"):
        Session(tmp_path, port=client.session.port)


def test_a_scenario_is_opened_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x.toml").write_text(TEXT)
    with studio(tmp_path, str(tmp_path / "deep" / "x.toml")) as made:
        state = made.get("/api/state")
        assert state["opened"]["path"] == "deep/x.toml" and state["opened"]["text"] == TEXT
        assert state["files"] == ["deep/x.toml"]


def test_an_address_with_many_parts_is_refused_without_a_traceback(
    client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    # Every page of the browser can send this request, with the right host and without an origin.
    answer = client.ask("GET", f"/?{'&'.join('a=1' for _ in range(60))}", token=False)
    assert (answer.status, "too many parts" in answer.json["error"]) == (400, True)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/check", b'{"text": "\\ud800"}'),
        ("POST", "/api/runs", b'{"text": "x", "label": "\\ud800"}'),
        ("POST", "/api/check", {"text": TEXT, "shipped": ["first"]}),
        ("POST", "/api/check", {"text": TEXT, "shipped": "--out=x"}),
        ("POST", "/api/topology", {"text": f"x = {'9' * 5000}", "topology": {}}),
        ("POST", "/api/topology", {"text": f"x = {'[' * 5000}", "topology": {}}),
    ],
)
def test_odd_bodies_are_refused(
    client: Client, method: str, path: str, body: object, capfd: pytest.CaptureFixture[str]
) -> None:
    if isinstance(body, dict) and "topology" in body:
        body["topology"] = {"hosts": ["a", "b"], "switches": [], "cables": []}
    assert client.refused(method, path, body)[0] in {400, 404}
    assert capfd.readouterr().err == ""


def test_the_command_of_a_file_whose_name_is_like_an_option(client: Client) -> None:
    run = client.start(TEXT, path="-x.toml")
    client.stream(run)
    assert client.get(f"/api/runs/{run}/command")["command"] == "eastwest run ./-x.toml"
    answer = client.refused("POST", f"/api/runs/{run}/explain", {"kind": "link", "id": "9" * 5000})
    assert answer[0] == 400


def test_a_number_of_a_run_with_thousands_of_digits_is_no_address(client: Client) -> None:
    assert client.refused("GET", "/api/runs/" + "9" * 5000)[0] == 404
