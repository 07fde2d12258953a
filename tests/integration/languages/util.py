# SPDX-License-Identifier: Apache-2.0
def answer():
    return 42
