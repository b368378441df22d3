"""The run's bare repository (the hub) and what is made from it: clones, checkouts for grading, differences to show.

The hub holds only the run's own history, and deletes nothing (`preciousObjects`): every clone borrows its objects. A
clone finds the hub by a relative path, so that a copied run's folder uses its own hub. The seed is only ever read.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from workspace.clone_overlay import LITTER, exclude_from
from workspace.errors import GitError, Unacceptable
from workspace.genuine import check_genuine
from workspace.git import MEGABYTE, Git
from workspace.gitenv import identity
from workspace.intake import SEED, examine, full
from workspace.layout import plain
from workspace.locks import clear_stale_lock
from workspace.loose_object import object_file, read_header
from workspace.plain_file import read_plain

# For `git add`: makes it take every file for a large one, since large files go into one pack. Loose objects would be
# opened one by one at a clone's first checkout, and packing them later takes longer than all the rest of `create`.
_IN_ONE_PACK = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bigFileThreshold", "GIT_CONFIG_VALUE_0": "1"}
_DIFF_LIMIT = 2 * MEGABYTE
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color")
_HUB_CONFIG = """\
[core]
\trepositoryformatversion = 1
\thooksPath = /dev/null
\tbigFileThreshold = 16m
\tfsync = loose-object,reference
\tfsyncMethod = batch
[extensions]
\tpreciousObjects = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
# Settings of the hub that git has made for this disk, and for this kind of ids: a clone has them too. No others, for
# an agent may have written there: a filter is a program that the checkout starts.
_OF_DISK = re.compile(r"\t(?:filemode|symlinks|ignorecase|precomposeunicode) = (?:true|false)")
_OF_IDS = "\tobjectformat = sha256"
# Then settings against what the user's own would add to an agent's `git commit`: hooks, a passphrase, a background gc.
_CLONE_CONFIG = """\
\tbare = false
\tlogallrefupdates = true
\thooksPath = .git/hooks
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
# Further files that tell git what to do or to trust, and which a hub does not have.
_SETTINGS = (
    *("info/attributes", "info/grafts", "objects/info/alternates", "objects/info/http-alternates"),
    *("commondir", "shallow", "config.worktree"),
    # What commits and packs hold, as told by files that we never make: git believes them before the objects.
    *("objects/info/commit-graph", "objects/info/commit-graphs", "objects/pack/multi-pack-index"),
)
_HEAD = f"ref: {SEED}\n".encode()  # a folder without it is no repository
_PLAIN = ("packed-refs", "info/exclude")  # a pipe in the place of one would block git
_USER = '[user]\n\tname = "{name}"\n\temail = "{name}@coral.invalid"\n'


def create(hub: Path, seed: Path) -> str:
    """Make the hub from a folder, or from the last commit of a repository; returns the id of its one commit.

    The commit has no parent: the seed's history may contain what agents must not see.
    """
    seed = seed.resolve()
    if not seed.is_dir():
        raise GitError(f"cannot use the seed {seed}: it is not a folder")
    building = hub.with_name(f".{hub.name}.partial")
    shutil.rmtree(building, ignore_errors=True)
    building.parent.mkdir(parents=True, exist_ok=True)
    repository = repository_of(seed)
    try:
        commit = _fill(building, seed, repository)
        if not examine(Git(building), commit):
            raise GitError(f"cannot use the seed {seed}: it has no files")
    except Unacceptable as error:
        raise GitError(f"cannot use the seed {seed}: {error}", error.hint) from error
    with (building / "config").open("a") as file:
        file.write(_HUB_CONFIG)
    building.rename(hub)
    return commit


def take_in_seed(hub: Path, seed: Path) -> str:
    """Bring another seed into the hub, as a commit after the last seed's; returns its id, or the last seed's if the
    files are the same. `set_seed` then makes it the run's seed."""
    with tempfile.TemporaryDirectory(dir=hub.parent, prefix=".seed-", ignore_cleanup_errors=True) as temporary:
        building = Path(temporary) / "hub.git"
        tree = tree_of(building, create(building, seed))
        ours = Git(hub)
        before = ours.text("rev-parse", "--verify", SEED)
        if tree_of(hub, before) == tree:
            return before
        pack = ("pack-objects", "--revs", "--stdout", "-q")
        Git(building).pipe(pack, ours, ("index-pack", "--stdin"), data=tree.encode())
        commit = ours.text("commit-tree", tree, "-p", before, "-m", "Seed")
        _pack(hub, commit)
        return commit


