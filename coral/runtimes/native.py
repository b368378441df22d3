"""The built-in agent: `python -P -m coral.native`, with a conversation whose id we choose."""

import json
import sys
from dataclasses import fields
from pathlib import Path

from coral import extras
from coral.native.brain import BRAINS
from coral.native.options import Options, missing_library
from coral.runtimes.coral_protocol import OwnProgram, unknown
from coral.runtimes.model import Command, Inspection, LaunchSpec, new_session

EVERYTHING = ("**/*",)  # what it may change where the task does not say


class Native(OwnProgram):
    name = "native"
    can_research = False  # it begins with a search

    def check(self) -> list[str]:
        if problems := unknown(self.options, [field.name for field in fields(Options)]):
            return problems
        try:
            brain = Options.read(self.options).brain
        except ValueError as error:
            return [str(error)]
        if brain not in BRAINS:
            return [f"brain must be {' or '.join(BRAINS)}; got {brain!r}"]
        missing = missing_library()
        return [f"{missing} is not installed; `{extras.installs('search')}` installs it"] if missing else []

    def inspect(self, seed: Path, editable: tuple[str, ...]) -> Inspection:
        """How many numbers and choices it would vary."""
        # Not at the top: a start does without the search.
        from coral.native.search.numeric.space import MOST_VARIABLES, SearchSpace, editable_texts

        count = len(SearchSpace(editable_texts(seed, editable or EVERYTHING)))
        text, hint = f"{count} number{'' if count == 1 else 's'} or choices to vary", ""
        if count > MOST_VARIABLES:
            text = f"the editable files hold {count} numbers and choices"
            hint = f"it searches at most {MOST_VARIABLES}: name fewer files in task.editable"
        elif not count:
            text = "the editable files hold no number and no choice to vary"
            hint = "it varies numbers, true and false: put some into a file that task.editable names"
            hint += ", or use another runtime"
        return Inspection(name="variables", text=text, hint=hint)

    def command(self, spec: LaunchSpec) -> Command:
        session = spec.session or new_session(spec)
        argv = [sys.executable, "-P", "-m", "coral.native", "--session", session]
        if spec.session:
            argv.append("--resume")
        argv += ["--state", str(spec.state), "--direction", spec.direction, "--seed", str(spec.seed)]
        if spec.editable:
            argv += ["--editable", *spec.editable]
        if spec.check:
            argv += ["--check", spec.check]
        argv += ["--options", json.dumps(dict(self.options))]
        return Command(argv=tuple(argv), session=session)
