/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration section: types, classes, and the checks that need no topology. plan.c
 * applies the result to the topology. */
#include <string.h>

#include "modules/balloons/plan.h"
#include <nri-rp/lib/bounds.h>
#include "modules/lib/private/irq.h"
#include <nri-rp/lib/section.h>

/* ---- keys ------------------------------------------------------------------------------------ */

#define EXPRESSIONS(path_, doc_)                                                                   \
	SECTION_MAPS(path_, doc_, "An expression; one match is enough."),                          \
		SECTION_TEXT(path_ "[].key",                                                       \
			     "Property to compare: name, namespace, qosclass, labels/KEY, id, or " \
			     "pod/ followed by one of these or uid."),                             \
		SECTION_KEY(path_ "[].operator", STRING,                                           \
			    "Equals, NotEqual, In, NotIn, Exists, NotExist, AlwaysTrue, Matches, " \
			    "MatchesNot, MatchesAny or MatchesNone.",                              \
			    .flags = RP_KEY_REQUIRED),                                             \
		SECTION_TEXTS(path_ "[].values", "Values to compare with.", "A value, or a glob.")

#define T "balloonTypes[]."
#define CPUS_LIMIT INT32_MAX /* 1000 times this limit still fits an int64_t */

static const struct rp_key keys[] = {
	BOUNDS_KEYS("Resources of the reserved balloon, for the system's containers.",
		    "A quantity: smallest size of the reserved balloon. A set: CPUs that the "
		    "reserved balloon prefers and other balloons avoid."),
	SECTION_ANY("availableResources.memory", "Accepted; no effect."),
	SECTION_ANY("reservedResources.memory", "Accepted; no effect."),
	SECTION_BOOL("pinCPU", "true", "Containers run on the CPUs of their balloon."),
	SECTION_BOOL("pinMemory", "true", "Containers get memory near the CPUs of their balloon."),
	SECTION_TEXTS(
		"reservedPoolNamespaces",
		"Namespaces whose containers run in the reserved balloon; kube-system always does.",
		"A glob."),
	SECTION_TEXT("idleCPUClass", "Class of the CPUs outside balloons."),
	SECTION_BOOL("allocatorTopologyBalancing", "false",
		     "Spread balloons over the node; otherwise pack them."),
	SECTION_BOOL("preferSpreadOnPhysicalCores", "false",
		     "First allocate threads of different cores to a balloon."),
	SECTION_PARITY,
	ISOLATION_KEYS,
	RELIEF_KEYS,
	SECTION_BOOL("showContainersInNrt", "false",
		     "Report containers as zones below their balloon's."),
	SECTION_TEXTS("controllableInterrupts", "Interrupts that may be moved; empty: all.",
		      "A glob over an interrupt's description."),
	SECTION_MAP("preserve", "Containers that the policy does not manage."),
	EXPRESSIONS("preserve.matchExpressions", "Expressions that select them."),
	CPUCLASS_KEYS,
	SECTION_MAP("control", "Location of CPU classes in older custom resources."),
	SECTION_MAP("control.cpu", "Same as above."),
	CPUCLASS_OLD_KEYS("control.cpu.classes"),
	SECTION_MAPS("loadClasses", "Kinds of load that slow down neighbouring CPUs.", "A class."),
	SECTION_NAME("loadClasses[].name", "Unique name."),
	SECTION_KEY("loadClasses[].level", ENUM, "Unit whose CPUs slow down each other.",
		    .flags = RP_KEY_REQUIRED, .choices = "core|l2cache"),
	SECTION_BOOL("loadClasses[].overloadsLevelInBalloon", "false",
		     "CPUs of one balloon should be kept apart as well."),
	MEMPOLICY_KEYS,
	SCHEDCLASS_KEYS,
	SECTION_MAPS("balloonTypes",
		     "Balloon types. A container goes to the first type that matches.",
		     "A type; types named reserved and default replace the built-in types."),
	SECTION_NAME(T "name", "Unique name."),
	SECTION_TEXTS(T "namespaces", "Namespaces whose containers use this type.", "A glob."),
	EXPRESSIONS(T "matchExpressions", "Containers that use this type."),
	SECTION_TEXT(T "groupBy",
		     "Containers for which this text expands to the same value share a balloon; "
		     "${KEY} is replaced by a property as in matchExpressions."),
	SECTION_NUMBER(T "minCPUs", -CPUS_LIMIT, CPUS_LIMIT, "0",
		       "Minimum number of CPUs of a balloon."),
	SECTION_NUMBER(
		T "maxCPUs", -CPUS_LIMIT, CPUS_LIMIT, "0",
		"Maximum number of CPUs of a balloon; 0: no limit; negative: no container fits."),
	SECTION_NUMBER(T "minBalloons", 0, RP_CPUS_MAX, "0",
		       "Number of balloons that always exist."),
	SECTION_NUMBER(T "maxBalloons", 0, INT32_MAX, "0",
		       "Maximum number of balloons; 0: no limit."),
	SECTION_BOOL(T "preferNewBalloons", "false",
		     "Create a new balloon rather than use one with room."),
	SECTION_BOOL(T "preferSpreadingPods", "false",
		     "Spread containers of a pod over different balloons."),
	SECTION_BOOL(T "preferPerNamespaceBalloon", "false",
		     "Put containers of a namespace into the same balloon, containers of different "
		     "namespaces into different balloons."),
	SECTION_CHOICE(
		T "allocatorPriority", "high|normal|low|none", "high",
		"Order in which balloons are created at the start, and preferred kind of CPUs."),
	SECTION_BOOL(T "allocatorTopologyBalancing", NULL,
		     "Same as the top-level key, for this type."),
	SECTION_BOOL(T "preferSpreadOnPhysicalCores", NULL,
		     "Same as the top-level key, for this type."),
	SECTION_BOOL(T "hideHyperthreads", "false",
		     "Restrict containers to one thread of each core."),
	SECTION_TEXTS(T "preferCloseToDevices", "Devices near which balloons are placed.",
		      "A path in sysfs, or a device file; most important first."),
	SECTION_BOOL(T "preferIsolCpus", "false", "Prefer CPUs that the kernel isolates."),
	SECTION_CHOICE(T "preferCoreType", "|efficient|performance", NULL,
		       "Kind of cores to prefer."),
	SECTION_TEXTS(T "loads", "Load classes of its containers.", "Name of a load class."),
	SECTION_CHOICE(T "shareIdleCPUsInSame", "|system|package|die|numa|l2cache|core|thread",
		       NULL, "Let containers also run on idle CPUs in the same part of the node."),
	SECTION_TEXTS(T "memoryTypes", "Kinds of memory for containers.", "DRAM, HBM or PMEM."),
	SECTION_BOOL(T "pinMemory", NULL, "Same as the top-level key, for this type."),
	SECTION_TEXT(T "cpuClass", "Class of its CPUs."),
	SECTION_TEXT(T "schedulingClass", "Scheduling class of its containers."),
	SECTION_TEXT(T "memoryPolicyClass", "Memory policy class of its containers."),
	SECTION_TEXTS(T "irqClaim", "Interrupts that run only on its CPUs.",
		      "The number of an interrupt, or a glob over its description."),
	SECTION_CHOICE(T "irqMode", "|sink|isolate", NULL,
		       "Whether all other interrupts run on its CPUs, or none."),
	SECTION_MAPS(T "components",
		     "Types of the balloons that a balloon of this type consists of.",
		     "A component."),
	SECTION_NAME(T "components[].balloonType", "Name of a type."),
	SECTION_CHOICE(T "componentCreation", "|all|balance-balloons", NULL,
		       "Create a balloon of each component, or one of the component with the "
		       "fewest balloons."),
	SECTION_BOOL(T "showContainersInNrt", NULL, "Same as the top-level key, for this type."),
};

