#!/usr/bin/env python3
"""Checks the rules of the house that a program can check, over all files that git tracks. Python's standard library only.

A rule is a function from a Tree (paths and texts) to findings; tidy_test.py feeds each of them something wrong. What a rule
means and why it is there: CONTRIBUTING.md.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import wrap  # noqa: E402

COLUMNS = wrap.COLUMNS
HEADER_LINES = 300
SOURCE_LINES = 500
FUNCTION_LINES = 70
FOLDER_FILES = 40
CLANG_FORMAT = "19"

# What each layer may include, itself aside.
LAYERS = {
    "base": set(),
    "kafka": {"base"},
    "kubernetes": {"base", "host", "http", "job", "proto", "security"},
    "security": {"base"},
    "net": {"base", "security"},
    "collectives": {"base", "net", "proto", "security"},
    "http": {"base"},
    "store": {"base", "http"},
    "verify": {"base"},
    "job": {"base", "store"},
    "proto": {"base"},
    "sharding": {"base", "job"},
    "host": {"base", "proto"},
    "admin": {"base", "host", "proto", "security"},
    "master": {"base", "job", "kafka", "proto", "security", "sharding", "store"},
    "ps": {"base", "net", "proto", "security", "sharding", "store"},
    "worker_sdk": {"base", "collectives", "kafka", "net", "proto", "security", "sharding", "store"},
    "scaler": {"admin", "base", "host", "http", "job", "proto", "security"},
    "cli": {"admin", "base", "host", "job", "kafka", "kubernetes", "master", "proto", "ps", "scaler", "security", "sharding", "store", "verify"},
}
# The folders of a room, downwards: each may include what stands before it. "" is the room's own, above its folders.
INNER = {
    "cli": ("show", "state", "manifests", "run", "join", "node", "ask", "export", "steer", "cluster", "metrics", "simulate", "verify", "reference", "verbs", ""),
    "host": ("", "stacks", "processes"),
    "http": ("url", ""),
    "job": ("", "file"),
    "kubernetes": ("model", "config", "client", "manifests", "pods"),
    "master": ("group_core", "core", "journal", "sources", "service"),
    "proto": ("", "fields", "rpc", "wire", "messages", "status", "exported"),
    "ps": ("engine", "snapshot", "export", "core", "net", "service"),
    "scaler": ("model", "nodes", "policy", "decision", "sensor", "history", "simulate", "rest", "dashboard", "service"),
    "security": ("", "rpc"),
    "sharding": ("", "lines", "stream"),
    "store": ("names", ""),
    "verify": ("workload", ""),
    "worker_sdk": ("core", "member_core", "control", "readers", "net", "session", "member"),
}
# Of all lines of the product, in one room at most.
ROOM_SHARE_PERCENT = 25
# Folders and headers behind an interface, and the folders that may name them besides tests: those that open them.
BEHIND_INTERFACES = {"host/processes/": ("cli", "host/processes"), "host/stacks/": ("host",), "worker_sdk/session/session_impl.h": ("worker_sdk/session",)}
# The header that a trainer includes; examples may include no other header of the project.
PUBLIC_HEADERS = "worker_sdk/include/"
EXAMPLE_FOLDERS = {"examples"}
# Folders, and files without their ending, in which deciding and doing are kept apart: no library that reads the world.
PURE_FOLDERS = ("cli/export/export_messages", "cli/manifests/manifest_text", "cli/metrics/comparison", "cli/metrics/event_file", "cli/metrics/points", "cli/run/run_supervisor", "cli/show/epochs", "cli/show/fit", "cli/show/json_output", "cli/show/log_lines", "cli/show/text_output", "collectives/frames", "collectives/internal/bucket_progress", "collectives/add_elements", "collectives/chunk_plan", "collectives/bucket_progress", "host", "job", "kubernetes/manifests/export_pod", "kubernetes/manifests/kustomize", "kubernetes/manifests/merge", "kubernetes/manifests/objects", "kubernetes/manifests/pod_template", "kubernetes/manifests/secrets", "kubernetes/model", "kubernetes/pods/former_pods", "kubernetes/pods/node_pods", "kubernetes/pods/pod_body", "kubernetes/pods/pod_book", "kubernetes/pods/pod_book_answers", "kubernetes/pods/pod_calls", "kubernetes/pods/pod_facts", "kubernetes/pods/pod_log", "kubernetes/pods/quantity", "master/core", "master/group_core", "proto/messages", "proto/status", "ps/core", "ps/engine", "scaler/decision", "scaler/model", "scaler/nodes", "scaler/policy", "scaler/rest", "scaler/sensor", "sharding", "store/names", "verify", "worker_sdk/core", "worker_sdk/member_core")
# Of those, the ones whose subfolders are shells.
PURE_WITH_SHELLS_BELOW = ("host", "job", "scaler/decision", "scaler/rest")
SHELL_HEADERS = re.compile(
    r"^(grpc|grpcpp|boost/asio|boost/beast|rocksdb|yaml-cpp|nghttp2|spdlog)/|^(fstream|thread|unistd\.h|fcntl\.h|sys/socket\.h)$"
)
THREAD_HEADERS = ("base/mutex.h", "thread", "mutex", "atomic", "condition_variable", "absl/synchronization/mutex.h", "absl/synchronization/notification.h")
# Third-party libraries and the only folders that may name them; tests aside.
ADAPTERS = {
    "rocksdb/": ("master/journal", "ps/snapshot"),
    "yaml-cpp/": ("job/file", "kubernetes/config", "kubernetes/manifests"),
    "nghttp2/": ("worker_sdk/control",),
    "boost/asio": ("collectives", "kubernetes/client", "net", "ps/net", "scaler/rest/server", "security", "worker_sdk/control", "worker_sdk/member",
                   "worker_sdk/net"),
    "boost/beast": ("kubernetes/client", "scaler/rest/server"),
    "spdlog/": ("base",),
    "CLI/": ("cli",),
    "Eigen/": ("examples",),
    "grpc": ("master/service", "proto/rpc", "ps/service", "admin", "security/rpc"),
    "protozero/": ("proto/fields",),
    "nlohmann/": ("cli", "host", "job/file", "kubernetes", "proto/fields", "ps/export", "scaler/decision/log", "scaler/history", "scaler/model", "scaler/rest", "scaler/service"),
    "openssl/": ("base/digest", "http", "kubernetes/client", "net", "security"),
    "elfutils/": ("host/stacks",),
    "hwy/": ("proto/wire", "ps/engine", "worker_sdk/core"),
    "librdkafka/": ("kafka",),
    "curl/": ("http",),
    "pugixml": ("store/names",),
    "xxhash": ("master/sources", "proto/wire", "ps/snapshot", "sharding"),
}
BANNED = {
    r"\bsystem_clock::now\b": "take a muster::Clock (base/clock.h)",
    r"\bsleep_for\b|\busleep\b|\bnanosleep\b": "wait on a condition, or use muster::Clock (base/clock.h)",
    r"\bs?rand\s*\(": "use muster::Rng with a seed (base/random.h)",
    r"\bgetenv\b": "pass it as an option",
    r"\.dump\(\d*\)": "a name that is not UTF-8 would throw: JsonText (proto/fields/json.h)",
    r"\bstd::(recursive_|shared_|timed_)?mutex\b|\bstd::lock_guard\b|\bstd::condition_variable\b": "use muster::Mutex (base/mutex.h)",
}
# (folder or file, pattern) where a banned call is what the place is for.
BANNED_EXCEPTIONS = (
    ("base/", r"."),
    ("cli/", r"^[^.]"),
    ("host/processes/", r"getenv"),
    ("kubernetes/manifests/yaml_text.cc", r"dump"),  # numbers, true and false
    ("scaler/history/", r"dump"),  # a document that was parsed
    ("scaler/service/plan_file.cc", r"dump"),
    ("examples/", r"sleep_for"),
    ("examples/gloo_plugin/", r"getenv"),
    ("tests/integration/groups/group_trainer.cc", r"sleep_for"),
    ("worker_sdk/session/", r"getenv"),
    ("tests/", r"getenv|dump"),
    ("kafka/client_config.cc", r"getenv"),
    ("proto/rpc/channel.cc", r"getenv"),
    ("security/rpc/grpc_credentials.cc", r"getenv"),
    ("store/s3_access.cc", r"getenv"),
)
CODE = (".h", ".cc")


class Tree:
    """The tracked files: {path: text}. Binary files have an empty text."""

    def __init__(self, files):
        self.files = files

    @staticmethod
    def of_git(root):
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, capture_output=True)
        files = {}
        for name in names.stdout.decode().split("\0"):
            path = os.path.join(root, name)
            if name and os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                files[name] = "" if "\0" in text else text
        return Tree(files)

    def code(self, *extensions):
        return [(path, text) for path, text in sorted(self.files.items()) if path.endswith(extensions or CODE)]


def strip_code(text):
    """C++ without comments and without the insides of literals; line breaks are kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S
    )

    def blank(match):
        found = match.group(0)
        lines = "\n" * found.count("\n")
        return ('""' if found[0] in "\"R'" else " ") + lines

    return pattern.sub(blank, text)


