/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration section of the static policy into settings and checks them. settings_read()
 * checks what the section alone decides, settings_check() what depends on the topology.
 */
#include <string.h>
#include <strings.h>

#include "modules/lib/private/follow.h"
#include "modules/static/static.h"

static const struct rp_key keys[] = {
	SECTION_MAP("availableResources", "Resources for containers."),
	SECTION_AMOUNT("availableResources.cpu",
		       "CPUs that containers may use, as a set; by default all except those "
		       "isolated by the kernel."),
	SECTION_MAP("reservedResources", "Resources that are never exclusive."),
	SECTION_AMOUNT("reservedResources.cpu",
		       "CPUs that no container gets exclusively: a set, or a quantity that is "
		       "rounded up to whole CPUs. At least one is needed."),
	SECTION_BOOL("relaxedIsolation", "false",
		     "Exclusive containers prefer CPUs isolated by the kernel, as with the "
		     "annotation prefer-isolated-cpus."),
	SECTION_CHOICE("rdt", "auto|true|false", "auto",
		       "Accepted for older configurations; no effect."),
	SECTION_MAP("cpuManagerPolicyOptions",
		    "Options of the kubelet's static CPU manager policy, with the same names."),
	SECTION_ANY("cpuManagerPolicyOptions.*", "true or false, also as a string."),
	SECTION_CHOICE("topologyManagerPolicy", "none|best-effort|restricted|single-numa-node",
		       "none", "How strictly exclusive CPUs keep to the fewest NUMA nodes."),
	SECTION_CHOICE("topologyManagerScope", "container|pod", "container",
		       "Scope of a topology hint: a container, or all containers of a pod, which "
		       "then share one set of CPUs."),
	SECTION_MAP("topologyManagerPolicyOptions",
		    "Options of the kubelet's topology manager, with the same names; only "
		    "prefer-closest-numa-nodes is supported."),
	SECTION_ANY("topologyManagerPolicyOptions.*", "true or false, also as a string."),
	SECTION_CHOICE("cpuAllocator", "kubelet|common", "kubelet",
		       "Order in which CPUs are chosen: that of the kubelet, or that of the other "
		       "policies."),
	SECTION_PARITY,
	ISOLATION_KEYS,
	FOLLOW_KEY,
	RELIEF_KEYS,
	SECTION_BOOL("disableCPUQuota", "false",
		     "Containers with exclusive CPUs run without CPU quota."),
	SECTION_BOOL(
		"pinMemory", "false",
		"Containers with exclusive CPUs get their memory from the NUMA nodes of these."),
};

const struct rp_schema static_schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

static const struct {
	uint32_t bit;
	const char *name;
} options[] = {
	{OPT_FULL_PCPUS_ONLY, "full-pcpus-only"},
	{OPT_STRICT_RESERVATION, "strict-cpu-reservation"},
	{OPT_DISTRIBUTE_NUMA, "distribute-cpus-across-numa"},
	{OPT_ALIGN_CACHE, "prefer-align-cpus-by-uncorecache"},
	{OPT_ALIGN_SOCKET, "align-by-socket"},
	{OPT_DISTRIBUTE_CORES, "distribute-cpus-across-cores"},
};
#define N_OPTIONS (sizeof options / sizeof options[0])

static const struct {
	uint32_t a, b;
} forbidden[] = {
	{OPT_FULL_PCPUS_ONLY, OPT_DISTRIBUTE_CORES},
	{OPT_DISTRIBUTE_NUMA, OPT_DISTRIBUTE_CORES},
	{OPT_ALIGN_CACHE, OPT_DISTRIBUTE_CORES},
	{OPT_ALIGN_CACHE, OPT_DISTRIBUTE_NUMA},
};

/* Options that the common allocator supports. */
#define COMMON_OPTIONS (OPT_FULL_PCPUS_ONLY | OPT_STRICT_RESERVATION)

static const char *const hint_policies[] = {
	[HINT_NONE] = "none",
	[HINT_BEST_EFFORT] = "best-effort",
	[HINT_RESTRICTED] = "restricted",
	[HINT_SINGLE_NODE] = "single-numa-node",
	NULL,
};

const char *option_name(uint32_t bit)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (options[i].bit == bit)
			return options[i].name;
	return "?";
}

const char *hint_policy_name(enum hint_policy policy)
{
	return hint_policies[policy];
}

static int32_t read_option(const struct modhost *h, rp_cfg map, uint32_t at, uint32_t *bits)
{
	const char *name = h->config->key(h->ctx, map, at);
	rp_cfg node = h->config->item(h->ctx, map, at);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (strcasecmp(name, options[i].name) != 0)
			continue;
		const char *text = h->config->text(h->ctx, node, "");
		int on = 0;
		if (modhost_parse_bool(text, &on))
			return modhost_refuse(h, node,
					      "bad value for option \"%s\": \"%s\" is neither "
					      "true nor false",
					      options[i].name, text);
		if (on)
			*bits |= options[i].bit;
		return 0;
	}
	return modhost_refuse(h, node, "unknown CPU Manager Policy option: \"%s\"", name);
}