def set_seed(hub: Path, commit: str, taken_in: float) -> None:
    """Make a commit the run's seed. `taken_in`: when the seed was read, in seconds since the epoch of the clock; files
    that change later differ from what the run has."""
    clear_stale_lock(hub, f"{SEED}.lock", whose=SEED)
    Git(hub).run("update-ref", SEED, full(commit))
    os.utime(hub / SEED, (taken_in, taken_in))


def repository_of(seed: Path) -> Path | None:
    """Return the git directory if the seed is itself a repository, else None. A repository in a folder above is not the
    seed's."""
    inside = seed / ".git"
    if inside.is_file():  # a linked worktree
        return (seed / inside.read_text().removeprefix("gitdir:").strip()).resolve()
    if inside.is_dir():
        return inside
    bare = (seed / "HEAD").is_file() and (seed / "objects").is_dir() and (seed / "refs").is_dir()
    return seed if bare else None


def _fill(building: Path, seed: Path, repository: Path | None) -> str:
    try:
        tree = _tree_of_folder(building, seed) if repository is None else _tree_of_head(building, repository)
    except GitError as error:
        raise GitError(f"cannot read the seed {seed}: {error}", error.hint) from error
    commit = Git(building).text("commit-tree", tree, "-m", "Seed")
    (building / SEED).write_text(f"{commit}\n")  # nobody else writes here yet
    _pack(building, commit)
    return commit


def _pack(hub: Path, commit: str) -> None:
    """Copy a seed's loose objects into a pack: the supervisor keeps packs as they are, see `workspace.packs`."""
    name = hub.resolve() / "objects" / "pack" / "pack"
    Git(hub).run("pack-objects", "-q", "--revs", "--incremental", str(name), data=f"{commit}\n".encode())


def _tree_of_head(building: Path, repository: Path) -> str:
    theirs = Git(repository)
    try:
        tree = theirs.text("rev-parse", "--verify", "HEAD^{tree}")
    except GitError as error:
        raise GitError(str(error), "commit something in it first") from error
    _init(building, theirs.text("rev-parse", "--show-object-format"))
    objects = theirs.text("rev-parse", "--git-path", "objects")
    source = Git(building, GIT_OBJECT_DIRECTORY=objects)
    source.pipe(
        ("pack-objects", "--revs", "--stdout", "-q"), Git(building), ("index-pack", "--stdin"), data=tree.encode()
    )
    return tree


def _tree_of_folder(building: Path, seed: Path) -> str:
    _init(building, "sha1")
    exclude_from(building, LITTER)
    with tempfile.TemporaryDirectory() as temporary:
        adding = Git(building, GIT_INDEX_FILE=Path(temporary) / "index", GIT_WORK_TREE=seed, **_IN_ONE_PACK)
        adding.run("add", "-A")
        return adding.text("write-tree")


def _init(building: Path, object_format: str) -> None:
    building.mkdir()
    options = ("--template=", "--initial-branch=main", f"--object-format={object_format}")
    Git(building).run("init", "-q", "--bare", *options)


def clone(hub: Path, target: Path, agent: str, commit: str, exclude: Iterable[str]) -> None:
    """Make the agent's own repository at `target`, on a branch of its name, at `commit`; `exclude` is never committed.

    It holds only what the agent adds, and borrows all other objects from the hub. GitError if `target` exists.
    """
    if target.exists():
        raise GitError(f"cannot make a clone at {target}: it exists")
    building = target.with_name(f".{target.name}.partial")
    shutil.rmtree(building, ignore_errors=True)
    inside = building / ".git"
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (inside / folder).mkdir(parents=True)
    (inside / "HEAD").write_text(f"ref: refs/heads/{plain(agent)}\n")
    (inside / "config").write_text(_config_of_clone(hub, commit) + _USER.format(name=agent))
    borrowed = os.path.relpath((hub / "objects").resolve(), (inside / "objects").resolve())
    (inside / "objects" / "info" / "alternates").write_text(f"{borrowed}\n")
    exclude_from(inside, LITTER, exclude)
    own = Git(inside, GIT_WORK_TREE=building, **identity(agent))
    own.run("checkout", "-q", "--force", "--no-track", "-B", agent, full(commit), "--")
    building.rename(target)


