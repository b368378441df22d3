"""Of the files that a task names, the texts that an agent could change and submit."""

from files import write_files

from coral.native.editable_files import editable_texts
from coral.runtimes.registry import INSTRUCTION_FILES


def test_editable_files_are_plain_text_below_the_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "n.json").write_text("1")
    (tmp_path / "a.json").write_text("1")
    (tmp_path / "sub" / "b.json").write_text("2")
    (tmp_path / "bin.json").write_bytes(b"\xff\xfe\0")
    (tmp_path / "nul.json").write_bytes(b"1\0")
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    assert editable_texts(tmp_path, ["**/*.json", "a.json"]) == {"a.json": "1", "sub/b.json": "2"}


def test_the_instructions_to_agents_are_no_part_of_a_candidate(tmp_path):
    write_files(tmp_path, {"a.json": "1", **dict.fromkeys(INSTRUCTION_FILES, "line 3")})
    assert editable_texts(tmp_path, ["**/*"]) == {"a.json": "1"}


def test_what_lies_behind_a_link_is_no_editable_file(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table.json").write_text("1")
    folder = tmp_path / "folder"
    folder.symlink_to(tmp_path / "real")
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "real" / "sub" / "own.json").write_text("2")
    (tmp_path / "real" / "mounted").symlink_to(tmp_path / "data")
    for globs in (["*/*.json"], ["mounted/table.json", "sub/own.json"], ["**/*.json"]):
        assert editable_texts(folder, globs) == {"sub/own.json": "2"}
