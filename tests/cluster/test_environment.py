"""The environment of grades on a real cluster: Ray makes it, or it is told why it cannot."""

import json
import site
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from real_runs import tries

from coral.errors import CoralError

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster

GRADE = """
import os, subprocess, sys

def grade(workspace):
    import extra
    child = subprocess.run(["python", "-c", "import extra; print(extra.WORD)"], stdout=subprocess.PIPE, text=True)
    words = os.environ["GIVEN"], extra.WORD, child.stdout.strip(), sys.executable
    return {"score": float((workspace / "x.txt").read_text()), "feedback": " ".join(words)}
"""


@pytest.fixture
def begin(cluster, start):
    def begun(environment, *values, **task):
        keys = {"executor": "ray", "ray.address": cluster.address, "ray.environment": json.dumps(environment)}
        keys |= {"timeout": 60, **task}
        script = [*tries(*(values or (1,))), "hang"]
        return start(script, overrides=tuple(f"grader.{name}={keys[name]}" for name in keys), grade=GRADE)

    return begun


@pytest.fixture(scope="module")
def small_node(shared_cluster, tmp_path_factory):
    """What a grade needs to run on a node whose Python has Ray from elsewhere: Ray copies the node's own environment
    for each one that it makes, and that of these tests is large."""
    if missing := [name for name in ("virtualenv", "uv") if find_spec(name) is None]:
        pytest.skip(f"NOT RUN: there is no {missing[0]}: make .venv/.cluster")
    made = tmp_path_factory.mktemp("small")
    venv.create(made, with_pip=False)
    (here,) = made.glob("lib/python*/site-packages")
    (here / "others.pth").write_text(f"import site; site.addsitedir({site.getsitepackages()[0]!r})\n")
    address = shared_cluster.add_node('--resources={"small": 2}', python=str(made / "bin" / "python"))
    yield {"ray.resources": "{custom: {small: 1}}"}
    shared_cluster.remove_node(address)


@pytest.fixture
def wheel(tmp_path):
    """A package with the module `extra`, as a file that pip installs."""
    path = tmp_path / "extra-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("extra.py", "WORD = 'there'\n")
        file.writestr("extra-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
        file.writestr("extra-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("extra-1.0.dist-info/RECORD", "")
    return str(path)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_grade_has_what_its_environment_installs(begin, small_node, wheel, tool):
    option = {"pip": "pip_install_options", "uv": "uv_pip_install_options"}[tool]
    environment = {tool: {"packages": [wheel], option: ["--no-index"]}, "env_vars": {"GIVEN": "given"}}
    run = begin(environment, 1, 2, **small_node)
    for record in run.wait_for_attempts(2):
        given, imported, by_child, python = record.feedback.split()
        assert (given, imported, by_child) == ("given", "there", "there")
        assert f"/runtime_resources/{tool}/" in python


def test_a_grade_has_the_modules_of_an_archive(begin, wheel):
    run = begin({"py_modules": [Path(wheel).as_uri()], "env_vars": {"GIVEN": "given"}})
    (record,) = run.wait_for_attempts(1)
    assert record.feedback.split()[:3] == ["given", "there", "there"]


NOT_THERE = {"packages": ["no-such-package"], "pip_install_options": ["--no-index"]}


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"pips": ["numpy"]}, "Ray knows no pips in an environment"),
        ({"env_vars": {"A": 1}}, r"Ray refuses such a grade: .*env_vars"),
        ({"py_modules": ["/nowhere"]}, r"Ray refuses such a grade: .*not a valid (URI|path)"),
        ({"py_modules": ["file:///nowhere.zip"]}, r"its environment cannot be made on 127\.\S+: \w+: .*/nowhere\.zip"),
        ({"pip": NOT_THERE}, "its environment cannot be made on 127.*: ERROR: No matching distribution found for no-"),
        (
            {"pip": NOT_THERE, "config": {"setup_timeout_seconds": 1}},
            # On a fast machine pip has ended before.
            "its environment cannot be made on 127.*: (Failed to install runtime_env within the timeout|ERROR: No)",
        ),
    ],
)
def test_an_environment_that_ray_refuses_or_cannot_make_is_told_at_the_start(begin, small_node, environment, why):
    with pytest.raises(CoralError, match=f"(?s)cannot grade the seed: .*cannot grade on the cluster: {why}"):
        begin(environment, **small_node)


def test_a_type_of_card_that_no_node_has_is_told_at_the_start(begin):
    with pytest.raises(CoralError, match="it needs a graphics card of type A100; no node has one"):
        begin({}, **{"ray.resources": "{accelerator_type: A100}"})
