"""The strict grader: how many of the hidden messages the model labels right under the candidate's prompt.

The prompt is data: nothing of the candidate is executed. The model is the scripted one beside this file, or, where the
variable MODEL_URL is set, any that speaks chat completions; MODEL_NAME and MODEL_KEY go along.
"""

import json
import os
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from ticket_model import serving

from coral.grader import Fail, Result, Void, progress, read_json, read_text

LONGEST = 1500  # characters of a prompt
SECONDS = 60  # for one answer


def grade(workspace: Path, private: Path) -> Result:
    """The share of the messages that get exactly their label as the answer."""
    prompt = read_text(workspace / "prompt.md", 4 * LONGEST)
    if len(prompt) > LONGEST:
        raise Fail(f"prompt.md has {len(prompt)} characters, more than {LONGEST}")
    hidden = read_json(private / "hidden.json")
    address = os.environ.get("MODEL_URL")
    tokens, right, wrong = 0, 0, Counter[str]()
    with nullcontext(address) if address else serving() as url:
        for number, (message, label) in enumerate(hidden):
            progress(number / len(hidden))
            said, used = ask(url, prompt, message)
            tokens += used
            right += said == label
            if said != label:
                wrong[label if said.isalpha() else "the form of the answer"] += 1
    most = ", ".join(f"{count} of {what}" for what, count in wrong.most_common(3))
    return Result(right / len(hidden), metrics={"right": right, "tokens": tokens}, feedback=f"wrong: {most or 'none'}")


def ask(url: str, prompt: str, message: str) -> tuple[str, int]:
    """The model's answer, and how many tokens it took. Void where the model cannot be asked: no fault of the prompt."""
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": message}]
    body = {"model": os.environ.get("MODEL_NAME", "scripted"), "messages": messages, "temperature": 0}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('MODEL_KEY', 'none')}"}
    try:
        with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=SECONDS) as reply:
            said = json.load(reply)
        return said["choices"][0]["message"]["content"].strip(), sum(map(int, tokens_of(said)))
    except (URLError, OSError, ValueError, LookupError, TypeError) as error:
        raise Void(f"cannot ask the model: {error}") from error


def tokens_of(said: dict[str, dict[str, int]]) -> list[int]:
    usage = said.get("usage") or {}
    return [usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)]
