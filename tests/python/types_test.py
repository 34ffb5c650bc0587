#!/usr/bin/env python3
"""mypy --strict over the Python package and its examples.

Skipped, visibly, where pip cannot have mypy, or where benchmarks/peers/install has not installed PyTorch: the types of `muster.torch`
are those of PyTorch. TensorFlow, Keras and JAX have no types here (python/pyproject.toml says so), and need not be there. What mypy
has found is kept in OUTPUT, so only the first run takes long. Python's standard library only.
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import wheel_test  # noqa: E402

MYPY = "mypy>=2.4,<3"
EXAMPLES = os.path.join(ROOT, "examples", "python")


def installed(output):
    """The python of an environment with mypy. Skips if pip cannot have it."""
    venv = os.path.join(output, "venv")
    if not os.path.exists(os.path.join(venv, "complete")):
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        if subprocess.run([os.path.join(venv, "bin", "pip"), "install", "--quiet", MYPY], check=False).returncode != 0:
            wheel_test.skip("pip could not install mypy")
        open(os.path.join(venv, "complete"), "w", encoding="ascii").close()
    return os.path.join(venv, "bin", "python")


def sources():
    """The modules of the package, and the programs of the examples."""
    package = os.path.join(ROOT, "python", "muster")
    found = [os.path.join(folder, name) for base in (package, EXAMPLES) for folder, _, names in os.walk(base) for name in names if name.endswith(".py")]
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: types_test.py --output build/dev/types")
    parser.add_argument("--output", required=True, type=os.path.abspath, help="where the environment and what mypy remembers go")
    parser.add_argument("--mypy", metavar="PYTHON", type=os.path.abspath, help="a Python that has mypy, in place of an environment of its own")
    options = parser.parse_args()
    torch = os.path.join(wheel_test.PEERS, "torch", "bin", "python")
    wheel_test.peer_path("torch")
    os.makedirs(options.output, exist_ok=True)
    python = options.mypy or installed(options.output)
    checked = sources()
    assert len(checked) > 30, checked
    command = [python, "-m", "mypy", "--config-file", os.path.join(ROOT, "python", "pyproject.toml"), "--python-executable", torch,
               "--cache-dir", os.path.join(options.output, "cache"), *checked]
    sys.exit(subprocess.run(command, cwd=options.output, env=dict(os.environ, MYPYPATH=os.path.join(ROOT, "python")), check=False).returncode)


if __name__ == "__main__":
    main()
