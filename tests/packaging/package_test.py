#!/usr/bin/env python3
"""Packages the build, unpacks the packages into a folder, and uses them there like a user."""

import argparse
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USE_SDK = os.path.join(ROOT, "tests", "worker_sdk", "install", "use_sdk.sh")
CONSUMER = os.path.join(ROOT, "tests", "worker_sdk", "install", "consumer")
TIME = 1_700_000_000  # of every file: 2023-11-14 22:13:20 UTC
options = None


def run(*command, stderr_too=False, **arguments):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **arguments)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if stderr_too else "")


def readme_block(kind, after=""):
    """The first fenced block of this kind in README.md whose text has `after`, as a reader copies it."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    for indent, block in re.findall(rf"^( *)```{kind}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if after in block:
            return "".join(line.removeprefix(indent) for line in block.splitlines(keepends=True))
    raise AssertionError(f"README.md has no block of {kind} with '{after}'")


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="muster-package-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = os.path.realpath(cls.temporary.name)
        cls.packages = cls.package("packages")
        cls.root = os.path.join(cls.folder, "root")
        for path in cls.packages.values():
            run("dpkg-deb", "-x", path, cls.root)
        cls.muster = os.path.join(cls.root, "usr", "bin", "muster")
        cls.version = run(os.path.join(options.build, "cli", "muster"), "version").split()[1]

    @classmethod
    def package(cls, name):
        """The packages by the names that they give themselves."""
        made = run(os.path.join(ROOT, "scripts", "package"), "--build", options.build,
                   "--output-dir", os.path.join(cls.folder, name), "--maintainer", "Ann Example <ann@example.org>",
                   env=os.environ | {"SOURCE_DATE_EPOCH": str(TIME)})
        return {run("dpkg-deb", "-f", path, "Package").strip(): path for path in made.splitlines()}

    def fields(self, package):
        text = run("dpkg-deb", "-f", self.packages[package])
        return dict(line.split(": ", 1) for line in text.splitlines() if re.match("[A-Z]", line))

    def library(self):
        return "libmuster" + self.version.rpartition(".")[0]

    def test_packages_say_what_they_are_and_need(self):
        self.assertEqual(set(self.packages), {"muster", self.library(), "libmuster-dev"})
        for package in self.packages:
            fields = self.fields(package)
            self.assertEqual(fields["Version"], self.version)
            self.assertEqual(fields["Maintainer"], "Ann Example <ann@example.org>")
            self.assertRegex(fields["Description"], "^elastic training")
            self.assertIn(fields["Section"], ("science", "libs", "libdevel"))
        ours = f"{self.library()} (= {self.version})"
        self.assertIn(ours, self.fields("muster")["Depends"])
        self.assertEqual(self.fields("libmuster-dev")["Depends"], ours)
        self.assertIn("libgrpc++", self.fields("muster")["Depends"])
        self.assertNotIn("libgrpc", self.fields(self.library())["Depends"])

    def test_what_they_need_is_in_debian(self):
        for package in ("muster", self.library()):
            for needed in self.fields(package)["Depends"].split(", "):
                name = needed.split()[0]
                if name not in self.packages:
                    self.assertEqual(run("dpkg-query", "-W", "-f", "${db:Status-Status}", name), "installed", name)

    def test_no_file_is_in_two_packages(self):
        owners = {}
        for package, path in self.packages.items():
            for line in run("dpkg-deb", "-c", path, env=os.environ | {"TZ": "UTC"}).splitlines():
                mode, owner, _, day, time, name = line.split(maxsplit=5)
                self.assertEqual((owner, day, time), ("root/root", "2023-11-14", "22:13"), line)
                if not mode.startswith("d"):
                    self.assertEqual(owners.setdefault(name, package), package, name)

    def test_the_same_build_makes_the_same_packages(self):
        for package, path in self.package("again").items():
            with open(path, "rb") as again, open(self.packages[package], "rb") as before:
                self.assertTrue(again.read() == before.read(), f"{package} differs")

    def test_program_runs_from_where_it_lies(self):
        self.assertEqual(run(self.muster, "version"), f"muster {self.version}\n")
        worker = os.path.join(self.root, "usr", "libexec", "muster", "verify_worker")
        self.assertRegex(run("ldd", worker), rf"libmuster\.so\.[0-9.]+ => {re.escape(self.root)}/")

    def test_documents_are_there(self):
        share = os.path.join(self.root, "usr", "share")
        for page in ("muster.1", "muster-run.1"):
            with gzip.open(os.path.join(share, "man", "man1", page + ".gz"), "rt") as file:
                self.assertRegex(file.read(), r"\A\.TH ")
        for name in ("bash-completion/completions/muster", "zsh/vendor-completions/_muster",
                     "fish/vendor_completions.d/muster.fish", "muster/prometheus/rules.yml", "muster/grafana/job.json", "doc/libmuster-dev/copyright", "doc/muster/changelog.gz"):
            self.assertGreater(os.path.getsize(os.path.join(share, name)), 0, name)
        for name in ("trainer.cc", "CMakeLists.txt", "job.yaml", "make_data", "score.py"):
            path = os.path.join(share, "doc", "muster", "examples", "tutorial", name)
            self.assertEqual(os.access(path, os.X_OK), name in ("make_data", "score.py"), name)
            self.assertGreater(os.path.getsize(path), 0, name)
        with gzip.open(os.path.join(share, "doc", "muster", "changelog.gz"), "rt") as file:
            newest = re.search(r"^## (\d\S*) \(\d{4}-\d\d-\d\d\)$", file.read(), re.MULTILINE)
        self.assertEqual(newest.group(1), self.version, "the newest release in CHANGELOG.md")

    def test_what_man_pages_cite_is_installed(self):
        share = os.path.join(self.root, "usr", "share")
        cited = set()
        for page in glob.glob(os.path.join(share, "man", "man1", "*.gz")):
            with gzip.open(page, "rt") as file:
                cited.update(re.findall(r"docs/[a-z-]+\.md", file.read().replace("\\", "")))
        self.assertIn("docs/cli.md", cited)
        for name in cited:
            self.assertGreater(os.path.getsize(os.path.join(share, "doc", "muster", name)), 0, name)

    def test_systemd_takes_the_unit(self):
        with open(os.path.join(self.root, "usr", "share", "muster", "systemd", "muster@.service"), encoding="utf-8") as file:
            unit = file.read()
        command = re.search("^ExecStart=(.*)$", unit, re.MULTILINE).group(1).split()
        self.assertTrue(os.access(self.root + command[0], os.X_OK), command)
        said = subprocess.run([self.root + command[0], *command[1:]], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertRegex(said.stderr, "job.yaml.*No such file", "everything but the job is there")
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        copy = os.path.join(self.folder, "muster@flights.service")
        with open(copy, "w", encoding="utf-8") as file:
            file.write(unit.replace(command[0], self.muster))
        self.assertEqual(run("systemd-analyze", "verify", "--man=no", copy, stderr_too=True), "")

    def test_sdk_is_used_as_it_was_installed(self):
        run(USE_SDK, options.cmake, os.path.join(self.root, "usr"), CONSUMER, self.folder, options.compiler, "")

    def test_the_trainer_of_the_readme_trains(self):
        folder = os.path.join(self.folder, "readme")
        os.mkdir(folder)
        lines = "".join(f"{i % 1000} {i % 1000 / 1000}\n" for i in range(20_000))
        for name, text in (("trainer.cc", readme_block("cpp", "int main")), ("job.yaml", readme_block("yaml")),
                           ("CMakeLists.txt", readme_block("cmake", "find_package")), ("data-0.txt", lines)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        run(options.cmake, "-B", "build", "-DCMAKE_PREFIX_PATH=" + os.path.join(self.root, "usr"),
            "-DCMAKE_CXX_COMPILER=" + options.compiler, cwd=folder)
        run(options.cmake, "--build", "build", cwd=folder)
        summary = run(self.muster, "run", "job.yaml", "--no-progress", "--output", "json", cwd=folder, timeout=200)
        self.assertIn('"succeeded"', summary)


class RefusalTest(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([os.path.join(ROOT, "scripts", "package"), *arguments], capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (1, 2))
        return done.stderr

    def test_wrong_arguments_are_named(self):
        self.assertIn("'Ann'", self.refused("--maintainer", "Ann"))
        self.assertIn("'muster'", self.refused("--homepage", "muster"))
        self.assertIn("--build needs a value", self.refused("--build"))
        self.assertIn("is no build folder of Muster", self.refused("--build", ROOT))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="c++")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
