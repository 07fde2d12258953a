#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# install-config.sh FROM TO - installs the settings file unless there is one. Run by "meson install".
set -eu

to=${DESTDIR-}$2
[ -z "${MESON_INSTALL_DRY_RUN-}" ] || exit 0
[ ! -e "$to" ] || exit 0
mkdir -p "$(dirname "$to")"
install -m 644 "$1" "$to"
