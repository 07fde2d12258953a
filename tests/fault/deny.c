/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny ERRNO CALL[,CALL...] COMMAND...: runs the command with these system calls failing, as on a
 * kernel that lacks them or a host that forbids them. CALL:N=VALUE: only with this value
 * of argument N, from 0.
 */
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	/* Avoid no_new_privs if possible: the command's environment should stay unchanged. */
	if (geteuid() == 0)
		seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0);
	for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
		char *colon = strchr(name, ':');
		unsigned arg = 0;
		unsigned long value = 0;

		if (colon && sscanf(colon, ":%u=%li", &arg, (long *)&value) != 2)
			return 2;
		if (colon)
			*colon = '\0';

		int nr = seccomp_syscall_resolve_name(name);

		if (nr == __NR_SCMP_ERROR)
			nr = atoi(name);

		const struct scmp_arg_cmp is = {arg, SCMP_CMP_EQ, value, 0};

		if (seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((unsigned)atoi(argv[1])), nr,
		                           colon ? 1 : 0, &is) < 0) {
			fprintf(stderr, "deny: no such call '%s'\n", name);
			return 2;
		}
	}
	if (seccomp_load(ctx) < 0) {
		perror("deny: seccomp_load");
		return 2;
	}
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 2;
}
