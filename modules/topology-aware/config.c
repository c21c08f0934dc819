/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema of the topology-aware policy. Reads a configuration section into settings and checks them.
 */
#include <stdlib.h>

#include <nri-rp/lib/section.h>
#include "modules/topology-aware/config.h"

#define LEVELS "system|package|die|numa|l3cache"
#define PRIORITIES "high|normal|low|none"

static const struct rp_key keys[] = {
	SECTION_BOOL("pinCPU", "true",
		     "Pin containers to the CPUs chosen for them and set their CPU shares."),
	SECTION_BOOL("pinMemory", "true", "Pin containers to the memory nodes chosen for them."),
	SECTION_BOOL(
		"preferIsolatedCPUs", "true",
		"Prefer CPUs that the kernel isolates for exclusive CPUs, if there are enough."),
	SECTION_BOOL(
		"preferSharedCPUs", "false",
		"Place Guaranteed containers on shared CPUs, too, unless annotated otherwise."),
	{.path = "colocatePods",
	 .type = RP_T_ANY,
	 .fallback = "false",
	 .doc = "true: containers of a pod are placed next to each other; strict: within the "
		"smallest pool that has all that the pod requests, where the cluster reports it."},
	SECTION_BOOL("colocateNamespaces", "false",
		     "Place containers of a namespace near each other."),
	SECTION_TEXTS("reservedPoolNamespaces",
		      "Namespaces whose containers run on the reserved CPUs, besides kube-system.",
		      "A name or a pattern."),
	SECTION_TEXTS("claimDevices",
		      "Devices that pods can claim, with dra.enabled: of NUMA nodes, and with l3 "
		      "and socket of L3 caches and sockets, too.",
		      "node, l3 or socket."),
	SECTION_MAP("availableResources", "Resources for containers."),
	SECTION_AMOUNT("availableResources.cpu",
		       "CPUs that containers may use, as a set; by default all."),
	SECTION_ANY("availableResources.memory", "Accepted for older configurations; no effect."),
	SECTION_KEY("reservedResources", MAP,
		    "Resources reserved for containers of the system, as in {cpu: 750m}.",
		    .flags = RP_KEY_REQUIRED),
	SECTION_AMOUNT("reservedResources.cpu",
		       "CPUs reserved for containers of the system: a set, or a quantity that is "
		       "rounded up to whole CPUs. At least one is needed."),
	SECTION_ANY("reservedResources.memory", "Accepted for older configurations; no effect."),
	SECTION_KEY("defaultCPUPriority", STRING,
		    "Kind of CPUs that containers prefer: high, normal, low, or none for any.",
		    .fallback = "none"),
	SECTION_CHOICE("unlimitedBurstable", LEVELS, "package",
		       "Part of the node whose CPUs Burstable containers without CPU limit share."),
	SECTION_CHOICE("packing", "tight|balanced", NULL,
		       "Pool for a container with exclusive CPUs if several have room: the one "
		       "that leaves the largest holes elsewhere (default), or the one with most "
		       "room (as with parity). Other containers get the pool with most room."),
	SECTION_PARITY,
	ISOLATION_KEYS,
	RELIEF_KEYS,
	SECTION_CHOICE("bestEffortOverflow", "reserved|refuse", "reserved",
		       "CPUs for containers without requests while all other CPUs are exclusive."),
	SECTION_BOOL("testHints", NULL,
		     "Use topology hints in the annotation test.topologyhints like hints of "
		     "devices. Any author of pods could choose CPUs with them, so by default they "
		     "are only used on simulated machines."),
	MEMPOLICY_KEYS,
	SECTION_MAP("namespaceMemoryPolicyClasses",
		    "Memory policy classes of the containers of namespaces."),
	SECTION_TEXT("namespaceMemoryPolicyClasses.*",
		     "A class for the namespace that the key names."),
	SCHEDCLASS_KEYS,
	SECTION_MAP("namespaceSchedulingClasses",
		    "Scheduling classes of the containers of namespaces."),
	SECTION_TEXT("namespaceSchedulingClasses.*",
		     "A class for the namespace that the key names."),
	SECTION_MAP("podQoSSchedulingClasses",
		    "Scheduling classes of the other containers, by QoS class of the pod."),
	SECTION_TEXT("podQoSSchedulingClasses.*",
		     "A class for besteffort, burstable or guaranteed pods."),
	CPUCLASS_KEYS,
	SECTION_TEXT("sharedPoolCPUClass",
		     "CPU class of shared CPUs; needed when there are CPU classes."),
	SECTION_TEXT("reservedPoolCPUClass",
		     "CPU class of the reserved CPUs; by default that of shared ones."),
	SECTION_TEXT("defaultExclusiveCPUClass",
		     "CPU class of exclusive CPUs of containers that are not annotated."),
	SECTION_KEY("controllableInterrupts", LIST,
		    "Interrupts whose affinity containers may request to change, by description; "
		    "empty: all.",
		    .fallback = "[\"*\"]"),
	SECTION_TEXT("controllableInterrupts[]", "A pattern."),
};

