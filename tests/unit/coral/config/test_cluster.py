"""The keys of grades on a cluster: what is refused, and how it is said."""

import pytest
from pydantic import ValidationError

from coral.config.cluster import MOST_SLOTS, RayResources, RaySection
from coral.config.model import GraderSection
from coral.grading.remote import resources_of


@pytest.mark.parametrize(
    "address",
    ["localhost", "ray://10.0.0.1:10001", "10.0.0.1:", "10.0.0.1:6379/x", "10.0.0.1:66379", "h:0", "10.0.0..1:6379"],
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ValidationError, match="must be host:port, such as"):
        RaySection(address=address)


def test_a_cluster_needs_an_address() -> None:
    with pytest.raises(ValidationError, match=r"executor: ray and no ray\.address"):
        GraderSection(entry="g.py:g", executor="ray")


def test_an_environment_of_the_graders_own_is_not_made_on_nodes() -> None:
    with pytest.raises(ValidationError, match="has both executor: ray and setup"):
        GraderSection(entry="g.py:g", executor="ray", ray={"address": "h:1"}, setup=("pip install x",))


@pytest.mark.parametrize("resources", [{"num_cpus": 0}, {"num_cpus": 0, "custom": {"license": 0}}])
def test_a_grade_that_needs_nothing_of_a_node_needs_a_number_of_slots(resources: dict[str, object]) -> None:
    task = {"entry": "g.py:g", "executor": "ray", "ray": {"address": "h:1", "resources": resources}}
    with pytest.raises(ValidationError, match=r"ray\.resources that are all 0 and no slots, .*: say slots, or"):
        GraderSection.model_validate(task)
    assert GraderSection.model_validate({**task, "slots": 7}).most_slots == 7
    assert GraderSection.model_validate({**task, "executor": "local"}).most_slots == 1


@pytest.mark.parametrize("needs", [{"num_gpus": 0.5}, {"accelerator_type": "A"}, {"memory": 1}, {"custom": {"x": 1}}])
def test_a_grade_without_a_processor_may_need_something_else(needs: dict[str, object]) -> None:
    ray = {"address": "h:1", "resources": {"num_cpus": 0, **needs}}
    assert GraderSection.model_validate({"entry": "g.py:g", "executor": "ray", "ray": ray}).most_slots == MOST_SLOTS


def test_without_a_word_a_grade_asks_for_one_processor_and_is_retried_twice() -> None:
    section = RaySection(address="h:1")
    assert resources_of(section.resources) == {"CPU": 1.0, "GPU": 0.0}
    assert section.max_retries == 2


def test_amounts_have_the_names_that_ray_has_for_them() -> None:
    asked = RaySection.model_validate(
        {"address": "h:1", "resources": {"num_gpus": 0.5, "memory": 2.0, "custom": {"slot": 1.0}}}
    )
    assert resources_of(asked.resources) == {"CPU": 1.0, "GPU": 0.5, "memory": 2e9, "slot": 1.0}


def test_without_a_number_of_slots_there_is_one_and_on_ray_as_many_as_there_is_room_for() -> None:
    ray = {"entry": "g.py:g", "executor": "ray", "ray": {"address": "h:1"}}
    graders = [GraderSection(entry="g.py:g"), GraderSection(entry="g.py:g", executor="slurm")]
    graders += [GraderSection.model_validate(ray), GraderSection.model_validate({**ray, "slots": 7})]
    assert [grader.most_slots for grader in graders] == [1, 1, MOST_SLOTS, 7]


def test_a_type_of_graphics_card_is_a_resource_of_ray() -> None:
    section = RaySection(address="h:1", resources=RayResources(num_gpus=1.0, accelerator_type="A100"))
    assert resources_of(section.resources) == {"CPU": 1.0, "GPU": 1.0, "accelerator_type:A100": 0.001}
