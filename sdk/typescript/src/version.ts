// SPDX-License-Identifier: Apache-2.0
/** Version of this package. */
export const VERSION = "0.1.0";
