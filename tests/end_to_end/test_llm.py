"""Fleets of the brain `llm` under a real supervisor, against a scripted model: real edits, checks and submissions."""

import json
import re
from itertools import count
from pathlib import Path

import pytest
from files import write_files
from llm_agent import base_url, call
from model_server import Asked, ModelServer, Step
from real_runs import wait_until
from whole_runs import start as run_to_its_end

from attempts.store import Store
from workspace.notes import find_notes

pytestmark = pytest.mark.slow

CODE = {
    "seed/solve.py": "def solve(values):\n    return values[:1]  # limit 1\n",
    "seed/check.py": "import pathlib\n\ndef check(folder):\n    text = pathlib.Path(folder, 'solve.py').read_text()\n"
    "    scope = {}\n    exec(text, scope)\n    return {'score': len(scope['solve'](list(range(100)))), 'slack': []}\n",
    "grade.py": "def grade(workspace):\n    scope = {}\n    exec((workspace / 'solve.py').read_text(), scope)\n"
    "    return float(len(scope['solve'](list(range(100)))))\n",
}
HEARTBEAT = re.compile(r"## Heartbeat: ([a-z]+) \(id ([^)]+)\)")
LIMIT = re.compile(r"limit (\d+)")


def code_task(folder: Path, options: dict[str, object]) -> Path:
    agents = {"runtime": "native", "count": 2, "model": "m", "options": options}
    task = (
        "task:\n  name: code\n  description: Return as many values as you can.\n  editable: [solve.py]\n"
        "  check: check.py:check\ngrader:\n  entry: grade.py:grade\n  noise: 0\n"
        f"agents: {json.dumps(agents)}\nbudget: {{attempts: 10}}\nrun: {{backoff: 0.1, start_grace: 300}}\n"
    )
    return write_files(folder, {**CODE, "task.yaml": task})


