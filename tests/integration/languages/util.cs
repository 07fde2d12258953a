// SPDX-License-Identifier: Apache-2.0
static class Util { public static int Answer() { return 42; } }
