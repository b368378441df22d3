"""The agent that is part of Coral: `python -P -m coral.native`, with a conversation whose id we choose."""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields

from coral.native.brain import BRAINS
from coral.native.options import Options
from coral.runtimes import coral_protocol
from coral.runtimes.model import Command, Ending, LaunchSpec, LaunchSummary, OutputEvent, new_session


class Native:
    name = "native"
    instruction_file = "AGENTS.md"
    resumes = True
    uses_model = False

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = options

    def check(self) -> list[str]:
        if problems := coral_protocol.unknown(self._options, [each.name for each in fields(Options)]):
            return problems
        try:
            brain = Options.read(self._options).brain
        except ValueError as error:
            return [str(error)]
        return [] if brain in BRAINS else [f"brain must be {' or '.join(BRAINS)}; got {brain!r}"]

    def command(self, job: LaunchSpec) -> Command:
        session = job.session or new_session(job)
        argv = [sys.executable, "-P", "-m", "coral.native", "--session", session]
        if job.session:
            argv.append("--resume")
        argv += ["--state", str(job.state), "--direction", job.direction, "--seed", str(job.seed)]
        if job.editable:
            argv += ["--editable", *job.editable]
        if job.check:
            argv += ["--check", job.check]
        argv += ["--options", json.dumps(dict(self._options))]
        return Command(argv=tuple(argv), session=session)

    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        return coral_protocol.read(line)

    def judge(self, code: int, said: LaunchSummary) -> Ending:
        return coral_protocol.judge(code, said)
