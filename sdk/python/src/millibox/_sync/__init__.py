# SPDX-License-Identifier: Apache-2.0
"""The synchronous client, made from ../_async by generate.py, except _io.py."""
