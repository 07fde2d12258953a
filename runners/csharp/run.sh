#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2154
# run.sh DOTNET|MCS ARTIFACT [ARGUMENT...]
program=$1
shift
if [ "${program##*/}" = mcs ]; then
	exec /usr/bin/mono "$@"
fi
. "${0%/*}/toolchain.sh"
[ -n "$home" ] || exec /usr/bin/mono "$@"
# It wants the extension, also of what a link leads to, and finds packages beside the program.
directory=/tmp/.millibox-dotnet
mkdir -p $directory
for file in /opt/millibox/packages/nuget/lib/*.dll /workspace/.local/share/millibox/nuget/lib/*.dll; do
	[ ! -f "$file" ] || ln -sf "$file" $directory/
done
cp "$1" $directory/main.dll
shift
printf '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "%s"}}}\n' "$version" >$directory/main.json
exec "$program" exec --runtimeconfig $directory/main.json $directory/main.dll "$@"
