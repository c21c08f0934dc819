/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the policy's CPU settings against the node: CPUs that do not exist, and reservations that
 * leave no CPU for other containers. */
#include "core/nri-rpd/pipeline/reload/advice.h"

#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/util/str.h"

#define AVAILABLE "availableResources.cpu"
#define RESERVED "reservedResources.cpu"

/* Reads the CPUs that a value lists; *ret_except: the value lists CPUs to leave out. Returns false
 * if the value is not a list. */
static bool advice_listed(rp_cfg node, bool *ret_except, struct rp_idset *ret)
{
	const char *text = conf_text(node, "");
	*ret_except = str_has_prefix(text, "exclude-cpuset:");
	if (*ret_except)
		text += strlen("exclude-cpuset:");
	else if (str_has_prefix(text, "cpuset:"))
		text += strlen("cpuset:");
	else if (!strpbrk(text, "-,") || text[0] == '-' || text[0] == '/')
		return false;
	return rp_idset_parse(ret, text, RP_CPUS_MAX) == 0;
}

static void advise_unknown(rp_cfg node, struct rp_ids present, struct buf *warnings)
{
	char where[CONF_PLACE_MAX], strange[RP_IDSET_TEXT_MAX], have[RP_IDSET_TEXT_MAX];
	struct rp_idset set, rest;
	bool except;
	if (!advice_listed(node, &except, &set))
		return;
	rp_idset_andnot(&rest, rp_ids_of(&set), present);
	if (rp_ids_empty(rp_ids_of(&rest)))
		return;
	(void)rp_ids_format(rp_ids_of(&rest), strange, sizeof strange);
	(void)rp_ids_format(present, have, sizeof have);
	(void)buf_printf(warnings,
			 CONF_WARNING "%s: CPUs %s do not exist on this node, which has %s\n",
			 conf_place(node, where, sizeof where), strange, have);
}

static void advise_reserved(rp_cfg available, rp_cfg reserved, struct rp_ids online,
			    struct buf *warnings)
{
	char where[CONF_PLACE_MAX];
	struct rp_idset set, rest;
	bool except = false;
	rp_idset_copy(&rest, online);
	if (advice_listed(available, &except, &set) && !except)
		rp_idset_and(&rest, online, rp_ids_of(&set));
	else if (except)
		rp_idset_andnot(&rest, online, rp_ids_of(&set));
	uint32_t n = rp_ids_count(rp_ids_of(&rest));
	if (advice_listed(reserved, &except, &set) && !except) {
		if (!rp_ids_subset(rp_ids_of(&rest), rp_ids_of(&set)))
			return;
	} else if (conf_value(reserved, RP_T_CPU, 0) <= 1000 * ((int64_t)n - 1)) {
		return;
	}
	(void)buf_printf(warnings,
			 CONF_WARNING "%s: all %u CPUs are reserved: no CPU is left for containers "
				      "that do not run on reserved CPUs\n",
			 conf_place(reserved, where, sizeof where), n);
}

void config_advise(const struct conf *conf, const struct topo *topo, struct buf *warnings)
{
	rp_cfg section = conf_section(conf, conf_core(conf)->policy);
	rp_cfg available = conf_get(section, AVAILABLE), reserved = conf_get(section, RESERVED);
	struct rp_ids present = topo_ids(topo, RP_CPUS_PRESENT);
	if (available)
		advise_unknown(available, present, warnings);
	if (reserved)
		advise_unknown(reserved, present, warnings);
	if (reserved)
		advise_reserved(available, reserved, topo_ids(topo, RP_CPUS_ONLINE), warnings);
}