def includes(text):
    """(line number, path) of every include with quotes or angle brackets."""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2), match.group(1) == '"'


def layers(tree):
    """Libraries talk downwards only; services never include each other."""
    for path, text in tree.code():
        top = path.split("/")[0]
        for number, target, _ in includes(text):
            into = target.split("/")[0]
            if top in LAYERS and into in LAYERS and into != top and into not in LAYERS[top]:
                yield f"{path}:{number}: {top}/ may not include {target}: only {', '.join(sorted(LAYERS[top])) or 'nothing of ours'}"
            for prefix, allowed in BEHIND_INTERFACES.items():
                if top in LAYERS and target.startswith(prefix) and not path.startswith(tuple(a + "/" for a in allowed)):
                    yield f"{path}:{number}: {target} stands behind an interface; only {', '.join(allowed)} may open it"
            if top in EXAMPLE_FOLDERS and into in LAYERS:
                yield f"{path}:{number}: an example uses <muster/muster.h> only, not {target}"
            if target.startswith("../") or "/../" in target:
                yield f"{path}:{number}: include {target} from the root of the repository"


def inner_layers(tree):
    """Inside a room includes go downwards, too."""
    for path, text in tree.code():
        room, *folders = os.path.dirname(path).split("/")
        if room not in INNER or path.startswith(PUBLIC_HEADERS):
            continue
        own = (folders or [""])[0]
        if own not in INNER[room]:
            yield f"{path}: {room}/{own} has no place among the folders of {room}/ (INNER)"
            continue
        below = INNER[room][: INNER[room].index(own) + 1]
        for number, target, _ in includes(text):
            into, *folders = os.path.dirname(target).split("/")
            if into == room and (folders or [""])[0] not in below:
                yield f"{path}:{number}: {room}/{own} may not include {target}: it is not below it"


