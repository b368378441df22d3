"""What of the user's environment reaches whom: keys reach the agent's program alone."""

from pathlib import Path

import pytest

from coral.processes import environment
from workspace.layout import Layout

USERS = {
    "ANTHROPIC_API_KEY": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "LD_PRELOAD": "/tmp/x.so",
    "NVIDIA_API_KEY": "secret",
    "TF_VAR_password": "secret",
    "GIT_DIR": "/elsewhere",
    "CORAL_RUN": "/outer",
    "MY_DATA": "/data",
    "OMP_NUM_THREADS": "2",
    "LC_ALL": "C",
    "PATH": "/bin",
}


@pytest.fixture(autouse=True)
def users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.base():
        monkeypatch.delenv(name)
    for name, value in USERS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("more", [(), ("MY_DATA",)])
def test_a_grader_gets_what_programs_need_and_what_its_task_names(more: tuple[str, ...]) -> None:
    names = ("OMP_NUM_THREADS", "LC_ALL", "PATH", *more)
    assert environment.of_grader(more) == {name: USERS[name] for name in names}


def test_nobody_gets_what_redirects_git_or_names_an_outer_run() -> None:
    assert {"GIT_DIR", "CORAL_RUN"} & environment.base().keys() == set()
    assert environment.base()["ANTHROPIC_API_KEY"] == "secret"


def test_agents_do_not_get_what_lets_them_into_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN", "RAY_ADDRESS"):
        monkeypatch.setenv(name, "secret")
    assert "secret" in environment.base().values()  # the bridge needs it
    env = environment.of_agent(Layout(tmp_path), "ann", "minimize")
    assert env["ANTHROPIC_API_KEY"] == "secret"
    assert not any(name.startswith("RAY_") for name in env)
    assert env["CORAL_DIRECTION"] == "minimize"
