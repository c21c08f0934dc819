/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/kube/objects.h"

#include <errno.h>
#include <string.h>

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

/* annotation with the UID that a static pod has on its node */
#define MIRROR "kubernetes.io/config.mirror"
/* hex digits of a static pod's UID, a digest of its manifest; other UIDs contain dashes */
#define MIRROR_DIGITS 32u

/* ---- maps ------------------------------------------------------------------------------------ */

int kube_pairs(struct arena *a, json_t *map, Agent__Pair ***ret, size_t *ret_n)
{
	Agent__Pair **list = arena_array(a, json_object_size(map) + 1, sizeof *list);
	const char *key;
	json_t *value;
	if (!list)
		return -ENOMEM;
	*ret = list;
	json_object_foreach(map, key, value)
	{
		const char *text = json_string_value(value);
		Agent__Pair *pair = text ? arena_alloc(a, sizeof *pair) : NULL;
		if (!text)
			continue;
		if (!pair)
			return -ENOMEM;
		agent__pair__init(pair);
		pair->key = arena_strdup(a, key);
		pair->value = arena_strdup(a, text);
		if (!pair->key || !pair->value)
			return -ENOMEM;
		list[(*ret_n)++] = pair;
	}
	return 0;
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

int kube_amounts(struct arena *a, json_t *map, Agent__Amount ***ret, size_t *ret_n)
{
	Agent__Amount **list = arena_array(a, json_object_size(map) + 1, sizeof *list);
	const char *name;
	json_t *value;
	int64_t units;
	if (!list)
		return -ENOMEM;
	*ret = list;
	json_object_foreach(map, name, value)
	{
		if (!read_quantity(name, value, &units))
			continue;
		Agent__Amount *amount = arena_alloc(a, sizeof *amount);
		if (!amount)
			return -ENOMEM;
		agent__amount__init(amount);
		amount->name = arena_strdup(a, name);
		amount->amount = units;
		if (!amount->name)
			return -ENOMEM;
		list[(*ret_n)++] = amount;
	}
	return 0;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static int put_text(struct arena *a, const json_t *object, const char *key, char **ret)
{
	const char *text = json_string_value(json_object_get(object, key));
	*ret = arena_strdup(a, text ? text : "");
	return *ret ? 0 : -ENOMEM;
}

static int put_container(struct arena *a, const json_t *from, Agent__PodContainerKind kind,
			 Agent__PodContainer **ret)
{
	const json_t *resources = json_object_get(from, "resources");
	Agent__PodContainer *m = arena_alloc(a, sizeof *m);
	if (!m)
		return -ENOMEM;
	agent__pod_container__init(m);
	m->kind = kind;
	*ret = m;
	int r = put_text(a, from, "name", &m->name);
	if (!r)
		r = kube_amounts(a, json_object_get(resources, "requests"), &m->requests,
				 &m->n_requests);
	if (!r)
		r = kube_amounts(a, json_object_get(resources, "limits"), &m->limits, &m->n_limits);
	return r;
}

static Agent__PodContainerKind init_kind(const json_t *ctr)
{
	const char *policy = json_string_value(json_object_get(ctr, "restartPolicy"));
	return policy && str_eq(policy, "Always") ? AGENT__POD_CONTAINER_KIND__SIDECAR
						  : AGENT__POD_CONTAINER_KIND__INIT;
}

static int put_containers(struct arena *a, const json_t *spec, Agent__FedPod *m)
{
	const json_t *init = json_object_get(spec, "initContainers");
	const json_t *apps = json_object_get(spec, "containers"), *one;
	size_t i;
	int r = 0;
	m->containers =
		arena_array(a, json_array_size(init) + json_array_size(apps) + 1, sizeof(void *));
	if (!m->containers)
		return -ENOMEM;
	json_array_foreach(init, i, one) if (!r)
	{
		r = put_container(a, one, init_kind(one), &m->containers[m->n_containers]);
		m->n_containers += !r;
	}
	json_array_foreach(apps, i, one) if (!r)
	{
		r = put_container(a, one, AGENT__POD_CONTAINER_KIND__APP,
				  &m->containers[m->n_containers]);
		m->n_containers += !r;
	}
	return r;
}

/* Adds the pod's own amounts, in addition to those of its containers. */
static int put_pod_resources(struct arena *a, const json_t *resources, Agent__FedPod *m)
{
	int r = kube_amounts(a, json_object_get(resources, "requests"), &m->requests,
			     &m->n_requests);
	return r ? r
		 : kube_amounts(a, json_object_get(resources, "limits"), &m->limits, &m->n_limits);
}

static int put_owner(struct arena *a, const json_t *meta, Agent__FedPod *m)
{
	const json_t *owner;
	size_t i;
	m->owner = arena_strdup(a, "");
	json_array_foreach(json_object_get(meta, "ownerReferences"), i, owner)
	{
		if (json_is_true(json_object_get(owner, "controller")))
			return put_text(a, owner, "kind", &m->owner);
	}
	return m->owner ? 0 : -ENOMEM;
}

/* Sets the UID. A static pod has another UID on its node than its mirror has at the server. Any
 * author of a pod may set the annotation, but its form cannot match the UID of a pod that is not
 * static. */
static int put_uid(struct arena *a, const json_t *meta, Agent__FedPod *m)
{
	const json_t *annotations = json_object_get(meta, "annotations");
	const char *mirror = json_string_value(json_object_get(annotations, MIRROR));
	bool is = mirror && strlen(mirror) == MIRROR_DIGITS &&
		  strspn(mirror, "0123456789abcdef") == MIRROR_DIGITS;
	return is ? put_text(a, annotations, MIRROR, &m->uid) : put_text(a, meta, "uid", &m->uid);
}

/* Adds the container's id from the status, "containerd://0123…". Pods that have just started have
 * none yet. */
static int put_id(struct arena *a, const json_t *statuses, Agent__PodContainer *m)
{
	const json_t *one;
	size_t i;
	json_array_foreach(statuses, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		const char *id = json_string_value(json_object_get(one, "containerID"));
		const char *at = id ? strstr(id, "://") : NULL;
		if (!name || !at || !str_eq(name, m->name))
			continue;
		m->id = arena_strdup(a, at + 3);
		return m->id ? 0 : -ENOMEM;
	}
	return 0;
}

static int put_ids(struct arena *a, const json_t *status, Agent__FedPod *m)
{
	int r = 0;
	for (size_t i = 0; i < m->n_containers && !r; i++)
		r = put_id(a,
			   json_object_get(status,
					   m->containers[i]->kind == AGENT__POD_CONTAINER_KIND__APP
						   ? "containerStatuses"
						   : "initContainerStatuses"),
			   m->containers[i]);
	return r;
}

int kube_pod(struct arena *a, const json_t *pod, bool whole, Agent__FedPod *ret)
{
	const json_t *meta = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
	const json_t *status = json_object_get(pod, "status");
	const char *phase = json_string_value(json_object_get(status, "phase"));
	Agent__FedPod m = AGENT__FED_POD__INIT;
	m.priority = (int32_t)json_integer_value(json_object_get(spec, "priority"));
	m.ended = phase && (str_eq(phase, "Succeeded") || str_eq(phase, "Failed"));
	int r = put_uid(a, meta, &m);
	if (!r)
		r = put_text(a, meta, "namespace", &m.namespace_);
	if (!r)
		r = put_text(a, meta, "name", &m.name);
	if (!r && (!*m.uid || !*m.namespace_ || !*m.name))
		r = -EINVAL;
	if (!r)
		r = put_owner(a, meta, &m);
	if (!r)
		r = put_containers(a, spec, &m);
	if (!r)
		r = put_pod_resources(a, json_object_get(spec, "resources"), &m);
	if (!r && whole)
		r = kube_pairs(a, json_object_get(meta, "labels"), &m.labels, &m.n_labels);
	if (!r && whole)
		r = kube_pairs(a, json_object_get(meta, "annotations"), &m.annotations,
			       &m.n_annotations);
	if (!r && whole)
		r = put_ids(a, status, &m);
	if (!r)
		*ret = m;
	return r;
}
