#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a compiler:  build.sh send|keep SOURCE NAME ARTIFACT COMMAND...
#
# In a directory of its own with everything that /workspace has and the code, SOURCE, as NAME. The command
# makes ARTIFACT. All it prints goes to stderr. "send" then writes ARTIFACT to stdout, for the daemon;
# "keep" leaves it in the box.
mode=$1 source=$2 name=$3 artifact=$4
shift 4
umask 022
directory=/tmp/millibox-build
rm -rf "$directory" "${artifact%/*}"
mkdir -p "$directory" "${artifact%/*}" && cd "$directory" || exit 125
for file in /workspace/*; do
	[ -e "$file" ] && ln -s "$file" .
done
rm -f "./$name"
cp "$source" "./$name" || exit 125
if [ "$mode" = keep ]; then
	"$@" </dev/null
	status=$?
else
	"$@" </dev/null >&2
	status=$?
fi
cd /
rm -rf "$directory"
[ $status -eq 0 ] || exit $status
if [ ! -f "$artifact" ]; then
	echo "the compiler did not make $artifact" >&2
	exit 125
fi
chmod 755 "$artifact"
[ "$mode" = keep ] || exec cat "$artifact"
