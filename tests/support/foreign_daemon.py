# SPDX-License-Identifier: Apache-2.0
"""Daemons that somebody else than root of the host starts; only root can start them."""

import os
import shutil

from support.daemon import BUILD, ROOT, Daemon


class ForeignDaemon(Daemon):
    """With programs and a directory of its own: @uid may have no access to the build."""

    def __init__(self, uid, **kwargs):
        super().__init__(**kwargs)
        self.uid, self.programs = uid, self.home / "programs"
        self.programs.mkdir()
        for path in BUILD.glob("millibox*"):
            if path.is_file():
                shutil.copy2(path, self.programs)
        shutil.copytree(ROOT / "runners", self.programs / "runners")
        self.env["MILLIBOX_RUNNERS_DIR"] = str(self.programs / "runners")
        for path in [self.home, self.programs, *self.programs.rglob("*")]:
            os.chown(path, uid, uid)

    def start_it(self):
        """How its user starts a command: the words before it."""
        raise NotImplementedError

    def command(self):
        return [*self.start_it(), str(self.programs / "milliboxd"), *super().command()[1:]]


class SubidDaemon(ForeignDaemon):
    """Of an ordinary user with subordinate ids, who exists only in its mount namespace."""

    UID = 61989

    def __init__(self, **kwargs):
        super().__init__(self.UID, **kwargs)
        self.etc = self.home / "etc"
        shutil.copytree("/etc", self.etc, symlinks=True)
        lines = {"passwd": f"mbxtest:x:{self.UID}:{self.UID}::/:/bin/sh", "group": f"mbxtest:x:{self.UID}:",
                 "subuid": "mbxtest:1611661312:65536", "subgid": "mbxtest:1611661312:65536"}
        for name, line in lines.items():
            with open(self.etc / name, "a", encoding="utf-8") as f:
                f.write(f"{line}\n")

    def start_it(self):
        script = f'mount --bind "$0" /etc && exec setpriv --reuid {self.UID} --regid {self.UID} --clear-groups "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(self.etc)]


#: A child writes the maps: the process that is started becomes the daemon.
_ENTER = """
import ctypes, os, sys
first, count, command = sys.argv[1], sys.argv[2], sys.argv[3:]
ready, done = os.pipe(), os.pipe()
parent = os.getpid()
child = os.fork()
if child == 0:
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{parent}/{name}", "w") as f:
            f.write(f"0 {first} {count}")
    os.write(done[1], b"x")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000 | 0x00020000) == 0  # CLONE_NEWUSER, CLONE_NEWNS
os.write(ready[1], b"x")
os.close(done[1])
assert os.read(done[0], 1)
os.waitpid(child, 0)
os.setgroups([])
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
os.execv(command[0], command)
"""


class ContainerDaemon(ForeignDaemon):
    """Of root in a user namespace with @count ids, as in a rootless container."""

    FIRST = 1612709888

    def __init__(self, count, **kwargs):
        super().__init__(self.FIRST, **kwargs)
        self.count = count

    def start_it(self):
        return ["/usr/bin/python3", "-I", "-c", _ENTER, str(self.FIRST), str(self.count)]