def room_shares(tree):
    """No room holds so much that it holds everything."""
    lines = {}
    for path, text in tree.code():
        room = path.split("/")[0]
        if room in LAYERS:
            lines[room] = lines.get(room, 0) + text.count("\n")
    for room, count in sorted(lines.items()):
        if 100 * count > ROOM_SHARE_PERCENT * sum(lines.values()):
            share = 100 * count / sum(lines.values())
            yield f"{room}/: {count} lines are {share:.1f} % of the product, at most {ROOM_SHARE_PERCENT} %: what is in it that is a subject of its own?"


def internal_folders(tree):
    """internal/ is closed: only the folder that has it may look inside, and what feeds it with garbage."""
    for path, text in tree.code():
        for number, target, _ in includes(text):
            if "/internal/" in target:
                owner = target.split("/internal/")[0]
                if not path.startswith((owner + "/", f"tests/{owner}/", "tests/fuzz/")):
                    yield f"{path}:{number}: {target} is internal to {owner}/"


def adapters(tree):
    """A third-party library is named by one adapter, and by no header that others include; pure folders name none."""
    for path, text in tree.code():
        if path.startswith(("tests/", "benchmarks/")):
            continue
        folder = os.path.dirname(path)
        for number, target, _ in includes(text):
            for prefix, allowed in ADAPTERS.items():
                if target.startswith(prefix) and not any(folder == a or folder.startswith(a + "/") for a in allowed):
                    yield f"{path}:{number}: <{target}> belongs to {', '.join(allowed)} alone"
            pure = any(folder == p or path.startswith(p + ".") or (p not in PURE_WITH_SHELLS_BELOW and folder.startswith(p + "/")) for p in PURE_FOLDERS)
            if pure and SHELL_HEADERS.search(target):
                yield f"{path}:{number}: {folder}/ is pure; <{target}> belongs to a shell"


