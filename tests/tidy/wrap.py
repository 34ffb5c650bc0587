#!/usr/bin/env python3
"""Wraps the prose of Markdown files at 100 columns, in place. Changes no word, and no paragraph whose lines are all short enough.

Tables, headings, code blocks and HTML stay as they are. A code span and a link's address are not broken, so a line may stay
longer that has nothing else. Python's standard library only.
"""

import argparse
import re

COLUMNS = 100
# Lines that mean something by themselves: headings, tables, quotes, HTML, rules.
NO_PROSE = re.compile(r"\s*(#{1,6}\s|\||>|<|(-{3,}|={3,}|\*{3,})\s*$)")
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)")
FENCE = re.compile(r"\s*(```|~~~)")
# What a line must not begin with, for it would begin an item, a heading, a quote or a table there.
BEGINS_SOMETHING = re.compile(r"([-*+]|\d+[.)]|#{1,6}|=+|-+)$|[>|]")


def paragraphs(text):
    """(first line number, its lines, prose?) of all of a text, in order."""
    block, first, fenced = [], 1, False
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line) is not None
        alone = fenced or fence or not line.strip() or NO_PROSE.match(line) is not None
        if block and (alone or ITEM.match(line)):
            yield first, block, True
            block = []
        if alone:
            yield number, [line], False
        else:
            first = first if block else number
            block.append(line)
        fenced ^= fence
    if block:
        yield first, block, True


def words(line):
    """The words of a line; a code span with its adjacent characters is one word."""
    return re.findall(r"(?:`[^`]*`|[^\s`]|`)+", line)


def wrap_lines(block):
    item = ITEM.match(block[0])
    lead = item.group(0) if item else re.match(r"\s*", block[0]).group(0)
    inside = " " * len(lead)
    lines, now = [], []
    for word in words(" ".join([block[0][len(lead) :], *block[1:]])):
        indent = lead if not lines else inside
        fits = len(indent) + len(" ".join([*now, word])) <= COLUMNS
        if now and not fits:
            # The next line must not begin with what begins something else: it takes a word more along.
            along = [word]
            while len(now) > 1 and BEGINS_SOMETHING.match(along[0]):
                along.insert(0, now.pop())
            lines.append(indent + " ".join(now))
            now = along
        else:
            now.append(word)
    return [*lines, (lead if not lines else inside) + " ".join(now)]


def is_long(block):
    return any(len(line) > COLUMNS for line in block)


def wrap(text):
    lines = []
    for _, block, prose in paragraphs(text):
        lines += wrap_lines(block) if prose and is_long(block) else block
    return "\n".join(lines)


def long_lines(text):
    """(number, columns) of every line of prose that is too long and could be shorter."""
    for first, block, prose in paragraphs(text):
        if prose and is_long(block) and wrap_lines(block) != block:
            for number, line in enumerate(block, first):
                if len(line) > COLUMNS:
                    yield number, len(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: tests/tidy/wrap.py docs/cli.md")
    parser.add_argument("files", nargs="+", help="Markdown files")
    for path in parser.parse_args().files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if (wrapped := wrap(text)) != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(wrapped)


if __name__ == "__main__":
    main()
