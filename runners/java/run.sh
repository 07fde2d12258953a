#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh JAVA [FLAG...]: becomes the JVM. Java does not read HTTPS_PROXY, and JAVA_TOOL_OPTIONS would print a line for each start.
if [ -n "$HTTPS_PROXY" ]; then
	java=$1
	shift
	port=${HTTPS_PROXY##*:}
	set -- "$java" -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort="$port" -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort="$port" "$@"
fi
exec "$@"
