#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh RUSTC [ARGUMENT...]: with the crates that were installed (runners/packages/cargo.sh).
for folder in /opt/millibox/packages/cargo /workspace/.local/share/millibox/cargo; do
	[ -d "$folder/extern" ] || continue
	set -- "$@" -L "dependency=$folder/deps"
	for file in "$folder"/extern/*; do
		[ -f "$file" ] && set -- "$@" --extern "${file##*/}=$folder/deps/$(cat "$file")"
	done
done
exec "$@"
