"""Links are followed as the file system would follow them."""

import errno
import shutil
from pathlib import Path

import pytest
from cases import TIMES
from hypothesis import HealthCheck, given, settings, strategies as st

from workspace.tree import leaves, parse


@pytest.mark.parametrize(
    ("links", "path", "expected"),
    [
        ({"l": "a"}, "l", False),
        ({"l": "../a"}, "l", True),
        ({"d/l": "../a"}, "d/l", False),
        ({"d/l": "../../a"}, "d/l", True),
        ({"l": "/etc/passwd"}, "l", True),
        ({"l": ""}, "l", False),
        ({"l": "m", "m": "l"}, "l", False),
        ({"l": "l/l"}, "l", False),
        # Read as text this stays inside: but d/root is the top, and above it is outside.
        ({"d/root": "..", "l": "d/root/../x"}, "l", True),
        ({"d/here": ".", "l": "d/here/../x"}, "l", False),
        ({"a": "b", "b": "c", "c": "../out"}, "a", True),
    ],
)
def test_where_links_lead(links: dict[str, str], path: str, expected: bool) -> None:
    assert leaves(path, links) is expected


NAMES = st.sampled_from(["a", "b", "c", "..", "."])
TARGETS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
PLACES = st.sampled_from(["a", "b/x", "c/y/z", "b/a", "c/y/b", "d"])


@settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(links=st.dictionaries(PLACES, TARGETS, min_size=1, max_size=5))
def test_it_agrees_with_the_file_system(links: dict[str, str], tmp_path: Path) -> None:
    links = {place: target for place, target in links.items() if not any(place.startswith(f"{k}/") for k in links)}
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    for place in ("b", "c/y"):
        if place.split("/")[0] not in links:
            (root / place).mkdir(parents=True, exist_ok=True)
    for place, target in links.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(target)
    for place in links:
        try:
            (root / place).stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                continue  # leads nowhere
        try:
            real = (root / place).resolve()
        except (OSError, RuntimeError):
            continue
        assert leaves(place, links) is (not real.is_relative_to(root.resolve())), (place, links)


def test_a_listing_is_read_by_bytes() -> None:
    entries = parse(b"100644 blob aa      12\ta\nb\xff\x00160000 commit bb       -\tsub\x00")
    assert [(entry.size, entry.path) for entry in entries] == [(12, "a\nb\udcff"), (None, "sub")]
