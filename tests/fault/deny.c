/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny ERRNO CALL[,CALL...] COMMAND...: runs the command with these system calls failing, as on a
 * kernel that lacks them or a host that forbids them.
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
		int nr = seccomp_syscall_resolve_name(name);

		if (nr == __NR_SCMP_ERROR)
			nr = atoi(name);
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO((unsigned)atoi(argv[1])), nr, 0) < 0) {
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