const struct rp_schema balloons_schema = SECTION_SCHEMA(keys, .cr_kind = "BalloonsPolicy");

/* ---- loads ----------------------------------------------------------------------------------- */

static int32_t read_loads(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg list = section_get(h, p->section, "loadClasses");
	p->n_loads = h->config->count(h->ctx, list);
	p->loads = blocks_alloc(&p->memory, p->n_loads, sizeof *p->loads);
	if (!p->loads)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < p->n_loads; i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		struct load_class *c = &p->loads[i];
		c->name = section_text(h, node, "name", "");
		c->level = strcmp(section_text(h, node, "level", ""), "core") == 0 ? TREE_CORE
										   : TREE_L2;
		c->in_balloon = section_bool(h, node, "overloadsLevelInBalloon", false);
		if (!*c->name)
			return modhost_refuse(h, node, "a load class needs a name");
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(p->loads[k].name, c->name) == 0)
				return modhost_refuse(h, node, "two load classes are named \"%s\"",
						      c->name);
	}
	return 0;
}

/* ---- types ----------------------------------------------------------------------------------- */

static int32_t read_memory_types(const struct modhost *h, struct type *t)
{
	rp_cfg list = section_get(h, t->at, "memoryTypes");
	uint32_t n = h->config->count(h->ctx, list);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		const char *name = h->config->text(h->ctx, node, "");
		uint32_t type = memalloc_type_of(name);
		if (!type)
			return modhost_refuse(h, node,
					      "balloon type %s: unknown memory type \"%s\"",
					      t->name, name);
		t->memory_types |= type;
	}
	return 0;
}

