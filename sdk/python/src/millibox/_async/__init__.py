# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client. ../_sync is made from these files by generate.py, except _io.py."""
