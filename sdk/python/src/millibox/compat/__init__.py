# SPDX-License-Identifier: Apache-2.0
"""Modules with the functions, classes and answers of other systems, so that their users need only change an
import."""
