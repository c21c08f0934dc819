/* SPDX-License-Identifier: Apache-2.0 */
/* Decision which CPUs stay reserved, for quantities and for lists, and the saved state. */
#include <nri-rp/lib/reserve.h>

#include <nri-rp/lib/bytes.h>

#define SAVED_VERSION 2u
#define SET_TEXT_MAX 256u

/* ---- quantities ------------------------------------------------------------------------------ */

/* Returns true if the earlier choice may be kept: its size is unchanged, and the configuration
 * still allows its online CPUs. */
static bool is_of_use(const struct reserve_past *past, struct rp_ids from, struct rp_ids online,
		      uint32_t n)
{
	struct rp_idset gone;
	if (past->hotplug)
		return true;
	rp_idset_andnot(&gone, rp_ids_of(&past->cpus), from);
	return rp_ids_count(rp_ids_of(&past->cpus)) == n &&
	       !rp_ids_overlap(rp_ids_of(&gone), online);
}

uint32_t reserve_quantity(const struct reserve_past *past, struct rp_ids from, struct rp_ids online,
			  uint32_t n, struct rp_idset *ret_kept, struct rp_idset *ret_others)
{
	struct rp_idset idle;
	uint32_t n_from = rp_ids_count(from);
	if (past->hotplug && n > n_from)
		n = n_from;
	rp_idset_and(ret_kept, rp_ids_of(&past->cpus), from);
	uint32_t n_kept = rp_ids_count(rp_ids_of(ret_kept));
	if (n_kept > n || !is_of_use(past, from, online, n)) {
		rp_idset_clear(ret_kept);
		rp_idset_copy(ret_others, from);
		return n;
	}
	rp_idset_andnot(ret_others, from, rp_ids_of(ret_kept));
	rp_idset_andnot(&idle, rp_ids_of(ret_others), rp_ids_of(&past->busy));
	if (rp_ids_count(rp_ids_of(&idle)) >= n - n_kept)
		*ret_others = idle;
	return n - n_kept;
}

int32_t reserve_first(const struct modhost *h, const rp_ctr *ctrs, int32_t n,
		      const struct reserve_past *remembered, struct reserve_past *ret)
{
	if (n < 0)
		return n;
	*ret = *remembered;
	rp_idset_clear(&ret->busy);
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		if (h->cache->get_ctr(h->ctx, ctrs[i], &info) == 0)
			rp_idset_or(&ret->busy, rp_ids_of(&ret->busy), info.exclusive);
	}
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void sort_missing(const struct reserve_past *past, struct rp_ids missing,
			 struct rp_ids online, struct rp_idset *ret_wrong,
			 struct rp_idset *ret_awaited)
{
	rp_idset_clear(ret_wrong);
	rp_idset_andnot(ret_awaited, missing, online);
	if (past->hotplug)
		return;
	rp_idset_and(ret_awaited, rp_ids_of(ret_awaited), rp_ids_of(&past->listed));
	rp_idset_andnot(ret_wrong, missing, rp_ids_of(ret_awaited));
}

void reserve_list(const struct modhost *h, const struct reserve_past *past, struct rp_ids listed,
		  struct rp_ids allowed, struct rp_ids online, struct rp_idset *ret_wrong,
		  struct rp_idset *ret_awaited)
{
	char text[SET_TEXT_MAX];
	struct rp_idset missing;
	rp_idset_andnot(&missing, listed, allowed);
	sort_missing(past, rp_ids_of(&missing), online, ret_wrong, ret_awaited);
	if (rp_ids_empty(rp_ids_of(ret_wrong)) && !rp_ids_empty(rp_ids_of(ret_awaited)))
		modhost_log(h, RP_LOG_WARNING, 0,
			    "reserved CPUs %s are offline; they are reserved again when they are "
			    "online",
			    modhost_set_text(rp_ids_of(ret_awaited), text, sizeof text));
}

/* ---- saved state ----------------------------------------------------------------------------- */

uint32_t reserve_save(const struct reserve_past *past, uint8_t ret[RESERVE_SAVED_MAX])
{
	struct bytes b = {.data = ret, .fixed = RESERVE_SAVED_MAX};
	bytes_put_u32(&b, SAVED_VERSION);
	bytes_put_u32(&b, past->cpus.nw);
	bytes_put_u32(&b, past->listed.nw);
	bytes_put_set(&b, rp_ids_of(&past->cpus));
	bytes_put_set(&b, rp_ids_of(&past->listed));
	return b.size;
}

bool reserve_load(const void *data, uint32_t size, struct reserve_past *ret)
{
	struct bytes_left left = bytes_of(data, size);
	struct reserve_past past = *ret;
	uint32_t version = bytes_take_u32(&left), n_cpus = bytes_take_u32(&left),
		 n_listed = bytes_take_u32(&left);
	(void)bytes_take_set(&left, n_cpus, &past.cpus);
	(void)bytes_take_set(&left, n_listed, &past.listed);
	if (left.failed || bytes_n_left(&left) || version != SAVED_VERSION)
		return false;
	*ret = past;
	return true;
}
