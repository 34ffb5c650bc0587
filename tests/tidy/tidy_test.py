#!/usr/bin/env python3
"""Every rule of tidy.py finds wrong code and accepts right code; then the repository itself passes all rules."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import tidy  # noqa: E402
import wrap  # noqa: E402


def findings(rule, files):
    return list(rule(tidy.Tree(files)))


def function_of(lines):
    return "namespace x {\n\nint F(int a) {\n" + "  ++a;\n" * (lines - 2) + "}\n\n}  // namespace x\n"


class RuleTest(unittest.TestCase):
    def assert_sees(self, rule, files, text=""):
        found = findings(rule, files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(text, found[0])

    def assert_clean(self, rule, files):
        self.assertEqual(findings(rule, files), [])

    def test_layers(self):
        for path, target in (
            ("base/a.h", "sharding/b.h"),
            ("sharding/a.cc", "master/core/b.h"),
            ("proto/messages/a.h", "sharding/b.h"),
            ("master/core/a.cc", "ps/engine/b.h"),
            ("worker_sdk/core/a.cc", "master/core/b.h"),
            ("ps/net/a.cc", "cli/b.h"),
            ("cli/a.cc", "worker_sdk/core/b.h"),
            ("verify/a.cc", "sharding/b.h"),
            ("scaler/service/a.cc", "host/processes/b.h"),
            ("worker_sdk/member/a.cc", "worker_sdk/session/session_impl.h"),
            ("examples/flights/a.cc", "base/b.h"),
            ("ps/net/a.cc", "../engine/b.h"),
        ):
            self.assert_sees(tidy.layers, {path: f'#include "{target}"\n'}, target)
        for path, target in (
            ("cli/a.cc", "master/service/b.h"),
            ("cli/verify/a.cc", "verify/b.h"),
            ("cli/a.cc", "host/processes/b.h"),
            ("worker_sdk/session/a.cc", "worker_sdk/session/session_impl.h"),
            ("tests/scaler/service/a.cc", "host/processes/b.h"),
            ("ps/net/a.cc", "ps/engine/b.h"),
            ("master/core/a.cc", "proto/control.pb.h"),
            ("examples/flights/a.cc", "examples/flights/b.h"),
            ("examples/flights/a.cc", "muster/muster.h"),
            ("tests/ps/a.cc", "master/core/b.h"),
        ):
            self.assert_clean(tidy.layers, {path: f'#include "{target}"\n'})

    def test_inner_layers(self):
        for path, target in (
            ("scaler/policy/a.cc", "scaler/decision/b.h"),
            ("scaler/model/internal/a.h", "scaler/rest/b.h"),
            ("scaler/decision/log/a.cc", "scaler/service/b.h"),
            ("cli/show/a.h", "cli/state/b.h"),
            ("host/a.h", "host/processes/b.h"),
            ("job/a.cc", "job/file/b.h"),
        ):
            self.assert_sees(tidy.inner_layers, {path: f'#include "{target}"\n'}, target)
        self.assert_sees(tidy.inner_layers, {"scaler/other/a.cc": ""}, "has no place")
        for path, target in (
            ("scaler/decision/a.cc", "scaler/policy/b.h"),
            ("scaler/decision/log/a.cc", "scaler/decision/b.h"),
            ("scaler/rest/server/a.cc", "scaler/rest/internal/b.h"),
            ("cli/main.cc", "cli/verbs/b.h"),
            ("host/processes/a.cc", "host/b.h"),
            ("host/a.cc", "proto/messages/b.h"),
            ("worker_sdk/include/muster/a.h", "muster/b.h"),
        ):
            self.assert_clean(tidy.inner_layers, {path: f'#include "{target}"\n'})

    def test_room_shares(self):
        quarters = {f"{room}/a.cc": "\n" * 100 for room in ("base", "master", "ps", "cli")}
        self.assert_clean(tidy.room_shares, {**quarters, "tests/ps/a_test.cc": "\n" * 1000})
        self.assert_sees(tidy.room_shares, {**quarters, "ps/b.h": "\n"}, "ps/: 101 lines are 25.2 %")

    def test_internal_folders(self):
        include = '#include "ps/net/internal/b.h"\n'
        self.assert_sees(tidy.internal_folders, {"ps/service/a.cc": include}, "internal to ps/net/")
        self.assert_clean(tidy.internal_folders, {"ps/net/a.cc": include, "tests/ps/net/a_test.cc": include})

    def test_adapters(self):
        self.assertEqual(len(findings(tidy.adapters, {"master/core/a.cc": "#include <rocksdb/db.h>\n"})), 2)
        self.assert_sees(tidy.adapters, {"cli/a.cc": '#include "yaml-cpp/yaml.h"\n'}, "job/file")
        self.assert_sees(tidy.adapters, {"ps/engine/a.cc": "#include <fstream>\n"}, "pure")
        self.assert_sees(tidy.adapters, {"sharding/a.cc": "#include <fstream>\n"}, "pure")
        self.assert_sees(tidy.adapters, {"cli/run/run_supervisor.cc": "#include <thread>\n"}, "pure")
        self.assert_clean(tidy.adapters, {"cli/run/run_command.cc": "#include <thread>\n", "host/processes/a.cc": "#include <thread>\n"})
        self.assertEqual(len(findings(tidy.adapters, {"scaler/rest/a.cc": "#include <boost/beast/http.hpp>\n"})), 2)
        self.assert_clean(tidy.adapters, {"scaler/rest/server/a.cc": "#include <boost/beast/http.hpp>\n#include <thread>\n"})
        self.assert_clean(tidy.adapters, {"master/journal/a.cc": "#include <rocksdb/db.h>\n", "tests/ps/a.cc": "#include <rocksdb/db.h>\n"})

    def test_sdk_headers(self):
        path = "worker_sdk/include/muster/a.h"
        self.assert_sees(tidy.sdk_headers, {path: '#include "absl/status/status.h"\n'}, "absl")
        self.assert_sees(tidy.sdk_headers, {path: '#include "base/clock.h"\n'}, "base")
        self.assert_clean(tidy.sdk_headers, {path: '#include "muster/b.h"\n#include <vector>\n#include <cstdint>\n'})

    def test_one_thread(self):
        marked = {"tests/sharding/CMakeLists.txt": "muster_one_thread()\nmuster_test(sharding_test)\n"}
        self.assert_sees(tidy.one_thread, {**marked, "sharding/queue.cc": '#include "base/mutex.h"\n'}, "one thread")
        self.assert_sees(tidy.one_thread, {**marked, "tests/sharding/queue_test.cc": "#include <thread>\n"}, "one thread")
        self.assert_clean(tidy.one_thread, {**marked, "sharding/queue.cc": "#include <vector>\n", "net/a.cc": "#include <thread>\n"})
        self.assert_clean(tidy.one_thread, {"tests/sharding/CMakeLists.txt": "muster_test(a)\n", "sharding/queue.cc": "#include <thread>\n"})

    def test_headers_in_readmes(self):
        self.assert_sees(tidy.headers_in_readmes, {"ps/net/lane.h": "", "ps/net/README.md": "lanes"}, "ps/net/lane.h")
        self.assert_clean(tidy.headers_in_readmes, {"ps/net/lane.h": "", "ps/net/README.md": "| `lane.h` | one thread |"})
        self.assert_clean(tidy.headers_in_readmes, {"tests/a/b.h": "", "tests/a/README.md": "x", "ps/net/lane.h": ""})

    def test_readmes(self):
        documents = dict.fromkeys(("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs/dependencies.md"), "x")
        self.assert_sees(tidy.readmes, {**documents, "ps/net/CMakeLists.txt": "muster_library(ps_net)"}, "ps/net/README.md")
        self.assert_sees(tidy.readmes, {**documents, "CHANGELOG.md": " \n"}, "CHANGELOG.md")
        self.assert_clean(tidy.readmes, {**documents, "ps/CMakeLists.txt": "muster_add_folders(net)", "tests/a/CMakeLists.txt": "add_library(x)"})

    def test_mirrored_tests(self):
        source = {"ps/net/a.cc": '#include "ps/net/a.h"\n', "ps/net/a.h": ""}
        self.assert_sees(tidy.mirrored_tests, source, "ps/net/a.cc")
        self.assert_sees(tidy.mirrored_tests, {**source, "tests/ps/engine/b_test.cc": '#include "ps/net/a.h"\n'}, "ps/net/a.cc")
        self.assert_sees(tidy.mirrored_tests, {"ps/net/a.cc": '#include "ps/net/b.h"\n', "ps/net/b.h": ""}, "ps/net/a.cc")
        self.assert_clean(tidy.mirrored_tests, {**source, "tests/ps/net/a_test.cc": ""})
        self.assert_clean(tidy.mirrored_tests, {**source, "tests/ps/net/all_test.cc": '#include "ps/net/a.h"\n'})
        part_of_a_class = {"ps/net/b.h": '#include "ps/net/a.h"\n', "tests/ps/net/b_test.cc": '#include "ps/net/b.h"\n'}
        self.assert_clean(tidy.mirrored_tests, {**source, **part_of_a_class})
        self.assert_clean(tidy.mirrored_tests, {"examples/x/trainer.cc": "int main() { return 0; }\n"})

    def test_sizes(self):
        self.assert_clean(tidy.sizes, {"ps/a.h": "\n" * 300, "ps/a.cc": "\n" * 500, "ps/b.cc": function_of(70)})
        self.assert_sees(tidy.sizes, {"ps/a.h": "\n" * 301}, "301 lines")
        self.assert_sees(tidy.sizes, {"ps/a.cc": "\n" * 501}, "501 lines")
        self.assert_sees(tidy.sizes, {"ps/a.cc": function_of(71)}, "function of 71 lines")
        self.assert_sees(tidy.sizes, {f"ps/{i}.md": "" for i in range(41)}, "41 files")

    def test_function_lengths_of_all_forms(self):
        body = "  ++a;\n" * 9
        for heading in (
            "int C::F(int a) const {",
            "template <typename T>\nC<T>::C(int a) : a_(a), b_{1} {",
            "auto F(std::function<void(int)> f = {}) -> std::vector<int> {",
            "void F(\n    int a,\n    int b) noexcept {",
            "TEST(A, B) {",
        ):
            found = list(tidy.function_lengths(f"namespace x {{\n\n{heading}\n{body}}}\n}}\n"))
            self.assertEqual([(first, lines) for first, _, lines in found], [(3, 10 + heading.count("\n") + 1)], heading)
        in_class = "class C {\n public:\n  C() = default;\n  int F() {\n" + body + "  }\n  int g_ = 1;\n};\n"
        self.assertEqual([lines for _, _, lines in tidy.function_lengths(in_class)], [11])
        nested = "void F() {\n  auto g = [](int a) {\n    if (a) {\n    }\n  };\n  const char* s = \"}{\";  // }\n}\n"
        self.assertEqual([lines for _, _, lines in tidy.function_lengths(nested)], [7])
        self.assertEqual(list(tidy.function_lengths("struct S {\n  int a = 1;\n};\nconstexpr int k[] = {\n  1,\n};\n")), [])

    def test_banned_calls(self):
        for call in (
            "auto t = std::chrono::system_clock::now();",
            "std::this_thread::sleep_for(1s);",
            "int r = rand();",
            'const char* e = getenv("HOME");',
            "std::mutex m;",
            "std::lock_guard l(m);",
        ):
            self.assert_sees(tidy.banned_calls, {"ps/net/a.cc": call + "\n"}, "is not for here")
            self.assert_clean(tidy.banned_calls, {"base/a.cc": call, "cli/b.cc": call})
            self.assert_clean(tidy.banned_calls, {"ps/a.cc": "// " + call + '\nconst char* s = "getenv sleep_for";\n'})
        self.assert_sees(tidy.banned_calls, {"tests/ps/a_test.cc": "sleep_for(1s);\n"}, "sleep_for")
        self.assert_clean(tidy.banned_calls, {"ps/a.cc": "int operand(int); int x = operand(1); Mutex m;\n"})

    def test_text_form(self):
        self.assert_clean(tidy.text_form, {"ps/a.cc": "x" * 100 + "\n", "ps/a.h": "// c\n#pragma once\n"})
        self.assert_sees(tidy.text_form, {"ps/a.cc": "x" * 101 + "\n"}, "101 columns")
        self.assert_sees(tidy.text_form, {"ps/a.cc": "\tx\n"}, "tab")
        self.assert_sees(tidy.text_form, {"ps/a.cc": "x \n"}, "blanks")
        self.assert_sees(tidy.text_form, {"ps/a.cc": "x"}, "no end")
        self.assert_sees(tidy.text_form, {"ps/a.h": "#ifndef A\n#define A\n#endif\n"}, "#pragma once")

    def test_markdown_width(self):
        words = "word " * 21 + "end\n"
        for long in (words, "- " + words, "  12. " + words, "| a |\n\n" + words, "```\nx\n```\n" + words):
            self.assert_sees(tidy.markdown_width, {"ps/README.md": long}, "108" if long == words else "columns")
        for kept in (
            "word " * 19 + "end\n",
            "| " + words,
            "# " + words,
            "<p>" + words,
            "```\n" + words + "```\n",
            "   ```yaml\n   " + words + "   ```\n",
            "https://" + "x" * 120 + "\n",
            "`" + words[:-1] + "`\n",
        ):
            self.assert_clean(tidy.markdown_width, {"ps/README.md": kept})
        self.assert_clean(tidy.markdown_width, {"data.txt": words})

    def test_wrap(self):
        """No word changes, no line begins with what would mean something, and once is enough."""
        text = "x" * 40 + " " + "y" * 50 + " `code with blanks` and\nmore\n\n1. " + "z " * 60 + "\n   end\n\n| a |\n"
        wrapped = wrap.wrap(text)
        self.assertEqual(wrapped.split(), text.split())
        self.assertEqual(wrapped.split("\n")[:2], ["x" * 40 + " " + "y" * 50, "`code with blanks` and more"])
        self.assertIn("\n   z z", wrapped, "the second line of an item is below its words")
        self.assertTrue(wrapped.endswith("\n\n| a |\n"))
        self.assertEqual(wrap.wrap(wrapped), wrapped)
        for word in ("-", "+", "*", "1.", "#", "|", ">"):
            lines = wrap.wrap("x" * 96 + " end " + word + " more words\n").split("\n")
            self.assertEqual(lines[0].split(), ["x" * 96], word)
        untouched = "short\nlines\n\n- stay\n  as they are\n"
        self.assertEqual(wrap.wrap(untouched), untouched)

    def test_mains(self):
        self.assert_sees(tidy.mains, {"ps/a.cc": "int main() {}\n"}, "cli/")
        self.assert_clean(tidy.mains, {"cli/a.cc": "int main() {}\n", "examples/a.cc": "int main() {}\n"})

    def test_commands_documented(self):
        self.assert_sees(tidy.commands_documented, {"scripts/demo": "echo\n"}, "--help")
        self.assert_clean(tidy.commands_documented, {"scripts/demo": "--help\n", "scripts/lib/x.py": ""})

    def test_protocol_rules(self):
        document = {"docs/protocol.md": "## 2. Shards\n\n1. A lease.\n2. A push.\n"}
        named = {"master/a.cc": "// Rule 2.1.\n", "ps/b.cc": "  // Rules 2.1 and 2.2: why.\n"}
        self.assert_clean(tidy.protocol_rules, document | named)
        self.assert_sees(tidy.protocol_rules, document | {"master/a.cc": named["master/a.cc"]}, "no source says \"// Rule 2.2.")
        self.assert_sees(tidy.protocol_rules, document | named | {"ps/c.cc": "// Rule 2.3.\n"}, "ps/c.cc: docs/protocol.md has no rule 2.3")

    def test_clang_format(self):
        with tempfile.TemporaryDirectory() as root:
            pinned = {".clang-format": "# clang-format 19\nBasedOnStyle: Google\n"}
            files = {**pinned, "a.cc": "int  a ;\n", "b.cc": "int b;\n"}
            for name, text in files.items():
                with open(os.path.join(root, name), "w", encoding="ascii") as file:
                    file.write(text)
            found = list(tidy.clang_format(root, tidy.Tree(files)))
            if tidy.shutil.which("clang-format-" + tidy.CLANG_FORMAT):
                self.assertEqual([f.split(":")[0] for f in found], ["a.cc"])
            found = list(tidy.clang_format(root, tidy.Tree({".clang-format": "BasedOnStyle: Google\n"})))
            self.assertIn("does not pin", found[0])


class RepositoryTest(unittest.TestCase):
    def test_repository_is_tidy(self):
        tree = tidy.Tree.of_git(ROOT)
        found = [finding for rule in tidy.RULES for finding in rule(tree)] + list(tidy.clang_format(ROOT, tree))
        self.assertEqual(found, [], "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
