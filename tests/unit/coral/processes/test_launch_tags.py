"""A launch has the same tag for every supervisor of its run, and nobody else can find it out."""

import shutil
import stat
from pathlib import Path

import pytest

from coral.processes.launch_tags import LaunchTags, name_of_run, tag_of_one, tags_of
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path) -> Layout:
    made = Layout(tmp_path / "run")
    made.private.mkdir(parents=True, mode=0o700)
    return made


def test_a_later_supervisor_has_the_same_tags(layout) -> None:
    first = tags_of(layout)
    assert tags_of(layout).of("agent-1", 7) == first.of("agent-1", 7)
    assert len({first.of("agent-1", 7), first.of("agent-1", 8), first.of("agent-2", 7), first.of("#7", 7)}) == 4


def test_a_tag_says_whose_launch_it_is_after_the_first_slash(layout) -> None:
    run, slash, launch = tags_of(layout).of("agent-1", 7).partition("/")
    assert (slash, launch) == ("/", "agent-1/7")
    assert run.startswith(f"{name_of_run(layout)}.")


def test_what_everybody_knows_does_not_make_a_tag() -> None:
    """Nor the other tags of the run: that an agent knows all of its own is no help."""
    one, other = LaunchTags("run.1", b"a" * 32), LaunchTags("run.1", b"b" * 32)
    digests = [tags.of(who, 1).split("/")[0] for tags in (one, other) for who in ("agent-1", "agent-2", "#1")]
    assert len(set(digests)) == len(digests)


def test_only_its_owner_can_read_the_secret(layout) -> None:
    tags_of(layout)
    assert stat.S_IMODE(layout.launch_secret.stat().st_mode) == 0o600
    assert [path.name for path in layout.private.iterdir()] == [layout.launch_secret.name]


def test_a_copy_of_a_run_has_other_tags(layout, tmp_path) -> None:
    tags = tags_of(layout)
    copy = Layout(Path(shutil.copytree(layout.root, tmp_path / "copy" / "run")))
    assert tags_of(copy).secret == tags.secret
    assert tags_of(copy).of("agent-1", 1) != tags.of("agent-1", 1)


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_secret_that_was_cut_is_made_again(layout, content) -> None:
    layout.launch_secret.write_bytes(content)
    assert len(tags_of(layout).secret) == 32
    assert tags_of(layout) == tags_of(layout)


def test_without_room_for_the_secret_the_run_goes_on(layout) -> None:
    layout.launch_secret.mkdir()
    assert len(tags_of(layout).secret) == 32


def test_launches_of_no_run_have_tags_of_their_own() -> None:
    assert tag_of_one("grade") != tag_of_one("grade")
