#!/usr/bin/env python3
"""Makes the image of the build with scripts/image, and uses it as a container engine would.

Skipped, with the reason, without root, mmdebstrap, umoci or Debian's mirror.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIME = 1_700_000_000  # 2023-11-14 22:13:20 UTC
MIRROR = "http://deb.debian.org/debian/dists/bookworm/Release"
options = None


def missing():
    """Why the image cannot be made here; empty if it can."""
    if os.geteuid() != 0:
        return "the image's root folder is entered with chroot, so this needs root"
    tools = [tool for tool in ("mmdebstrap", "umoci") if shutil.which(tool) is None]
    if tools:
        return f"missing, on Debian in packages of the same name: {', '.join(tools)}"
    try:
        urllib.request.urlopen(MIRROR, timeout=20).close()
    except OSError as error:
        return f"{MIRROR}: {error}"
    return ""


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="muster-image-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.archive = os.path.join(cls.folder, "image.tar")
        made = subprocess.run([os.path.join(ROOT, "scripts", "image"), "--build", options.build, "--output", cls.archive],
                              capture_output=True, text=True, check=False, env=os.environ | {"SOURCE_DATE_EPOCH": str(TIME)})
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        with tarfile.open(cls.archive) as archive:
            cls.times = {member.mtime for member in archive}
            archive.extractall(os.path.join(cls.folder, "layout"))
        with open(os.path.join(cls.folder, "layout", "index.json"), encoding="utf-8") as file:
            (entry,) = json.load(file)["manifests"]
        cls.tag = entry["annotations"]["org.opencontainers.image.ref.name"]
        cls.manifest = json.loads(cls.blob(entry["digest"]))
        cls.image = json.loads(cls.blob(cls.manifest["config"]["digest"]))
        cls.config = cls.image["config"]
        cls.root = os.path.join(cls.folder, "root")
        os.mkdir(cls.root)
        (layer,) = cls.manifest["layers"]
        subprocess.run(["tar", "-xzpf", cls.path(layer["digest"]), "-C", cls.root], check=True)

    @classmethod
    def path(cls, digest):
        return os.path.join(cls.folder, "layout", "blobs", *digest.split(":"))

    @classmethod
    def blob(cls, digest):
        with open(cls.path(digest), "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != digest.partition(":")[2]:
            raise AssertionError(f"{digest} has other bytes")
        return content

    def inside(self, script):
        """Runs a script as the image's user, on a root folder that cannot be written."""
        user, _, group = self.config["User"].partition(":")
        read_only = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec chroot --userspec="$2:$3" --groups="$3" "$1" sh -c "$4"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", read_only, "sh", self.root, user, group, script],
                              capture_output=True, text=True, check=False, env=dict(e.split("=", 1) for e in self.config["Env"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def listed(self, folder):
        return set(os.listdir(os.path.join(self.root, folder)))

    def test_the_program_runs_as_a_user_on_a_read_only_root(self):
        self.assertEqual(self.inside("id -u; id -un"), "10001\nmuster\n")
        self.assertEqual(self.inside("muster version"), f"muster {self.tag}\n")
        self.assertEqual(self.inside("tini -- muster version"), f"muster {self.tag}\n")
        self.assertEqual(self.inside("touch /file || echo refused"), "refused\n")

    def test_what_it_has(self):
        self.assertLessEqual({"muster", "tini", "apt-get"}, self.listed("usr/bin"))
        self.assertIn("ca-certificates.crt", self.listed("etc/ssl/certs"))
        for folder in ("muster", "muster-snapshots"):
            status = os.stat(os.path.join(self.root, "var/lib", folder))
            self.assertEqual((status.st_uid, status.st_gid), (10001, 10001))
        self.assertFalse(os.path.exists(os.path.join(self.root, "usr/include/muster")))
        self.assertEqual(self.listed("usr/share/man"), set())
        self.assertIn("copyright", self.listed("usr/share/doc/muster"))
        for empty in ("var/log/apt", "etc/machine-id"):
            self.assertFalse(os.path.exists(os.path.join(self.root, empty)))
        self.assertEqual(self.listed("tmp"), set())
        # 47 MB that nothing here uses.
        self.assertNotIn("libperl5.36", self.inside("dpkg-query -W -f '${Package}\\n'").split())

    def test_what_it_says(self):
        self.assertEqual(self.image["architecture"], subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip())
        self.assertEqual(self.image["created"], "2023-11-14T22:13:20Z")
        self.assertEqual(self.times, {TIME})
        labels = self.config["Labels"]
        self.assertEqual(labels["org.opencontainers.image.version"], self.tag)
        self.assertEqual(labels["org.opencontainers.image.created"], self.image["created"])

    def test_dockerfile_makes_the_same(self):
        with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        runtime = text[text.rindex("\nFROM "):]
        said = dict(re.findall(r"^(USER|WORKDIR|STOPSIGNAL|ENTRYPOINT) (.*)$", runtime, re.M))
        self.assertEqual(said["USER"], self.config["User"])
        self.assertEqual(said["WORKDIR"], self.config["WorkingDir"])
        self.assertEqual(said["STOPSIGNAL"], self.config["StopSignal"])
        self.assertEqual(json.loads(said["ENTRYPOINT"]), self.config["Entrypoint"])
        labels = dict(re.findall(r'(org\.opencontainers\.image\.\w+)="([^"]*)"', runtime))
        self.assertEqual(labels, {name: self.config["Labels"][name] for name in labels})
        self.assertEqual(len(labels), 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    options, rest = parser.parse_known_args()
    why = missing()
    if why:
        print(f"{why}\nskipped=1")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1] + rest)
