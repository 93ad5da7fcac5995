"""Bad input beside the exact words that it is answered with: `<case>.yml` and `<case>.txt`.

A case holds an environment, whole; after a line `--- # allocation` or `--- # machines` another document follows.
`SUPERNODE_GOLDEN=write pytest tests/errors` writes the words anew; read them before committing.
"""

import os
import re
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.cli.output import describe
from supernode.errors import Refusal

HERE = Path(__file__).parent
CASES = sorted(path.stem for path in HERE.glob("*.yml"))


def documents(text):
    parts = re.split(r"^--- # (allocation|machines)\n", text, flags=re.MULTILINE)
    return {"environment": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def answer(text):
    texts = documents(text)
    try:
        design.build(spec.read(texts))
    except Refusal as refusal:

        def locate(problem):
            return f"{problem.document}.yml:{spec.locate(texts[problem.document], problem.path)}"

        return describe(refusal, locate) + "\n"
    return "accepted\n"


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_word_for_word(case):
    kept = HERE / f"{case}.txt"
    found = answer((HERE / f"{case}.yml").read_text())
    if os.environ.get("SUPERNODE_GOLDEN") == "write":
        kept.write_text(found)
    assert found == kept.read_text()


@pytest.mark.parametrize("case", [case for case in CASES if not case.endswith("good")])
def test_lines_rise(case):
    lines = [
        re.match(r"error: (\w+)\.yml:(\d+): ", line) for line in answer((HERE / f"{case}.yml").read_text()).splitlines()
    ]
    found = [(("environment", "allocation", "machines").index(m[1]), int(m[2])) for m in lines if m]
    assert found
    assert found == sorted(found)
