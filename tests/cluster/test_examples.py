"""The scripts of examples/clusters, each started as its README says, as far as one machine allows."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from real_runs import tries, wait_until
from remote_grades import GRADE, variables
from ruamel.yaml import YAML

FOLDER = Path(__file__).parents[2] / "examples" / "clusters"
RAY = Path(sys.executable).with_name("ray")
MARK = "CORAL_TEST_LAPTOP"
BEGUN = "This command will now block forever"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def laptop(tmp_path):
    """The process of laptop.sh, once its one node has begun."""
    env = {**os.environ, "CORAL_CLUSTER": str(tmp_path / "cluster"), "PORT": "6390", "TMPDIR": "/tmp"}
    env[MARK] = str(tmp_path)
    env["PATH"] = f"{RAY.parent}:{env['PATH']}"
    script = subprocess.Popen(
        ("sh", FOLDER / "laptop.sh", "1"), env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        lines = iter(script.stderr.readline, "")
        told = "".join(iter(lambda: next(lines), "the nodes have begun; Ctrl-C ends the cluster\n"))
        with variables(dict(re.findall(r"(RAY_AUTH\w+)=(\S+)", told))):
            yield script
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGINT)
        script.communicate(timeout=120)
        wait_until(lambda: not left(tmp_path), 180, "the end of the cluster")  # Ray's agents, 60 s after their node


def left(folder):
    """The processes of a cluster in this folder."""
    mark = f"{MARK}={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [path.parent.name] if mark in path.read_bytes().split(b"\0") else []
        except OSError:
            continue
    return found


def _program(pid):
    return _words(pid)[0]


def _words(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def test_a_run_on_the_cluster_of_a_laptop_which_leaves_nothing(laptop, start, tmp_path):
    keys = {"executor": "ray", "ray.address": "127.0.0.1:6390", "timeout": 60}
    run = start([*tries(2), "hang"], overrides=tuple(f"grader.{name}={keys[name]}" for name in keys), grade=GRADE)
    assert [one.score for one in run.wait_for_attempts(1)] == [2.0]
    run.stop()
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left(tmp_path)]
    assert any(b"/raylet" in line for line in lines)
    assert not any(b"log_monitor" in line for line in lines), "it reads logs ten times a second, for nobody"


def test_the_cluster_of_a_laptop_ends_with_its_head_and_says_so(laptop, tmp_path):
    (head,) = (pid for pid in left(tmp_path) if _program(pid).endswith(b"/gcs_server"))
    os.kill(int(head), signal.SIGKILL)
    _, told = laptop.communicate(timeout=120)
    assert (laptop.returncode, told.splitlines()[0]) == (1, "the head has ended:")
    assert "gcs_server" in told


def test_the_cluster_of_a_laptop_says_when_a_node_ends_and_goes_on(laptop, tmp_path):
    nodes = [pid for pid in left(tmp_path) if b"--address=127.0.0.1:6390" in _words(pid) and b"start" in _words(pid)]
    os.kill(int(nodes[0]), signal.SIGTERM)
    assert "node 1 has ended:\n" in iter(laptop.stderr.readline, "")  # after what Ray says
    assert laptop.poll() is None


def test_a_node_that_ends_while_the_next_one_begins_is_named(tmp_path):
    """By programs that only look like a cluster: `ray status` counts the nodes that live, and the first one ends."""
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    (tmp_path / "laptop.sh").write_text((FOLDER / "laptop.sh").read_text())
    (tmp_path / "head.sh").write_text("exec sleep 30\n")
    first = f'case "$*" in *-1) touch {nodes}/1; sleep 3; rm {nodes}/1; exit;; esac'
    (tmp_path / "node.sh").write_text(f"{first}\nexec sleep 30\n")
    ray = tmp_path / "bin" / "ray"
    ray.parent.mkdir()
    ray.write_text(f'#!/bin/sh\nfor node in head $(ls {nodes}); do echo " 1 node_$node"; done\n')
    ray.chmod(0o755)
    env = {**os.environ, "PATH": f"{ray.parent}:{os.environ['PATH']}", "CORAL_CLUSTER": str(tmp_path / "cluster")}
    ended = subprocess.run(
        ("sh", tmp_path / "laptop.sh", "2"), env=env, stderr=subprocess.PIPE, text=True, timeout=20, check=False
    )
    assert (ended.returncode, "node 1 has ended:\n" in ended.stderr) == (1, True)


@pytest.fixture
def run_script(tmp_path):
    """Starts a script of the examples, whose cluster and whose file about it are the test's; ends it afterwards."""
    env = {**os.environ, "CORAL_CLUSTER": str(tmp_path / "cluster"), "PORT": "6391", MARK: str(tmp_path)}
    env |= {"PATH": f"{RAY.parent}:{env['PATH']}", "RAY_TMPDIR": tempfile.mkdtemp(prefix="ray-", dir="/tmp")}
    started = []

    def run(name, *options):
        path, line = tmp_path / f"{len(started)}.log", ("sh", FOLDER / name, *options)
        with path.open("w") as log:
            started.append(subprocess.Popen(line, env=env, stdout=log, stderr=log, start_new_session=True))
        return started[-1], path

    yield run
    for script in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGINT)
    for script in started:
        script.wait(120)
    wait_until(lambda: not left(tmp_path), 180, "the end of the cluster")
    shutil.rmtree(env["RAY_TMPDIR"])


