"""Runs the built-in agent: `python -P -m coral.native`, with a conversation whose id we choose.

With the brain `search` the agent uses no model; the runtime of the brain `llm` is in `native_llm.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from coral import extras
from coral.native.brain import find_brain
from coral.native.options import LLM, Options, brain_of, missing_library
from coral.runtimes.coral_protocol import OwnProgram, unknown
from coral.runtimes.model import Inspection, LaunchSpec, Runtime

EVERYTHING = ("**/*",)  # what the agent may change if the task has no `editable`


def native(options: Mapping[str, object]) -> Runtime:
    """Return the runtime of the brain that the options name."""
    if brain_of(options) == LLM:
        from coral.runtimes.native_llm import NativeLlm  # a start without a model does without pydantic's models

        return NativeLlm(options)
    return Native(options)


class Native(OwnProgram):
    name = "native"
    module = "coral.native"
    can_research = False  # it begins with a search

    def check(self) -> list[str]:
        if problems := unknown(self.options, [field.name for field in fields(Options)]):
            return problems
        try:
            brain = Options.read(self.options).brain
            find_brain(brain)
        except ValueError as error:
            return [str(error)]
        missing = missing_library()
        return [f"{missing} is not installed; `{extras.installs('search')}` installs it"] if missing else []

    def inspect(self, seed: Path, editable: tuple[str, ...]) -> Inspection:
        """Say how many numbers and choices the agent would vary."""
        # Not at the top: a start does without the search.
        from coral.native.editable_files import editable_texts
        from coral.search_space.declarations import read_declarations
        from coral.search_space.space import MOST_VARIABLES, SearchSpace

        declared = read_declarations(Options.read(self.options).variables)
        count = len(SearchSpace(editable_texts(seed, editable or EVERYTHING), declared))
        text, hint = "1 number or choice to vary" if count == 1 else f"{count} numbers or choices to vary", ""
        if count > MOST_VARIABLES:
            text = f"the editable files hold {count} numbers and choices"
            hint = f"it searches at most {MOST_VARIABLES}: name fewer files in task.editable"
        elif not count:
            text = "the editable files hold no number and no choice to vary"
            hint = "it varies numbers, true and false in Python and JSON, and words that `agents.options.variables` or"
            hint += " a comment names: put some into a file that task.editable names, or use another runtime"
        return Inspection(name="variables", text=text, hint=hint)

    def arguments(self, spec: LaunchSpec) -> tuple[str, ...]:
        words = ["--direction", spec.direction, "--seed", str(spec.seed)]
        words += ["--editable", *spec.editable] if spec.editable else []
        words += ["--check", spec.check] if spec.check else []
        return (*words, "--options", json.dumps(dict(self.options)))
