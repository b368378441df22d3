"""The environment of grades on a real cluster: Ray makes it, or it is told why it cannot."""

import pytest
from real_runs import tries

from coral.errors import CoralError

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster

GRADE = """
import os

def grade(workspace):
    import extra
    return {"score": float((workspace / "x.txt").read_text()), "feedback": f"{os.environ['GIVEN']} {extra.WORD}"}
"""


@pytest.fixture
def begin(cluster, start):
    def begun(environment, **task):
        keys = {"executor": "ray", "ray.address": cluster.address, "ray.environment": environment, "timeout": 60}
        keys |= task
        return start([*tries(1), "hang"], overrides=tuple(f"grader.{name}={keys[name]}" for name in keys), grade=GRADE)

    return begun


def test_a_grade_has_its_variables_and_modules(begin, tmp_path):
    module = tmp_path / "extra"
    module.mkdir()
    (module / "extra.py").write_text("WORD = 'there'")
    run = begin(f"{{env_vars: {{GIVEN: given, PYTHONPATH: {module}}}}}")
    (record,) = run.wait_for_attempts(1)
    assert (record.score, record.feedback) == (1.0, "given there")


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ("{pips: [numpy]}", "Ray knows no pips in an environment"),
        ("{env_vars: {A: 1}}", r"Ray refuses such a grade: .*env_vars"),
        ("{py_modules: [/nowhere]}", r"Ray refuses such a grade: .*not a valid (URI|path)"),
        ("{conda: no-such-environment}", r"its environment cannot be made: \w+: .*(no-such-environment|conda\.$)"),
    ],
)
def test_an_environment_that_ray_refuses_or_cannot_make_is_told_at_the_start(begin, environment, why):
    with pytest.raises(CoralError, match=f"(?s)cannot grade the seed: .*cannot grade on the cluster: {why}"):
        begin(environment)


def test_a_type_of_card_that_no_node_has_is_told_at_the_start(begin):
    with pytest.raises(CoralError, match="it needs a graphics card of type A100; no node has one"):
        begin("{}", **{"ray.resources": "{accelerator_type: A100}"})
