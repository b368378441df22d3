"""`coral export`: writes an attempt into a branch of the user's repository, or into a patch.

The branch gets one commit. The user's working tree and index are not changed, no hook runs and no configuration of the
user's is used. Nothing else of Coral ever writes into the user's repository.
"""

import argparse
import sys
from pathlib import Path

from attempts.files import expanded
from attempts.index import query
from attempts.record import Attempt, Kind
from coral.cli.parser import attempt_number, print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import command
from coral.errors import CoralError
from coral.reading.run_folder import here
from coral.reading.run_view import RunView
from coral.runs.verify import verified
from coral.views import format
from workspace.errors import GitError
from workspace.git import Git
from workspace.gitenv import identity
from workspace.hub import patch
from workspace.layout import find_run

COMMITS = 20_000  # of the user's history, newest first, searched for the seed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=attempt_number, metavar="N", help="the attempt")
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
    view = RunView(run_lookup.run_of(args))
    attempt = view.attempt(args.number, "export")
    if attempt.kind is Kind.CONFIRM:
        hint = f"`{command('export', view.layout)} {attempt.of}` exports that one"
        raise CoralError(f"cannot export #{attempt.number}: it is one more grade of #{attempt.of}", hint)
    if args.patch:
        return _patch(view, attempt, args.patch, as_json=args.json)
    repository = _repository(view, args.repo)
    branch = args.branch or f"coral/{view.slug}-{attempt.number}"
    made = _make_branch(view, attempt, repository, branch)
    place = repository.parent if repository.name == ".git" else repository
    if args.json:
        return print_json({"attempt": attempt.number, "branch": branch, "repo": str(place)}, None)
    print(f"branch {branch} in {place}: {made[:12]}")
    print(f"  git switch {branch}")
    return 0


def _patch(view: RunView, attempt: Attempt, target: str, *, as_json: bool) -> int:
    data = patch(view.layout.hub, _seed(view, attempt), attempt.commit)
    if target == "-":
        sys.stdout.buffer.write(data)
        return 0
    try:
        with expanded(target).open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise CoralError(f"cannot write {target}: it exists", "name another file") from None
    except OSError as error:
        raise CoralError(f"cannot write {target}: {error.strerror}", "name another file") from None
    if as_json:
        return print_json({"attempt": attempt.number, "patch": target, "repo": None}, None)
    print(f"{target}: #{attempt.number} against the seed, {format.plural(data.count(b'diff --git '), 'file')}")
    print(f"  git apply {target}")
    return 0


def _seed(view: RunView, attempt: Attempt) -> str:
    """Return the commit of the seed in the attempt's epoch."""
    number = view.index.ask(lambda rows: query.seed(rows, attempt.epoch))
    return view.attempt(number or 0, "export").commit


def _repository(view: RunView, given: str | None) -> Path:
    """Return the user's repository. A repository inside a run is Coral's, so from there the one around the folder of
    runs is taken. CoralError if there is none."""
    start = expanded(given) if given else here()
    inside = find_run(start)
    found = repository_around(inside.root.parent if inside and not given else start)
    if found is None and not given and (origin := run_lookup.origin(view.layout)):
        found = repository_around(origin)
    if found is None:
        raise CoralError(f"cannot export: {start} is in no git repository", "--repo PATH, or --patch FILE")
    if find_run(found) is not None:
        raise CoralError(f"cannot export: {start} belongs to a run", "--repo PATH of a repository of your own")
    return found


def repository_around(path: Path) -> Path | None:
    """Return the git directory of the repository that `path` is in; None if it is in none."""
    for folder in (path.resolve(), *path.resolve().parents):
        inside = folder / ".git"
        if inside.is_file():  # a linked worktree, or a submodule
            target = inside.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
            return (folder / target).resolve()
        if inside.is_dir():
            return inside
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
            return folder
    return None


