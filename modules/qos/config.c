/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section, and applies it to the machine: levels, environment, advisor, reserved CPUs,
 * nodes. */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/section.h>
#include "modules/lib/private/amount.h"
#include "modules/qos/qos.h"

#define ENVS_MAX 64u
#define LEVEL_CHOICES "dedicated_cores|shared_cores|reclaimed_cores|system_cores"
#define HINTS_POLICY_DEFAULT HINTS_BEST_EFFORT

#define LEVEL_KEYS(level_)                                                                         \
	SECTION_MAP("levels." level_, "Settings of containers of this level."),                    \
		SECTION_CHOICE("levels." level_ ".cpuQuota", "asked|none|limit|burst", "asked",    \
			       "CFS quota: as requested by the runtime, none, from the CPU "       \
			       "limit, or cpuBurstPercent of the limit."),                         \
		SECTION_NUMBER("levels." level_ ".cpuBurstPercent", 100, 10000, "100",             \
			       "Quota in percent of the CPU limit, with cpuQuota: burst."),        \
		SECTION_KEY("levels." level_ ".memoryLow", NUMBER,                                 \
			    "memory.low as a fraction of the memory request, 0 to 1; cgroup v2 "   \
			    "only."),                                                              \
		SECTION_KEY(                                                                       \
			"levels." level_ ".memoryHigh", NUMBER,                                    \
			"memory.high as a fraction of the memory limit, 0 to 1; cgroup v2 only."), \
		SECTION_TEXT("levels." level_ ".rdtClass",                                         \
			     "RDT class of containers without an annotation for it."),             \
		SECTION_TEXT("levels." level_ ".blockioClass",                                     \
			     "Block I/O class of containers without an annotation for it."),       \
		SECTION_TEXT("levels." level_ ".cpuClass",                                         \
			     "CPU class, for controllers that support CPU classes.")

