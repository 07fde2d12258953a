// SPDX-License-Identifier: Apache-2.0
class Util { static int answer() { return 42; } }
