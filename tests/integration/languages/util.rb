# SPDX-License-Identifier: Apache-2.0
def answer = 42
