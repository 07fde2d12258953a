#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2154
# compile.sh DOTNET|MCS ARTIFACT [OPTION...] -- FILE...: with the compiler of .NET's SDK, else Mono's, and the packages that
# were installed (runners/packages/nuget.py). Options are -nullable:X, -implicit:X and -framework:X, and those of both compilers.
program=$1 artifact=$2
shift 2
. "${0%/*}/toolchain.sh"
nullable=disable implicit=false framework=
count=$#
while [ "$count" -gt 0 ]; do
	word=$1
	shift
	count=$((count - 1))
	case $word in
	--) ;;
	-nullable:*) nullable=${word#*:} ;;
	-implicit:*) implicit=${word#*:} ;;
	-framework:*) framework=${word#*:} ;;
	# The SDK's compiler gets all assemblies of the framework.
	-r:*) [ -n "$home" ] || set -- "$@" "$word" ;;
	*) set -- "$@" "$word" ;;
	esac
done
# Mono finds those of a layer by MONO_PATH, and others beside the program.
for file in /opt/millibox/packages/nuget/lib/*.dll /workspace/.local/share/millibox/nuget/lib/*.dll; do
	[ -f "$file" ] || continue
	set -- "$@" "-r:$file"
	case $file in
	/workspace/*) ln -sf "$file" "${artifact%/*}/" ;;
	esac
done
refuse() {
	echo "options.$1: $2" >&2
	exit 1
}

if [ -z "$home" ]; then
	[ "$nullable" = disable ] || refuse nullable "Mono's compiler has no nullable references; install the SDK of .NET"
	[ "$implicit" = false ] || refuse implicit_usings "Mono's compiler has no implicit usings; install the SDK of .NET"
	[ -z "$framework" ] || [ "$framework" = mono ] || refuse framework "the box has Mono, not $framework"
	exec "$mcs" -nologo "-out:$artifact" "$@"
fi

case $framework in
'' | "net$release" | "netcoreapp$release") ;;
*) refuse framework "the box has .NET $release, not $framework" ;;
esac
if [ "$implicit" = true ]; then
	for name in System System.Collections.Generic System.IO System.Linq System.Net.Http System.Threading System.Threading.Tasks; do
		echo "global using global::$name;"
	done >.implicit.cs
	set -- "$@" .implicit.cs
fi
[ "$nullable" = disable ] || set -- "-nullable:$nullable" "$@"
for file in "$references"/*.dll; do
	set -- "-r:$file" "$@"
done
exec "$program" exec "$csc" -nologo -nostdlib -noconfig -utf8output "-out:$artifact" "$@"
