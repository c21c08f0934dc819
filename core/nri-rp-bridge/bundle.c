/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/bundle.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#include "core/lib/kube/objects.h"
#include "core/nri-rp-bridge/cri_info.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define N_RUNTIMES 3u

/* Annotation keys by runtime. A file is searched only for the keys of its own runtime: CRI-O copies
 * a pod's annotations into it and Docker an image's labels, and these may be keys of another
 * runtime. */
static const char *const type_keys[N_RUNTIMES] = {"io.kubernetes.cri.container-type",
						  "io.kubernetes.cri-o.ContainerType",
						  "io.kubernetes.docker.type"};
static const char *const sandbox_keys[N_RUNTIMES] = {"io.kubernetes.cri.sandbox-id",
						     "io.kubernetes.cri-o.SandboxID",
						     "io.kubernetes.sandbox.id"};
static const char *const name_keys[N_RUNTIMES] = {"io.kubernetes.cri.container-name",
						  "io.kubernetes.container.name",
						  "io.kubernetes.container.name"};
static const char *const pod_keys[N_RUNTIMES] = {
	"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name", "io.kubernetes.pod.name"};
static const char *const ns_keys[N_RUNTIMES] = {"io.kubernetes.cri.sandbox-namespace",
						"io.kubernetes.pod.namespace",
						"io.kubernetes.pod.namespace"};
static const char *const uid_keys[N_RUNTIMES] = {"io.kubernetes.cri.sandbox-uid",
						 "io.kubernetes.pod.uid", "io.kubernetes.pod.uid"};
/* Paths of a container's file. */
static const struct {
	enum bundle_runtime runtime;
	const char *before, *after; /* parts of the path before and after the container's id */
} places[] = {
	{BUNDLE_CONTAINERD, "run/containerd/io.containerd.runtime.v2.task/k8s.io", "config.json"},
	{BUNDLE_CONTAINERD, "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io",
	 "config.json"},
	{BUNDLE_CRIO, "run/containers/storage/overlay-containers", "userdata/config.json"},
	{BUNDLE_DOCKER, "var/lib/docker/containers", "config.v2.json"},
};

static const char *bundle_said(const json_t *map, const char *key)
{
	const char *text = json_string_value(json_object_get(map, key));
	return text ? text : "";
}

static bool is_runtimes_own(const char *key)
{
	return str_has_prefix(key, "io.kubernetes.") || str_has_prefix(key, "io.container");
}

static int take_annotations(struct arena *a, json_t *map, struct bundle *ret)
{
	size_t n = 0;
	kube_pairs(a, map, &ret->annotations, &ret->n_annotations);
	if (arena_failed(a))
		return -ENOMEM;
	for (size_t i = 0; i < ret->n_annotations; i++)
		if (!is_runtimes_own(ret->annotations[i]->key))
			ret->annotations[n++] = ret->annotations[i];
	ret->n_annotations = n;
	return 0;
}

static int bundle_take(struct arena *a, enum bundle_runtime by, const json_t *root,
		       struct bundle *ret)
{
	json_t *map = by == BUNDLE_DOCKER
			      ? json_object_get(json_object_get(root, "Config"), "Labels")
			      : json_object_get(root, "annotations");
	const char *type = bundle_said(map, type_keys[by]);
	*ret = (struct bundle){
		.sandbox = str_eq(type, "sandbox") || str_eq(type, "podsandbox"),
		.sandbox_id = arena_strdup(a, bundle_said(map, sandbox_keys[by])),
		.name = arena_strdup(a, bundle_said(map, name_keys[by])),
		.pod = arena_strdup(a, bundle_said(map, pod_keys[by])),
		.ns = arena_strdup(a, bundle_said(map, ns_keys[by])),
		.uid = arena_strdup(a, bundle_said(map, uid_keys[by])),
	};
	if (!*type)
		return -EBADMSG;
	ret->resources = cri_spec_resources(a, root);
	return take_annotations(a, map, ret);
}

int bundle_parse(struct arena *a, enum bundle_runtime by, const char *text, size_t n,
		 struct bundle *ret)
{
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	int r = root ? bundle_take(a, by, root, ret) : -EBADMSG;
	json_decref(root);
	return r;
}

static int read_at(const struct fs_root *root, enum bundle_runtime by, const char *path,
		   struct arena *a, struct bundle *ret)
{
	_free_ char *text = NULL;
	size_t n;
	int r = fs_read_all(root, path, BUNDLE_MAX, &text, &n);
	return r ? r : bundle_parse(a, by, text, n, ret);
}

int bundle_read(const struct fs_root *root, const char *state, struct arena *a, const char *id,
		struct bundle *ret)
{
	char path[PATH_MAX];
	int r = -ENOENT;
	if (state) {
		(void)snprintf(path, sizeof path, "%s/%s/config.json", state, id);
		r = read_at(root, BUNDLE_CONTAINERD, path, a, ret);
	}
	for (unsigned i = 0; r == -ENOENT && i < sizeof places / sizeof *places; i++) {
		(void)snprintf(path, sizeof path, "%s/%s/%s", places[i].before, id,
			       places[i].after);
		r = read_at(root, places[i].runtime, path, a, ret);
	}
	return r;
}
