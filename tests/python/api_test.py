#!/usr/bin/env python3
"""docs/python-api.md is what scripts/python-api prints, and the tool refuses what has no docstring or no type."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "scripts", "python-api")
PACKAGE = {
    "__init__.py": '"""A package."""\n\nfrom ._inner import Kind, made\nfrom ._stub import Both\n\n__all__ = ["Both", "Kind", "made"]\n',
    "_inner.py": '''
"""Inside."""

from typing import Union

Number = Union[int, float]


class Base(Generic[Any]):
    """Not public."""

    @property
    def colour(self) -> str:
        """Which colour."""

    def grow(self, by: int) -> None:
        """Grows."""

    def shrink(self, by: int) -> None:
        """Not shown: a kind has its own."""


class Kind(Base[int], dict):
    """A kind, of 2**3.

        one = Kind()
    """

    def __init__(self, size: Number = 1) -> None:
        """Use `made()`."""

    @property
    def size(self) -> int:
        """How large."""

    def shrink(self) -> None:
        """Shrinks."""

    def _hidden(self, what): ...


def made(*, name: str = 'x') -> Kind:
    """Makes one.

    name: what it is
        called.
    """
''',
    "_stub.pyi": '''
class Both:
    """Two."""

    @overload
    def call(self, one: int) -> None:
        """Calls."""

    @overload
    def call(self, one: str, other: str) -> None: ...
''',
}
PAGE = """## `muster`

A package.

### `muster.Both`

```py
class Both
```

Two.

#### `Both.call`

```py
call(one: int) -> None
call(one: str, other: str) -> None
```

Calls.

### `muster.Kind`

```py
class Kind(dict)
```

A kind, of 2\\*\\*3.

```py
one = Kind()
```

* `size: int`. How large.
* `colour: str`. Which colour.

#### `Kind.shrink`

```py
shrink() -> None
```

Shrinks.

#### `Kind.grow`

```py
grow(by: int) -> None
```

Grows.

### `muster.made`

```py
made(*, name: str = "x") -> Kind
```

Makes one.

* **name**: what it is
  called.

## Types

Names that signatures above use, and that are not to be imported.

| name | meaning |
| --- | --- |
| `Number` | `Union[int, float]` |
"""


class ApiTest(unittest.TestCase):
    maxDiff = None

    def made_of(self, *changes):
        """(exit code, output, errors) of the tool for PACKAGE, in which some texts are replaced."""
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "muster")
            os.mkdir(package)
            for name, text in PACKAGE.items():
                for old, new in changes:
                    text = text.replace(old, new)
                with open(os.path.join(package, name), "w", encoding="utf-8") as file:
                    file.write(text)
            run = subprocess.run([sys.executable, TOOL, "--package", package], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout, run.stderr

    def test_the_page_is_what_the_tool_prints(self):
        run = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        with open(os.path.join(ROOT, "docs", "python-api.md"), encoding="utf-8") as file:
            self.assertEqual(file.read(), run.stdout, "call scripts/python-api > docs/python-api.md")

    def test_what_it_prints_of_a_package(self):
        code, page, _ = self.made_of()
        self.assertEqual(code, 0)
        self.assertEqual(page.partition("\n\n## ")[2], PAGE.removeprefix("## "))

    def test_what_has_no_docstring_or_no_type(self):
        for old, new, said in (
            ('    """A kind, of 2**3.\n\n        one = Kind()\n    """\n', "", "muster.Kind: it has no docstring"),
            ('        """How large."""\n', "        ...\n", "muster.Kind.size: it has no docstring"),
            ("def size(self) -> int:", "def size(self):", "muster.Kind.size: its result has no type"),
            ('        """Grows."""\n', "        ...\n", "muster.Kind.grow: it has no docstring"),
            ("size: Number = 1", "size=1", "muster.Kind.__init__: its argument size has no type"),
            ("name: str = 'x'", "name='x'", "muster.made: its argument name has no type"),
            ('        """Calls."""\n', "        ...\n", "muster.Both.call: it has no docstring"),
            ("one: str, ", "one, ", "muster.Both.call: its argument one has no type"),
            ('"made"]', '"maid"]', "muster.maid: it is in __all__, and defined nowhere"),
        ):
            with self.subTest(said):
                self.assertEqual(self.made_of((old, new)), (1, "", f"python-api: {said}\n"))


if __name__ == "__main__":
    unittest.main()
