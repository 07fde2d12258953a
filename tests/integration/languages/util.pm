# SPDX-License-Identifier: Apache-2.0
package util;
sub answer { return 42; }
1;
