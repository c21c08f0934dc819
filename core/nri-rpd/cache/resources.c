/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources annotation: {"containers": {NAME: {"requests": {"cpu": "500m", …}, "limits": {…}}},
 * "initContainers": {…}}, written by a mutating webhook of the cluster. Its text comes from
 * outside: it is limited by KVS_VALUE_MAX, and invalid parts are rejected.
 */
#include <jansson.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/cache/resources.h"

static const char *const annotation_keys[] = {"noderesource.dev/resources", "intel.com/resources"};

static void resources_decref(json_t **j)
{
	json_decref(*j);
}
#define _json_ __attribute__((cleanup(resources_decref)))

/* Returns the container's entry, borrowed from *ret_doc; NULL: none. */
static json_t *entry_of(const struct pod *pod, const char *ctr_name, json_t **ret_doc,
			bool *ret_init, struct err *err)
{
	for (unsigned i = 0; i < sizeof annotation_keys / sizeof *annotation_keys; i++) {
		const char *text = kvs_get(pod_heard(pod), annotation_keys[i]);
		if (!text)
			continue;
		json_error_t where;
		json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, &where);
		if (!json_is_object(doc)) {
			json_decref(doc);
			err_set(err, -EINVAL, "pod %s/%s: annotation %s does not parse: %s",
				pod->ns, pod->name, annotation_keys[i],
				doc ? "not an object" : where.text);
			continue;
		}
		json_t *entry = json_object_get(json_object_get(doc, "containers"), ctr_name);
		*ret_init = false;
		if (!entry) {
			entry = json_object_get(json_object_get(doc, "initContainers"), ctr_name);
			*ret_init = entry != NULL;
		}
		if (json_is_object(entry)) {
			*ret_doc = doc;
			return entry;
		}
		json_decref(doc);
	}
	return NULL;
}

static int resources_quantity(const json_t *list, const char *name, bool milli, int64_t *ret)
{
	const json_t *q = json_object_get(list, name);
	char number[32];
	const char *text = json_string_value(q);
	*ret = 0;
	if (!q)
		return -ENOENT;
	if (json_is_integer(q)) {
		(void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
			       json_integer_value(q));
		text = number;
	}
	if (!text)
		return -EINVAL;
	int r = milli ? str_to_milli(text, ret) : str_to_bytes(text, ret);
	return r == 0 && *ret < 0 ? -EINVAL : r;
}

int resources_annotation(const struct pod *pod, const char *ctr_name, struct needs *ret,
			 bool *ret_init, struct err *err)
{
	_json_ json_t *doc = NULL;
	struct err parse = ERR_INIT;
	struct needs n;
	if (!pod_heard(pod)->n)
		return -ENOENT;
	json_t *entry = entry_of(pod, ctr_name, &doc, ret_init, &parse);
	if (!entry)
		return parse.code ? err_set(err, parse.code, "%s", parse.text) : -ENOENT;
	const json_t *requests = json_object_get(entry, "requests"),
		     *limits = json_object_get(entry, "limits");
	struct {
		const json_t *list;
		const char *name;
		bool milli;
		int64_t *value;
	} fields[] = {{requests, "cpu", true, &n.cpu_request},
		      {limits, "cpu", true, &n.cpu_limit},
		      {requests, "memory", false, &n.mem_request},
		      {limits, "memory", false, &n.mem_limit}};
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
		int64_t max = fields[i].milli ? DERIVE_MCPU_MAX : DERIVE_BYTES_MAX;
		int r = resources_quantity(fields[i].list, fields[i].name, fields[i].milli,
					   fields[i].value);
		if (*fields[i].value > max)
			*fields[i].value = max;
		if (r && r != -ENOENT)
			return err_set(err, -EINVAL,
				       "pod %s/%s: resources annotation: %s of container %s is not "
				       "a quantity",
				       pod->ns, pod->name, fields[i].name, ctr_name);
	}
	/* a missing request equals the limit, as in the API server */
	if (!n.cpu_request)
		n.cpu_request = n.cpu_limit;
	if (!n.mem_request)
		n.mem_request = n.mem_limit;
	*ret = n;
	return 0;
}

int resources_annotation_extended(const struct pod *pod, const char *ctr_name, const char *resource,
				  int64_t *ret_request, int64_t *ret_limit)
{
	_json_ json_t *doc = NULL;
	struct err parse = ERR_INIT;
	bool init;
	if (!pod_heard(pod)->n)
		return -ENOENT;
	json_t *entry = entry_of(pod, ctr_name, &doc, &init, &parse);
	if (!entry)
		return parse.code ? parse.code : -ENOENT;
	int req = resources_quantity(json_object_get(entry, "requests"), resource, false,
				     ret_request);
	int lim = resources_quantity(json_object_get(entry, "limits"), resource, false, ret_limit);
	if (req == -ENOENT && lim == -ENOENT)
		return -ENOENT;
	if ((req && req != -ENOENT) || (lim && lim != -ENOENT))
		return -EINVAL;
	if (req)
		*ret_request = *ret_limit;
	return 0;
}
