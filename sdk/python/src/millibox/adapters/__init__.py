# SPDX-License-Identifier: Apache-2.0
"""Tools and executors for agent frameworks. Each module needs its framework; `_text` is what a model reads."""
