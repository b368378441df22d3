"""A scripted model behind the wire of chat completions: it follows a prompt to the letter, and costs nothing.

It reads of its prompt: the labels it may choose from (a line `Labels: a, b, c`), examples (lines `message => label`),
and whether to answer with the label alone (the word `only`, `alone` or `just`). It labels a message like the example
that shares the rarest words with it; where none does, by the first label. It remembers the last CONTEXT characters.

`python ticket_model.py` serves on a port of this machine, and prints the address.
"""

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTEXT = 1000  # characters of a prompt that it remembers
EXAMPLE = re.compile(r"^(.+?) => (\w+)\s*$", re.MULTILINE)
LABELS = re.compile(r"^labels: (.+)$", re.MULTILINE | re.IGNORECASE)
TERSE = re.compile(r"\b(only|alone|just)\b", re.IGNORECASE)


def answer(prompt: str, message: str) -> str:
    """What the model says to a message, under a prompt."""
    prompt = prompt[-CONTEXT:]
    found = LABELS.search(prompt)
    labels = [label.strip().lower() for label in found[1].split(",")] if found else []
    examples = [(words(text), label.lower()) for text, label in EXAMPLE.findall(prompt)]
    label = nearest(examples, words(message)) or (labels[0] if labels else "something")
    if labels and label not in labels:
        label = labels[0]
    return label if TERSE.search(prompt) else f"This message seems to be about {label}."


def words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.lower())}


def nearest(examples: list[tuple[set[str], str]], asked: set[str]) -> str:
    """The label of the example whose shared words are the rarest among the examples; empty where none is shared."""
    often = Counter(word for known, _ in examples for word in known)
    weights = [sum(1 / math.log2(1 + often[word]) for word in known & asked) for known, _ in examples]
    return examples[weights.index(max(weights))][1] if any(weights) else ""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, message = (part["content"] for part in asked["messages"])
        said = answer(prompt, message)
        usage = {"prompt_tokens": (len(prompt) + len(message)) // 4, "completion_tokens": len(said) // 4 + 1}
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    """Serve in this process, and give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with serving() as address:
        print(address, flush=True)
        threading.Event().wait()
