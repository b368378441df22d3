"""The files of an attempt: what is listed, how each is sent, and that no other file can be had."""

import os

import pytest
from dashboard import BASE, visitor
from sample import make_run

from coral.web.access import HEADERS
from workspace.layout import Layout

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    folder = made.grade(4)
    folder.mkdir(parents=True)
    contents = {"plot.png": PNG, "drawing.svg": SVG, "page.html": b"<script>x</script>", "log.txt": b"a\x1b[31m\xff b"}
    contents |= {"data.bin": b"\0\1\2", ".hidden": b"h", "per%2fcent &?.txt": "gr\u00fcn".encode()}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    made.task_file.write_text("a secret task")
    (folder / "link.txt").symlink_to(made.task_file)
    (folder / "below").mkdir()
    (folder / "below" / "deep.txt").write_text("deep")
    os.mkfifo(folder / "pipe.txt")
    return made


def path(layout: Layout, what: str, number: int = 4) -> str:
    return f"/api/runs/{layout.root.name}/attempts/{number}/{what}"


def test_plain_files_are_listed_with_how_they_are_shown(layout: Layout) -> None:
    one = visitor(layout).get(path(layout, "")[:-1]).json()
    assert {file["name"]: file["shown_as"] for file in one["files"]} == {
        "data.bin": "",
        "drawing.svg": "text",
        "log.txt": "text",
        "page.html": "text",
        "per%2fcent &?.txt": "text",
        "plot.png": "picture",
    }
    assert next(file["size"] for file in one["files"] if file["name"] == "plot.png") == "58 bytes"


@pytest.mark.parametrize(
    ("name", "kind", "way"),
    [
        ("plot.png", "image/png", "inline"),
        ("drawing.svg", "application/octet-stream", "attachment"),
        ("page.html", "application/octet-stream", "attachment"),
        ("per%2fcent &?.txt", "application/octet-stream", "attachment"),
    ],
)
def test_only_pictures_are_drawn_and_what_a_browser_would_run_is_saved(layout, name: str, kind: str, way: str) -> None:
    answer = visitor(layout).get(path(layout, "file"), params={"name": name})
    assert answer.status_code == 200
    assert answer.content == (layout.grade(4) / name).read_bytes()
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert answer.headers["content-disposition"].startswith(f"{way};")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == HEADERS["x-content-type-options"]


def test_a_picture_is_told_by_its_bytes_and_not_by_its_name(layout: Layout) -> None:
    (layout.grade(4) / "plot.png").write_bytes(b"<script>x</script>")
    answer = visitor(layout).get(path(layout, "file"), params={"name": "plot.png"})
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_a_text_is_sent_as_characters_and_cut(layout: Layout) -> None:
    client = visitor(layout)
    assert client.get(path(layout, "text"), params={"name": "log.txt"}).json() == {
        "text": "a[31m\ufffd b",
        "cut": False,
    }
    (layout.grade(4) / "long.txt").write_text("x" * 300_000)
    found = client.get(path(layout, "text"), params={"name": "long.txt"}).json()
    assert (len(found["text"]), found["cut"]) == (200_000, True)


OUTSIDE = ["link.txt", "pipe.txt", "below", "below/deep.txt", ".hidden", "..", ".", "", "../4/log.txt", "nothing.txt"]
OUTSIDE += [
    "../../private/task.yaml",
    "..%2f..%2fprivate/task.yaml",
    "/etc/passwd",
    "log.txt\0.png",
    "\udc80"[:0] + "a/b",
]


@pytest.mark.parametrize("what", ["file", "text"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_no_other_file_can_be_had(layout: Layout, what: str, name: str) -> None:
    answer = visitor(layout).get(path(layout, what), params={"name": name})
    assert answer.status_code == 404
    assert "secret" not in answer.text
    raw = visitor(layout).get(f"{BASE}{path(layout, what)}?name=%2e%2e%2f%2e%2e%2fprivate%2ftask.yaml")
    assert (raw.status_code, "secret" in raw.text) == (404, False)


def test_a_folder_that_became_a_link_leads_nowhere(layout: Layout) -> None:
    client = visitor(layout)
    layout.grade(4).rename(layout.root / "moved")
    layout.grade(4).symlink_to(layout.private)
    assert client.get(path(layout, "file"), params={"name": "task.yaml"}).status_code == 404
    assert client.get(path(layout, "")[:-1]).json()["files"] == []
    (layout.root / "grades").rename(layout.root / "grades-moved")
    (layout.root / "grades").symlink_to(layout.root)
    assert client.get(path(layout, "file"), params={"name": "status.json"}).status_code == 404
    assert client.get(path(layout, "text", 99), params={"name": "log.txt"}).status_code == 404
