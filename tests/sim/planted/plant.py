#!/usr/bin/env python3
"""Writes copies of product sources in which the simulation can take rules out, one at a time.

The tables beside this program say where: for each source, the name of a bug or weakening of planted_bug.h, the text of the
rule, and the text that replaces it. In the copy both are there, and the name chooses: of an expression as `named ? (bug) : (rule)`,
of statements as `if (named) { bug } else { rule }`. What stands under `text` is replaced always: declarations that a bug needs.

The text of a rule must be in its source exactly once; only the places of its line breaks do not matter. So whoever changes a rule
learns here that a bug belongs to it. A copy has the same lines as its source, and messages name the source.
"""

import argparse
import collections
import pathlib
import re
import sys
import tomllib

ALWAYS = "text"  # instead of a name


class Misplaced(Exception):
    pass


def spans(source, rule):
    """Where the rule is, or the part of it between backticks."""
    pieces = [r"\s+".join(map(re.escape, piece.strip().split())) for piece in rule.split("`")]
    joints = [r"\s*" if before[-1:].isspace() or after[:1].isspace() else "" for before, after in zip(rule.split("`"), rule.split("`")[1:])]
    if len(pieces) == 1:
        pieces, joints = ["", *pieces, ""], ["", ""]
    before, it, after = pieces
    return [match.span(1) for match in re.finditer(f"{before}{joints[0]}({it}){joints[1]}{after}", source)]


def named(names):
    return " || ".join(f'::muster::IsPlanted("{name}")' for name in names.split("|"))


def replacement(rule, changes):
    """`changes` are the (names, new text) of one place."""
    for names, new in reversed(changes):
        if names == ALWAYS:
            rule = new
        elif rule.endswith((";", "}")):
            rule = f"{{ if ({named(names)}) {{ {new} }} else {{ {rule} }} }}"
        else:
            rule = f"({named(names)} ? ({new}) : ({rule}))"
    return rule


def plant(path, source, table):
    """The source with everything that its table plants."""
    places = collections.defaultdict(list)
    for names, changes in table.items():
        for rule, new in [changes] if isinstance(changes[0], str) else changes:
            found = spans(source, rule)
            if len(found) != 1:
                raise Misplaced(f"{path} has {len(found)} times, not once, what {names} replaces: {rule}")
            places[found[0]].append((names, new))
    planted, end = [], 0
    for (begin, after), changes in sorted(places.items()):
        if begin < end:
            raise Misplaced(f"{path}: two bugs overlap at: {source[begin:after]}")
        rule = source[begin:after]
        new = " ".join(replacement(" ".join(rule.split()), changes).split("\n"))
        planted += [source[end:begin], new, "\n" * rule.count("\n")]
        end = after
    return f'#include "tests/sim/planted/planted_bug.h"\n#line 1 "{path}"\n' + "".join(planted) + source[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="of the sources")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the copies; without it, their names are listed")
    parser.add_argument("tables", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    sources = {}
    for table in options.tables:
        sources |= tomllib.loads(table.read_text())
    if options.out is None:
        return print("\n".join(sources))
    misplaced = []
    for path, table in sources.items():
        copy = options.out / path
        try:
            text = plant(path, (options.root / path).read_text(), table)
        except Misplaced as error:
            misplaced.append(str(error))
            continue
        if copy.exists() and copy.read_text() == text:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    if misplaced:
        sys.exit("\n".join(misplaced) + "\nIf a rule has moved or changed, its bug must go with it: tests/sim/planted/README.md")


if __name__ == "__main__":
    main()
