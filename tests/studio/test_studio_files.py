"""Scenario files of the studio: list, read and write."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eastwest import shipped
from eastwest.studio import files
from eastwest.studio.files import MOST_FILES, Folder
from eastwest.studio.refused import RefusedError
from studio_client import Client, studio

TEXT = 'schema = 1\n[fabric]\nkind = "star"\n[[workload]]\nkind = "stride"\n'


def test_a_file_is_written_and_read(client: Client) -> None:
    made = client.ask("PUT", "/api/file", {"path": "new.toml", "text": TEXT, "hash": None}).json
    found = client.get("/api/file?path=new.toml")
    assert found == {"path": "new.toml", "shipped": None, "text": TEXT, "hash": made["hash"]}
    body = {"path": "new.toml", "text": f"{TEXT}# é\n", "hash": made["hash"]}
    changed = client.ask("PUT", "/api/file", body).json
    assert (client.folder / "new.toml").read_text(encoding="utf-8") == f"{TEXT}# é\n"
    assert client.get("/api/file?path=new.toml")["hash"] == changed["hash"] != made["hash"]


def test_changes_of_others_are_not_overwritten(client: Client) -> None:
    file = client.folder / "shared.toml"
    body = {"path": "shared.toml", "text": TEXT, "hash": None}
    known = client.ask("PUT", "/api/file", body).json["hash"]
    assert client.refused("PUT", "/api/file", body)[0] == 409  # it exists now
    file.write_text("# of another program\n")
    status, message = client.refused("PUT", "/api/file", {**body, "hash": known})
    assert status == 409 and "was changed by another program" in message
    file.unlink()
    status, message = client.refused("PUT", "/api/file", {**body, "hash": known})
    assert status == 409 and "was removed by another program" in message


@pytest.mark.parametrize("name", ["none/x.toml", "x.toml/y.toml"])
def test_a_file_needs_a_folder(client: Client, name: str) -> None:
    (client.folder / "x.toml").write_text(TEXT)
    status, _ = client.refused("PUT", "/api/file", {"path": name, "text": TEXT, "hash": None})
    assert status == 400


def test_missing_and_unreadable_files(client: Client) -> None:
    assert client.refused("GET", "/api/file?path=none.toml")[0] == 404
    assert client.refused("GET", "/api/file?shipped=none")[0] == 404
    assert client.refused("GET", "/api/file?shipped=../first")[0] == 404
    assert client.refused("GET", "/api/file")[0] == 400
    (client.folder / "latin.toml").write_bytes(b"# \xe9\n")
    assert client.refused("GET", "/api/file?path=latin.toml")[0] == 400
    (client.folder / "big.toml").write_bytes(b"#" * 1_000_001)
    assert client.refused("GET", "/api/file?path=big.toml")[0] == 413


def test_the_state_lists_scenarios_only(client: Client) -> None:
    (client.folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (client.folder / "sub").mkdir()
    (client.folder / "sub" / "a.toml").write_text(TEXT)
    (client.folder / ".hidden").mkdir()
    (client.folder / ".hidden" / "b.toml").write_text(TEXT)
    state = client.get("/api/state")
    assert "sub/a.toml" in state["files"]
    assert not {"pyproject.toml", ".hidden/b.toml"} & {*state["files"]}
    assert [each["name"] for each in state["shipped"]] == shipped.names()
    assert all(each["about"] for each in state["shipped"])
    assert state["opened"]["shipped"] == "first" and state["opened"]["text"]
    for name in shipped.names():
        assert client.get(f"/api/file?shipped={name}")["shipped"] == name


def test_the_list_is_short(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 10):
        (tmp_path / f"s{number}.toml").write_text(TEXT)
    assert len(Folder(tmp_path).listed()) == MOST_FILES


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text(TEXT)
    (tmp_path / "link.toml").symlink_to("real.toml")
    folder = Folder(tmp_path)
    assert folder.read("link.toml").text == TEXT
    with pytest.raises(RefusedError, match="exists already"):
        folder.write("link.toml", "", None)


def test_names_that_are_no_text_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(TEXT)
    (tmp_path / "new\nline.toml").write_text(TEXT)
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.toml")).write_text(TEXT)
    except OSError:
        pytest.skip("the file system has only names in UTF-8")
    with studio(tmp_path) as client:
        assert client.get("/api/state")["files"] == ["good.toml"]


def test_the_list_ends_in_a_tree_of_many_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOST_ENTRIES", 10)
    for number in range(20):
        (tmp_path / f"d{number:02}").mkdir()
    (tmp_path / "d19" / "x.toml").write_text(TEXT)
    (tmp_path / "y.toml").write_text(TEXT)
    assert Folder(tmp_path).listed() == []


def test_a_saved_file_keeps_its_permissions(client: Client) -> None:
    file = client.folder / "private.toml"
    file.write_text(TEXT)
    file.chmod(0o600)
    known = client.get("/api/file?path=private.toml")["hash"]
    body = {"path": "private.toml", "text": f"{TEXT}#", "hash": known}
    assert client.ask("PUT", "/api/file", body).status == 200
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_text_that_cannot_be_opened_again_is_not_saved(client: Client) -> None:
    body = {"path": "huge.toml", "text": "#" * 1_000_001, "hash": None}
    assert client.refused("PUT", "/api/file", body)[0] == 413
    assert not (client.folder / "huge.toml").exists()


def test_two_studios_do_not_replace_changes_of_each_other(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    folders = Folder(tmp_path), Folder(tmp_path)

    def saved(number: int, known: str) -> bool:
        try:
            folders[number].write("a.toml", f"{TEXT}# {number} {known}", known)
        except RefusedError as refusal:
            assert refusal.status == 409
            return False
        return True

    for turn in range(20):
        file.write_text(f"{TEXT}# turn {turn}")
        known = files.hash_of(file.read_bytes())
        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(saved, (0, 1), (known, known))) == 1
