/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "base/str.h"

static const struct advice advices[] = {
	{"strict", "every required layer", "nothing runs unless strict is turned off",
         "see the checks above"},
};

const struct advice *advice_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (str_equal(advices[i].name, name))
			return &advices[i];
	}
	return NULL;
}