def one_thread(tree):
    """A test folder that the thread sanitizer leaves out has no threads, and neither has its room."""
    for path, text in sorted(tree.files.items()):
        folder, name = os.path.split(path)
        if name != "CMakeLists.txt" or not folder.startswith("tests/") or not re.search(r"^muster_one_thread\(\)", text, re.M):
            continue
        room = folder.removeprefix("tests/")
        for source, content in tree.code():
            if os.path.dirname(source) in (folder, room):
                for number, target, _ in includes(content):
                    if target in THREAD_HEADERS:
                        yield f"{source}:{number}: <{target}>, but {path} says that there is one thread"


def sdk_headers(tree):
    """Installed headers include only the standard library and each other."""
    for path, text in tree.code(".h"):
        if path.startswith(PUBLIC_HEADERS):
            for number, target, _ in includes(text):
                if not (target.startswith("muster/") or re.fullmatch(r"[a-z_0-9]+", target)):
                    yield f"{path}:{number}: a public header may not include {target}"


def readmes(tree):
    """Every folder that CMake knows has a README; the root has its documents."""
    for path in sorted(tree.files):
        folder, name = os.path.split(path)
        if name == "CMakeLists.txt" and folder and not folder.startswith("tests/") and folder != "tests":
            text = tree.files[path]
            if re.search(r"\b(muster_library|add_library|add_executable)\s*\(", text) and f"{folder}/README.md" not in tree.files:
                yield f"{folder}/README.md: is missing (purpose, API, class map, threads, invariants, failure modes, alternatives rejected)"
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs/dependencies.md"):
        if not tree.files.get(name, "").strip():
            yield f"{name}: is missing or empty"


def headers_in_readmes(tree):
    """The README of a folder names each of its headers and their purpose."""
    for path, _ in tree.code(".h"):
        folder, name = os.path.split(path)
        readme = tree.files.get(f"{folder}/README.md")
        if path.split("/")[0] in LAYERS and readme is not None and not re.search(rf"\b{re.escape(name[:-2])}\b", readme):
            yield f"{path}: {folder}/README.md does not say what it is for"


def reached_by_tests(tree):
    """Headers and sources that tests name, and what those reach inside their own folders: a part that is tested through the class
    it belongs to counts."""
    todo = []
    for path, text in tree.code():
        if path.startswith("tests/"):
            mirrored = os.path.dirname(path)[len("tests/") :]
            todo += [t for _, t, own in includes(text) if own and os.path.dirname(t).startswith(mirrored)]
            todo.append(f"{mirrored}/{os.path.basename(path).replace('_test.cc', '.cc')}")
    reached = set()
    while todo:
        path = todo.pop()
        if path in reached or path not in tree.files:
            continue
        reached.add(path)
        pair = path[:-2] + ".cc" if path.endswith(".h") else path[:-3] + ".h"
        here = os.path.dirname(path)
        todo += [pair] + [t for _, t, own in includes(tree.files[path]) if own and os.path.dirname(t) == here]
    return reached