def test_a_head_begins_again_beside_its_nodes_and_no_second_one_does(run_script, tmp_path):
    head, log = run_script("head.sh")
    wait_until(lambda: BEGUN in log.read_text(), what="the head")
    ports = ("--min-worker-port=20000", "--max-worker-port=20999")
    node, of_node = run_script("node.sh", "127.0.0.1:6391", "--num-cpus=1", "--object-store-memory=80000000", *ports)
    wait_until(lambda: BEGUN in of_node.read_text(), what="the node")
    second, refusal = run_script("head.sh")
    assert second.wait(60) == 1
    assert "is already running" in refusal.read_text()
    (pid,) = (pid for pid in left(tmp_path) if _program(pid).endswith(b"/gcs_server"))
    os.kill(int(pid), signal.SIGKILL)
    head.wait(60)
    again, log = run_script("head.sh")
    wait_until(lambda: BEGUN in log.read_text() or again.poll() is not None, what="the head again")
    assert (again.poll(), node.poll()) == (None, None), log.read_text()


@pytest.mark.parametrize("name", ["head.sh", "node.sh", "laptop.sh", "slurm.sbatch"])
def test_the_scripts_parse(name):
    assert subprocess.run(("sh", "-n", FOLDER / name), check=False).returncode == 0


def test_a_node_without_the_token_says_where_it_belongs(tmp_path):
    env = {"PATH": os.environ["PATH"], "CORAL_CLUSTER": str(tmp_path)}
    done = subprocess.run(("sh", FOLDER / "node.sh", "head:1"), env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"there is no token: copy {tmp_path}/token of the head to the same place here\n",
    )


def test_the_cluster_on_kubernetes_has_this_ray_a_token_and_a_head_without_grades():
    cluster, volume = YAML(typ="safe").load_all((FOLDER / "kuberay.yaml").read_text())
    spec = cluster["spec"]
    version = subprocess.run((RAY, "--version"), capture_output=True, text=True, check=True).stdout.split()[-1]
    head = spec["headGroupSpec"]["template"]["spec"]
    containers = [*head["containers"], *spec["workerGroupSpecs"][0]["template"]["spec"]["containers"]]
    assert (spec["rayVersion"], spec["authOptions"]) == (version, {"mode": "token"})
    assert {one["image"].rpartition(":")[2] for one in containers} == {version}
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert head["volumes"][0]["persistentVolumeClaim"]["claimName"] == volume["metadata"]["name"]
