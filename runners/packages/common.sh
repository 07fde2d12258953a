# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions of the installers: see README.md.

fail() {
    printf '%.190s\n' "$*" | tr '\n' ' '
    exit 1
}

# lacks PROGRAM LANGUAGE: the manifest names the packages.
lacks() {
    local names
    names=$(sed -n 's/^debian: \[\(.*\)\]$/\1/p' "${BASH_SOURCE[0]%/*}/../$2/manifest.yaml" | tr -d ',')
    fail "$1 is not installed in this root (on Debian: apt-get install $names)"
}

# The caller's own script, which finds the packages.
run_script() {
    [ -n "$MILLIBOX_RUN" ] || return 0
    mkdir -p /workspace/layer/run
    (cd /workspace && LAYER=/workspace/layer/run /bin/sh -e "$MILLIBOX_RUN") </dev/null >&2 ||
        fail "run: the script ended with exit code $?"
}

# Fail at once if the registry cannot be reached.
check_registry() {
    local url=$1 rest host port line='' said=''
    rest=${url#*://}
    host=${rest%%/*}
    case $host in
        *:*) port=${host##*:} host=${host%:*} ;;
        *) case $url in https:*) port=443 ;; *) port=80 ;; esac ;;
    esac
    exec 5<>/dev/tcp/127.0.0.1/3128 || fail "the registry $host does not answer"
    case $url in
        https:*) printf 'CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n' "$host" "$port" "$host" "$port" >&5 ;;
        *) printf 'GET %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "$url" "$host" "$port" >&5 ;;
    esac
    IFS= read -r -t 15 line <&5
    case $line in
        *' 403 '* | *' 502 '* | *' 503 '* | *' 504 '*)
            while IFS= read -r -t 5 said <&5 && [ "$said" != $'\r' ]; do :; done
            IFS= read -r -t 5 said <&5
            fail "the registry $host cannot be reached: ${said:-$line}"
            ;;
        '') fail "the registry $host does not answer" ;;
    esac
    exec 5>&-
}

# split_lock NAME...: writes those files of the lock to this directory. Each follows a line "==> NAME <==", as of "tail -n +1 FILE...".
split_lock() {
    local line name='' wanted=" $* "
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
            '==> '*' <==')
                name=${line#==> }
                name=${name% <==}
                [[ $wanted == *" $name "* ]] || name=''
                [ -z "$name" ] || : >"$name"
                ;;
            *) [ -z "$name" ] || printf '%s\n' "$line" >>"$name" ;;
        esac
    done <"/workspace/$MILLIBOX_LOCK"
    for name in "$@"; do
        [ -s "$name" ] || fail "lock: must have $*, each after a line \"==> NAME <==\" (tail -n +1 $*)"
    done
}

# show_lock FILE...: the reverse.
show_lock() {
    local name
    for name in "$@"; do
        printf '==> %s <==\n' "$name"
        cat "$name"
        printf '\n'
    done
}

# Runs a command, its output to stderr and to $log.
log=/workspace/install.log
logged() {
    "$@" </dev/null 2>&1 | tee -a "$log" >&2
    return "${PIPESTATUS[0]}"
}