static int32_t read_options(const struct modhost *h, struct settings *s)
{
	rp_cfg map = s->options_at;
	uint32_t n = h->config->count(h->ctx, map);
	for (uint32_t i = 0; i < n; i++) {
		int32_t r = read_option(h, map, i, &s->options);
		if (r)
			return r;
	}
	for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
		if ((s->options & forbidden[i].a) && (s->options & forbidden[i].b))
			return modhost_refuse(h, map,
					      "static policy options %s%s and %s cannot be used "
					      "at the same time",
					      option_name(forbidden[i].a),
					      forbidden[i].a == OPT_FULL_PCPUS_ONLY &&
							      s->isolation.threads > 1
						      ? " (from isolation.siblings)"
						      : "",
					      option_name(forbidden[i].b));
	for (size_t i = 0; s->common_allocator && i < N_OPTIONS; i++)
		if (s->options & options[i].bit & ~COMMON_OPTIONS)
			return modhost_refuse(h, map,
					      "option %s cannot be used with cpuAllocator common",
					      options[i].name);
	return 0;
}

/*
 * Checks the spelling of the options. They have no effect, because nodes close to each other are
 * always preferred.
 */
static int32_t check_topology_options(const struct modhost *h, const struct settings *s)
{
	static const char closest[] = "prefer-closest-numa-nodes";
	rp_cfg map = section_get(h, s->section, "topologyManagerPolicyOptions");
	uint32_t n = h->config->count(h->ctx, map);
	for (uint32_t i = 0; i < n; i++) {
		const char *name = h->config->key(h->ctx, map, i);
		rp_cfg node = h->config->item(h->ctx, map, i);
		const char *text = h->config->text(h->ctx, node, "");
		int on;
		if (strcasecmp(name, closest) != 0)
			return modhost_refuse(
				h, node, "unknown Topology Manager Policy option: \"%s\"", name);
		if (modhost_parse_bool(text, &on))
			return modhost_refuse(h, node,
					      "bad value for option \"%s\": \"%s\" is neither "
					      "true nor false",
					      closest, text);
	}
	return 0;
}

static int32_t read_topology_manager(const struct modhost *h, struct settings *s)
{
	s->hints_at = section_get(h, s->section, "topologyManagerPolicy");
	const char *name = h->config->text(h->ctx, s->hints_at, "none");
	s->hints = (enum hint_policy)section_word(hint_policies, name);
	rp_cfg scope = section_get(h, s->section, "topologyManagerScope");
	s->pod_scope = strcmp(h->config->text(h->ctx, scope, "container"), "pod") == 0;
	if (s->hints == HINT_SINGLE_NODE && (s->options & OPT_ALIGN_SOCKET))
		return modhost_refuse(h, s->hints_at,
				      "topologyManagerPolicy single-numa-node and option "
				      "align-by-socket cannot be used at the same time");
	return check_topology_options(h, s);
}

static int32_t read_amounts(const struct modhost *h, struct settings *s)
{
	rp_cfg reserved = section_get(h, s->section, "reservedResources.cpu");
	int32_t r = amount_read_both(h, s->section, AMOUNT_TAKES_CPUS | AMOUNT_TAKES_QUANTITY,
				     &s->available, &s->reserved);
	if (r)
		return r;
	if (amount_count(&s->reserved) == 0)
		return modhost_refuse(h, reserved ? reserved : s->section,
				      "the static policy cannot start without reserved CPUs: "
				      "reserve at least one, as in reservedResources: {cpu: 1}");
	return 0;
}

int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret)
{
	struct settings s = {.section = section};
	s.relaxed_at = section_get(h, section, "relaxedIsolation");
	s.relaxed_isolation = section_bool(h, section, "relaxedIsolation", false);
	s.disable_quota = section_bool(h, section, "disableCPUQuota", false);
	s.pin_memory = section_bool(h, section, "pinMemory", false);
	s.parity = section_bool(h, section, "parity", false);
	relief_read(h, section, s.parity, &s.relief);
	s.options_at = section_get(h, section, "cpuManagerPolicyOptions");
	const char *allocator = section_text(h, section, "cpuAllocator", "kubelet");
	s.common_allocator = strcmp(allocator, "common") == 0;
	int32_t r = isolation_read(h, section, &s.isolation);
	if (s.isolation.threads > 1)
		s.options |= OPT_FULL_PCPUS_ONLY;
	if (!r)
		r = read_options(h, &s);
	if (!r)
		r = read_topology_manager(h, &s);
	if (!r)
		r = read_amounts(h, &s);
	s.isolation.follow = section_bool(h, section, "followScheduler", false);
	s.isolation.own_quota = true;
	s.disable_quota |= s.isolation.no_quota;
	if (!r)
		*ret = s;
	return r;
}

int32_t settings_check(const struct modhost *h, const struct settings *s, const struct machine *m)
{
	uint32_t n_nodes = m->level[MACHINE_NODE].n_units;
	if ((s->options & OPT_ALIGN_SOCKET) && m->level[MACHINE_PACKAGE].n_units > n_nodes)
		return modhost_refuse(h, s->options_at,
				      "option align-by-socket cannot be used on a machine with "
				      "more sockets than NUMA nodes");
	if (s->hints != HINT_NONE && n_nodes > HINT_NODES_MAX)
		return modhost_refuse(
			h, s->hints_at,
			"topologyManagerPolicy %s cannot be used with more than %u NUMA nodes",
			hint_policy_name(s->hints), HINT_NODES_MAX);
	if ((s->options & OPT_FULL_PCPUS_ONLY) && m->hybrid && m->threads == 1)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "option full-pcpus-only has no effect here: the machine has cores "
			    "with and without sibling threads");
	return 0;
}
