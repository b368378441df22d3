"""The section of task.yaml about the cluster that grades run on."""

import re
from typing import Annotated

from pydantic import Field, field_validator

from coral.config.section import Finite, Gigabytes, Seconds, Section, Text, key

Amount = Annotated[Finite, Field(ge=0, le=1e9)]


class RayResources(Section):
    """What one grade needs of a node. A grade waits for a node that has it free."""

    num_cpus: Amount = key("Processors.", 1.0)
    num_gpus: Amount = key("Graphics cards; a share of one, such as 0.5, is shared with other grades.", 0.0)
    memory: Gigabytes | None = key("Gigabytes that the cluster reserves for it. Empty: none.", None)
    custom: dict[Text, Amount] = key("Amounts of the resources that the cluster's nodes were given by name.", dict)


class RaySection(Section):
    """The cluster on which grades run, with grader.executor: ray."""

    address: str = key("Its head, host:port, to which a node on this machine belongs.", "")
    resources: RayResources = key("What one grade needs of a node.", RayResources)
    max_retries: int = key(
        "How often a grade whose worker or node died is begun again, before its attempt is void.", 2, ge=0, le=100
    )
    wait: Seconds = key("Seconds that a grade may wait for the cluster and for room there; then it is void.", 3600.0)

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, text: str) -> str:
        if text and not re.fullmatch(r"[^\s:/]+:[0-9]{1,5}", text):
            raise ValueError("must be host:port, such as 10.0.0.1:6379")
        return text
