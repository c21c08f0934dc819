/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake host for controllers: containers, configuration and log are fake_host's, files are real
 * ones in a folder of the test, where resctrl behaves as the kernel's does (new groups have their
 * files, a task is in one group, a removed group's tasks go to the root group) and every change can
 * be made to fail.
 *
 *	struct ctl_host *t = ctl_host_new();
 *	ctl_put(t, "/proc/mounts", "…");
 *	ctl_open(t, &rp_module_1);
 *	assert_int_equal(ctl_configure(t, "{…}"), 0);
 *	rp_ctr c = ctl_ctr(t, &(struct fake_ctr){.name = "c0"}, "10,11");
 *	ctl_start(t, c); ctl_work(t);
 */
#ifndef TEST_UNIT_CTL_HOST_H
#define TEST_UNIT_CTL_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/controller.h>

#include "test/unit/fake_host.h"

struct ctl_host;

struct ctl_host *ctl_host_new(void);
struct ctl_host *ctl_host_free(struct ctl_host *t); /* removes the folder; returns NULL */
struct fake_host *ctl_fake(struct ctl_host *t);
const struct rp_host *ctl_rp_host(struct ctl_host *t);

/* ---- files ---- */

void ctl_put(struct ctl_host *t, const char *path, const char *content); /* with its folders */
void ctl_link(struct ctl_host *t, const char *path, const char *target);
void ctl_remove(struct ctl_host *t, const char *path); /* with its subfolders */
bool ctl_there(struct ctl_host *t, const char *path);
const char *ctl_get(struct ctl_host *t,
		    const char *path); /* "" if missing; valid for eight more calls */
/* Adds resctrl to the host: 2 L3 of 20 ways, 16 classes, bandwidth, monitoring. cdp: L3CODE and
 * L3DATA. */
void ctl_resctrl(struct ctl_host *t, bool cdp);
/* Replaces cgroup v2 by v1, with a folder for each controller. */
void ctl_cgroup_v1(struct ctl_host *t);
/* Makes block I/O files keep a line for each device from now on, as the kernel's do. */
void ctl_keyed(struct ctl_host *t);
/* Returns the folder of a container's cgroup. */
const char *ctl_cgroup(struct ctl_host *t, rp_ctr ctr, const char *controller);

/* ---- failures ---- */

/* Makes changes (write, mkdir, rmdir) of paths with this part fail with -code; NULL: none. */
void ctl_fail(struct ctl_host *t, const char *path_part, int32_t code);
/* Makes the n-th change from now on fail, on any path; 0: no change fails. */
void ctl_fail_nth(struct ctl_host *t, uint32_t n, int32_t code);
uint32_t ctl_n_changes(const struct ctl_host *t);
/* Returns "write PATH" of the change that failed; "": none. */
const char *ctl_failed(const struct ctl_host *t);
/* Ends all failures and lets time pass until no write is due to be tried again. */
void ctl_mend(struct ctl_host *t);
/*
 * Runs a scene again and again, in which the first, the second … change fails, with each error that
 * a kernel has, until all n_changes have failed. `run` makes a host, calls ctl_fail_nth(), checks
 * the result and returns whether a change has failed.
 */
static inline void ctl_fail_each(bool (*run)(const void *scene, uint32_t n, int32_t code),
				 const void *scene, const char *name, uint32_t n_changes)
{
	static const int32_t codes[] = {EINVAL, EIO, EBUSY, EACCES, ENODEV, ENOSPC, EOPNOTSUPP};
	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		uint32_t n = 1;
		while (run(scene, n, codes[i]))
			n++;
		if (n - 1 != n_changes)
			fail_msg("%s: %u changes, with %s", name, n - 1, strerror(codes[i]));
	}
}
/* Returns the changes since ctl_changes_clear, each a line: "write PATH TEXT", "mkdir PATH",
 * "rmdir PATH". */
const char *ctl_changes(const struct ctl_host *t);
void ctl_changes_clear(struct ctl_host *t);
/* Adds these tasks when the tasks of the cgroup are read the n-th time, like children that were
 * forked meanwhile. */
void ctl_fork_at(struct ctl_host *t, const char *cgroup, uint32_t n, const char *tids);
/* Limits the number of groups that can be created. */
void ctl_limit_groups(struct ctl_host *t, uint32_t n);

/* ---- the controller ---- */

int32_t ctl_open(struct ctl_host *t, const struct rp_module *module);
void ctl_close(struct ctl_host *t);
struct rp_instance *ctl_instance(struct ctl_host *t);
/* Prepares and commits the configuration, and starts the controller the first time. */
int32_t ctl_configure(struct ctl_host *t, const char *text);
/* Adds a running container with these threads in its cgroup, without an event to the controller. */
rp_ctr ctl_ctr(struct ctl_host *t, const struct fake_ctr *desc, const char *tids);
int32_t ctl_pre_create(struct ctl_host *t, rp_ctr ctr);
int32_t ctl_start(struct ctl_host *t, rp_ctr ctr);
int32_t ctl_update(struct ctl_host *t, rp_ctr ctr, uint32_t changed);
int32_t ctl_stop(struct ctl_host *t, rp_ctr ctr); /* also removes it */
void ctl_sync(struct ctl_host *t);
/* Stops and starts the controller, as after a refused configuration without it. */
static inline void ctl_stop_and_start(struct ctl_host *t, const struct rp_module *module)
{
	const struct rp_controller *c = module->service(ctl_instance(t), RP_CONTROLLER_1);
	c->stop(ctl_instance(t));
	if (c->start(ctl_instance(t)))
		abort();
	ctl_sync(t);
}
void ctl_timer(struct ctl_host *t, uint64_t cookie);
/* Sets a value as if the policy had decided it. */
void ctl_decide(struct ctl_host *t, rp_ctr ctr, uint32_t field, const char *value);
void ctl_decide_int(struct ctl_host *t, rp_ctr ctr, uint32_t field, int64_t value);
/* Runs all jobs, including jobs that other jobs start. Returns their number. */
uint32_t ctl_work(struct ctl_host *t);
/* Creates a new instance with the state of the previous one, as after a restart. */
int32_t ctl_restart(struct ctl_host *t, const char *config);
/* Places n pages of a process on this node, from an address on. */
void ctl_pages(struct ctl_host *t, uint32_t pid, uint64_t addr, uint32_t n, int32_t node);
/* Moves one page to another node. */
void ctl_pages_put(struct ctl_host *t, uint32_t pid, uint64_t addr, int32_t node);
/* Returns the number of pages of the process on the node. */
uint32_t ctl_pages_on(const struct ctl_host *t, uint32_t pid, int32_t node);
/* Makes moves of the page at `addr` of this process fail with -code; addr 0: of all its pages,
 * pid 0: no move fails. */
void ctl_pages_fail(struct ctl_host *t, uint32_t pid, uint64_t addr, int32_t code);
/* Makes all pages parts of huge pages, which move 2 MiB at a time. */
void ctl_pages_huge(struct ctl_host *t);
void ctl_measure(struct ctl_host *t);
/* Returns and clears the reported figures, each a line "CTR FIGURE VALUE". */
const char *ctl_figures(struct ctl_host *t);
/* Returns the last report on a container, as "1 TEXT"; "" for none. */
const char *ctl_report(struct ctl_host *t, rp_ctr ctr);
const char *ctl_metrics(struct ctl_host *t);

#endif
