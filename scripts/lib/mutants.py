"""Finds places where a small bug can be planted in C++ sources, and writes sources that contain all of those bugs at once.

Every bug ("mutant") stands behind a switch that is off: `a < b` becomes `(MutantActive(7) ? (a <= b) : (a < b))`. So a folder is
compiled once, and each mutant costs only a run of the tests. Source of the idea: Untch, Offutt, Harrold, "Mutation analysis using
mutant schemata", ISSTA 1993. Sources are read with Clang's own parser (Debian's python3-clang-19).
"""

import collections
import os

from clang import cindex
from clang.cindex import CursorKind, TypeKind

Mutant = collections.namedtuple("Mutant", "id path line kind before after")

# What each operator becomes. The operands keep their types, so what compiled before compiles after.
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*", "%": "+",
             "&&": "||", "||": "&&"}
ARITHMETIC = set("+-*/%")
# Two floating-point numbers are hardly ever equal: what becomes of "<" must not differ from it there alone.
FLOATING_OPERATORS = OPERATORS | {"<": ">", "<=": ">", ">": "<", ">=": "<"}
FLOATING = {TypeKind.FLOAT, TypeKind.DOUBLE}
COMPARISONS = {f"operator{name}" for name in ("<", "<=", ">", ">=", "==", "!=")}  # of our own types
NUMBERS = {TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.LONGLONG, TypeKind.ULONGLONG, TypeKind.SHORT,
           TypeKind.USHORT, TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.UCHAR, TypeKind.SCHAR}
# Below these, values are needed at compile time or a wrapped expression means something else.
CLOSED = {CursorKind.STATIC_ASSERT, CursorKind.ENUM_DECL, CursorKind.CLASS_TEMPLATE, CursorKind.FUNCTION_TEMPLATE,
          CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.INIT_LIST_EXPR, CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF}

HEADER = """#pragma once
// The switches of the planted bugs. MUTANT names the active one; MUTANTS_REACHED names a file with one byte for each mutant,
// which becomes 1 when a process comes past it, however that process ends.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

// What a switch may make of correct code, for the compiler.
#pragma GCC diagnostic ignored "-Wreturn-type"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

struct MutantSwitches {
  int active = 0;
  unsigned char* reached = nullptr;
  MutantSwitches() {
    if (const char* number = ::getenv("MUTANT")) active = ::atoi(number);
    if (const char* path = ::getenv("MUTANTS_REACHED")) {
      const int fd = ::open(path, O_RDWR);
      if (fd < 0) return;
      void* memory = ::mmap(nullptr, %(size)d, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      ::close(fd);
      if (memory != MAP_FAILED) reached = static_cast<unsigned char*>(memory);
    }
  }
};
inline MutantSwitches& Switches() {
  static MutantSwitches* const switches = new MutantSwitches;
  return *switches;
}
inline bool MutantActive(int id) {
  MutantSwitches& switches = Switches();
  if (switches.reached != nullptr) switches.reached[id] = 1;
  return switches.active == id;
}
"""