static const struct rp_key keys[] = {
	SECTION_KEY("reservedCPUs", CPULIST,
		    "CPUs outside pools: system_cores with the pool \"reserve\" run there."),
	SECTION_KEY("reservedCPUCount", INT,
		    "Number of CPUs to reserve, from the NUMA nodes in turn; without reservedCPUs.",
		    .max = RP_CPUS_MAX, .fallback = "0"),
	SECTION_BOOL("reserveFromEnd", "false",
		     "Let reservedCPUCount take the last CPUs of nodes, not the first."),
	SECTION_BOOL("enableReclaim", "false",
		     "Size pools by the requests of their pods and leave all other CPUs to "
		     "reclaimed_cores. Without it, pools get all CPUs except minReclaimedCPUs."),
	SECTION_KEY("minReclaimedCPUs", INT,
		    "CPUs left for reclaimed_cores; by default 4, or one per NUMA node; with the "
		    "advisor two per NUMA node.",
		    .min = 1, .max = RP_CPUS_MAX),
	SECTION_KEY("rampUpSeconds", INT,
		    "Time for which a new pod of shared_cores runs on the CPUs of all pools before "
		    "it joins its pool; 0: none.",
		    .max = 86400, .fallback = "30"),
	SECTION_CHOICE("numaHintPolicy", "spreading|packing|dynamic_packing", "spreading",
		       "NUMA node for bound pods of shared_cores: the one with most CPUs left, "
		       "with least, or with least above numaHintLowThreshold."),
	SECTION_KEY("numaHintLowThreshold", NUMBER,
		    "Fraction of a node, 0 to 1, that dynamic_packing leaves free if possible.",
		    .fallback = "0"),
	SECTION_PARITY,
	RELIEF_KEYS,
	SECTION_BOOL("allowSharedOverlapReclaimed", "false",
		     "Let reclaimed_cores also run on CPUs that pools do not need."),
	SECTION_MAP("enhancementDefaults",
		    "Defaults for keys that pods omit in their enhancement annotations."),
	SECTION_TEXT("enhancementDefaults.*", "The value of a key."),
	SECTION_LIST("podDebugAnnotations", "Annotations of pods that are unmanaged."),
	SECTION_TEXT("podDebugAnnotations[]", "A key."),
	SECTION_LIST("injectEnvs", "Environment variables set in new containers."),
	SECTION_MAP("injectEnvs[]", "A variable."),
	SECTION_KEY("injectEnvs[].name", STRING, "Name of the variable.",
		    .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY),
	SECTION_KEY("injectEnvs[].value", STRING,
		    "Its value, with ${qosLevel}, ${pool}, ${cpus}, ${mems}, ${numaNodes}, "
		    "${podName}, ${namespace}, ${containerName}, ${podUid}; $$ is $.",
		    .flags = RP_KEY_REQUIRED),
	SECTION_LIST("injectEnvs[].qosLevels", "The levels that have it; all by default."),
	SECTION_KEY("injectEnvs[].qosLevels[]", ENUM, "A level.", .choices = LEVEL_CHOICES),
	SECTION_BOOL("injectEnvs[].override", "false",
		     "Replace a variable that the container already has."),
	SECTION_CHOICE(
		"topologyPolicy", HINTS_POLICY_CHOICES, "best-effort",
		"How NUMA nodes for CPUs and memory are combined, and which pods are refused."),
	SECTION_KEY("numericAlignResources", LIST,
		    "With topologyPolicy numeric: resources that must be on the same nodes.",
		    .fallback = "[cpu, memory]"),
	SECTION_KEY("numericAlignResources[]", ENUM, "A resource.", .choices = "cpu|memory"),
	SECTION_BOOL("pinCPU", "true", "Containers get CPUs."),
	SECTION_BOOL("pinMemory", "true", "Containers get memory nodes."),
	SECTION_BOOL("memoryMigrate", "false",
		     "Move pages when memory nodes change. The controller memory does this, with "
		     "pageMigration."),
	SECTION_BOOL("nonBindingMemoryCheck", "true",
		     "Refuse pods of shared_cores whose memory does not fit on nodes without bound "
		     "pods."),
	SECTION_MAP("advisor", "Size unbound pools by usage instead of requests."),
	SECTION_BOOL("advisor.enable", "false",
		     "Switch the advisor on. It needs enableReclaim and metrics.collectInterval."),
	SECTION_KEY("advisor.reserve", CPU, "CPU that a pool gets in addition to its usage.",
		    .fallback = "4"),
	SECTION_KEY("advisor.period", DURATION,
		    "Interval between resizes of pools; each adds at most 10 CPUs or removes at "
		    "most 2.",
		    .min = 1000, .max = 3600000, .fallback = "30s"),
	SECTION_MAP("levels", "Further settings of containers, by level."),
	LEVEL_KEYS("dedicated_cores"),
	LEVEL_KEYS("shared_cores"),
	LEVEL_KEYS("reclaimed_cores"),
	LEVEL_KEYS("system_cores"),
};

const struct rp_schema qos_schema = SECTION_SCHEMA(keys);

const char *const level_names[N_LEVELS] = {
	[LEVEL_DEDICATED] = "dedicated_cores",
	[LEVEL_SHARED] = "shared_cores",
	[LEVEL_RECLAIMED] = "reclaimed_cores",
	[LEVEL_SYSTEM] = "system_cores",
};

void plan_fini(struct rp_plan *p)
{
	machine_free(p->machine);
	blocks_fini(&p->memory);
	free(p->nodes);
}

/* ---- section --------------------------------------------------------------------------------- */

static const char *text_at(const struct modhost *h, rp_cfg node, const char *path)
{
	return section_text(h, node, path, "");
}

/* Reads a fraction between 0 and 1. */
static int32_t part_at(const struct modhost *h, rp_cfg node, const char *path, double *ret)
{
	*ret = h->config->number(h->ctx, section_get(h, node, path), 0);
	if (*ret >= 0 && *ret <= 1)
		return 0;
	return modhost_refuse(h, section_get(h, node, path), "expected a number of 0 to 1");
}

static uint32_t index_of(const char *text, const char *const *names, uint32_t n, uint32_t fallback)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(text, names[i]))
			return i;
	return fallback;
}

