"""The owner of grades on a Ray cluster, in this process and without Ray: what becomes of a grade that cannot begin."""

import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

KEY = "launch-1/1"


class Ray:
    """A cluster that takes everything but a task with `options`, as it refuses 1.5 graphics cards."""

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(current_actor=None)

    def put(self, value: object) -> object:
        return value

    def remote(self, run: object) -> Any:
        return self

    def options(self, max_retries: int, **options: object) -> Any:
        if options:
            raise ValueError("must be whole")
        return SimpleNamespace(remote=lambda *_: SimpleNamespace(future=lambda: self))

    def add_done_callback(self, call: object) -> None:
        pass


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "ray", Ray())
    monkeypatch.delitem(sys.modules, "coral.cluster.owner", raising=False)
    yield import_module("coral.cluster.owner").Owner(lease=1e9)
    sys.modules.pop("coral.cluster.owner", None)


def news(owner: Any) -> Any:
    return owner.news({KEY: (0, True)}, 0.0).get(KEY)


def test_a_grade_whose_archive_another_owner_had_is_lost_and_may_be_submitted_again(owner: Any) -> None:
    owner.submit(KEY, {}, b"", "sha", {})
    assert not owner.has_grade(KEY)
    assert news(owner) == (0, [{"lost": "the process that owned it ended"}])
    owner.keep("sha", b"")
    owner.submit(KEY, {}, b"", "sha", {})
    assert owner.has_grade(KEY)
    assert news(owner) is None


def test_a_grade_that_the_cluster_does_not_take_is_lost(owner: Any) -> None:
    owner.keep("sha", b"")
    owner.submit(KEY, {}, b"", "sha", {"num_gpus": 1.5})
    assert news(owner) == (0, [{"lost": "ValueError: must be whole"}])
    owner.cancel(KEY)
    assert not owner.has_grade(KEY)
