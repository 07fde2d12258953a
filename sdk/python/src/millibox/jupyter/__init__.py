# SPDX-License-Identifier: Apache-2.0
"""A Jupyter kernel whose cells run in a sandbox. Needs ipykernel.

python -m millibox.jupyter install    puts "Millibox" into Jupyter's list
"""