def _make_branch(view: RunView, attempt: Attempt, repository: Path, branch: str) -> str:
    """Make `branch` with one commit that has the attempt's files, on top of the user's commit that the run started
    from. Return the new commit."""
    hub, user = Git(view.layout.hub), Git(repository)
    _check_branch(user, branch)
    seed = hub.text("rev-parse", f"{_seed(view, attempt)}^{{tree}}")
    tree = hub.text("rev-parse", f"{attempt.commit}^{{tree}}")
    base, folder = _base(user, seed)
    hub.pipe(("pack-objects", "--revs", "--stdout", "-q"), user, ("unpack-objects", "-q"), data=tree.encode())
    whole = _with_folder(user, f"{base}^{{tree}}", folder, tree)
    author = Git(repository, **identity(attempt.agent or "Coral"))
    message = _message(view, attempt).encode("utf-8", "replace")
    made = author.text("commit-tree", whole, "-p", base, "-F", "-", data=message)
    user.run("update-ref", "-m", "coral export", f"refs/heads/{branch}", made, "0" * len(made))
    return made


def _message(view: RunView, attempt: Attempt) -> str:
    who = f" by {attempt.agent}" if attempt.agent else ""
    found = view.index.ask(lambda rows: query.measured(rows, attempt.number))
    score = "" if found is None else f", score {format.score(found.median)}"
    if found is not None and len(found.scores) > 1:
        score += f" (median of {len(found.scores)} grades)"
    if attempt.number == view.best_and_lead[1].integer("number") and attempt.number != view.proven:
        score += ", not proven to be the best"
    if verified(view.layout).get(str(attempt.number), {}).get("is_same") is True:
        score += ", verified"
    return f"{attempt.title}\n\nAttempt #{attempt.number}{who}{score}, of the run {view.task}/{view.name}.\n"


def _check_branch(user: Git, branch: str) -> None:
    try:
        user.run("check-ref-format", f"refs/heads/{branch}")
    except GitError:
        raise CoralError(f"cannot make the branch {branch!r}: git allows no such name", "--branch NAME") from None
    try:
        user.run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    except GitError:
        return
    raise CoralError(f"cannot make the branch {branch}: it exists", "name another: --branch NAME")


def _base(user: Git, seed: str) -> tuple[str, tuple[str, ...]]:
    """Return the user's commit that holds the seed, and the path of the seed's folder in it; () if the seed is the
    whole commit."""
    try:
        head = user.text("rev-parse", "--verify", "HEAD^{commit}")
    except GitError:
        raise CoralError(f"cannot export to {user.directory}: it has no commit yet", "--patch FILE") from None
    folders = user.run("ls-tree", "-r", "-d", "-z", "--full-tree", head).decode("utf-8", "surrogateescape")
    at = [line.partition("\t")[2] for line in folders.split("\0") if line.partition("\t")[0].endswith(seed)]
    if at:
        return head, tuple(min(at, key=len).split("/"))
    history = user.text("log", "--format=%H %T", "-n", str(COMMITS), "HEAD", "--all").split("\n")
    for line in history:
        commit, _, tree = line.partition(" ")
        if tree == seed:
            return commit, ()
    hint = "commit the seed there as it was, or write a patch: --patch FILE"
    raise CoralError(f"cannot export to {user.directory}: the run's seed is in none of its commits", hint)


def _with_folder(user: Git, tree: str, folder: tuple[str, ...], new: str) -> str:
    """Return a copy of `tree` in which the folder at the path `folder` is replaced by the tree `new`."""
    if not folder:
        return new
    lines = []
    for line in user.run("ls-tree", "-z", tree).split(b"\0"):
        about, _, name = line.partition(b"\t")
        if name == folder[0].encode("utf-8", "surrogateescape"):
            mode, kind, inner = about.split(b" ")
            line = b" ".join((mode, kind, _with_folder(user, inner.decode(), folder[1:], new).encode())) + b"\t" + name
        lines.append(line)
    return user.text("mktree", "-z", data=b"\0".join(lines))
