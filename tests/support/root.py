# SPDX-License-Identifier: Apache-2.0
"""A root directory in namespaces of its own: packages are installed there, and programs run as on a host of their own.
Nothing in it changes the host."""

import contextlib
import subprocess

from support import host

#: In its own mount and PID namespace, with / at $root: the first process, which outlives commands and reaps daemons.
ENTER = r"""
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
cd "$root"
pivot_root . .
umount -l .
cd /
exec perl -e '$SIG{CHLD} = "IGNORE"; $| = 1; print "ready\n"; sleep while 1'
"""

#: A directory with a root file system.
PLAIN = 'root=$1; mount --bind "$root" "$root"\n'

#: The host's root, copied on write into memory; what was written is at /mnt.
CLONE = """
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
root=$1/root
mount --bind "$1/upper" "$root/mnt"
"""


class Root:
    """@setup: PLAIN or CLONE. Commands get no variable of the caller's."""

    ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
           "DEBIAN_FRONTEND": "noninteractive"}

    def __init__(self, path, setup=PLAIN):
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", "mount --make-rprivate /\n" + setup + ENTER, "-", str(path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise AssertionError(f"cannot enter {path}: {self.holder.communicate()[1]}")
        (self.first,) = host.listed_children(self.holder.pid)

    def enter(self, argv):
        return ["nsenter", "--target", str(self.first), "--mount", "--pid", "--wd=/", *argv]

    def start(self, *argv, **env):
        """A process that runs on, in a session of its own."""
        return subprocess.Popen(self.enter(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**self.ENV, **env}, start_new_session=True)

    def run(self, *argv, ok=True, input=None, timeout=10 * host.HANG_S, **env):
        """The finished process."""
        done = subprocess.run(self.enter(argv), input=input or "", capture_output=True, text=True, timeout=timeout, env={**self.ENV, **env})
        assert not ok or done.returncode == 0, done
        return done

    def shell(self, script, **kw):
        """What a script prints."""
        return self.run("sh", "-ec", script, **kw).stdout

    def end(self):
        self.holder.kill()
        self.holder.communicate()


@contextlib.contextmanager
def entered(path, setup=PLAIN):
    root = Root(path, setup)
    try:
        yield root
    finally:
        root.end()
