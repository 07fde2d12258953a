# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# From $program: home of .NET with csc, references, version and release of its newest runtime; or home is empty, and mcs.
newest() { # of the words; versions are their last parts
	for path in "$@"; do
		[ -e "$path" ] && echo "$path"
	done | sort -V | tail -n 1
}

home='' mcs=$program
if [ "${program##*/}" != mcs ]; then
	home=$(dirname "$(readlink -f "$program")")
	csc=$(newest "$home"/sdk/*/Roslyn/bincore/csc.dll)
	runtime=$(newest "$home"/shared/Microsoft.NETCore.App/*)
	version=${runtime##*/}
	release=$(echo "$version" | cut -d . -f 1,2)
	references=$(newest "$home/packs/Microsoft.NETCore.App.Ref/$release".*/ref/*)
	if [ -z "$csc" ] || [ -z "$references" ]; then
		# Only a runtime.
		home='' mcs=/usr/bin/mcs
		if [ ! -x "$mcs" ]; then
			echo "$program has no SDK: install one, or the packages mono-mcs and mono-runtime" >&2
			exit 1
		fi
	fi
fi