const struct rp_schema ta_schema = SECTION_SCHEMA(keys, .cr_kind = "TopologyAwarePolicy");

/* ---- level names and patterns ---------------------------------------------------------------- */

uint32_t level_parse(const char *text)
{
	static const char *const levels[] = {"system",	"package", "die",    "numa", "l3cache",
					     "l2cache", "core",	   "thread", NULL};
	return (uint32_t)(section_word(levels, text) + (int)RP_LEVEL_SYSTEM);
}

bool strings_match(const struct texts *patterns, const char *text)
{
	for (uint32_t i = 0; i < patterns->n; i++) {
		if (!glob_valid(patterns->list[i]))
			return false;
		if (glob_match(patterns->list[i], text))
			return true;
	}
	return false;
}

/* ---- scheduling classes and memory policies -------------------------------------------------- */

static int32_t read_class(const struct modhost *h, const struct settings *s, rp_cfg node,
			  bool memory, int32_t *ret)
{
	const char *name = h->config->text(h->ctx, node, "");
	*ret = memory ? mempolicy_find(&s->mempolicies, name) : schedclass_find(&s->sched, name);
	return *ret >= 0 ? 0
			 : modhost_refuse(h, node, "unknown %s class \"%s\"",
					  memory ? "memory policy" : "scheduling", name);
}

/* Reads the classes of namespaces: memory policies, or scheduling classes. */
static int32_t read_namespaces(const struct modhost *h, struct settings *s, const char *key,
			       bool memory, struct namespace_classes *ret)
{
	rp_cfg map = section_get(h, s->section, key);
	uint32_t n = h->config->count(h->ctx, map);
	int32_t r = 0;
	ret->list = blocks_alloc(&s->memory, n, sizeof *ret->list);
	if (!ret->list)
		return modhost_no_memory(h);
	for (; !r && ret->n < n; ret->n++) {
		ret->list[ret->n].namespace = h->config->key(h->ctx, map, ret->n);
		r = read_class(h, s, h->config->item(h->ctx, map, ret->n), memory,
			       &ret->list[ret->n].class);
	}
	return r;
}

static int32_t read_sched(const struct modhost *h, struct settings *s)
{
	/* Indexed by RP_QOS_…. */
	static const char *const qos_classes[] = {"guaranteed", "burstable", "besteffort", NULL};
	for (uint32_t i = 0; i < N_QOS; i++)
		s->sched_qos[i] = SCHEDCLASS_NONE;
	int32_t r = schedclass_read(h, &s->memory, s->section, &s->sched);
	if (!r)
		r = read_namespaces(h, s, "namespaceSchedulingClasses", false, &s->sched_ns);
	rp_cfg map = section_get(h, s->section, "podQoSSchedulingClasses");
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, map); i++) {
		const char *key = h->config->key(h->ctx, map, i);
		int qos = section_word(qos_classes, key);
		rp_cfg node = h->config->item(h->ctx, map, i);
		r = qos >= 0 ? read_class(h, s, node, false, &s->sched_qos[qos])
			     : modhost_refuse(h, node,
					      "unknown QoS class \"%s\": expected besteffort, "
					      "burstable or guaranteed",
					      key);
	}
	return r;
}

