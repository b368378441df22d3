"""What a sealed agent is shown, as paths; whether that holds is shown in integration and end_to_end."""

from pathlib import Path

import pytest

from workspace.layout import Layout
from workspace.seal import Access, Level, bubblewrap, view_of_agent

RUN = Layout(Path("/work/runs/task/run-1"))


def view(share: bool = True, read: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> dict[Path, Access]:
    return view_of_agent(
        RUN, "ann", share=share, hidden=[Path("/work/task")], read=map(Path, read), write=map(Path, write)
    )


def test_all_runs_and_the_task_are_hidden_and_what_is_the_agents_own_is_not() -> None:
    shown = view()
    assert {shown[Path(path)] for path in ("/work/runs", "/work/task")} == {Access.HIDDEN}
    own = (RUN.clone("ann"), RUN.state("ann"), RUN.attempts / "inbox/ann", RUN.requests_of("ann"), RUN.shared)
    assert {shown[path] for path in own} == {Access.WRITE}
    published = (RUN.attempts, RUN.heartbeats, RUN.logs("ann"), RUN.hub / "objects", RUN.replies_to("ann"))
    assert {shown[path] for path in published} == {Access.READ}
    assert {shown[RUN.attempts / name] for name in ("inbox", "replies")} == {Access.HIDDEN}
    assert not [path for path in shown if "private" in path.parts or "bob" in path.parts]


def test_an_agent_that_shares_nothing_has_knowledge_of_its_own() -> None:
    assert RUN.shared not in view(share=False)
    assert view(share=False)[RUN.root / "workspace/alone/ann"] is Access.WRITE


def test_a_run_that_was_moved_out_of_its_folder_hides_only_itself() -> None:
    moved = Layout(Path("/home/me/copy"))
    shown = view_of_agent(moved, "ann", share=True, hidden=[], read=[], write=[])
    assert shown[moved.root] is Access.HIDDEN
    assert moved.root.parent not in shown


def test_what_a_program_needs_is_shown_only_where_it_would_be_hidden() -> None:
    shown = view(read=("/usr/lib", "/work/runs/venv", "/work"), write=("/home/me/login.json",))
    assert shown[Path("/work/runs/venv")] is Access.READ
    assert not {Path("/usr/lib"), Path("/work")} & shown.keys()
    assert shown[Path("/home/me/login.json")] is Access.WRITE


def test_of_two_paths_the_longer_one_comes_later_and_so_decides(tmp_path: Path) -> None:
    inner = tmp_path / "hidden" / "shown"
    inner.mkdir(parents=True)
    line = bubblewrap(
        ["true"], {inner: Access.READ, inner.parent: Access.HIDDEN, tmp_path / "absent": Access.READ}, inner
    )
    places = [line.index(str(path)) for path in (inner.parent, inner)]
    assert places == sorted(places)
    assert str(tmp_path / "absent") not in line
    assert line[-1] == "true"


@pytest.mark.parametrize("user", [0, 1000])
def test_who_is_not_root_needs_a_user_namespace(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert ("--unshare-user" in bubblewrap(["true"], {}, Path("/"))) == (user != 0)


def test_what_lies_in_the_run_is_never_shown_by_another_name() -> None:
    names = ("/work/runs/task/run-1/private", "/proc/../work/runs/task/run-1/private", "/work/runs/x/../task/run-1")
    for path in (*view(read=names, write=names).keys() - view().keys(), *names):
        assert Path(path) not in view(read=names, write=names)


def test_a_link_into_what_is_hidden_is_not_followed_and_a_path_that_is_named_there_is(tmp_path: Path) -> None:
    task, cache = tmp_path / "task", tmp_path / "cache"
    (task / "data").mkdir(parents=True)
    cache.mkdir()
    (cache / "uv").symlink_to(task)
    layout = Layout(tmp_path / "runs/task/run-1")
    shown = view_of_agent(
        layout, "ann", share=True, hidden=[task], read=[cache / "uv"], write=[cache / "uv", task / "data"]
    )
    assert shown[task] is Access.HIDDEN
    assert shown[task / "data"] is Access.WRITE


def test_the_task_stays_hidden_where_it_is_also_needed(tmp_path: Path) -> None:
    shown = view_of_agent(RUN, "ann", share=True, hidden=[tmp_path], read=[tmp_path], write=[])
    assert shown[tmp_path] is Access.HIDDEN


def test_a_run_that_lies_directly_among_runs_hides_the_others() -> None:
    shown = view_of_agent(Layout(Path("/work/runs/run-1")), "ann", share=True, hidden=[], read=[], write=[])
    assert shown[Path("/work/runs")] is Access.HIDDEN


def test_a_folder_of_modules_beside_the_runs_is_in_the_view_so_that_landlock_lets_python_list_it() -> None:
    folders = [Path("/work"), Path("/work/task"), Path("/opt/lib"), Path("/tmp/clone")]
    shown = view_of_agent(RUN, "ann", share=True, hidden=[], read=[], write=[], modules=folders)
    assert shown[Path("/work")] is shown[Path("/tmp/clone")] is Access.READ
    assert not {Path("/work/task"), Path("/opt/lib")} & shown.keys()


def test_by_landlock_nothing_is_hidden_where_records_are_added() -> None:
    shown = view_of_agent(RUN, "ann", Level.LANDLOCK, share=True, hidden=[], read=[], write=[])
    assert RUN.attempts / "inbox" not in shown
    assert shown[RUN.attempts / "inbox/ann"] is Access.WRITE
