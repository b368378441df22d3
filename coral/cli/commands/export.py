"""`coral export`: an attempt as a branch of the user's repository, or as a patch; nothing else ever writes there."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from attempts.record import Attempt
from coral.cli.commands.export_commit import export, repository_around
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_view import RunView
from coral.cli.ui import format
from coral.errors import CoralError
from workspace.git import Git
from workspace.hub import patch
from workspace.intake import SEED
from workspace.layout import find_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=run_lookup.number, metavar="N", help="the attempt")
    parser.add_argument("--branch", metavar="NAME", help="the new branch (default: coral/<task>-<N>)")
    parser.add_argument("--patch", metavar="FILE", help="a patch against the seed instead; - is standard output")
    parser.add_argument("--repo", metavar="PATH", help="your repository (default: the one around here)")
    parser.add_argument("--json", action="store_true", help="for programs: attempt, branch or patch, repo")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.patch == "-" and args.json:
        raise CoralError("cannot give a patch and JSON at once on standard output", "--patch FILE")
    if args.patch and (args.branch or args.repo):
        raise CoralError("cannot export to a branch and a patch at once", "give --patch or --branch")
    reading = RunView(run_lookup.run_of(args))
    attempt = reading.attempt(args.number, "export")
    if args.patch:
        return _patch(reading, attempt, args.patch, as_json=args.json)
    repository = _repository(reading, args.repo)
    branch = args.branch or f"coral/{reading.layout.root.parent.name}-{attempt.number}"
    made = export(reading.layout.hub, attempt.commit, repository, branch, attempt.agent, _message(reading, attempt))
    place = repository.parent if repository.name == ".git" else repository
    if args.json:
        print(json.dumps({"attempt": attempt.number, "branch": branch, "repo": str(place)}))
        return 0
    print(f"branch {branch} in {place}: {made[:12]}")
    print(f"  git switch {branch}")
    return 0


def _patch(reading: RunView, attempt: Attempt, target: str, *, as_json: bool) -> int:
    seed = Git(reading.layout.hub).text("rev-parse", SEED)
    data = patch(reading.layout.hub, seed, attempt.commit)
    if target == "-":
        sys.stdout.buffer.write(data)
        return 0
    try:
        with Path(target).expanduser().open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise CoralError(f"cannot write {target}: it exists", "name another file") from None
    except OSError as error:
        raise CoralError(f"cannot write {target}: {error.strerror}", "name another file") from None
    if as_json:
        print(json.dumps({"attempt": attempt.number, "patch": target, "repo": None}))
        return 0
    print(f"{target}: #{attempt.number} against the seed, {format.plural(data.count(b'diff --git '), 'file')}")
    print(f"  git apply {target}")
    return 0


def _repository(reading: RunView, given: str | None) -> Path:
    """The user's repository; what lies inside a run is Coral's, so from there it is the one around the runs."""
    start = Path(given).expanduser() if given else run_lookup.here()
    inside = find_run(start)
    found = repository_around(inside.root.parent if inside and not given else start)
    if found is None and not given and (origin := run_lookup.origin(reading.layout)):
        found = repository_around(origin)
    if found is None:
        raise CoralError(f"cannot export: {start} is in no git repository", "--repo PATH, or --patch FILE")
    if find_run(found) is not None:
        raise CoralError(f"cannot export: {start} belongs to a run", "--repo PATH of a repository of your own")
    return found


def _message(reading: RunView, attempt: Attempt) -> str:
    who = f" by {attempt.agent}" if attempt.agent else ""
    score = f", score {format.score(attempt.score)}" if attempt.score is not None else ""
    return f"{attempt.title}\n\nAttempt #{attempt.number}{who}{score}, of the run {reading.task}/{reading.name}.\n"
