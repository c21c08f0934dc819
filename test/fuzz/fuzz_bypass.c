/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what nri-rp-bridge reads with the source cgroups; the first byte says which kind: a
 * kubelet's list of pods, a runtime's files on a container, names of cgroups, and the files of a
 * cgroup.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-bridge/bundle.h"
#include "core/nri-rp-bridge/cgroup_files.h"
#include "core/nri-rp-bridge/kubepods.h"
#include "core/nri-rp-bridge/podlist.h"
#include "core/lib/util/str.h"
#include "test/fuzz/check.h"

#define ARENA_LIMIT (64u << 20)

static void check_pod(const Agent__FedPod *pod, void *arg)
{
	check(*pod->uid && *pod->name && *pod->namespace_);
	size_t n = agent__fed_pod__get_packed_size(pod);
	uint8_t *packed = malloc(n + 1);
	check(packed && agent__fed_pod__pack(pod, packed) == n);
	free(packed);
}

static void try_names(const char *name)
{
	char uid[KUBEPODS_UID_SIZE], id[KUBEPODS_ID_SIZE];
	if (kubepods_pod_uid(name, uid))
		check(*uid && strlen(uid) < sizeof uid && !strpbrk(uid, "/_."));
	if (kubepods_ctr_id(name, id))
		check(strlen(id) == sizeof id - 1 && strstr(name, id));
	check(!kubepods_is_top(name) || !kubepods_is_qos(name));
}

static const char *const folders_v1[] = {"cpuset/a", "cpu/a", "memory/a", NULL};
static const char *const folders_v2[] = {"a", NULL};
static const char *const files[] = {"cpuset.cpus",  "cpuset.mems",	"cpuset.cpus.effective",
				    "cpu.shares",   "cpu.cfs_quota_us", "cpu.cfs_period_us",
				    "cpu.weight",   "cpu.max",		"memory.max",
				    "cgroup.procs", "cgroup.events",	"memory.limit_in_bytes"};
static char roots[2][32]; /* roots of v1 and v2 */

static void remove_roots(void)
{
	char command[128];
	(void)snprintf(command, sizeof command, "rm -rf %s %s", roots[0], roots[1]);
	(void)!system(command);
}

static void make_root(bool unified)
{
	char *root = roots[unified], path[256];
	struct err err = ERR_INIT;
	if (*root)
		return;
	if (!*roots[0] && !*roots[1])
		check(atexit(remove_roots) == 0);
	(void)snprintf(root, sizeof *roots, "/tmp/fuzz_bypass.XXXXXX");
	check(mkdtemp(root) != NULL);
	for (const char *const *f = unified ? folders_v2 : folders_v1; *f; f++) {
		(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s", root, *f);
		check(fs_mkdirs(path, 0755, &err) == 0);
	}
	(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/cgroup.controllers", root);
	check(!unified || fs_replace(path, "", 0, 0644, false, &err) == 0);
}

static void put_files(const char *text, size_t n, bool unified)
{
	char path[256];
	for (const char *const *f = unified ? folders_v2 : folders_v1; *f; f++)
		for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
			(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s/%s", roots[unified],
				       *f, files[i]);
			FILE *out = fopen(path, "we");
			check(out && fwrite(text, 1, n, out) == n && fclose(out) == 0);
		}
}

/* The files of one cgroup all say the same. What is written is what is wanted, and then nothing is
 * to be written any more; or nothing has been. */
static void try_files(struct arena *a, const char *text, size_t n, bool unified)
{
	struct cgroup_fs fs;
	struct err err = ERR_INIT;
	Cri__Resources r, wanted = CRI__RESOURCES__INIT;
	unsigned written;
	make_root(unified);
	put_files(text, n, unified);
	check(cgroup_fs_open(&fs, roots[unified], &err) == 0 && fs.unified == unified);
	check(cgroup_read(&fs, a, "a", &r) == 0);
	(void)cgroup_process(&fs, "a");
	(void)cgroup_is_empty(&fs, "a");
	wanted.cpu_shares = 100;
	wanted.memory_limit = 4096;
	if (cgroup_write(&fs, a, "a", "a", &wanted, &written, &err) == 0) {
		check(cgroup_has_shares(&fs, "a", 100));
		check(cgroup_write(&fs, a, "a", "a", &wanted, &written, &err) == 0 && !written);
	}
	cgroup_fs_close(&fs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(4096, ARENA_LIMIT);
	struct bundle bundle;
	size_t count;
	char *text = size ? malloc(size) : NULL;
	check(a != NULL);
	if (!text) {
		arena_free(a);
		return 0;
	}
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 5) {
	case 0:
		(void)podlist_parse(text, size - 1, check_pod, NULL, &count);
		break;
	case 1:
		if (bundle_parse(a, (enum bundle_runtime)(data[0] / 5 % 3), text, size - 1,
				 &bundle) == 0)
			check(bundle.sandbox_id && bundle.name && bundle.pod);
		break;
	case 2:
		try_names(text);
		break;
	default:
		try_files(a, text, size - 1, data[0] % 5 == 3);
	}
	free(text);
	arena_free(a);
	return 0;
}