static int32_t read_type_loads(const struct modhost *h, struct rp_plan *p, struct type *t)
{
	rp_cfg list = section_get(h, t->at, "loads");
	uint32_t n = h->config->count(h->ctx, list);
	t->loads.list = blocks_alloc(&p->memory, n, sizeof *t->loads.list);
	if (!t->loads.list)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		const char *name = h->config->text(h->ctx, node, "");
		uint32_t k = 0;
		while (k < p->n_loads && strcmp(p->loads[k].name, name) != 0)
			k++;
		if (k == p->n_loads)
			return modhost_refuse(h, node, "balloon type %s: unknown load class \"%s\"",
					      t->name, name);
		plan_add_index(&t->loads, k);
		t->overloads_itself = t->overloads_itself || p->loads[k].in_balloon;
	}
	return 0;
}

static void read_preferences(const struct modhost *h, const struct rp_plan *p, struct type *t)
{
	static const char *const levels[] = {"system",	"package", "die",    "numa",
					     "l2cache", "core",	   "thread", NULL};
	rp_cfg at = t->at;
	t->min_cpus = section_int(h, at, "minCPUs", 0);
	t->max_cpus = section_int(h, at, "maxCPUs", 0);
	t->min_balloons = section_int(h, at, "minBalloons", 0);
	t->max_balloons = section_int(h, at, "maxBalloons", 0);
	t->group_by = section_text(h, at, "groupBy", "");
	t->prefer_new = section_bool(h, at, "preferNewBalloons", false);
	t->spread_pods = section_bool(h, at, "preferSpreadingPods", false);
	t->per_namespace = section_bool(h, at, "preferPerNamespaceBalloon", false);
	t->hide_threads = section_bool(h, at, "hideHyperthreads", false);
	t->prefer_isolated = section_bool(h, at, "preferIsolCpus", false);
	t->balancing = section_bool(h, at, "allocatorTopologyBalancing", p->balancing);
	t->spread_cores = section_bool(h, at, "preferSpreadOnPhysicalCores", p->spread_cores);
	t->pin_memory = section_bool(h, at, "pinMemory", p->pin_memory);
	t->show_containers = section_bool(h, at, "showContainersInNrt", p->show_containers);
	const char *priority = section_text(h, at, "allocatorPriority", "high");
	int prio = section_word(cpualloc_prio_names, priority);
	t->priority = prio < 0 ? CPUALLOC_NONE : (enum cpualloc_prio)prio;
	t->share = section_word(levels, section_text(h, at, "shareIdleCPUsInSame", ""));
	t->core_type = section_text(h, at, "preferCoreType", "");
	t->cpu_class_name = section_text(h, at, "cpuClass", "");
	const char *mode = section_text(h, at, "irqMode", "");
	t->irq_mode = strcmp(mode, "sink") == 0	     ? IRQ_SINK
		      : strcmp(mode, "isolate") == 0 ? IRQ_ISOLATE
						     : IRQ_NORMAL;
	t->balance_parts =
		strcmp(section_text(h, at, "componentCreation", ""), "balance-balloons") == 0;
}

static int32_t read_parts(const struct modhost *h, struct rp_plan *p, struct type *t)
{
	rp_cfg list = section_get(h, t->at, "components");
	uint32_t n = h->config->count(h->ctx, list);
	t->part_names = (struct texts){blocks_alloc(&p->memory, n, sizeof *t->part_names.list), n};
	t->parts.list = blocks_alloc(&p->memory, n, sizeof *t->parts.list);
	if (!t->part_names.list || !t->parts.list)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < n; i++)
		t->part_names.list[i] =
			section_text(h, h->config->item(h->ctx, list, i), "balloonType", "");
	if (!n && *section_text(h, t->at, "componentCreation", ""))
		return modhost_refuse(h, section_get(h, t->at, "componentCreation"),
				      "balloon type %s: componentCreation without components",
				      t->name);
	return 0;
}

/* Returns true if the value equals the default that API servers fill in for composite types. A
 * boolean key without a default in the definition counts only when written. */