def mirrored_tests(tree):
    """Every source is reached from tests/<its folder>/: by name (x/y.cc from tests/x/y_test.cc), by an include, or through a class of
    its folder that a test includes."""
    reached = reached_by_tests(tree)
    for path, text in tree.code(".cc"):
        top = path.split("/")[0]
        if top not in LAYERS and top not in EXAMPLE_FOLDERS or re.search(r"\bint main\(", strip_code(text)):
            continue
        here = os.path.dirname(path)
        # A class may have several sources: one without a header of its own belongs to the header that it includes.
        own = path[:-3] + ".h"
        headers = [own] if own in tree.files else [t for _, t, quoted in includes(text) if quoted and os.path.dirname(t) == here]
        if path not in reached and not reached.intersection(headers):
            yield f"{path}: no test in tests/{here}/ reaches it (call one {os.path.basename(path)[:-3]}_test.cc, or include its header)"


def function_lengths(text):
    """(first line, name, lines) of every function body at namespace or class scope. A reading of braces, not a parser: enough for
    code that clang-format wrote."""
    code = re.sub(r"^\s*#.*?(?<!\\)$", lambda m: "\n" * m.group(0).count("\n"), strip_code(text), flags=re.M | re.S)
    stack, begin, heading_line, line = [], 0, 1, 1
    for index, char in enumerate(code):
        if char == "\n":
            line += 1
        if char not in "{};":
            continue
        if any(kind == "function" for kind, *_ in stack):
            if char == "{":
                stack.append(("block", line, ""))
            elif char == "}" and (opened := stack.pop())[0] == "function":
                yield opened[1], opened[2], line - opened[1] + 1
                begin, heading_line = index + 1, line
            continue
        heading = code[begin:index]
        if char == "{":
            stack.append((kind_of_brace(heading), *place_of(heading, heading_line)))
        if char == "}" and stack and stack.pop()[0] == "value":
            continue
        if stack and stack[-1][0] == "value" or heading.count("(") != heading.count(")"):
            continue
        begin, heading_line = (index + 1, line) if not (stack and stack[-1][0] == "function") else (begin, heading_line)


def place_of(heading, heading_line):
    """(line of the first word, the heading in one line)."""
    blank = heading[: len(heading) - len(heading.lstrip())]
    return heading_line + blank.count("\n"), " ".join(heading.split())


def kind_of_brace(heading):
    """What a brace outside of functions opens: "value" (an initializer), "function", or "scope" (namespace, class, enum)."""
    if heading.count("(") != heading.count(")") or re.search(r"=\s*$|[\w>]$", heading):
        return "value"
    heading = re.sub(r"\b(public|private|protected)\s*:", "", heading)
    if "(" not in heading or re.match(r"\s*(namespace|enum|extern)\b", heading):
        return "scope"
    declares = re.search(r"\b(class|struct|union)\s+(\[\[.*?\]\]\s*)?(MUSTER_\w+(\([^()]*\))?\s+)?\w+[^()]*$", heading)
    return "scope" if declares else "function"


def sizes(tree):
    """What grows without limit rots: headers, sources, functions and folders have one."""
    folders = {}
    for path in tree.files:
        folders.setdefault(os.path.dirname(path), []).append(path)
    for folder, paths in sorted(folders.items()):
        if folder and len(paths) > FOLDER_FILES:
            yield f"{folder}/: {len(paths)} files, at most {FOLDER_FILES}: split it"
    for path, text in tree.code():
        count = text.count("\n")
        limit = HEADER_LINES if path.endswith(".h") else SOURCE_LINES
        if count > limit:
            yield f"{path}: {count} lines, at most {limit}: split it"
        for first, heading, lines in function_lengths(text):
            if lines > FUNCTION_LINES:
                yield f"{path}:{first}: function of {lines} lines, at most {FUNCTION_LINES}: {heading[:60]}"


def banned_calls(tree):
    """Clocks, sleeping, randomness, the environment and bare mutexes live in base/ and cli/."""
    for path, text in tree.code():
        for number, line in enumerate(strip_code(text).split("\n"), 1):
            for pattern, instead in BANNED.items():
                match = re.search(pattern, line)
                if match and not any(path.startswith(where) and re.search(what, match.group(0)) for where, what in BANNED_EXCEPTIONS):
                    yield f"{path}:{number}: {match.group(0).strip()} is not for here: {instead}"


