"""Check of the wheel: built from lib/ and installed in an empty environment, it maps and fuses files elsewhere.

    python tests/wheel/check_wheel.py

The environment has only the packages that tilewright needs. It has nothing of the checkout and nothing from a network.
The installed command runs `map` and `fuse` in a folder with copies of shipped files. Latency and energy must be those
of the checkout. No file of the installed package may change. The second run of a verb must find the kernels that the
first one compiled. If a condition does not hold, the check prints it and exits with 1.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "map": ("summary.json", "--hardware", "accelerator.yaml", "--mapping", "mapping.yaml"),
    "fuse": ("fusion.json", "--hardware", "quad_core.yaml", "--nb-plans", "16", "--fusion-time-budget-s", "3000"),
}
"""Verb -> file with the verb's result, then the options besides network and folder."""


class WheelError(Exception):
    """Raised if a condition on the wheel does not hold."""


def run(command: list[str], folder: Path) -> None:
    """Run a command in a folder, without this process's search path. Raises WheelError with its output if it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WheelError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def built_wheel(folder: Path) -> Path:
    """The wheel, built from a copy of lib/ because building writes beside the sources."""
    sources = shutil.copytree(ROOT / "lib", folder / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
    run([sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(sources)], folder)
    (wheel,) = folder.glob("tilewright-*.whl")
    return wheel


def environment_with(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Command and folder of the package in a new environment that has the wheel and the packages it needs."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet"]
    run([sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)], folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (needed,) = (ROOT / ".venv").glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(f"{needed}\n")  # its packages alone: path files that lie there are not read
    return folder / "bin" / "tilewright", site / "tilewright"


def digests(folder: Path) -> dict[str, str]:
    """File of a folder -> digest of its content; bytecode is left out."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def results_of(command: list[str], folder: Path) -> dict[str, tuple[float, float]]:
    """Verb -> (energy in pJ, latency in cycles) that the command finds for the files of a folder."""
    found = {}
    for verb, (told, *options) in COMMANDS.items():
        output = folder / f"{verb}-{len(command)}"
        run([*command, verb, *options, "--workload", "workload.yaml", "--output", str(output)], folder)
        summary = json.loads((output / told).read_text())["payload"]
        found[verb] = summary["energy_pj"], summary["latency_cycles"]
    return found


def check(folder: Path) -> None:
    """Build, install and run the wheel. Raises WheelError if a condition does not hold."""
    command, package = environment_with(built_wheel(folder), folder / "environment")
    own = folder / "own"
    shutil.copytree(ROOT / "config" / "hardware" / "multi", own)
    shutil.copytree(ROOT / "docs" / "examples", own, dirs_exist_ok=True)
    before = digests(package)
    installed = results_of([str(command)], own)
    if digests(package) != before:
        raise WheelError("a run changes files of the installed package")
    kernels = digests(folder / "environment" / ".cache")
    if results_of([str(command)], own) != installed or not kernels:
        raise WheelError("a second run finds other results, or no kernels of the first one")
    if digests(folder / "environment" / ".cache") != kernels:
        raise WheelError("a second run compiles kernels again")
    checkout = results_of([str(ROOT / ".venv" / "bin" / "python"), "-m", "tilewright"], own)
    for verb, figures in installed.items():
        print(f"{verb}: {figures[0]:,.0f} pJ, {figures[1]:,} cycles")
    if installed != checkout:
        raise WheelError(f"the wheel finds {installed}, the checkout {checkout}")


def main() -> int:
    """Run the check. Returns the exit code: 0 if all conditions hold, else 1."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(Path(folder))
        except WheelError as fault:
            print(f"wheel: {fault}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
