"""The rules of a run: each of them is something that a user's task decides."""

import ast
import inspect
from dataclasses import fields

from coral.config.model import RunSection
from coral.fleet.rules import Rules
from coral.runs.rules import rules_of


def test_no_rule_is_a_constant() -> None:
    """A field that is the same in every run belongs among the constants of `policy`: nobody can choose another."""
    (function,) = ast.parse(inspect.getsource(rules_of)).body
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    assert isinstance(returned.value, ast.Call)
    given = {keyword.arg: keyword.value for keyword in returned.value.keywords}
    of_run = given.pop(None)  # the keys of `run` that are rules by their names
    keys = RunSection.model_fields.keys() - {"poll_seconds", "watch"}
    assert keys.isdisjoint(given), "given twice: these keys are rules by their names"
    given |= dict.fromkeys(keys, of_run)
    assert set(given) == {field.name for field in fields(Rules)}
    assigned = [target for line in function.body if isinstance(line, ast.Assign) for target in line.targets]
    known = {parameter.arg for parameter in function.args.args} | {
        name for target in assigned for name in names(target)
    }
    assert [name for name, value in given.items() if known.isdisjoint(names(value))] == []


def names(node: ast.AST) -> set[str]:
    """The variables that occur in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
