"""The JSON Schema that editors use is shipped, says what the models say, and takes what they take."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from pydantic import BaseModel

from coral.config import document
from coral.config.model import TaskFile
from coral.config.schema import SHIPPED, schema
from coral.config.validate import PATTERNS
from heartbeats.example import example_context

EXAMPLES = sorted(Path(__file__).parents[4].glob("examples/*/task.yaml"))
KEPT = ("description", "default", "type", "enum", "anyOf", "items")
KEPT += ("minimum", "maximum", "exclusiveMinimum", "minLength")


def facts(text: str) -> dict[str, dict[str, object]]:
    """What an editor tells of each key; the rest of the file may differ from one pydantic to the next."""
    whole = json.loads(text)
    sections = {**whole["$defs"], "TaskFile": whole}
    return {
        f"{name}.{key}": {fact: field[fact] for fact in KEPT if fact in field}
        for name, section in sections.items()
        for key, field in section.get("properties", {}).items()
    }


def test_the_shipped_schema_is_current() -> None:
    assert facts(SHIPPED.read_text(encoding="utf-8")) == facts(schema()), "run `python -m coral.config.schema`"


def test_every_key_has_a_description() -> None:
    for section in TaskFile.model_fields.values():
        if isinstance(section.annotation, type) and issubclass(section.annotation, BaseModel):
            assert all(field.description for field in section.annotation.model_fields.values())


@pytest.mark.parametrize("task", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_satisfy_it(task: Path) -> None:
    jsonschema.validate(document.read(task.read_text()).data, json.loads(SHIPPED.read_text()))


def test_every_pattern_has_a_message_that_says_what_the_key_wants() -> None:
    patterns = re.findall(r'"pattern": (".*")', schema())
    assert {json.loads(pattern) for pattern in patterns} == set(PATTERNS)


def test_it_refuses_what_the_models_refuse() -> None:
    shipped = jsonschema.Draft202012Validator(json.loads(SHIPPED.read_text()))
    task = {"task": {"name": "t", "description": "d"}, "grader": {"entry": "g.py:g"}}
    shipped.validate(task)
    for wrong in ({"agents": {"cout": 4}}, {"agents": {"count": 0}}, {"agents": {"count": "4"}}, {"budgets": {}}):
        with pytest.raises(jsonschema.ValidationError):
            shipped.validate({**task, **wrong})


def test_every_key_is_read_by_somebody() -> None:
    """An option that nothing reads is a promise that nobody keeps."""
    root = Path(__file__).parents[4] / "coral"
    source = "\n".join(path.read_text(encoding="utf-8") for path in root.rglob("*.py") if path.name != "model.py")
    read = set(re.findall(r"\b(\w+)(?=\.(\w+))", source))
    for name, section in TaskFile.model_fields.items():
        keys = getattr(section.annotation, "model_fields", {})
        # An assignment has keys of `agents`, too, and most keys of `run` are rules of the same name.
        read_of = {name, *{"agents": ["assignment"], "run": ["rules"], "alerts": ["route", "self"]}.get(name, [])}
        in_prompts = example_context()["task"] if name == "task" else ()
        unread = [key for key in keys if key not in in_prompts and not any((of, key) in read for of in read_of)]
        assert unread == [], f"nobody reads {name}.{unread}"
