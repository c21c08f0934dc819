/* SPDX-License-Identifier: Apache-2.0 */
/* State files of the kubelet: finds the kubelet's root directory, and reads a manager's policy. */
#include "core/nri-rpd/pipeline/observe/kubelet.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define CMDLINE_MAX (64u << 10)

static const char *const kubelet_files[] = {
	[KUBELET_CPU] = "cpu_manager_state",
	[KUBELET_MEMORY] = "memory_manager_state",
};

/* Root directories of the kubelet: its default, and those of k0s, MicroK8s, K3s, RKE2, KubeSolo and
 * Kubernetes of VMware. */
static const char *const kubelet_dirs[] = {
	"/var/lib/kubelet",
	"/var/lib/k0s/kubelet",
	"/var/snap/microk8s/common/var/lib/kubelet",
	"/var/lib/rancher/k3s/agent/kubelet",
	"/var/lib/rancher/rke2/agent/kubelet",
	"/var/lib/kubesolo/kubelet",
	"/var/vcap/data/kubelet",
};

static bool kubelet_read_file(const struct fs_root *root, const char *dir,
			      enum kubelet_manager manager, struct kubelet_state *ret)
{
	_free_ char *text = NULL;
	size_t len;
	int n = snprintf(ret->path, sizeof ret->path, "%s/%s", dir, kubelet_files[manager]);
	if (n < 0 || (size_t)n >= sizeof ret->path ||
	    fs_read_all(root, ret->path, KUBELET_STATE_MAX, &text, &len))
		return false;
	json_t *state = json_loadb(text, len, 0, NULL);
	const char *name = json_string_value(json_object_get(state, "policyName"));
	if (name)
		(void)snprintf(ret->policy, sizeof ret->policy, "%s", name);
	json_decref(state);
	return name != NULL;
}

/* ---- running kubelets ------------------------------------------------------------------------ */

struct kubelet_search {
	const struct fs_root *root;
	enum kubelet_manager manager;
	struct kubelet_state *ret;
};

/* Returns the value of --root-dir among the arguments, which end with a NUL character each, or
 * NULL. Programs that contain a kubelet pass its arguments on: --kubelet-arg=root-dir=DIR,
 * --kubelet-extra-args=--root-dir=DIR. */
static const char *kubelet_root_of(const char *args, size_t len)
{
	static const char option[] = "root-dir=";
	for (const char *arg = args; arg < args + len; arg += strlen(arg) + 1) {
		const char *found = strstr(arg, option);
		if (found && strchr(found, '/'))
			return found + sizeof option - 1;
		const char *next = arg + strlen(arg) + 1;
		if (str_eq(arg, "--root-dir") && next < args + len)
			return next;
	}
	return NULL;
}

static int kubelet_search_process(const char *pid, void *arg)
{
	static const char *const programs[] = {"kubelet", "kubelite",	"hyperkube", "k3s",
					       "rke2",	  "k3s-server", "k3s-agent", "kubesolo"};
	struct kubelet_search *s = arg;
	char path[64], comm[32], dir[KUBELET_PATH_MAX];
	_free_ char *args = NULL;
	size_t len;
	bool known = false;
	if (*pid < '0' || *pid > '9' || strlen(pid) > 10)
		return 0;
	(void)snprintf(path, sizeof path, "proc/%s/comm", pid);
	if (fs_read(s->root, path, comm, sizeof comm) < 0)
		return 0;
	for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
		known = known || str_eq(comm, programs[i]);
	(void)snprintf(path, sizeof path, "proc/%s/cmdline", pid);
	if (!known || fs_read_all(s->root, path, CMDLINE_MAX, &args, &len))
		return 0;
	const char *found = kubelet_root_of(args, len);
	if (!found)
		return 0;
	/* a value inside of a longer argument ends with a blank, a comma or a quote */
	(void)snprintf(dir, sizeof dir, "%.*s", (int)strcspn(found, " ,\"'"), found);
	return kubelet_read_file(s->root, dir, s->manager, s->ret);
}

bool kubelet_read_state(const struct fs_root *root, enum kubelet_manager manager,
			struct kubelet_state *ret)
{
	struct kubelet_search search = {root, manager, ret};
	if (fs_list(root, "proc", kubelet_search_process, &search) == 1)
		return true;
	for (unsigned i = 0; i < sizeof kubelet_dirs / sizeof *kubelet_dirs; i++)
		if (kubelet_read_file(root, kubelet_dirs[i], manager, ret))
			return true;
	return false;
}
