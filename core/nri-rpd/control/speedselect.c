/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Intel Speed Select and the extended resources that depend on it, as parts of the JSON
 * documents for nri-rpctl. */

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/observe/zones.h"
#include "core/lib/topo/sst.h"
#include "core/lib/util/arena.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/speedselect.h"

/* ---- extended resources ---------------------------------------------------------------------- */

#define EXTENDED_ARENA_BLOCK 4096u
#define EXTENDED_ARENA_MAX (1u << 20)

void put_extended(struct json *j, struct pipeline *p)
{
	_arena_ struct arena *arena = arena_new(EXTENDED_ARENA_BLOCK, EXTENDED_ARENA_MAX);
	Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
	struct err err = ERR_INIT;
	bool known = arena && !zones_collect_extended(p, arena, &m, &err) && !arena_failed(arena);
	if (!put_object(j, "extended_resources", known))
		return;
	json_karr(j, "own");
	for (size_t i = 0; i < m.n_owned; i++)
		json_str(j, m.owned[i]);
	json_end_arr(j);
	JSON_LIST(j, "resources", m.extended[i], m.n_extended, name, amount);
	json_end_obj(j);
}

/* ---- the platform ---------------------------------------------------------------------------- */

static void put_features(struct json *j, const char *key, uint32_t features)
{
	static const struct bit_name names[] = {
		{RP_SST_CP, "SST-CP"}, {RP_SST_TF, "SST-TF"}, {RP_SST_BF, "SST-BF"}};
	PUT_BITS(j, key, features, names);
}

static void put_classes(struct json *j, const struct rp_sst_punit *now)
{
	json_karr(j, "clos");
	for (uint32_t i = 0; (now->supported & RP_SST_CP) && i < RP_CLOS_COUNT; i++) {
		json_obj(j);
		json_kuint(j, "id", i);
		JSON_MEMBERS(j, &now->clos[i], min_mhz, max_mhz, weight);
		json_end_obj(j);
	}
	json_end_arr(j);
}

/* Writes the present state of a punit, or the state read before if the device does not answer. */
static void put_punit(struct json *j, const struct fs_root *root, const struct rp_sst_punit *was)
{
	const struct rp_sst_at at = {was->package_id, was->punit_id, rp_ids_first(was->cpus)};
	struct rp_sst_punit now;
	if (sst_punit_now(root, &at, &now))
		now = *was;
	json_obj(j);
	json_kuint(j, "package", was->package_id);
	json_kuint(j, "punit", was->punit_id);
	put_ids(j, "cpus", was->cpus);
	put_features(j, "supported", now.supported);
	put_features(j, "enabled", now.enabled);
	json_kstr(j, "priority", now.priority == RP_SST_ORDERED ? "ordered" : "proportional");
	json_karr(j, "high_priority_cores");
	for (uint32_t i = 0; i < was->n_buckets; i++)
		json_uint(j, was->hp_cores[i]);
	json_end_arr(j);
	put_ids(j, "base_frequency_cpus", was->bf_cpus);
	put_classes(j, &now);
	json_end_obj(j);
}

void put_speedselect(struct json *j, struct topo *topo, const struct fs_root *root)
{
	uint32_t n = sst_n_punits(topo);
	json_kobj(j, "speed_select");
	put_text(j, "missing", sst_why(topo));
	json_karr(j, "punits");
	for (uint32_t i = 0; i < n; i++) {
		struct rp_sst_punit p = {.size = sizeof p};
		if (sst_punit(topo, i, &p) == 0)
			put_punit(j, root, &p);
	}
	json_end_arr(j);
	json_end_obj(j);
}