static bool is_default(const struct modhost *h, const char *key, rp_cfg node)
{
	const char *text = h->config->text(h->ctx, node, "");
	if (h->config->kind(h->ctx, node) == RP_NODE_LIST)
		return h->config->count(h->ctx, node) == 0;
	return !*text || (strcmp(key, "preferIsolCpus") == 0 &&
			  !h->config->value(h->ctx, node, RP_T_BOOL, 1));
}

static int32_t check_composite(const struct modhost *h, const struct type *t)
{
	static const char *const forbidden[] = {"cpuClass",
						"preferSpreadOnPhysicalCores",
						"allocatorTopologyBalancing",
						"preferCloseToDevices",
						"preferIsolCpus",
						"preferCoreType"};
	for (size_t i = 0; t->part_names.n && i < sizeof forbidden / sizeof forbidden[0]; i++) {
		rp_cfg node = section_get(h, t->at, forbidden[i]);
		if (node && !is_default(h, forbidden[i], node))
			return modhost_refuse(
				h, node, "balloon type %s has components: set %s in the components",
				t->name, forbidden[i]);
	}
	return 0;
}

static int32_t check_type(const struct modhost *h, const struct type *t)
{
	if (!*t->name)
		return modhost_refuse(h, t->at, "a balloon type needs a name");
	if (strlen(t->name) > BALLOON_TYPE_NAME_MAX)
		return modhost_refuse(
			h, t->at, "the name \"%.64s…\" of a balloon type is longer than %u bytes",
			t->name, BALLOON_TYPE_NAME_MAX);
	if (t->min_cpus < 0 && t->max_cpus >= 0)
		return modhost_refuse(h, section_get(h, t->at, "minCPUs"),
				      "balloon type %s: minCPUs is negative", t->name);
	if (t->max_cpus > 0 && t->min_cpus > t->max_cpus)
		return modhost_refuse(h, section_get(h, t->at, "minCPUs"),
				      "balloon type %s: minCPUs %lld is more than maxCPUs %lld",
				      t->name, (long long)t->min_cpus, (long long)t->max_cpus);
	if (t->max_cpus < 0 && t->min_cpus > 0)
		return modhost_refuse(h, section_get(h, t->at, "minCPUs"),
				      "balloon type %s: minCPUs is %lld, but maxCPUs allows none",
				      t->name, (long long)t->min_cpus);
	if (t->max_balloons && t->min_balloons > t->max_balloons)
		return modhost_refuse(
			h, section_get(h, t->at, "minBalloons"),
			"balloon type %s: minBalloons %lld is more than maxBalloons %lld", t->name,
			(long long)t->min_balloons, (long long)t->max_balloons);
	const char *wrong = match_check_text(t->group_by);
	if (wrong)
		return modhost_refuse(h, section_get(h, t->at, "groupBy"),
				      "balloon type %s: bad groupBy \"%s\": %s", t->name,
				      t->group_by, wrong);
	return check_composite(h, t);
}

static int32_t find_type_classes(const struct modhost *h, const struct rp_plan *p, struct type *t)
{
	rp_cfg at = section_get(h, t->at, "schedulingClass");
	const char *name = h->config->text(h->ctx, at, ""), *kind = "scheduling";
	t->sched = schedclass_find(&p->scheds, name);
	if (!*name || t->sched != SCHEDCLASS_NONE) {
		at = section_get(h, t->at, "memoryPolicyClass");
		name = h->config->text(h->ctx, at, "");
		kind = "memory policy";
		t->mempolicy = mempolicy_find(&p->mempolicies, name);
		if (!*name || t->mempolicy != MEMPOLICY_NONE)
			return 0;
	}
	return modhost_refuse(h, at, "balloon type %s: unknown %s class \"%s\"", t->name, kind,
			      name);
}

static int32_t read_type(const struct modhost *h, struct rp_plan *p, rp_cfg at, struct type *t)
{
	char what[BALLOON_NAME_MAX];
	t->at = at;
	t->name = section_text(h, at, "name", "");
	read_preferences(h, p, t);
	(void)snprintf(what, sizeof what, "balloon type %s", t->name);
	/* Reserves space for the namespaces that reserve_namespaces() adds to the reserved type. */
	int32_t r = texts_read(h, &p->memory, section_get(h, at, "namespaces"),
			       1 + p->reserved_namespaces.n, &t->namespaces);
	if (!r)
		r = match_read(h, &p->memory, section_get(h, at, "matchExpressions"), what,
			       &t->match);
	if (!r)
		r = texts_read(h, &p->memory, section_get(h, at, "preferCloseToDevices"), 0,
			       &t->close_paths);
	if (!r)
		r = texts_read(h, &p->memory, section_get(h, at, "irqClaim"), 0, &t->irq_claim);
	if (!r)
		r = read_memory_types(h, t);
	if (!r)
		r = read_type_loads(h, p, t);
	if (!r)
		r = find_type_classes(h, p, t);
	if (!r)
		r = read_parts(h, p, t);
	return r ? r : check_type(h, t);
}

