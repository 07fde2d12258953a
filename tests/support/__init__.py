# SPDX-License-Identifier: Apache-2.0
"""What the pytest suites share: a real daemon, a client, a look at the host."""
