# SPDX-License-Identifier: Apache-2.0
answer <- function() 42
