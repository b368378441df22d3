"""The sections of task.yaml about the cluster that grades and agents run on."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from coral.config.section import Finite, Gigabytes, Options, Seconds, Section, Text, key

MOST_SLOTS = 1000  # each grade in flight on a cluster has a process on this machine
Slots = Annotated[int, Field(ge=1, le=MOST_SLOTS)] | None
Amount = Annotated[Finite, Field(ge=0, le=1e9)]


class RayResources(Section):
    """What one grade needs of a node. A grade waits for a node that has it free."""

    num_cpus: Amount = key("Processors.", 1.0)
    num_gpus: Amount = key("Graphics cards; a share of one, such as 0.5, is shared with other grades.", 0.0)
    accelerator_type: str = key("The type of the graphics card, as Ray names it, such as A100. Empty: any.", "")
    memory: Gigabytes | None = key("Gigabytes that the cluster reserves for it. Empty: none.", None)
    custom: dict[Text, Amount] = key("Amounts of the resources that the cluster's nodes were given by name.", dict)

    @property
    def are_zero(self) -> bool:
        """Whether a grade needs nothing of a node, so that any number of them fits on one."""
        return not any((self.num_cpus, self.num_gpus, self.accelerator_type, self.memory, *self.custom.values()))


class PlaceSection(RayResources):
    """What an agent needs of a node: its launches run on a node of the Ray cluster that has it."""

    labels: dict[Text, Text] = key("Labels that the node must have.", dict)


class AgentsRaySection(Section):
    """The cluster on which agents run that have a place."""

    address: str = key("Its head, host:port, to which a node on this machine belongs.", "")
    wait: Seconds = key("Seconds that a launch may wait for room on the cluster; then it counts as a crash.", 3600.0)

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, text: str) -> str:
        return checked_address(text)


class SlurmSection(Section):
    """The jobs of Slurm in which grades run, with grader.executor: slurm. One job is one grade."""

    cluster: Literal["slurm", "local"] = key(
        "slurm, or local to try it out without Slurm: jobs are processes of this machine then.", "slurm"
    )
    partition: str = key("The partition. Empty: the cluster's own choice.", "")
    cpus: int = key("Processors of a grade.", 1, ge=1, le=10_000)
    gpus: int = key("Graphics cards of a grade.", 0, ge=0, le=1000)
    memory: Gigabytes | None = key("Gigabytes of a grade. Empty: what the cluster gives.", None)
    options: dict[Text, str] = key("More options of sbatch, by their long names, such as account or qos.", dict)
    max_retries: int = key(
        "How often a grade whose job was lost is begun again, before its attempt is void.", 2, ge=0, le=100
    )
    wait: Seconds = key("Seconds that a grade may wait for its job to begin; then it is void.", 3600.0)


class RaySection(Section):
    """The cluster on which grades run, with grader.executor: ray."""

    address: str = key("Its head, host:port, to which a node on this machine belongs.", "")
    resources: RayResources = key("What one grade needs of a node.", RayResources)
    environment: Options = key("The environment in which grades run, as a runtime_env of Ray, which makes it.", dict)
    autoscaling: bool = key(
        "Whether the cluster adds nodes for grades that wait. Then a grade that no node can run waits for one.", False
    )
    max_retries: int = key(
        "How often a grade whose worker or node died is begun again, before its attempt is void.", 2, ge=0, le=100
    )
    wait: Seconds = key("Seconds that a grade may wait for room on the cluster; then it is void.", 3600.0)

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, text: str) -> str:
        return checked_address(text)


def checked_address(text: str) -> str:
    """Return the address of a cluster's head, or nothing. Raise ValueError for any other text."""
    if text and not _is_address(text):
        raise ValueError("must be host:port, such as 10.0.0.1:6379, with a port from 1 to 65535")
    return text


def _is_address(text: str) -> bool:
    found = re.fullmatch(r"([^\s:/]+):([0-9]{1,5})", text)
    try:
        return found is not None and 0 < int(found[2]) < 65536 and bool(found[1].encode("idna"))
    except UnicodeError:  # as for "10.0.0..1": the look-up of the address would fail with it
        return False


def check_executor(executor: str, ray: RaySection, slots: int | None, *, has_setup: bool) -> None:
    """Raise ValueError if grades cannot run there as the task says."""
    if executor == "ray" and not ray.address:
        raise ValueError("has executor: ray and no ray.address: say the cluster's head, host:port")
    if executor == "ray" and ray.resources.are_zero and slots is None:
        raise ValueError(
            "has ray.resources that are all 0 and no slots, so that nothing limits how many grades run at once: say "
            "slots, or in ray.resources what one grade needs"
        )
    if executor != "local" and has_setup:
        instead = "say in ray.environment what the grader imports, or " if executor == "ray" else ""
        raise ValueError(f"has both executor: {executor} and setup: {instead}install it on the nodes")