static int32_t read_mempolicies(const struct modhost *h, struct settings *s)
{
	int32_t r = mempolicy_read(h, &s->memory, s->section, &s->mempolicies);
	return r ? r
		 : read_namespaces(h, s, "namespaceMemoryPolicyClasses", true, &s->mempolicy_ns);
}

/* ---- CPU classes ----------------------------------------------------------------------------- */

static int32_t find_class(const struct modhost *h, const struct settings *s, const char *key,
			  uint32_t fallback, uint32_t *ret)
{
	rp_cfg at = section_get(h, s->section, key);
	const char *name = h->config->text(h->ctx, at, "");
	*ret = fallback;
	if (!name[0])
		return 0;
	*ret = s->classes ? cpuclass_find(s->classes, name) : CPUCLASS_NONE;
	return *ret != CPUCLASS_NONE ? 0 : modhost_refuse(h, at, "unknown CPU class \"%s\"", name);
}

static int32_t read_classes(const struct modhost *h, struct settings *s)
{
	if (h->config->count(h->ctx, section_get(h, s->section, "cpuClasses"))) {
		s->classes = calloc(1, sizeof *s->classes);
		if (!s->classes)
			return modhost_no_memory(h);
		int32_t r = cpuclass_read(h, s->section, s->classes);
		if (r)
			return r;
	}
	int32_t r = find_class(h, s, "sharedPoolCPUClass", CPUCLASS_NONE, &s->shared_class);
	if (!r && s->classes && s->shared_class == CPUCLASS_NONE)
		return modhost_refuse(h, section_get(h, s->section, "cpuClasses"),
				      "sharedPoolCPUClass must name one of cpuClasses");
	if (!r)
		r = find_class(h, s, "reservedPoolCPUClass", s->shared_class, &s->reserved_class);
	return r ? r
		 : find_class(h, s, "defaultExclusiveCPUClass", CPUCLASS_NONE, &s->exclusive_class);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int32_t read_cpus(const struct modhost *h, struct settings *s)
{
	rp_cfg reserved = section_get(h, s->section, "reservedResources.cpu");
	int32_t r = isolation_read(h, s->section, &s->isolation);
	if (!r)
		r = amount_read_both(h, s->section, AMOUNT_TAKES_ANY, &s->available, &s->reserved);
	if (r)
		return r;
	if (s->reserved.kind == AMOUNT_NONE ||
	    (s->reserved.kind == AMOUNT_QUANTITY && !s->reserved.mcpu))
		return modhost_refuse(h, reserved ? reserved : s->section,
				      "cannot start without CPU reservation: reserve at least one "
				      "CPU with reservedResources.cpu");
	return 0;
}

static int32_t read_patterns(const struct modhost *h, struct settings *s)
{
	s->namespaces_at = section_get(h, s->section, "reservedPoolNamespaces");
	int32_t r = texts_read(h, &s->memory, s->namespaces_at, 0, &s->reserved_namespaces);
	for (uint32_t i = 0; !r && i < s->reserved_namespaces.n; i++)
		if (!glob_valid(s->reserved_namespaces.list[i]))
			modhost_log(h, RP_LOG_WARNING, 0,
				    "reservedPoolNamespaces: \"%s\" is not a valid pattern; it and "
				    "later ones match nothing",
				    s->reserved_namespaces.list[i]);
	if (!r)
		r = irq_read_controllable(h, &s->memory, s->section, &s->interrupts);
	if (r || !s->interrupts.n)
		return r;
	r = irq_read_denied(h, &s->memory, &s->interrupts, &s->denied);
	if (r == -RP_ENOMEM)
		return modhost_no_memory(h);
	if (r)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "controllableInterrupts: the table of interrupts cannot be read; no "
			    "request is checked, and no interrupt is moved");
	return 0;
}