static int32_t read_types(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg list = section_get(h, p->section, "balloonTypes");
	uint32_t n = h->config->count(h->ctx, list);
	/* The built-in types use the entries before the first and after the last type. */
	p->types = blocks_alloc(&p->memory, (size_t)n + 2, sizeof *p->types);
	if (!p->types)
		return modhost_no_memory(h);
	p->types++;
	p->n_types = n;
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg at = h->config->item(h->ctx, list, i);
		int32_t r = read_type(h, p, at, &p->types[i]);
		if (r)
			return r;
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(p->types[k].name, p->types[i].name) == 0)
				return modhost_refuse(h, at, "two balloon types are named \"%s\"",
						      p->types[i].name);
	}
	return 0;
}

/* ---- whole section --------------------------------------------------------------------------- */

/* Reads cpuClasses and the older control.cpu.classes of custom resources. */
static int32_t read_classes(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg old = section_get(h, p->section, "control.cpu.classes");
	int32_t r = cpuclass_read(h, p->section, &p->classes);
	if (r || !h->config->count(h->ctx, old))
		return r;
	modhost_log(h, RP_LOG_WARNING, 0, "control.cpu.classes is obsolete: use cpuClasses");
	return cpuclass_read_old(h, old, &p->classes);
}

static void find_class(const struct modhost *h, const struct rp_plan *p, rp_cfg at,
		       const char *name, const char *of, uint32_t *ret)
{
	*ret = cpuclass_find(&p->classes, *name ? name : "default");
	if (*name && *ret == CPUCLASS_NONE)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "%s: %s: unknown CPU class \"%s\"; define it in cpuClasses",
			    h->config->where(h->ctx, at ? at : p->section), of, name);
}

static void find_classes(const struct modhost *h, struct rp_plan *p)
{
	find_class(h, p, section_get(h, p->section, "idleCPUClass"),
		   section_text(h, p->section, "idleCPUClass", ""), "idleCPUClass", &p->idle_class);
	for (uint32_t i = 0; i < p->n_types; i++) {
		struct type *t = &p->types[i];
		find_class(h, p, t->at ? section_get(h, t->at, "cpuClass") : NULL,
			   t->cpu_class_name, t->name, &t->cpu_class);
	}
	if (p->idle_class != CPUCLASS_NONE && p->classes.list[p->idle_class].turbo_priority > 0)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "idle CPUs compete for turbo: class %s has a turboPriority",
			    p->classes.list[p->idle_class].name);
}

int32_t config_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	p->section = section;
	p->pin_cpu = section_bool(h, section, "pinCPU", true);
	p->parity = section_bool(h, section, "parity", false);
	relief_read(h, section, p->parity, &p->relief);
	p->pin_memory = section_bool(h, section, "pinMemory", true);
	p->balancing = section_bool(h, section, "allocatorTopologyBalancing", false);
	p->spread_cores = section_bool(h, section, "preferSpreadOnPhysicalCores", false);
	p->show_containers = section_bool(h, section, "showContainersInNrt", false);
	int32_t r = amount_read_both(h, section, AMOUNT_TAKES_ANY, &p->available, &p->reserved);
	if (!r)
		r = texts_read(h, &p->memory, section_get(h, section, "reservedPoolNamespaces"), 0,
			       &p->reserved_namespaces);
	if (!r)
		r = match_read(h, &p->memory, section_get(h, section, "preserve.matchExpressions"),
			       "preserve", &p->preserve);
	if (!r)
		r = irq_read_controllable(h, &p->memory, section, &p->controllable);
	if (!r)
		r = isolation_read(h, section, &p->isolation);
	if (!r)
		r = read_classes(h, p);
	if (!r)
		r = read_loads(h, p);
	if (!r)
		r = schedclass_read(h, &p->memory, section, &p->scheds);
	if (!r)
		r = mempolicy_read(h, &p->memory, section, &p->mempolicies);
	if (!r)
		r = read_types(h, p);
	if (!r)
		find_classes(h, p);
	return r;
}
