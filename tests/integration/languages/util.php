<?php // SPDX-License-Identifier: Apache-2.0
 function answer() { return 42; }
