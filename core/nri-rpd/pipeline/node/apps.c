/* SPDX-License-Identifier: Apache-2.0 */
/* Host applications: checks and reads their list, keeps their measurements. */
#include "core/nri-rpd/pipeline/node/apps.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/noderes/classes.h"
#include "core/nri-rpd/pipeline/node/measure.h"
#include "core/lib/util/str.h"

static int check_one(rp_cfg one, struct err *err)
{
	const char *name = conf_text(conf_get(one, "name"), "");
	const char *cgroup = conf_text(conf_get(one, "cgroup"), "");
	rp_cfg prio = conf_get(one, "priorityClass");
	if (!*name)
		return err_set(err, -EINVAL, "an application needs a name");
	if (*cgroup != '/' || strstr(cgroup, "/../") || strlen(cgroup) >= CACHE_PATH_MAX)
		return err_set(err, -EINVAL,
			       "%s: expected a cgroup like /system.slice/yarn.service", name);
	if (class_prio(conf_text(prio, ""), 0) == RP_PRIO_NONE)
		return err_set(err, -EINVAL,
			       "%s: expected a priorityClass of prod, mid, batch or free", name);
	return 0;
}

int host_apps_check(rp_cfg list, struct err *err)
{
	char where[CONF_PLACE_MAX];
	if (list && conf_kind(list) != RP_NODE_LIST)
		return err_set(err, -EINVAL, "%s: expected a list of applications",
			       conf_place(list, where, sizeof where));
	if (conf_count(list) > HOST_APPS_MAX)
		return err_set(err, -EINVAL, "%s: more than %u applications",
			       conf_place(list, where, sizeof where), HOST_APPS_MAX);
	for (uint32_t i = 0; i < conf_count(list); i++) {
		int r = check_one(conf_item(list, i), err);
		if (r)
			return err_prefix(
				err, "%s: ", conf_place(conf_item(list, i), where, sizeof where));
	}
	return 0;
}

static const struct host_app *apps_find(const struct host_apps *a, const struct host_app *like)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (str_eq(a->list[i].name, like->name) && str_eq(a->list[i].cgroup, like->cgroup))
			return &a->list[i];
	return NULL;
}

int host_apps_configure(struct host_apps *a, rp_cfg list)
{
	struct host_apps next = {.list = calloc(conf_count(list) + 1u, sizeof *next.list),
				 .generation = a->generation + 1};
	if (!next.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < conf_count(list); i++) {
		rp_cfg one = conf_item(list, i);
		struct host_app *to = &next.list[next.n++];
		to->name = conf_text(conf_get(one, "name"), "");
		to->cgroup = conf_text(conf_get(one, "cgroup"), "");
		const struct host_app *was = apps_find(a, to);
		if (was) {
			to->usage = was->usage;
			to->series = was->series;
		}
		to->prio = class_prio(conf_text(conf_get(one, "priorityClass"), ""), 0);
	}
	free(a->list);
	*a = next;
	return 0;
}

void host_apps_measure(struct host_apps *a, bool cached, uint64_t window_ms)
{
	for (uint32_t i = 0; i < a->n; i++)
		measure_put(&a->list[i].series, &a->list[i].usage, cached, window_ms);
}

void host_apps_forget(struct host_apps *a)
{
	for (uint32_t i = 0; i < a->n; i++)
		a->list[i].series = (struct series){0};
}

void host_apps_fini(struct host_apps *a)
{
	free(a->list);
	*a = (struct host_apps){0};
}
