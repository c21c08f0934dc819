/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/claim_object.h"

#include <string.h>

#include "core/lib/util/number.h"
#include "core/lib/util/str.h"

static const char *object_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static bool object_is(const json_t *object, const char *key, const char *value)
{
	const char *text = object_text(object, key);
	return text && str_eq(text, value);
}

/* Reads the allocated huge pages. */
static int object_read_huge(const json_t *consumed, struct claim_result *ret, struct err *err)
{
	for (unsigned i = CAPACITY_HUGE; i < CAPACITY_SIZES; i++) {
		const struct capacity_size *c = &capacity_sizes[i];
		const char *text = object_text(consumed, c->name);
		int64_t bytes = 0;
		if (text && (str_to_bytes(text, &bytes) || bytes < 0))
			return err_set(err, -EINVAL, "its consumedCapacity has %s %.40s", c->name,
				       text);
		if (!bytes)
			continue;
		Agent__Amount *to = &ret->amounts[ret->n_huge];
		agent__amount__init(to);
		to->name = (char *)(uintptr_t)c->resource;
		to->amount = bytes;
		ret->huge[ret->n_huge++] = to;
	}
	return 0;
}

static int object_read_capacity(const json_t *consumed, struct claim_result *ret, struct err *err)
{
	const char *cpu = object_text(consumed, "cpu"), *memory = object_text(consumed, "memory");
	int64_t milli = 0;
	bool has_cpus = cpu || !json_object_size(consumed); /* false: a device without CPUs */
	if (has_cpus && (!cpu || str_to_milli(cpu, &milli) || milli < 1000 || milli % 1000 ||
			 milli / 1000 > AGENT_CLAIM_CPUS_MAX))
		return err_set(err, -EINVAL,
			       "its consumedCapacity has cpu %.40s, expected a whole number of "
			       "CPUs: Kubernetes 1.34 or later with the feature "
			       "DRAConsumableCapacity is needed",
			       cpu ? cpu : "(none)");
	ret->cpus = milli / 1000;
	if (memory && (str_to_bytes(memory, &ret->memory) || ret->memory < 0))
		return err_set(err, -EINVAL, "its consumedCapacity has memory %.40s", memory);
	return object_read_huge(consumed, ret, err);
}

static int object_read_result(const json_t *result, struct claim_result *ret, struct err *err)
{
	ret->request = object_text(result, "request");
	ret->device = object_text(result, "device");
	ret->share_id = object_text(result, "shareID");
	if (!ret->request || !ret->device)
		return err_set(err, -EINVAL, "its allocation names no request or no device");
	ret->request_len = strcspn(ret->request, "/");
	return object_read_capacity(json_object_get(result, "consumedCapacity"), ret, err);
}

/* Reads the results of this driver. */
static int object_read_results(const json_t *results, const char *driver, const char *pool,
			       struct claim_object *ret, struct err *err)
{
	const json_t *result;
	size_t i;
	json_array_foreach(results, i, result)
	{
		if (!object_is(result, "driver", driver) || !object_is(result, "pool", pool))
			continue;
		if (ret->n_results == AGENT_CLAIM_PARTS_MAX)
			return err_set(err, -EINVAL, "it has more than %u devices of driver %s",
				       AGENT_CLAIM_PARTS_MAX, driver);
		int r = object_read_result(result, &ret->results[ret->n_results++], err);
		if (r)
			return r;
	}
	return ret->n_results
		       ? 0
		       : err_set(err, -ESTALE, "no device of driver %s, pool %s is allocated to it",
				 driver, pool);
}

/* Refuses parameters for this driver, which has none. */
static int object_check_config(const json_t *config, const char *driver, struct err *err)
{
	const json_t *item;
	size_t i;
	json_array_foreach(config, i, item)
	{
		if (object_is(json_object_get(item, "opaque"), "driver", driver))
			return err_set(err, -EINVAL,
				       "its config[%zu] has parameters for driver %s, which "
				       "accepts none: remove them from the claim and its class",
				       i, driver);
	}
	return 0;
}

static int object_read_pods(const json_t *reserved, struct claim_object *ret, struct err *err)
{
	const json_t *item;
	size_t i;
	json_array_foreach(reserved, i, item)
	{
		const char *uid = object_text(item, "uid");
		if (!uid || !object_is(item, "resource", "pods"))
			continue;
		if (ret->n_pods == AGENT_CLAIM_PODS_MAX)
			return err_set(err, -EINVAL, "more than %u pods use it",
				       AGENT_CLAIM_PODS_MAX);
		ret->pods[ret->n_pods++] = uid;
	}
	return 0;
}

int claim_object_read(const json_t *object, const char *uid, const char *driver, const char *pool,
		      struct claim_object *ret, struct err *err)
{
	const json_t *status = json_object_get(object, "status");
	const json_t *devices = json_object_get(json_object_get(status, "allocation"), "devices");
	*ret = (struct claim_object){0};
	if (!object_is(json_object_get(object, "metadata"), "uid", uid))
		return err_set(err, -ESTALE, "the claim of that name has another UID than %s", uid);
	int r = object_read_results(json_object_get(devices, "results"), driver, pool, ret, err);
	if (!r)
		r = object_check_config(json_object_get(devices, "config"), driver, err);
	return r ? r : object_read_pods(json_object_get(status, "reservedFor"), ret, err);
}