static int32_t read_claim_devices(const struct modhost *h, struct settings *s)
{
	static const char *const words[] = {"node", "l3", "socket", NULL};
	static const uint32_t levels[] = {0, 1u << RP_LEVEL_L3, 1u << RP_LEVEL_PACKAGE};
	rp_cfg at = section_get(h, s->section, "claimDevices");
	struct texts list = {0};
	int32_t r = texts_read(h, &s->memory, at, 0, &list);
	for (uint32_t i = 0; !r && i < list.n; i++) {
		int known = section_word(words, list.list[i]);
		if (known < 0)
			return modhost_refuse(
				h, at, "claimDevices: \"%.40s\": expected node, l3 or socket",
				list.list[i]);
		s->claim_levels |= levels[known];
	}
	return r;
}

static bool is_simulated(const struct modhost *h)
{
	return RP_HAS(h->topology, simulated) && h->topology->simulated(h->ctx);
}

static void read_simple(const struct modhost *h, struct settings *s)
{
	rp_cfg c = s->section;
	s->isolated_at = section_get(h, c, "preferIsolatedCPUs");
	s->shared_at = section_get(h, c, "preferSharedCPUs");
	s->overflow_at = section_get(h, c, "bestEffortOverflow");
	s->pin_cpu = section_bool(h, c, "pinCPU", true);
	s->pin_memory = section_bool(h, c, "pinMemory", true);
	s->prefer_isolated = section_bool(h, c, "preferIsolatedCPUs", true);
	s->prefer_shared = section_bool(h, c, "preferSharedCPUs", false);
	s->test_hints = section_bool(h, c, "testHints", is_simulated(h));
	s->parity = section_bool(h, c, "parity", false);
	relief_read(h, c, s->parity, &s->relief);
	s->tight = strcmp(section_text(h, c, "packing", s->parity ? "balanced" : "tight"),
			  "tight") == 0;
	s->burstable_level = level_parse(section_text(h, c, "unlimitedBurstable", "package"));
	s->overflow = strcmp(section_text(h, c, "bestEffortOverflow", "reserved"), "refuse") == 0
			      ? OVERFLOW_REFUSE
			      : OVERFLOW_RESERVED;
	const char *prio = section_text(h, c, "defaultCPUPriority", "none");
	int known = section_word(cpualloc_prio_names, prio);
	s->prio = known < 0 ? CPUALLOC_NONE : (enum cpualloc_prio)known;
	if (prio[0] && known < 0)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "defaultCPUPriority: \"%s\" is not one of " PRIORITIES "; using none",
			    prio);
}

static int32_t read_colocation(const struct modhost *h, struct settings *s)
{
	static const char *const words[] = {"true", "false", "strict", "", NULL};
	const char *text = section_text(h, s->section, "colocatePods", "");
	s->colocate_strict = strcmp(text, "strict") == 0;
	s->colocate_pods = s->colocate_strict || section_bool(h, s->section, "colocatePods", false);
	s->colocate_namespaces = section_bool(h, s->section, "colocateNamespaces", false);
	return section_word(words, text) >= 0
		       ? 0
		       : modhost_fail(h, -RP_EINVAL,
				      "colocatePods: expected true, false or strict, found \"%s\"",
				      text);
}

int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret)
{
	static int32_t (*const readers[])(const struct modhost *h, struct settings *s) = {
		read_colocation, read_patterns,	   read_claim_devices, read_cpus,
		read_sched,	 read_mempolicies, read_classes};
	int32_t r = 0;
	*ret = (struct settings){.section = section};
	read_simple(h, ret);
	for (size_t i = 0; !r && i < sizeof readers / sizeof *readers; i++)
		r = readers[i](h, ret);
	return r;
}

void settings_fini(struct settings *s)
{
	blocks_fini(&s->memory);
	free(s->classes);
}