def text_form(tree):
    """Line length, tabs, trailing blanks, last line, #pragma once."""
    for path, text in tree.code():
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > COLUMNS and not re.search(r"https?://|^#include", line) and not path.endswith("_table.inc"):
                yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS}"
            if "\t" in line or line != line.rstrip():
                yield f"{path}:{number}: a tab or blanks at the end of the line"
        if text and not text.endswith("\n"):
            yield f"{path}: the last line has no end"
        if path.endswith(".h") and not re.match(r"(//[^\n]*\n|\s*\n)*#pragma once\n", text):
            yield f"{path}:1: does not begin with #pragma once"


def markdown_width(tree):
    """Prose of Markdown wraps; tables, headings, code blocks and lines without a blank to break at stay unchanged."""
    for path, text in sorted(tree.files.items()):
        if path.endswith(".md"):
            for number, columns in wrap.long_lines(text):
                yield f"{path}:{number}: {columns} columns, at most {COLUMNS}; run tests/tidy/wrap.py {path}"


def mains(tree):
    """Every main() of the house is in cli/."""
    for path, text in tree.code(".cc"):
        if path.split("/")[0] in set(LAYERS) - {"cli"} and re.search(r"^int main\(", strip_code(text), re.M):
            yield f"{path}: main() belongs in cli/"


def commands_documented(tree):
    """A script for people says with --help what it does."""
    for path, text in tree.files.items():
        if re.fullmatch(r"scripts/[a-z_-]+", path) and "--help" not in text:
            yield f"{path}: has no --help"


def protocol_rules(tree):
    """Every rule that docs/protocol.md numbers is named where the code keeps it ("Rule 12.25."), and no other number is."""
    section, rules, named = "", set(), {}
    for line in tree.files.get("docs/protocol.md", "").split("\n"):
        if found := re.match(r"## (\d+)\. ", line):
            section = found.group(1)
        elif found := re.match(r"(\d+)\. ", line):
            rules.add(f"{section}.{found.group(1)}")
    for path, text in tree.code():
        if path.split("/")[0] not in ("tests", "benchmarks"):
            for comment in re.findall(r"// Rules? (\d+\.\d+(?:(?:, | and )\d+\.\d+)*)", text):
                named |= {number: path for number in re.split(", | and ", comment)}
    for number in sorted(set(named) - rules):
        yield f"{named[number]}: docs/protocol.md has no rule {number}"
    for number in sorted(rules - set(named)):
        yield f'docs/protocol.md: no source says "// Rule {number}." where it keeps that rule'


RULES = (layers, inner_layers, room_shares, internal_folders, adapters, one_thread, sdk_headers, readmes, headers_in_readmes, mirrored_tests, sizes, banned_calls, text_form, markdown_width, mains, commands_documented, protocol_rules)


def clang_format(root, tree):
    """Formatting by the one pinned clang-format; skipped, and said, where that version is not installed."""
    program = shutil.which(f"clang-format-{CLANG_FORMAT}")
    if f"clang-format {CLANG_FORMAT}" not in tree.files.get(".clang-format", ""):
        yield f".clang-format: does not pin clang-format {CLANG_FORMAT}"
    if program is None:
        print(f"tidy: clang-format-{CLANG_FORMAT} is not installed, formatting not checked", file=sys.stderr)
        return
    paths = [path for path, _ in tree.code()]
    result = subprocess.run([program, "--dry-run", "--ferror-limit=1", *paths], cwd=root, capture_output=True, text=True, check=False)
    for path in sorted(set(re.findall(r"^(\S+?):\d+:\d+: (?:warning|error): code should be", result.stderr, re.M))):
        yield f"{path}: not formatted; run clang-format-{CLANG_FORMAT} -i {path}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: tests/tidy/tidy.py sharding/ master/")
    parser.add_argument("prefixes", nargs="*", help="report only findings in paths that begin like this")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    options = parser.parse_args()
    tree = Tree.of_git(options.root)
    findings = [finding for rule in RULES for finding in rule(tree)] + list(clang_format(options.root, tree))
    findings = [f for f in findings if not options.prefixes or f.startswith(tuple(options.prefixes))]
    print("\n".join(findings + [f"tidy: {len(tree.files)} files, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
