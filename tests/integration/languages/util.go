// SPDX-License-Identifier: Apache-2.0

package main

func answer() int { return 42 }
