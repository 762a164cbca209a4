"""Where steps begin and end."""

from __future__ import annotations

import pytest

from pipeline.record.steps import Steps


@pytest.fixture
def written() -> list[tuple[str, int, int, int]]:
    return []


@pytest.fixture
def steps(written: list[tuple[str, int, int, int]]) -> Steps:
    return Steps(lambda *step: written.append(step))


def play(steps: Steps, acts: str) -> None:
    """Each letter takes a unit of time: f(etch), t(rain) or e(val) and r(an), b(ackward),
    o(ptimizer); a space is a pause.
    """
    for now, act in enumerate(acts):
        if act == "f":
            steps.begin(now)
            steps.happened(now + 1)
        elif act in "te":
            steps.begin(now, "TRAIN" if act == "t" else "EVAL")
        elif act == "r":
            steps.ran(now + 1)
        elif act == "b":
            steps.happened(now + 1)
        elif act == "o":
            steps.stepped(now + 1)
    steps.end()


@pytest.mark.parametrize(
    ("acts", "want"),
    [
        ("ftrbo ftrbo", [("TRAIN", 0, 0, 5), ("TRAIN", 1, 6, 11)]),
        # Gradients of two batches before the optimizer steps.
        ("ftrb ftrbo", [("TRAIN", 0, 0, 10)]),
        # Two optimizers, and a loss that is computed after the first.
        ("ftrbobo ftrbo", [("TRAIN", 0, 0, 7), ("TRAIN", 1, 8, 13)]),
        ("fer fer", [("EVAL", 0, 0, 3), ("EVAL", 1, 4, 7)]),
        ("ftrbo fer ftrbo", [("TRAIN", 0, 0, 5), ("EVAL", 0, 6, 9), ("TRAIN", 1, 10, 15)]),
        # The last batch before evaluation was left without a step of the optimizer.
        ("trb er", [("TRAIN", 0, 0, 3), ("EVAL", 0, 4, 6)]),
        ("f", [("GLOBAL", 0, 0, 1)]),
        ("", []),
    ],
)
def test_steps_with_an_optimizer(
    steps: Steps, written: list[tuple[str, int, int, int]], acts: str, want: object
) -> None:
    steps.has_optimizer = True
    play(steps, acts)
    assert written == want


def test_without_an_optimizer_each_pass_is_a_step(
    steps: Steps, written: list[tuple[str, int, int, int]]
) -> None:
    play(steps, "ftrb trb")
    assert written == [("TRAIN", 0, 0, 4), ("TRAIN", 1, 5, 8)]