def _config_of_clone(hub: Path, commit: str) -> str:
    lines = (read_plain(hub / "config", MEGABYTE) or b"").decode("utf-8", "replace").splitlines()
    disk = [line for line in dict.fromkeys(lines) if _OF_DISK.fullmatch(line)]
    version, ids = (0, []) if len(commit) == 40 else (1, ["[extensions]", _OF_IDS])
    made = [*ids, "[core]", f"\trepositoryformatversion = {version}", *disk, _CLONE_CONFIG]
    return "\n".join(made)


def is_whole(clone: Path) -> bool:
    """Return whether git can use the clone and find the hub. Checks only three names, because every launch calls it."""
    inside = clone / ".git"
    files = inside / "HEAD", inside / "objects" / "info" / "alternates"
    try:
        return (inside / "refs").is_dir() and all(file.is_file() for file in files)
    except PermissionError:  # the agent closed the folder: without a new clone it could never start again
        return False


def clone_again(hub: Path, target: Path, agent: str, commit: str, exclude: Iterable[str]) -> None:
    """Make a new repository for an agent that removed or damaged its own. Its files stay as they are, and the damaged
    repository is renamed."""
    names, spare = tuple(exclude), target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    clone(hub, spare, agent, commit, names)
    if not _has_work(target, {name.lstrip("/") for name in names}):
        if os.path.lexists(target):
            target.rename(target.with_name(f".{target.name}.broken-{secrets.token_hex(8)}"))
        spare.rename(target)
        return
    if os.path.lexists(target / ".git"):
        (target / ".git").rename(target / f".coral-git-{secrets.token_hex(8)}")
    (spare / ".git").rename(target / ".git")
    shutil.rmtree(spare, ignore_errors=True)


def _has_work(folder: Path, ours: set[str]) -> bool:
    """Return whether anything in the folder is the agent's own. Links are not: they are the supervisor's, to the shared
    knowledge and to mounts."""
    try:
        with os.scandir(folder) as entries:
            return any(not entry.is_symlink() and entry.name not in {".git", *ours} for entry in entries)
    except OSError:
        return False


def checkout(hub: Path, commit: str, target: Path) -> None:
    """Write the files of `commit` into the new folder `target`, without any git directory. Unacceptable if an object in
    the hub differs from its id."""
    target.mkdir(parents=True)
    # Beside the target, and not in /tmp: after a kill it lies where leftovers are cleaned up.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".index-") as temporary:
        store = Git(hub, GIT_INDEX_FILE=Path(temporary).resolve() / "index", GIT_WORK_TREE=target)
        store.run("read-tree", "-u", "--reset", full(commit))
    check_genuine(hub, full(commit), target)


def settings(hub: Path, kept: Path) -> bytes:
    """Return the hub's configuration as it was made, from its copy `kept`; if that is gone, as it is now."""
    return read_plain(kept, MEGABYTE) or read_plain(hub / "config", MEGABYTE) or b""


def restore_settings(hub: Path, config: bytes) -> list[str]:
    """Restore the hub's settings, because git obeys them: filters are programs that it starts, and objects could be
    read from elsewhere. Returns the names of what was changed."""
    found = []
    for name, content in (("config", config), ("HEAD", _HEAD)):
        if read_plain(hub / name, len(content) + 1) != content:
            _remove(hub / name)
            made = hub / f".{name}.{secrets.token_hex(8)}"
            made.write_bytes(content)
            made.replace(hub / name)
            found.append(name)
    for name in (*_SETTINGS, *_PLAIN):
        if os.path.lexists(hub / name) and (name in _SETTINGS or not _is_plain(hub / name)):
            _remove(hub / name)
            found.append(name)
    return found


def _is_plain(path: Path) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def diff(hub: Path, old: str, new: str) -> str:
    """Return the difference of two commits for people, cut off after 2 MB."""
    text, is_cut = cut_diff(hub, old, new)
    return text + "\n[cut off here]\n" if is_cut else text


def cut_diff(hub: Path, old: str, new: str) -> tuple[str, bool]:
    """Return the difference of two commits, at most 2 MB of it, and whether more was cut off."""
    output = Git(hub).run(*_DIFF, full(old), full(new), "--", limit=_DIFF_LIMIT, cut=True)
    return output.decode("utf-8", "replace"), len(output) >= _DIFF_LIMIT


def patch(hub: Path, old: str, new: str) -> bytes:
    """Return the difference of two commits for `git apply`: complete, with binary files."""
    return Git(hub).run(*_DIFF, "--binary", "--full-index", full(old), full(new), "--")


def tree_of(hub: Path, commit: str) -> str:
    header = read_header(object_file(hub / "objects", full(commit)))
    return header.tree if header else Git(hub).text("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
