/* SPDX-License-Identifier: Apache-2.0 */
#include "util.h"
int answer(void)
{
	return 42;
}
