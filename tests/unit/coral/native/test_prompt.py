"""Heartbeat sections are found in the prompts that agents really get."""

from coral.native.prompt import HeartbeatSection, heartbeat_sections
from heartbeats.example import example_context
from heartbeats.heartbeat import BUILT_IN
from heartbeats.render import render_file


def test_the_sections_of_a_real_prompt_are_found():
    context = example_context()
    texts = [
        {"name": heartbeat.name, "id": f"h{number}", "text": render_file(heartbeat.name, context)}
        for number, heartbeat in enumerate(BUILT_IN)
    ]
    found = heartbeat_sections(render_file("resume", {**context, "sections": texts}))
    assert [(section.name, section.id) for section in found] == [(text["name"], text["id"]) for text in texts]
    assert all(len(section.text) > 100 for section in found)


def test_a_section_ends_at_the_next_heading():
    assert heartbeat_sections("## Heartbeat: two-in-one (id h7, h9)\n\nDo it.\n\n## Now\n\nGo.") == [
        HeartbeatSection("two-in-one", "h7, h9", "Do it.")
    ]
    assert heartbeat_sections("Heartbeat: no (id h1)\n## Heartbeat: none\n") == []
