/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of class definitions from a section of the configuration, in the present and the older
 * form. */
#include <ctype.h>
#include <string.h>

#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/pct.h"
#include <nri-rp/lib/section.h>

#define UNCORE_DIR "/sys/devices/system/cpu/intel_uncore_frequency"

/* ---- definitions ----------------------------------------------------------------------------- */

static const char *get_text(const struct modhost *h, rp_cfg node, const char *path)
{
	return section_text(h, node, path, "");
}

/* Returns a frequency in kHz or RP_FREQ_…; 0: the key is absent. */
static int64_t get_freq(const struct modhost *h, rp_cfg node, const char *path)
{
	return section_value(h, node, path, RP_T_FREQ, 0);
}

static int32_t read_cstates(const struct modhost *h, rp_cfg node, struct cpuclass_def *d)
{
	rp_cfg list = section_get(h, node, "disabledCstates");
	uint32_t n = h->config->count(h->ctx, list);
	if (n > CPUCLASS_CSTATES_MAX)
		return modhost_refuse(h, list, "more than %u idle states", CPUCLASS_CSTATES_MAX);
	for (uint32_t i = 0; i < n; i++)
		d->disabled_cstates[i] =
			h->config->text(h->ctx, h->config->item(h->ctx, list, i), "");
	d->n_disabled_cstates = n;
	return 0;
}

int32_t cpuclass_read_one(const struct modhost *h, rp_cfg node, const char *name,
			  struct cpuclass_def *d)
{
	const char *pct = get_text(h, node, "pctPriority");
	*d = (struct cpuclass_def){
		.name = name,
		.min_khz = get_freq(h, node, "minFreq"),
		.max_khz = get_freq(h, node, "maxFreq"),
		.uncore_min_khz = get_freq(h, node, "uncoreMinFreq"),
		.uncore_max_khz = get_freq(h, node, "uncoreMaxFreq"),
		.governor = get_text(h, node, "freqGovernor"),
		.epp = section_value(h, node, "energyPerformancePreference", RP_T_INT, 0),
		.turbo_priority = section_value(h, node, "turboPriority", RP_T_INT, 0),
		.pct_high = !*pct ? -1 : strcmp(pct, "high") == 0,
		.clos = (int32_t)section_value(h, node, "sstClosID", RP_T_INT, -1),
		.pct_min_khz = get_freq(h, node, "pctMinFreq"),
		.pct_max_khz = get_freq(h, node, "pctMaxFreq"),
		.publish = section_bool(h, node, "publishExtendedResource", false),
	};
	if (!*d->name || strlen(d->name) >= CPUCLASS_NAME_MAX)
		return modhost_refuse(h, node, "a CPU class needs a name of at most %u bytes",
				      CPUCLASS_NAME_MAX - 1);
	if (d->min_khz > 0 && d->max_khz > 0 && d->min_khz > d->max_khz)
		return modhost_refuse(h, node, "CPU class %s: minFreq is higher than maxFreq",
				      d->name);
	return read_cstates(h, node, d);
}

