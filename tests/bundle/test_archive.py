"""Archives of bundles: equal bytes for equal files, and hostile archives and manifests."""

from __future__ import annotations

import json
import os
import random
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundles import changed
from eastwest.bundle import archive, form
from eastwest.bundle.verify import verify
from eastwest.errors import InputError

FILES = {"README.md": b"page", "a/b.txt": b"text", "a/c.parquet": b"\x00" * 1000}
MACHINE = {"python": "CPython 3.11"}


def manifest(**changes: Any) -> bytes:
    """Return a manifest of ``FILES``, with other values of some keys."""
    files = tuple(
        form.File(path, *archive.hashed(content), "added") for path, content in FILES.items()
    )
    made = form.Manifest("x", "result", "0.2.0", "0.2.0 abc", MACHINE, files, ())
    return json.dumps({**json.loads(made.text()), **changes}).encode()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a bundle without runs."""
    path = tmp_path / "x.zip"
    archive.write(path, "x-bundle", {**FILES, form.MANIFEST: manifest()}, {})
    return path


def zipped(path: Path, names: dict[str, bytes], edit: Callable[[zipfile.ZipInfo], None]) -> Path:
    """Write an archive with any names; ``edit`` changes the entry of each."""
    with zipfile.ZipFile(path, "w") as stream:
        for name, content in names.items():
            entry = zipfile.ZipInfo("name")
            entry.filename = name
            edit(entry)
            stream.writestr(entry, content)
    return path


def refusal(path: Path) -> str:
    """Return the message with which a bundle is refused."""
    with pytest.raises(InputError) as error:
        verify(path)
    assert str(error.value).isprintable()
    return str(error.value)


def test_an_unchanged_bundle_has_no_differences(bundle: Path) -> None:
    found = verify(bundle)
    assert found.differences == ()
    assert [file.path for file in found.manifest.files] == list(FILES)


def test_equal_files_make_equal_archives(bundle: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    source = tmp_path / "b.txt"
    source.write_bytes(FILES["a/b.txt"])
    os.utime(source, (1, 1))
    source.chmod(0o600)
    files: dict[str, archive.Content] = {**FILES, form.MANIFEST: manifest(), "a/b.txt": source}
    archive.write(again, "x-bundle", dict(reversed(files.items())), {})
    assert again.read_bytes() == bundle.read_bytes()
    with zipfile.ZipFile(bundle) as stream:
        assert stream.namelist() == sorted(stream.namelist())
        assert {entry.date_time for entry in stream.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_file_that_changes_while_it_is_packed_leaves_no_archive(tmp_path: Path) -> None:
    source = tmp_path / "b.txt"
    source.write_bytes(b"new")
    with pytest.raises(InputError, match="was changed while"):
        archive.write(tmp_path / "x.zip", "x", {"b.txt": source}, {"b.txt": "0" * 64})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt"]


def test_an_unpacked_bundle_is_verified_like_the_archive(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as stream:
        stream.extractall(tmp_path)
    folder = tmp_path / "x-bundle"
    assert verify(folder).differences == ()
    (folder / "a" / "b.txt").write_bytes(b"else")
    (folder / "README.md").unlink()
    (folder / "stray").touch()
    what = {each.path: each.what for each in verify(folder).differences}
    assert what == {"a/b.txt": "changed", "README.md": "missing", "stray": "not listed"}


def test_a_link_in_an_unpacked_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as stream:
        stream.extractall(tmp_path)
    folder = tmp_path / "x-bundle"
    (folder / "a" / "b.txt").unlink()
    (folder / "a" / "b.txt").symlink_to("/etc/hostname")
    assert "a/b.txt is a link or a device" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/x", "not a relative path"),
        ("x/../../etc/x", "not a relative path"),
        ("x/./y", "not a relative path"),
        ("x//y", "not a relative path"),
        ("x\\..\\y", "has the character"),
        ("C:/x", "has the character :"),
        ("x/a\nb", "control characters"),
        ("x/\x1b[31m", "control characters"),
        ("x/a\x00b", "control characters"),
        ("x/" + "a" * 600, "longer than"),
        ("x/end.", "ends with a dot"),
    ],
)
def test_an_unsafe_name_is_refused(tmp_path: Path, name: str, why: str) -> None:
    names = {"x/bundle.json": manifest(), name: b""}
    assert why in refusal(zipped(tmp_path / "h.zip", names, lambda _: None))
    assert form.name_problem(name)


@pytest.mark.parametrize(
    "names",
    [
        ("x/Name", "x/name"),
        ("x/\u00e9", "x/e\u0301"),
        ("x/a", "x/a/b"),
    ],
)
def test_names_that_clash_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    there = {"x/bundle.json": manifest(), **dict.fromkeys(names, b"")}
    assert "one name" in refusal(zipped(tmp_path / "h.zip", there, lambda _: None))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "h.zip", {"x/bundle.json": manifest()}, lambda _: None)
    with zipfile.ZipFile(path, "a") as stream:
        stream.writestr("x/bundle.json", manifest())
    assert "two files have the name" in refusal(path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFBLK])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    def edit(entry: zipfile.ZipInfo) -> None:
        entry.external_attr = (kind | 0o777) << 16

    names = {"x/bundle.json": manifest()}
    assert "is a link or a device" in refusal(zipped(tmp_path / "h.zip", names, edit))


def test_other_compression_is_refused(tmp_path: Path) -> None:
    def edit(entry: zipfile.ZipInfo) -> None:
        entry.compress_type = zipfile.ZIP_BZIP2

    names = {"x/bundle.json": manifest()}
    assert "another method" in refusal(zipped(tmp_path / "h.zip", names, edit))


def test_an_archive_that_expands_too_much_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_ALWAYS_BYTES", 1000)
    path = tmp_path / "bomb.zip"
    files = {form.MANIFEST: manifest(), "zeros": bytes(3_000_000)}
    archive.write(path, "x", files, {})
    assert "would expand to 3 MB" in refusal(path)


def test_too_many_files_are_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    assert "at most 3" in refusal(bundle)


def test_a_long_list_of_files_is_refused_before_it_is_read(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_LARGEST_LIST", 10)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    assert "its list of files" in refusal(bundle)


def test_the_end_of_a_large_archive_must_be_where_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    small = b"PK\x06\x06" + bytes(52)
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, 0, 1)
    path.write_bytes(small + bytes(56) + locator + b"PK\x05\x06" + bytes(18))
    assert "its end is damaged" in refusal(path)


def test_a_large_manifest_is_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST_MANIFEST", 10)
    assert "above the maximum" in refusal(bundle)


@pytest.mark.parametrize("data", [b"", b"PK", b"text" * 100, b"PK\x05\x06" + bytes(18)])
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    assert "is not a bundle" in refusal(path)


def test_an_incomplete_archive_is_refused(bundle: Path) -> None:
    bundle.write_bytes(bundle.read_bytes()[:-30])
    assert "incomplete" in refusal(bundle)


def test_other_paths_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.zip")
    assert "has no bundle.json" in refusal(tmp_path)


def test_a_smaller_size_than_the_true_one_shows_as_a_difference(bundle: Path) -> None:
    data = bytearray(bundle.read_bytes())
    place = data.index(b"x-bundle/a/c.parquet", data.index(b"PK\x01\x02")) - 46
    assert struct.unpack_from("<L", data, place + 24) == (1000,)
    struct.pack_into("<L", data, place + 24, 10)
    bundle.write_bytes(data)
    assert [each.path for each in verify(bundle).differences] == ["a/c.parquet"]


@pytest.mark.slow
def test_damage_anywhere_is_an_error_or_a_difference(bundle: Path) -> None:
    whole = bundle.read_bytes()
    draw = random.Random(1)
    unnoticed = 0
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        bundle.write_bytes(data)
        try:
            unnoticed += verify(bundle).differences == () and bytes(data) != whole
        except InputError:
            continue
    # Times, modes and versions of entries are not content.
    assert unnoticed < 200


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"format": 99}, "bundle format 99, made by Eastwest 0.2.0"),
        ({"format": "1"}, "format is '1'"),
        ({"format": True}, "format is True"),
        ({"kind": "virus"}, "is none of result, sweep, study"),
        ({"files": {}}, "files is damaged: not a list"),
        ({"files": [1]}, "it is not a JSON object"),
        ({"files": [{"path": "a"}]}, "it has no key 'size'"),
        ({"machine": {"a": 1}}, "1 is not a valid str"),
        ({"version": "1 --index-url=http://example.org"}, "is not a version"),
        ({"name": 3}, "3 is not a valid str"),
        ({"runs": [{}]}, "it has no key 'name'"),
        ({"mechanisms": [{"path": "../x", "kind": "python"}]}, "mechanism '../x'"),
        ({"mechanisms": [{"path": "absent", "kind": "python"}]}, "mechanism 'absent'"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    path = tmp_path / "x.zip"
    archive.write(path, "x", {form.MANIFEST: manifest(**changes)}, {})
    assert why in refusal(path)


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"[]", b"\xff\xfe", b"1e400"])
def test_a_manifest_that_is_no_object_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.zip"
    archive.write(path, "x", {form.MANIFEST: data}, {})
    assert "bundle.json is damaged" in refusal(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("path", "../x"),
        ("path", "/x"),
        ("path", "a/b.txt"),
        ("path", "A/b.txt"),
        ("sha256", "0"),
        ("size", -1),
        ("size", 1.5),
        ("size", 1 << 70),
    ],
)
def test_a_wrong_entry_of_a_file_is_refused(
    bundle: Path, tmp_path: Path, key: str, value: object
) -> None:
    def edit(content: dict[str, Any]) -> None:
        content["files"][0][key] = value

    assert "is damaged" in refusal(changed(bundle, tmp_path / "y.zip", edit))


def test_a_manifest_with_more_values_than_files_need_is_refused(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(form, "_MOST_COMMAS", 1000)

    def edit(content: dict[str, Any]) -> None:
        content["many"] = [{}] * 1001

    assert "too many values" in refusal(changed(bundle, tmp_path / "y.zip", edit))


def test_scenario_and_summary_must_be_inside(bundle: Path, tmp_path: Path) -> None:
    def edit(content: dict[str, Any]) -> None:
        content["files"][0]["inside"] = False
        path = content["files"][0]["path"]
        content["runs"] = [{
            "name": "r", "scenario": path, "summary": path, "seed": 1, "digest": "ab",
            "format": 1, "version": "0", "command": "x",
        }]  # fmt: skip

    assert "is not inside the bundle" in refusal(changed(bundle, tmp_path / "y.zip", edit))


def test_a_run_must_name_files_of_the_bundle(bundle: Path, tmp_path: Path) -> None:
    run: dict[str, Any] = {
        "name": "r", "scenario": "a/b.txt", "summary": "a/b.txt", "seed": 1, "digest": "ab",
        "format": 1, "version": "0", "command": "x",
    }  # fmt: skip
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"scenario": "absent"}, "is not in the list"),
        ({"inputs": ["README.md"]}, "not below"),
        ({"version": "1;reboot"}, "is not a version"),
        ({"digest": "xyz"}, "not a hexadecimal"),
        ({"cpu_s": float("nan")}, "nan is not a valid float"),
        ({"seed": -1}, "-1 is not a valid int"),
    ]
    for changes, why in wrong:
        entry = run | changes
        path = changed(bundle, tmp_path / "y.zip", lambda c, entry=entry: c.update(runs=[entry]))  # type: ignore[misc]
        assert why in refusal(path)
    path = changed(bundle, tmp_path / "y.zip", lambda c: c.update(runs=[run, run]))
    assert "is listed twice" in refusal(path)