static int32_t read_level(const struct modhost *h, rp_cfg node, struct level_settings *ret)
{
	static const char *const quotas[] = {"asked", "none", "limit", "burst"};
	static const char *const classes[N_CLASSES] = {"rdtClass", "blockioClass", "cpuClass"};
	ret->quota = index_of(text_at(h, node, "cpuQuota"), quotas, 4, QUOTA_AS_IS);
	ret->burst = section_int(h, node, "cpuBurstPercent", 100);
	ret->any = ret->quota != QUOTA_AS_IS;
	for (uint32_t i = 0; i < N_CLASSES; i++) {
		ret->classes[i] = text_at(h, node, classes[i]);
		ret->any = ret->any || *ret->classes[i];
	}
	int32_t r = part_at(h, node, "memoryLow", &ret->memory_low);
	return r ? r : part_at(h, node, "memoryHigh", &ret->memory_high);
}

static bool is_name(const char *text)
{
	if (*text >= '0' && *text <= '9')
		return false;
	return *text && !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
					   "0123456789")];
}

static int32_t read_env(const struct modhost *h, rp_cfg node, struct env *ret)
{
	rp_cfg levels = section_get(h, node, "qosLevels");
	ret->name = text_at(h, node, "name");
	ret->value = text_at(h, node, "value");
	ret->override = section_bool(h, node, "override", false);
	for (uint32_t i = 0; i < h->config->count(h->ctx, levels); i++) {
		const char *level = h->config->text(h->ctx, h->config->item(h->ctx, levels, i), "");
		ret->levels |= 1u << index_of(level, level_names, N_LEVELS, N_LEVELS);
	}
	if (!levels)
		ret->levels = (1u << N_LEVELS) - 1;
	if (!is_name(ret->name))
		return modhost_refuse(h, section_get(h, node, "name"),
				      "\"%s\" is not a variable's name: use letters, digits and "
				      "_, not starting with a digit",
				      ret->name);
	const char *unknown = env_unknown(ret->value);
	return !*unknown
		       ? 0
		       : modhost_refuse(h, section_get(h, node, "value"),
					"unknown placeholder \"%.32s\"; $$ stands for $", unknown);
}

static int32_t read_envs(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg list = section_get(h, p->section, "injectEnvs");
	uint32_t n = h->config->count(h->ctx, list);
	if (n > ENVS_MAX)
		return modhost_refuse(h, list, "at most %u variables", ENVS_MAX);
	p->envs = blocks_alloc(&p->memory, n ? n : 1, sizeof *p->envs);
	if (!p->envs)
		return modhost_no_memory(h);
	int32_t r = 0;
	for (; !r && p->n_envs < n; p->n_envs++)
		r = read_env(h, h->config->item(h->ctx, list, p->n_envs), &p->envs[p->n_envs]);
	return r;
}

static void read_aligned(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg list = section_get(h, p->section, "numericAlignResources");
	p->numeric_cpu = p->numeric_memory = !list;
	for (uint32_t i = 0; i < h->config->count(h->ctx, list); i++) {
		const char *what = h->config->text(h->ctx, h->config->item(h->ctx, list, i), "");
		p->numeric_cpu = p->numeric_cpu || !strcmp(what, "cpu");
		p->numeric_memory = p->numeric_memory || !strcmp(what, "memory");
	}
}

static int32_t read_advisor(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg node = section_get(h, p->section, "advisor");
	p->advise = section_bool(h, node, "enable", false);
	p->advise_reserve = section_value(h, node, "reserve", RP_T_CPU, 4000);
	p->advise_period_ms = (uint64_t)section_value(h, node, "period", RP_T_DURATION, 30000);
	if (!p->advise || (p->reclaim && !p->overlap))
		return 0;
	return modhost_refuse(h, section_get(h, node, "enable"),
			      "the advisor gives unused CPUs of pools to reclaimed_cores: set "
			      "enableReclaim, and unset allowSharedOverlapReclaimed");
}