class Coder:
    """A model that answers each heartbeat by a note, and else reads, edits, checks and submits."""

    def __init__(self) -> None:
        self.numbers = count(2)
        self.answered: set[str] = set()
        self.asked_for: set[str] = set()

    def __call__(self, asked: Asked) -> Step:
        said = "\n".join(asked.texts)
        for name, id in HEARTBEAT.findall(said):
            self.asked_for.add(name)
            if id not in self.answered:
                self.answered.add(id)
                note = {"action": "write", "title": f"answer to {name} {id}", "body": "x", "attempts": [0]}
                return Step(calls=[call("notes", **note)])
        # What the last tool that matters here has printed.
        for text in reversed(asked.texts):
            if "solve.py: 1 edit made" in text:
                return Step(calls=[call("check")])
            if "check.py:check" in text and "score" not in text:
                return Step(calls=[call("submit", title=f"more values, {next(self.numbers)}")])
            if text.startswith("def solve") and (found := LIMIT.search(text)):
                now, new = found[1], str(next(self.numbers))
                edits = [{"old": f"[:{now}]  # limit {now}", "new": f"[:{new}]  # limit {new}"}]
                return Step(calls=[call("edit_file", path="solve.py", edits=edits)])
            if text.startswith(("#", "Nobody watches", "You have made")):
                break
        return Step(calls=[call("read_file", path="solve.py")])


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_a_fleet_on_a_code_task(wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    model = Coder()
    with ModelServer(model) as server:
        options = {"brain": "llm", "wire": wire, "base_url": base_url(server, wire), "key_variable": "SOME_KEY"}
        layout = run_to_its_end(code_task(tmp_path / "task", options), tmp_path)
    store = Store(layout.attempts)
    attempts = [attempt for attempt in map(store.read, store.numbers()) if attempt.number]
    assert len(attempts) >= 10
    assert {attempt.agent for attempt in attempts} == {"agent-1", "agent-2"}
    assert all(attempt.score is not None and attempt.score > 1 for attempt in attempts)
    titles = [attempt.title for attempt in attempts]
    assert len(titles) == len(set(titles))  # nothing is submitted twice
    assert "reflect" in model.asked_for
    notes = [note for note in find_notes([layout.shared]) if note.title.startswith("answer to")]
    assert {note.author for note in notes} == {"agent-1", "agent-2"}
    answers = [note.title.split()[-1] for note in notes]
    assert len(answers) == len(set(answers))  # nothing is answered twice
    # The budget may end while the model's last words travel: each agent may leave one answer unwritten.
    assert len(answers) <= len(model.answered) <= len(answers) + 2
    assert server.strange == []


PACKING = Path(__file__).parents[2] / "examples" / "circle_packing"


class Packer(Coder):
    """A model that moves the last circle of the seed a little, checks and submits."""

    def __call__(self, asked: Asked) -> Step:
        said = "\n".join(asked.texts)
        for name, id in HEARTBEAT.findall(said):
            if id not in self.answered:
                self.answered.add(id)
                note = {"action": "write", "title": f"answer to {name} {id}", "body": "x", "attempts": [0]}
                return Step(calls=[call("notes", **note)])
        radius = 0.07 + 1e-6 * next(self.numbers)
        command = f'sed -i \'2s/"r": [0-9.e-]*/"r": {radius:.6f}/\' circles.json && grep -c r circles.json'
        title = f"a radius of {radius:.6f}"
        return Step(calls=[call("run", command=command), call("check"), call("submit", title=title)])


def test_a_fleet_on_circle_packing(tmp_path: Path) -> None:
    model = Packer()
    with ModelServer(model) as server:
        options = {"brain": "llm", "base_url": base_url(server, "chat")}
        overrides = ("agents.count=2", "agents.model=m", f"agents.options={json.dumps(options)}", "budget.attempts=10")
        layout = run_to_its_end(PACKING, tmp_path, *overrides, "run.backoff=0.1", "run.start_grace=300")
    store = Store(layout.attempts)
    attempts = [attempt for attempt in map(store.read, store.numbers()) if attempt.number]
    assert len(attempts) >= 10
    assert len({attempt.title for attempt in attempts}) == len(attempts)
    scores = [attempt.score for attempt in attempts if attempt.score is not None]
    assert len(scores) == len(attempts)
    assert max(scores) > 1.8200009


# One number, whose best is 1; and what the model writes in its place: better, but its own number is a bad guess.
SEED = "kind = 'line'\nx = 0.2  # range: 0..1\n"
HILL = "kind = 'hill'\na = 0.05  # range: 0..1\n"
SCORE = (
    "def score(text):\n    scope = {}\n    exec(text, scope)\n"
    "    return scope['x'] if scope['kind'] == 'line' else 3 - 10 * (scope['a'] - 0.7) ** 2\n"
)
MIXED = {
    "seed/params.py": SEED,
    "seed/check.py": f"import pathlib\n\n{SCORE}\ndef check(folder):\n"
    "    return {'score': score(pathlib.Path(folder, 'params.py').read_text()), 'slack': []}\n",
    "grade.py": f"{SCORE}\ndef grade(workspace):\n    return float(score((workspace / 'params.py').read_text()))\n",
}


class Author:
    """A model that writes another program, hands it over, and looks for the note that gives it back."""

    handed, given_back = 0, False

    def __call__(self, asked: Asked) -> Step:
        said = "\n".join(asked.texts)
        if "are tuned:" in said:
            self.given_back = True
        if not self.handed:
            submitted = re.search(r"^#(\d+) [a-z ]+, score -", said, re.MULTILINE)
            if not submitted:
                calls = [call("write_file", path="params.py", content=HILL), call("submit", title="a hill")]
                return Step(calls=calls)
            self.handed = int(submitted[1])
            return Step(calls=[call("hand_over", attempt=self.handed, why="a is a guess")])
        return Step(calls=[call("run", command="sleep 0.2"), call("notes", action="search", words="tuned")])


def test_a_search_tunes_what_a_model_hands_over(start, tmp_path: Path) -> None:
    model = Author()
    with ModelServer(model) as server:
        llm = {"brain": "llm", "base_url": base_url(server, "chat"), "max_steps": 1000, "steps": 100_000}
        assignments = [
            {"runtime": "native", "model": "m", "options": llm},
            {"runtime": "native", "options": {"seconds": 0.5}},
        ]
        task = (
            "task:\n  name: mixed\n  description: Make it large.\n  editable: [params.py]\n  check: check.py:check\n"
            "grader:\n  entry: grade.py:grade\n  noise: 0\n"
            f"agents: {json.dumps({'assignments': assignments})}\nrun: {{backoff: 0.1, start_grace: 300}}\n"
        )
        run = start(write_files(tmp_path / "task", {**MIXED, "task.yaml": task}))
        wait_until(lambda: model.given_back, 240.0, "the note that gives the hand-over back")
        run.stop()
    attempts = {attempt.number: attempt for attempt in run.attempts()}
    handed = attempts[model.handed]
    assert (handed.agent, handed.score is not None and handed.score < 0) == ("agent-1", True)
    tuned = [attempt for attempt in attempts.values() if attempt.agent == "agent-2" and (attempt.score or 0.0) > 2.9]
    assert tuned
    (note,) = [note for note in find_notes([run.layout.shared]) if note.title.startswith("The numbers of")]
    assert (note.author, note.attempts[0]) == ("agent-2", model.handed)
    assert note.title.startswith(f"The numbers of #{model.handed} are tuned: -1.225 -> ")