/* Returns true if Kubernetes accepts the text as the part of a resource name behind the slash. */
static bool is_resource_name(const char *name)
{
	size_t n = strlen(name);
	if (n > 63 || !isalnum((unsigned char)name[0]) || !isalnum((unsigned char)name[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr(".-_", name[i]))
			return false;
	return true;
}

static int32_t check_pct(const struct modhost *h, rp_cfg node, const struct cpuclass_defs *defs)
{
	const struct cpuclass_def *d = &defs->list[defs->n - 1];
	bool managed = d->pct_high >= 0, associated = d->clos >= 0;
	if (managed && associated)
		return modhost_refuse(h, node,
				      "CPU class %s: pctPriority and sstClosID exclude each other",
				      d->name);
	if ((d->pct_min_khz || d->pct_max_khz) && !managed)
		return modhost_refuse(h, node,
				      "CPU class %s: pctMinFreq and pctMaxFreq need a pctPriority",
				      d->name);
	int64_t min = d->pct_min_khz ? d->pct_min_khz : d->min_khz;
	int64_t max = d->pct_max_khz ? d->pct_max_khz : d->max_khz;
	if (managed && min > 0 && max > 0 && min > max)
		return modhost_refuse(h, node,
				      "CPU class %s: pctMinFreq is higher than pctMaxFreq "
				      "(defaults: minFreq, maxFreq)",
				      d->name);
	if (d->publish && !managed && !associated)
		return modhost_refuse(
			h, node,
			"CPU class %s: publishExtendedResource needs pctPriority or sstClosID",
			d->name);
	if (d->publish && !is_resource_name(d->name))
		return modhost_refuse(h, node,
				      "CPU class %s: publishExtendedResource needs a name of at "
				      "most 63 letters, digits and, between them, \".-_\"",
				      d->name);
	for (uint32_t i = 0; i + 1 < defs->n; i++) {
		const struct cpuclass_def *o = &defs->list[i];
		if ((managed && o->clos >= 0) || (associated && o->pct_high >= 0))
			return modhost_refuse(h, node,
					      "CPU classes %s and %s mix pctPriority and "
					      "sstClosID",
					      o->name, d->name);
		if (managed && o->pct_high == d->pct_high)
			return modhost_refuse(h, node,
					      "CPU classes %s and %s have the same pctPriority",
					      o->name, d->name);
	}
	return 0;
}

static int32_t check_uncore(const struct modhost *h, rp_cfg node, const struct cpuclass_def *d)
{
	struct rp_ids online;
	struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
	char path[160], text[64];
	if ((!d->uncore_min_khz && !d->uncore_max_khz) || !h->work)
		return 0;
	if (h->topology->set(h->ctx, RP_CPUS_ONLINE, &online) ||
	    h->topology->cpu(h->ctx, rp_ids_first(online), &info))
		return 0;
	(void)snprintf(path, sizeof path, UNCORE_DIR "/package_%02u_die_%02u/max_freq_khz",
		       info.package_id, info.die_id);
	if (h->work->read_file(h->ctx, path, text, sizeof text) >= 0)
		return 0;
	return modhost_refuse(h, node,
			      "CPU class %s has uncore frequencies, but the kernel has no uncore "
			      "frequency driver loaded",
			      d->name);
}

int32_t cpuclass_read(const struct modhost *h, rp_cfg section, struct cpuclass_defs *ret)
{
	rp_cfg list = section_get(h, section, "cpuClasses");
	uint32_t n = h->config->count(h->ctx, list);
	ret->n = 0;
	ret->turbo_system = strcmp(get_text(h, section, "turboDomain"), "system") == 0;
	if (n > CPUCLASS_MAX)
		return modhost_refuse(h, list, "more than %u CPU classes", CPUCLASS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		struct cpuclass_def *d = &ret->list[i];
		int32_t r = cpuclass_read_one(h, node, get_text(h, node, "name"), d);
		if (!r && cpuclass_find(ret, d->name) != CPUCLASS_NONE)
			r = modhost_refuse(h, node, "two CPU classes are named \"%s\"", d->name);
		ret->n++;
		if (!r)
			r = check_pct(h, node, ret);
		if (!r)
			r = check_uncore(h, node, d);
		if (r)
			return r;
	}
	pct_warn(h, ret);
	return 0;
}

/* ---- older form ------------------------------------------------------------------------------ */

static bool same_states(const struct cpuclass_def *a, const struct cpuclass_def *b)
{
	if (a->n_disabled_cstates != b->n_disabled_cstates)
		return false;
	for (uint32_t i = 0; i < a->n_disabled_cstates; i++)
		if (strcmp(a->disabled_cstates[i], b->disabled_cstates[i]) != 0)
			return false;
	return true;
}

/* Compares the properties that the older form has. */
static bool same_class(const struct cpuclass_def *a, const struct cpuclass_def *b)
{
	return a->min_khz == b->min_khz && a->max_khz == b->max_khz &&
	       a->uncore_min_khz == b->uncore_min_khz && a->uncore_max_khz == b->uncore_max_khz &&
	       a->epp == b->epp && strcmp(a->governor, b->governor) == 0 && same_states(a, b);
}

static int32_t add_old(const struct modhost *h, rp_cfg node, const char *name,
		       struct cpuclass_defs *defs)
{
	struct cpuclass_def d;
	uint32_t known = cpuclass_find(defs, name);
	int32_t r = cpuclass_read_one(h, node, name, &d);
	if (r)
		return r;
	if (known != CPUCLASS_NONE) {
		if (!same_class(&defs->list[known], &d))
			modhost_log(h, RP_LOG_WARNING, 0,
				    "CPU class %s is defined twice: using cpuClasses", name);
		return 0;
	}
	if (defs->n == CPUCLASS_MAX)
		return modhost_refuse(h, node, "more than %u CPU classes", CPUCLASS_MAX);
	defs->list[defs->n++] = d;
	return check_uncore(h, node, &d);
}

/* Returns the member whose name follows `after` in ascending order; NULL: none. */
static const char *next_name(const struct modhost *h, rp_cfg map, const char *after, uint32_t *ret)
{
	const char *next = NULL;
	uint32_t n = h->config->count(h->ctx, map);
	for (uint32_t i = 0; i < n; i++) {
		const char *name = h->config->key(h->ctx, map, i);
		if ((after && strcmp(name, after) <= 0) || (next && strcmp(name, next) >= 0))
			continue;
		next = name;
		*ret = i;
	}
	return next;
}

int32_t cpuclass_read_old(const struct modhost *h, rp_cfg map, struct cpuclass_defs *defs)
{
	uint32_t at = 0;
	const char *name = NULL;
	int32_t r = 0;
	while (!r && (name = next_name(h, map, name, &at)))
		r = add_old(h, h->config->item(h->ctx, map, at), name, defs);
	return r;
}

uint32_t cpuclass_find(const struct cpuclass_defs *defs, const char *name)
{
	for (uint32_t i = 0; i < defs->n; i++)
		if (strcmp(defs->list[i].name, name) == 0)
			return i;
	return CPUCLASS_NONE;
}