class Source:
    """One source file, its mutants, and the changed text."""

    def __init__(self, path, shown, arguments, next_id):
        self.path, self.shown = path, shown
        with open(path, "rb") as file:
            self.text = file.read()
        self.next_id = next_id
        self.edits = []  # (begin, end, mutant id, text when it is active; None: the statement is left out)
        self.mutants = []
        options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        unit = cindex.Index.create().parse(path, args=arguments, options=options)
        errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise ValueError(f"{shown} cannot be parsed: {errors[0]}")
        self.macros = [(c.extent.start.offset, c.extent.end.offset) for c in unit.cursor.get_children()
                       if c.kind == CursorKind.MACRO_INSTANTIATION and self.mine(c)]
        for cursor in unit.cursor.get_children():
            if self.mine(cursor):
                self.visit(cursor, None)

    def mine(self, cursor):
        file = cursor.extent.start.file
        return file is not None and os.path.samefile(file.name, self.path)

    def source(self, cursor):
        return self.text[cursor.extent.start.offset:cursor.extent.end.offset].decode()

    def in_macro(self, cursor):
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        return begin >= end or any(b < end and begin < e for b, e in self.macros)

    def add(self, cursor, kind, after, begin=None, end=None):
        begin = cursor.extent.start.offset if begin is None else begin
        end = cursor.extent.end.offset if end is None else end
        before = self.text[begin:end].decode()
        if "//" in before:  # the active text stands on one line
            return
        self.mutants.append(Mutant(self.next_id, self.shown, cursor.extent.start.line, kind, before, "" if after is None else after))
        self.edits.append((begin, end, self.next_id, after))
        self.next_id += 1

    def visit(self, cursor, parent):
        if cursor.kind in CLOSED and cursor.kind not in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.INIT_LIST_EXPR):
            return
        if cursor.kind in (CursorKind.VAR_DECL, CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD) and "constexpr" in self.source(cursor)[:60]:
            return
        if cursor.kind == CursorKind.CASE_STMT:  # the label is a constant, what follows is not
            for child in list(cursor.get_children())[1:]:
                self.statement(child, cursor)
                self.visit(child, cursor)
            return
        if not self.in_macro(cursor):
            self.plant(cursor, parent)
        for child in cursor.get_children():
            self.visit(child, cursor)

    def plant(self, cursor, parent):
        if cursor.kind == CursorKind.BINARY_OPERATOR or cursor.kind == CursorKind.CALL_EXPR and cursor.spelling in COMPARISONS:
            self.operator(cursor)
        elif cursor.kind == CursorKind.INTEGER_LITERAL and (parent is None or parent.kind not in CLOSED):
            text = self.source(cursor)
            if text.isdigit():  # a comparison that the compiler rewrites with <=> holds a 0 that is not in the source
                self.add(cursor, "constant", f"{text} + 1")
        elif cursor.kind == CursorKind.CXX_BOOL_LITERAL_EXPR and (parent is None or parent.kind not in CLOSED):
            self.add(cursor, "constant", "false" if self.source(cursor) == "true" else "true")
        if cursor.kind in (CursorKind.IF_STMT, CursorKind.WHILE_STMT):
            self.condition(cursor)
        if parent is not None and parent.kind == CursorKind.COMPOUND_STMT:
            self.statement(cursor, parent)

    def operator(self, cursor):
        children = sorted((c for c in cursor.get_children() if c.spelling not in COMPARISONS), key=lambda c: c.extent.start.offset)
        if len(children) != 2:
            return
        left, right = children
        between = self.text[left.extent.end.offset:right.extent.start.offset].decode()
        name = between.strip()
        if name not in OPERATORS:
            return
        if name in ARITHMETIC and not all(c.type.get_canonical().kind in NUMBERS for c in children):
            return
        a, b = self.source(left), self.source(right)
        if name in ("&&", "||"):
            a, b = f"({a})", f"({b})"
        floating = any(c.type.get_canonical().kind in FLOATING for c in children)
        self.add(cursor, "operator", f"{a} {(FLOATING_OPERATORS if floating else OPERATORS)[name]} {b}")

    def condition(self, cursor):
        children = [c for c in cursor.get_children() if c.kind != CursorKind.DECL_STMT]
        if len(children) != len(list(cursor.get_children())) or not children:
            return
        condition = children[0]
        if condition.kind == CursorKind.VAR_DECL or self.in_macro(condition):
            return
        self.add(condition, "condition", f"!({self.source(condition)})")

    def statement(self, cursor, parent):
        """A call, an assignment or a step that stands alone is left out."""
        if self.in_macro(cursor):
            return
        alone = {CursorKind.CALL_EXPR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR, CursorKind.UNARY_OPERATOR, CursorKind.BINARY_OPERATOR}
        if ".reserve(" in self.source(cursor):  # changes only the time
            return
        if cursor.kind not in alone or cursor.kind == CursorKind.BINARY_OPERATOR and "=" not in self.source(cursor):
            return
        end = cursor.extent.end.offset
        semicolon = self.text.find(b";", end)
        if semicolon < 0 or self.text[end:semicolon].strip():
            return
        self.add(cursor, "statement", None, end=semicolon + 1)

    def rewritten(self, without):
        """The source with every mutant but those in `without`, all on the lines where they were."""
        edits = [e for e in self.edits if e[2] not in without]
        edits.sort(key=lambda e: (e[0], -e[1], e[3] is not None, e[2]))
        return self._rewrite(0, len(self.text), edits).decode()

    def _rewrite(self, begin, end, edits):
        """text[begin:end] with `edits`, which lie inside it; the outermost come first."""
        out, at, i = [], begin, 0
        while i < len(edits):
            b, e, number, after = edits[i]
            inner = []
            i += 1
            while i < len(edits) and edits[i][0] < e:
                if edits[i][1] <= e:
                    inner.append(edits[i])
                i += 1
            out.append(self.text[at:b])
            kept = self._rewrite(b, e, inner)
            if after is None:
                out.append(b"if (!MutantActive(%d)) { %s }" % (number, kept))
            else:
                after_line = " ".join(after.split())
                out.append(b"(MutantActive(%d) ? (%s) : (%s))" % (number, after_line.encode(), kept))
            at = e
        out.append(self.text[at:end])
        return b"".join(out)
