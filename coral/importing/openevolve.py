"""Makes a task from a folder for OpenEvolve: an initial program, `evaluator.py` and perhaps `config.yaml`."""

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from coral.config import document as yaml
from coral.config.translation import flag
from coral.errors import CoralError
from coral.importing.written_task import MadeTask

EVALUATOR, SETTINGS, REQUIREMENTS = "evaluator.py", "config.yaml", "requirements.txt"
GRADER = "coral_grade.py"
SEED, MARKER = "seed", "EVOLVE-BLOCK-START"
SECONDS = 300  # OpenEvolve's own timeout of an evaluation
# Patterns of names in such a folder that an evaluator does not read.
_OTHERS = (".*", "README*", "LICENSE*", "config*.y*ml", "openevolve_output*", "__pycache__", "best_program*", "*.log")
_GRADER = '''\
"""Grades a program by evaluator.py, as OpenEvolve does: its combined_score, or the mean of its metrics.

The evaluator loads the program into this process, or starts it: the channel of such a score is open, and docs/trust.md
of Coral says how to close it.
"""

from coral.grader.openevolve import evaluate_program  # first: it stands in for OpenEvolve, which evaluators import

import evaluator


def grade(workspace, args):
    return evaluate_program(evaluator, workspace / args.pop("program"), **args)
'''
# Settings that have no counterpart in a task, and why they need none.
_LEFT_OUT = {
    "llm": "agents have their own models: choose them by agents.runtime and agents.model",
    "database": "there are no islands and no archive: agents see each other's attempts and notes",
    "checkpoint_interval": "a run can always be resumed",
    "random_seed": "agents are not seeded",
    "diff_based_evolution": "agents edit files as they like",
    "max_code_length": "no counterpart",
    "evolution_trace": "the journal and the transcripts have it",
}


def program_of(folder: Path) -> Path | None:
    """Return the initial program; None if the folder is not one for OpenEvolve."""
    if not (folder / EVALUATOR).is_file():
        return None
    return next((path for path in sorted(folder.glob("initial_program.*")) if path.is_file()), None)


def import_openevolve(folder: Path) -> MadeTask:
    """Make a task from the folder. CoralError if the evaluator has no function to call, or the settings cannot be
    read."""
    program = program_of(folder)
    assert program is not None, "the caller has asked"
    if "def evaluate" not in (folder / EVALUATOR).read_text(encoding="utf-8", errors="replace"):
        hint = "OpenEvolve calls evaluate(program_path) of it"
        raise CoralError(f"cannot import {folder}: its {EVALUATOR} has no function evaluate", hint)
    settings, report = _settings(folder), list[str]()
    evaluation, prompt = _section(settings, "evaluator"), _section(settings, "prompt")
    args: dict[str, Any] = {"program": program.name}
    if "cascade_evaluation" in evaluation:
        args["cascade"] = flag(evaluation["cascade_evaluation"])
    if "cascade_thresholds" in evaluation:
        args["thresholds"] = evaluation["cascade_thresholds"]
    if isinstance(dimensions := _section(settings, "database").get("feature_dimensions"), list):
        args["dimensions"] = dimensions
    grader: dict[str, Any] = {"entry": f"{GRADER}:grade", "direction": "maximize", "args": args}
    grader["timeout"] = evaluation.get("timeout") or SECONDS
    if isinstance(slots := evaluation.get("parallel_evaluations"), int) and slots > 1:
        grader["slots"] = slots
    if isinstance(memory := evaluation.get("memory_limit_mb"), int):
        grader["memory"] = memory / 1000
    beside = _private(folder, program)
    grader["private"] = [path.name for path in beside]
    if _requirements(folder):
        grader["setup"] = [f"python -m pip install -r {REQUIREMENTS}"]
        report.append(f"grader.setup installs {REQUIREMENTS}, in an environment of the grader's own")
    sections: dict[str, Any] = {
        "task": {
            "name": folder.resolve().name,
            "description": _description(program, prompt),
            "seed": SEED,
            "editable": [program.name],
        },
        "grader": grader,
    }
    if isinstance(iterations := settings.get("max_iterations"), int) and iterations > 0:
        sections["budget"] = {"attempts": iterations}
        report.append(f"max_iterations: budget.attempts is {iterations}, for the whole fleet")
    report += [f"{name}: left out; {why}" for name, why in _LEFT_OUT.items() if name in settings]
    report += [f"prompt.{name}: left out; the prompts are Coral's" for name in prompt if name != "system_message"]
    copies = [(f"{SEED}/{program.name}", program), *((path.name, path) for path in beside)]
    texts = {GRADER: _GRADER, **({REQUIREMENTS: _requirements(folder)} if _requirements(folder) else {})}
    return MadeTask(f"Made from {folder.resolve().name}, a folder for OpenEvolve.", sections, texts, copies, report)


def _settings(folder: Path) -> dict[str, Any]:
    try:
        document = yaml.read((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CoralError(f"cannot import {folder}: {SETTINGS}: {error}", "it must be a text in UTF-8") from error
    if not isinstance(document.data, dict):
        what = document.problems[0].text if document.problems else "holds no settings"
        raise CoralError(f"cannot import {folder}: {SETTINGS} {what}", "mend or remove it: a task needs none of it")
    return document.data


def _section(settings: dict[str, Any], name: str) -> dict[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}


def _description(program: Path, prompt: dict[str, Any]) -> str:
    text = (
        str(prompt.get("system_message") or "").strip() or f"Improve {program.name}: the higher its score, the better."
    )
    text += f"\n\nThe program is {program.name}; it is evaluated as it stands after each submission."
    if MARKER in program.read_text(encoding="utf-8", errors="replace"):
        text += (
            "\nChange only what stands between the comments EVOLVE-BLOCK-START and EVOLVE-BLOCK-END, and keep both "
            "comments: the evaluator calls what is outside."
        )
    return f"{text}\n"


def _private(folder: Path, program: Path) -> list[Path]:
    """Return the files and folders beside the evaluator that it may read, itself among them."""
    found = []
    for path in sorted(folder.iterdir()):
        is_other = any(fnmatch(path.name, pattern) for pattern in _OTHERS) or path.name in (REQUIREMENTS, GRADER)
        if path != program and not is_other and path.exists():
            found.append(path)
    return found


def _requirements(folder: Path) -> str:
    """Return the lines of requirements.txt without OpenEvolve itself; empty if there are none."""
    try:
        lines = (folder / REQUIREMENTS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    kept = [line for line in lines if not line.strip().lower().startswith("openevolve")]
    return "\n".join(kept) + "\n" if any(line.strip() and not line.startswith("#") for line in kept) else ""
