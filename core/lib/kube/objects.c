/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/kube/objects.h"

#include <errno.h>
#include <string.h>

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"
#include "core/lib/util/pb.h"

/* annotation with the UID that a static pod has on its node */
#define MIRROR "kubernetes.io/config.mirror"
/* hex digits of a static pod's UID, a digest of its manifest; other UIDs contain dashes */
#define MIRROR_DIGITS 32u

/* ---- texts and maps -------------------------------------------------------------------------- */

char *kube_text(struct arena *a, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return arena_strdup(a, text ? text : "");
}

void kube_pairs(struct arena *a, json_t *map, Agent__Pair ***ret, size_t *ret_n)
{
	const char *key;
	json_t *value;
	json_object_foreach(map, key, value)
	{
		const char *text = json_string_value(value);
		Agent__Pair *pair = text ? pb_build(a, &agent__pair__descriptor) : NULL;
		if (!pair)
			continue;
		pair->key = arena_strdup(a, key);
		pair->value = arena_strdup(a, text);
		(void)pb_build_item(a, pair, ret, ret_n);
	}
}

/* Reads a quantity: "4", "250m", "16Gi"; the server may write a number, too. */
static bool read_quantity(const char *resource, const json_t *value, int64_t *ret)
{
	const char *text = json_string_value(value);
	bool cpu = str_eq(resource, "cpu");
	if (json_is_integer(value)) {
		*ret = json_integer_value(value);
		return *ret >= 0 && (!cpu || !__builtin_mul_overflow(*ret, 1000, ret));
	}
	return text && (cpu ? str_to_milli(text, ret) : str_to_bytes(text, ret)) == 0 && *ret >= 0;
}

void kube_amounts(struct arena *a, json_t *map, Agent__Amount ***ret, size_t *ret_n)
{
	const char *name;
	json_t *value;
	int64_t units;
	json_object_foreach(map, name, value)
	{
		bool known = read_quantity(name, value, &units);
		Agent__Amount *amount = known ? pb_build(a, &agent__amount__descriptor) : NULL;
		if (!amount)
			continue;
		amount->name = arena_strdup(a, name);
		amount->amount = units;
		(void)pb_build_item(a, amount, ret, ret_n);
	}
}

/* ---- pods ------------------------------------------------------------------------------------ */

static Agent__PodContainerKind init_kind(const json_t *ctr)
{
	const char *policy = json_string_value(json_object_get(ctr, "restartPolicy"));
	return policy && str_eq(policy, "Always") ? AGENT__POD_CONTAINER_KIND__SIDECAR
						  : AGENT__POD_CONTAINER_KIND__INIT;
}

static void put_containers(struct arena *a, const json_t *list, bool init, Agent__FedPod *m)
{
	const json_t *one;
	size_t i;
	json_array_foreach(list, i, one)
	{
		const json_t *resources = json_object_get(one, "resources");
		Agent__PodContainer *c = PB_ADD(a, m, containers, agent__pod_container);
		if (!c)
			return;
		c->kind = init ? init_kind(one) : AGENT__POD_CONTAINER_KIND__APP;
		c->name = kube_text(a, one, "name");
		kube_amounts(a, json_object_get(resources, "requests"), &c->requests,
			     &c->n_requests);
		kube_amounts(a, json_object_get(resources, "limits"), &c->limits, &c->n_limits);
	}
}

static char *owner_of(struct arena *a, const json_t *meta)
{
	const json_t *owner;
	size_t i;
	json_array_foreach(json_object_get(meta, "ownerReferences"), i, owner)
	{
		if (json_is_true(json_object_get(owner, "controller")))
			return kube_text(a, owner, "kind");
	}
	return arena_strdup(a, "");
}

/* Returns the UID. A static pod has another UID on its node than its mirror has at the server. Any
 * author of a pod may set the annotation, but its form cannot match the UID of a pod that is not
 * static. */
static char *uid_of(struct arena *a, const json_t *meta)
{
	const json_t *annotations = json_object_get(meta, "annotations");
	const char *mirror = json_string_value(json_object_get(annotations, MIRROR));
	bool is = mirror && strlen(mirror) == MIRROR_DIGITS &&
		  strspn(mirror, "0123456789abcdef") == MIRROR_DIGITS;
	return is ? arena_strdup(a, mirror) : kube_text(a, meta, "uid");
}

/* Adds the container's id from the status, "containerd://0123…". Pods that have just started have
 * none yet. */
static void put_id(struct arena *a, const json_t *status, Agent__PodContainer *m)
{
	bool app = m->kind == AGENT__POD_CONTAINER_KIND__APP;
	const json_t *one, *list = json_object_get(status, app ? "containerStatuses"
							       : "initContainerStatuses");
	size_t i;
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		const char *id = json_string_value(json_object_get(one, "containerID"));
		const char *at = id ? strstr(id, "://") : NULL;
		if (!name || !at || !str_eq(name, m->name))
			continue;
		m->id = arena_strdup(a, at + 3);
		return;
	}
}

int kube_pod(struct arena *a, const json_t *pod, bool whole, Agent__FedPod *ret)
{
	const json_t *meta = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
	const json_t *status = json_object_get(pod, "status");
	const json_t *init = json_object_get(spec, "initContainers");
	const json_t *apps = json_object_get(spec, "containers");
	const json_t *resources = json_object_get(spec, "resources");
	const char *phase = json_string_value(json_object_get(status, "phase"));
	Agent__FedPod m = AGENT__FED_POD__INIT;
	m.priority = (int32_t)json_integer_value(json_object_get(spec, "priority"));
	m.ended = phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"));
	m.uid = uid_of(a, meta);
	m.namespace_ = kube_text(a, meta, "namespace");
	m.name = kube_text(a, meta, "name");
	m.owner = owner_of(a, meta);
	put_containers(a, init, true, &m);
	put_containers(a, apps, false, &m);
	/* The pod's own amounts, in addition to those of its containers. */
	kube_amounts(a, json_object_get(resources, "requests"), &m.requests, &m.n_requests);
	kube_amounts(a, json_object_get(resources, "limits"), &m.limits, &m.n_limits);
	if (whole) {
		kube_pairs(a, json_object_get(meta, "labels"), &m.labels, &m.n_labels);
		kube_pairs(a, json_object_get(meta, "annotations"), &m.annotations,
			   &m.n_annotations);
	}
	for (size_t i = 0; whole && !arena_failed(a) && i < m.n_containers; i++)
		put_id(a, status, m.containers[i]);
	if (arena_failed(a))
		return -ENOMEM;
	if (!*m.uid || !*m.namespace_ || !*m.name)
		return -EINVAL;
	*ret = m;
	return 0;
}
