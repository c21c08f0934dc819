/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/privileges.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_WORDS _LINUX_CAPABILITY_U32S_3

static uint64_t privileges_both(const uint32_t word[N_WORDS])
{
	return (uint64_t)word[1] << 32 | word[0];
}

/* Reduces the capabilities of programs to be started. A user without capabilities may not change
 * them and need not. */
static int drop_bounding(uint64_t keep)
{
	for (unsigned long cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (!(keep & PRIVILEGE(cap)) && prctl(PR_CAPBSET_READ, cap) == 1 &&
		    prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EPERM)
			return -errno;
	return 0;
}

static int drop_own(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[N_WORDS];
	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	const uint32_t permitted[N_WORDS] = {data[0].permitted, data[1].permitted};
	const uint32_t inherited[N_WORDS] = {data[0].inheritable, data[1].inheritable};
	if (!((privileges_both(permitted) | privileges_both(inherited)) & ~keep))
		return 0;
	for (unsigned i = 0; i < N_WORDS; i++) {
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int privileges_drop(uint64_t keep, struct err *err)
{
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	if (!r)
		r = drop_bounding(keep);
	if (!r)
		r = drop_own(keep);
	return r ? err_errno(err, r, "cannot drop unneeded privileges") : 0;
}
