"""The reference of task.yaml: every key that the models know, with its sentence."""

import re

from pydantic import BaseModel

from coral.config.model import Assignment, TaskFile
from coral.config.reference import task_reference

TEXT = task_reference()
PARTS = dict(re.findall(r"^#+ `([\w.]+)`\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def sections(model: type[BaseModel], path: str = "") -> dict[str, type[BaseModel]]:
    """Every section by its path, as far as it is one of a fixed form."""
    found = {}
    for name, field in model.model_fields.items():
        inner = next((part for part in parts_of(field.annotation) if issubclass(part, BaseModel)), None)
        if inner is not None and inner is not Assignment:
            found |= {f"{path}{name}": inner, **sections(inner, f"{path}{name}.")}
    return found


def parts_of(annotation: object) -> list[type]:
    inner = [part for argument in getattr(annotation, "__args__", ()) for part in parts_of(argument)]
    return [annotation, *inner] if isinstance(annotation, type) else inner


def test_every_section_has_a_heading_and_every_key_a_row_with_its_sentence() -> None:
    assert len(sections(TaskFile)) >= 11
    for path, model in sections(TaskFile).items():
        for name, field in model.model_fields.items():
            if "\nIts keys " in PARTS[path]:  # the section around it has the sentence
                assert f"`{name}`" in PARTS[path], f"{path}.{name}"
                continue
            row = next((line for line in PARTS[path].splitlines() if line.startswith(f"| `{name}` | ")), "")
            assert row, f"{path}.{name} has no row"
            assert field.description, f"{path}.{name} has no sentence"
            assert row.endswith(f" {field.description} |"), f"{path}.{name}"


def test_types_bounds_and_defaults_are_in_words() -> None:
    assert '| `direction` | `maximize` or `minimize` | `"maximize"` | ' in PARTS["grader"]
    assert "| `command` | text or list of texts |  | " in PARTS["grader"]
    assert "| `slots` | whole number from 1 to 1000 |  | " in PARTS["grader"]
    assert "| `name` | text | needed | " in PARTS["task"]
    assert "| `per_agent` | section |  | " in PARTS["budget"]
    assert "any value" not in TEXT


def test_the_keys_of_an_assignment_are_those_of_the_agents() -> None:
    assert "Its keys `count`, `runtime`" in PARTS["agents.assignments"]
    assert "|" not in PARTS["agents.assignments"]