static int32_t read_section(const struct modhost *h, struct rp_plan *p)
{
	static const char *const spreadings[] = {"spreading", "packing", "dynamic_packing"};
	rp_cfg s = p->section;
	p->reclaim = section_bool(h, s, "enableReclaim", false);
	p->overlap = section_bool(h, s, "allowSharedOverlapReclaimed", false);
	p->pin_cpu = section_bool(h, s, "pinCPU", true);
	p->pin_memory = section_bool(h, s, "pinMemory", true);
	if (section_bool(h, s, "memoryMigrate", false))
		modhost_log(h, RP_LOG_NOTICE, 0,
			    "memoryMigrate needs the controller memory with pageMigration.enable");
	p->memory_check = section_bool(h, s, "nonBindingMemoryCheck", true);
	p->ramp_up_ms = 1000 * section_int(h, s, "rampUpSeconds", 30);
	p->min_reclaimed = (uint32_t)section_int(h, s, "minReclaimedCPUs", 0);
	p->parity = section_bool(h, s, "parity", false);
	relief_read(h, s, p->parity, &p->relief);
	p->spreading = index_of(text_at(h, s, "numaHintPolicy"), spreadings, 3, SPREADING);
	p->topology = index_of(text_at(h, s, "topologyPolicy"), hints_policy_names,
			       N_HINTS_POLICIES, HINTS_POLICY_DEFAULT);
	read_aligned(h, p);
	if (read_advisor(h, p))
		return -RP_EINVAL;
	int32_t r = part_at(h, s, "numaHintLowThreshold", &p->low_threshold);
	for (uint32_t i = 0; !r && i < N_LEVELS; i++)
		r = read_level(h, section_get(h, section_get(h, s, "levels"), level_names[i]),
			       &p->levels[i]);
	if (!r)
		r = texts_read(h, &p->memory, section_get(h, s, "podDebugAnnotations"), 0,
			       &p->debug);
	return r ? r : read_envs(h, p);
}

const char *plan_default(const struct modhost *h, const struct rp_plan *p, const char *key)
{
	for (uint32_t i = 0; i < p->n_defaults; i++)
		if (!strcmp(h->config->key(h->ctx, p->defaults, i), key))
			return h->config->text(h->ctx, h->config->item(h->ctx, p->defaults, i),
					       NULL);
	return NULL;
}

/* ---- reserved CPUs and nodes ----------------------------------------------------------------- */

static int32_t reserve_listed(const struct modhost *h, struct rp_plan *p, rp_cfg node,
			      const struct reserve_past *past)
{
	struct rp_idset awaited;
	struct rp_ids online = rp_ids_of(&p->machine->online);
	if (rp_idset_parse(&p->listed, h->config->text(h->ctx, node, ""), RP_CPUS_MAX))
		return modhost_refuse(h, node, "expected a list of CPUs");
	rp_idset_and(&p->reserved, rp_ids_of(&p->listed), online);
	return amount_check_reserved(h, node, past, rp_ids_of(&p->listed), online, online,
				     &awaited);
}

