"""The order of the rooms, the documents in the SQL, and the README."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.sqlfiles import sql_files, sql_text

ROOT = Path(__file__).resolve().parent.parent
# A module may import from its own room and from those behind it.
ORDER = [
    (
        "pipeline.arguments",
        "pipeline.errors",
        "pipeline.extras",
        "pipeline.locks",
        "pipeline.remote",
        "pipeline.settings",
        "pipeline.spill",
        "pipeline.sqlfiles",
    ),
    ("pipeline.sources", "pipeline.record"),
    ("pipeline.split",),
    ("pipeline.normalize",),
    ("pipeline.store",),
    ("pipeline.query",),
    (
        "pipeline.batch",
        "pipeline.ingestion",
        "pipeline.job_end",
        "pipeline.output",
        "pipeline.retention",
    ),
    ("pipeline.demo", "pipeline.follow"),
    ("pipeline.compat",),
    ("pipeline.commands",),
    ("pipeline.cli", "pipeline.__main__", "flows"),
]
MODULES = sorted(ROOT.glob("pipeline/**/*.py")) + sorted(ROOT.glob("flows/**/*.py"))


def module_name(path: Path) -> str:
    name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    return name.removesuffix(".__init__")


def room(module: str) -> int | None:
    for number, names in enumerate(ORDER):
        if any(module == name or module.startswith(name + ".") for name in names):
            return number
    return None


def imports(path: Path, at_runtime: bool = True) -> set[str]:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        # What only the type checker sees makes no dependency.
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_one_way(path: Path) -> None:
    own = room(module_name(path))
    if own is None:
        assert module_name(path) == "pipeline"
        return
    later = {
        name
        for name in imports(path)
        if name.startswith("pipeline.") and (place := room(name)) is not None and place > own
    }
    # A store hands out runs, the one way back.
    assert later - {"pipeline.query.run", "pipeline.query.run.Run"} == set()


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_pipeline_never_imports_prefect(path: Path) -> None:
    if module_name(path).startswith("pipeline"):
        assert not any(name.split(".")[0] == "prefect" for name in imports(path))


@pytest.mark.parametrize(
    "name",
    list(
        sql_files(
            "normalize",
            "functions",
            "views",
            "training",
            "macros",
            "queries",
            "timeline",
            "compat",
        )
    ),
)
def test_sql_files_begin_with_what_they_answer(name: str) -> None:
    text = sql_text(name)
    assert text.startswith("-- ")
    assert all(len(line) <= 100 or "COMMENT ON" in line for line in text.splitlines())


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_readme_session(tmp_path: Path, environment: dict[str, str]) -> None:
    """Every command of the README's session gives what the README shows; ``...`` stands for
    anything, to the end of a line or for lines.
    """
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "tracelake"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pipeline "$@"\n')
    script.chmod(0o755)
    path = f"{script.parent}:{environment['PATH']}"
    for block in blocks("console"):
        for step in block.split("$ ")[1:]:
            command, _, shown = _split_command(step)
            process = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env={**environment, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert process.returncode == 0, process.stderr
            assert re.fullmatch(_pattern(shown), process.stdout, re.DOTALL), process.stdout


def _split_command(step: str) -> tuple[str, str, str]:
    lines = step.splitlines(keepends=True)
    count = 1
    while "".join(lines[:count]).count('"') % 2:
        count += 1
    return "".join(lines[:count]), "", "".join(lines[count:])


def _pattern(shown: str) -> str:
    parts = [re.escape(part) for part in shown.rstrip().split("...")]
    return ".*".join(parts) + r"\s*"


def test_readme_python(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    outs = [
        subprocess.check_output(
            [sys.executable, "-c", block], cwd=tmp_path, env=environment, text=True
        ).split()
        for block in blocks("python")
    ]
    assert outs == [
        ["17.4848135", "44"],
        ["[0,", "1,", "2,", "3]", "16"],
        [
            "training_phase", "duration_p50_us", "Step:ModeKeys.EVAL", "8959.068",
            "Step:ModeKeys.TRAIN", "19015.380",
        ],
    ]  # fmt: skip


def test_demo(environment: dict[str, str]) -> None:
    out = subprocess.check_output(
        [sys.executable, "-m", "pipeline", "demo"], env=environment, text=True
    )
    assert out.startswith("read 5 files (2 kineto, 2 smdebug, 1 system) in ")
    assert out.count("┌") == 3


def test_a_wheel_carries_the_sql_and_the_sample(tmp_path: Path) -> None:
    import zipfile

    pytest.importorskip("hatchling")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "-q",
            "-w",
            str(tmp_path),
            str(ROOT),
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "import pipeline, sys; pipeline.ingest(sys.argv[1], sys.argv[2]); print('ok')"
    sample = tmp_path / "site/pipeline/data/cifar-cnn"
    out = subprocess.check_output(
        [sys.executable, "-c", code, str(sample), str(tmp_path / "lake")],
        cwd="/",
        env={"PATH": "/usr/bin", "PYTHONPATH": str(tmp_path / "site")},
        text=True,
    )
    assert out == "ok\n"