static int32_t config_reserve(const struct modhost *h, struct rp_plan *p,
			      const struct reserve_past *past)
{
	rp_cfg list = section_get(h, p->section, "reservedCPUs");
	rp_cfg count = section_get(h, p->section, "reservedCPUCount");
	uint32_t n = (uint32_t)h->config->value(h->ctx, count, RP_T_INT, 0);
	bool last = section_bool(h, p->section, "reserveFromEnd", false);
	struct rp_ids online = rp_ids_of(&p->machine->online);
	struct rp_idset from;
	if (list)
		return reserve_listed(h, p, list, past);
	if (n >= p->machine->n_cpus && !past->hotplug)
		return modhost_refuse(h, count, "%u reserved CPUs requested, but the node has %u",
				      n, p->machine->n_cpus);
	n = reserve_quantity(past, online, online, n, &p->reserved, &from);
	take_threads(p, &from, n, last, &p->reserved);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

static int32_t add_node(const struct modhost *h, struct rp_plan *p, uint32_t unit)
{
	const struct machine_unit *u = &p->machine->level[MACHINE_NODE].units[unit];
	struct rp_node_info info = {.size = sizeof info};
	struct node *node = &p->nodes[p->n_nodes++];
	if (u->id >= NODES_MAX)
		return modhost_fail(
			h, -RP_ENOTSUP,
			"qos supports NUMA nodes with numbers below %u; this machine has node %u",
			NODES_MAX, u->id);
	node->id = u->id;
	node->unit = unit;
	node->socket = p->machine->level[MACHINE_PACKAGE].unit_of[u->cpus[0]];
	if (!h->topology->node(h->ctx, u->id, &info))
		node->memory = info.memory;
	p->node_mask |= UINT64_C(1) << u->id;
	return 0;
}

static int32_t look_at_nodes(const struct modhost *h, struct rp_plan *p)
{
	uint32_t n = p->machine->level[MACHINE_NODE].n_units;
	int32_t r = 0;
	p->n_sockets = p->machine->level[MACHINE_PACKAGE].n_units;
	if (!n || !p->n_sockets)
		return modhost_fail(h, -RP_EINVAL, "the machine has no NUMA nodes with CPUs");
	p->nodes = calloc(n, sizeof *p->nodes);
	if (!p->nodes)
		return modhost_no_memory(h);
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_node(h, p, i);
	if (r)
		return r;
	qsort(p->nodes, p->n_nodes, sizeof *p->nodes, by_number);
	p->node_cpus = (p->machine->n_cpus + n - 1) / n;
	p->socket_cpus = (p->machine->n_cpus + p->n_sockets - 1) / p->n_sockets;
	p->socket_nodes = n / p->n_sockets ? n / p->n_sockets : 1;
	if (!p->min_reclaimed)
		p->min_reclaimed = p->advise ? 2 * n : n > 4 ? n : 4;
	return 0;
}

/* Determines the CPUs that are not reserved, in total and for each node. */
static int32_t look_at_pool(const struct modhost *h, struct rp_plan *p,
			    const struct reserve_past *past)
{
	rp_idset_andnot(&p->pool, rp_ids_of(&p->machine->online), rp_ids_of(&p->reserved));
	if (rp_ids_empty(rp_ids_of(&p->pool)) && !past->hotplug)
		return modhost_refuse(h, section_get(h, p->section, "reservedCPUs"),
				      "all CPUs are reserved: none is left for pods");
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct node *node = &p->nodes[i];
		rp_idset_clear(&node->cpus);
		machine_add_free(&p->machine->level[MACHINE_NODE].units[node->unit],
				 rp_ids_of(&p->pool), &node->cpus);
		node->n_cpus = rp_ids_count(rp_ids_of(&node->cpus));
	}
	return 0;
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	p->section = section;
	p->defaults = section_get(h, section, "enhancementDefaults");
	p->n_defaults = h->config->count(h->ctx, p->defaults);
	int32_t r = read_section(h, p);
	if (!r)
		r = machine_new(h, &p->machine);
	if (!r)
		r = look_at_nodes(h, p);
	if (!r)
		r = ask_check_defaults(h, p);
	if (!r)
		r = config_reserve(h, p, past);
	return r ? r : look_at_pool(h, p, past);
}

int32_t plan_check(struct rp_instance *inst, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	struct rp_idset bad;
	char text[SET_TEXT_MAX];
	rp_idset_and(&bad, rp_ids_of(&inst->owners.taken), rp_ids_of(&p->reserved));
	if (rp_ids_empty(rp_ids_of(&bad)))
		return 0;
	return modhost_fail_at(h, section_get(h, p->section, "reservedCPUs"), -RP_EBUSY,
			       "some reserved CPUs (%s) are dedicated to running containers",
			       modhost_set_text(rp_ids_of(&bad), text, sizeof text));
}

void plan_cpus_of(const struct rp_plan *p, uint64_t nodes, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes >> p->nodes[i].id & 1)
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&p->nodes[i].cpus));
}
