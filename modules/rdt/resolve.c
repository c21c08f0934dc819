/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of shares to masks. A partition has its share of a cache exclusively: masks lie side
 * by side from way 0 on, in the order of the partitions' names. A class has its share of its
 * partition's mask, and overlaps the other classes there.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "modules/rdt/rdt.h"

/* Masks of a partition, indexed by the position of the cache id. */
struct masks {
	uint64_t of[RDT_IDS_MAX];
};

struct resolver {
	const struct modhost *h;
	struct rdt_config *c;
	const struct rdt_machine *m;
	struct masks *masks[RDT_N_LEVELS][RDT_N_PARTS]; /* masks of each partition */
	uint32_t *by_name; /* partitions in the order of their names */
};

/* ---- shares by cache id ---------------------------------------------------------------------- */

static const struct rdt_entry *entry_of(const struct rdt_alloc *a, uint32_t id)
{
	const struct rdt_entry *all = NULL;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct rdt_entry *e = &a->entries[i];
		if (id < RDT_IDS_MAX && (e->ids[id / 64] >> (id % 64) & 1))
			return e;
		if (e->all)
			all = e;
	}
	return all;
}

static struct rdt_share share_of(const struct rdt_alloc *a, uint32_t id, enum rdt_part part)
{
	static const struct rdt_share whole = {.form = RDT_PERCENT, .high = 100};
	const struct rdt_entry *e = entry_of(a, id);
	if (!e)
		return whole;
	return e->part[part].form == RDT_NOTHING ? e->part[RDT_UNIFIED] : e->part[part];
}

static uint64_t resolve_bits(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* ---- partitions ------------------------------------------------------------------------------ */

struct request {
	uint32_t partition, percent, n_bits;
};

static int by_percent(const void *a, const void *b)
{
	const struct request *x = a, *y = b;
	if (x->percent != y->percent)
		return x->percent < y->percent ? -1 : 1;
	return x->partition < y->partition ? -1 : 1; /* positions in the order of names */
}

static int by_place(const void *a, const void *b)
{
	const struct request *x = a, *y = b;
	return x->partition < y->partition ? -1 : 1;
}

static int32_t too_little(const struct resolver *v, const struct rdt_alloc *at, uint32_t id)
{
	return modhost_refuse(v->h, at->node,
			      "the partitions' shares are too small for the ways of cache %u", id);
}

/* Distributes the ways: smallest request first, the last one gets the rest. */
static int32_t deal_out(const struct resolver *v, const struct rdt_cache *cache,
			const struct rdt_alloc *at, uint32_t id, struct request *list, uint32_t n)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += list[i].percent;
	if (sum > 100)
		return modhost_refuse(v->h, at->node,
				      "the partitions' shares of cache %u sum up to %u%%", id, sum);
	uint32_t total = sum * cache->width / 100, left = total;
	if (!total)
		return too_little(v, at, id);
	qsort(list, n, sizeof *list, by_percent);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t percent_left = left * sum / total;
		if (left < cache->min_bits || !percent_left)
			return too_little(v, at, id);
		uint32_t got = list[i].percent * left / percent_left;
		if (got < cache->min_bits)
			got = cache->min_bits;
		if (got > left || i == n - 1)
			got = left;
		list[i].n_bits = got;
		left -= got;
	}
	qsort(list, n, sizeof *list, by_place);
	return 0;
}

static int32_t check_block(const struct resolver *v, const struct rdt_cache *cache, rp_cfg at,
			   uint64_t mask)
{
	if (mask & ~cache->mask)
		return modhost_refuse(v->h, at, "mask 0x%llx is not within the cache's ways 0x%llx",
				      (unsigned long long)mask, (unsigned long long)cache->mask);
	if ((uint32_t)__builtin_popcountll(mask) < cache->min_bits)
		return modhost_refuse(
			v->h, at, "mask 0x%llx has fewer ways than the %u that the hardware needs",
			(unsigned long long)mask, cache->min_bits);
	return 0;
}

static int32_t take_masks(const struct resolver *v, enum rdt_level level, uint32_t i,
			  enum rdt_part part)
{
	const struct rdt_cache *cache = &v->m->cache[level];
	uint64_t taken = 0;
	for (uint32_t n = 0; n < v->c->n_partitions; n++) {
		uint32_t p = v->by_name[n];
		const struct rdt_alloc *a = &v->c->partitions[p].shares.alloc[level];
		uint64_t mask = share_of(a, cache->ids[i], part).mask;
		int32_t r = check_block(v, cache, a->node, mask);
		if (r)
			return r;
		if (taken & mask)
			return modhost_refuse(v->h, a->node,
					      "mask 0x%llx overlaps another partition's",
					      (unsigned long long)mask);
		taken |= mask;
		v->masks[level][part][p].of[i] = mask;
	}
	return 0;
}

static int32_t place_shares(const struct resolver *v, enum rdt_level level, uint32_t i,
			    enum rdt_part part)
{
	const struct rdt_cache *cache = &v->m->cache[level];
	uint32_t n = v->c->n_partitions, lsb = 0;
	const struct rdt_alloc *at = &v->c->partitions[0].shares.alloc[level];
	struct request *list = calloc(n, sizeof *list);
	if (!list)
		return modhost_no_memory(v->h);
	for (uint32_t k = 0; k < n; k++) {
		const struct rdt_alloc *a = &v->c->partitions[v->by_name[k]].shares.alloc[level];
		list[k] = (struct request){k, share_of(a, cache->ids[i], part).high, 0};
	}
	int32_t r = deal_out(v, cache, at, cache->ids[i], list, n);
	for (uint32_t k = 0; !r && k < n; k++) {
		v->masks[level][part][v->by_name[k]].of[i] = resolve_bits(list[k].n_bits) << lsb;
		lsb += list[k].n_bits;
	}
	free(list);
	return r;
}

static int32_t partition_id(const struct resolver *v, enum rdt_level level, uint32_t i,
			    enum rdt_part part)
{
	uint32_t id = v->m->cache[level].ids[i], n_masks = 0;
	for (uint32_t p = 0; p < v->c->n_partitions; p++)
		n_masks += share_of(&v->c->partitions[p].shares.alloc[level], id, part).form ==
			   RDT_MASK;
	if (n_masks == v->c->n_partitions)
		return take_masks(v, level, i, part);
	if (n_masks)
		return modhost_refuse(v->h, v->c->partitions[0].shares.alloc[level].node,
				      "some partitions have masks and others percentages of cache "
				      "%u",
				      id);
	return place_shares(v, level, i, part);
}

/* Returns the parts that schemata of this machine have: [first, end). */
static void parts_of(const struct rdt_cache *cache, enum rdt_part *first, enum rdt_part *end)
{
	*first = cache->cdp ? RDT_CODE : RDT_UNIFIED;
	*end = cache->cdp ? RDT_N_PARTS : RDT_CODE;
}

/* Returns true if partitions have shares of this kind. All of them must have one, or none. */
static int32_t all_or_none(const struct resolver *v, unsigned what, bool *ret)
{
	static const char *const names[] = {"L2", "L3", "MB"};
	const struct rdt_config *c = v->c;
	bool present = what == RDT_MB ? v->m->mb.present : v->m->cache[what].present;
	uint32_t n = 0;
	for (uint32_t p = 0; p < c->n_partitions; p++)
		n += c->partitions[p].shares.alloc[what].given;
	*ret = n && present;
	for (uint32_t p = 0; n && p < c->n_partitions; p++)
		if (!c->partitions[p].shares.alloc[what].given && what != RDT_MB)
			return modhost_refuse(
				v->h, c->partitions[p].node,
				"other partitions have shares of %s, but this one has none",
				names[what]);
	if (n && !present && !c->optional[what])
		return modhost_fail(v->h, -RP_ENOTSUP,
				    "shares of %s are configured, but this machine cannot divide "
				    "it; set options.%s.optional to ignore this",
				    names[what],
				    what == RDT_MB   ? "mb"
				    : what == RDT_L2 ? "l2"
						     : "l3");
	return 0;
}

static int32_t partition_level(const struct resolver *v, enum rdt_level level)
{
	const struct rdt_cache *cache = &v->m->cache[level];
	enum rdt_part part, end;
	bool given;
	int32_t r = all_or_none(v, level, &given);
	if (r || !cache->present)
		return r;
	for (parts_of(cache, &part, &end); !r && part < end; part++)
		for (uint32_t i = 0; !r && i < cache->n_ids; i++) {
			if (given) {
				r = partition_id(v, level, i, part);
				continue;
			}
			for (uint32_t p = 0; p < v->c->n_partitions; p++)
				v->masks[level][part][p].of[i] = cache->mask;
		}
	return r;
}

/* ---- classes --------------------------------------------------------------------------------- */

static int32_t class_mask(const struct resolver *v, const struct rdt_cache *cache,
			  const struct rdt_alloc *a, const struct rdt_share *s, uint64_t base,
			  uint64_t *ret)
{
	uint32_t base_lsb = (uint32_t)__builtin_ctzll(base),
		 n = (uint32_t)__builtin_popcountll(base);
	if (s->form == RDT_MASK) {
		uint64_t mask = s->mask << base_lsb;
		if (mask >> base_lsb != s->mask || (mask & ~base))
			return modhost_refuse(v->h, a->node,
					      "mask 0x%llx does not fit into the %u ways of the "
					      "partition",
					      (unsigned long long)s->mask, n);
		*ret = mask;
		return check_block(v, cache, a->node, mask);
	}
	uint32_t low = s->low ? s->low : 1, high = s->high ? s->high : 1;
	uint32_t lsb = (low - 1) * n / 100, msb = (high - 1) * n / 100;
	while (msb - lsb + 1 < cache->min_bits && lsb)
		lsb--;
	while (msb - lsb + 1 < cache->min_bits)
		msb++;
	*ret = (resolve_bits(msb - lsb + 1) << lsb) << base_lsb;
	return 0;
}

__attribute__((format(printf, 3, 4))) static void resolve_append(char *text, size_t *len,
								 const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text + *len, RDT_SCHEMATA_MAX - *len, fmt, ap);
	va_end(ap);
	*len += n < 0 ? 0 : (size_t)n; /* 128 ids, 5 lines and 30 bytes each are below the limit */
}

static int by_id(const void *a, const void *b)
{
	const uint32_t *x = *(const uint32_t *const *)a, *y = *(const uint32_t *const *)b;
	return *x < *y ? -1 : *x > *y;
}

/* Writes the ids in ascending order, as pointers into the machine's list. */
static void sorted_ids(const uint32_t *ids, uint32_t n, const uint32_t **ret)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = &ids[i];
	qsort(ret, n, sizeof *ret, by_id);
}

static int32_t class_level(const struct resolver *v, const struct rdt_class *k,
			   enum rdt_level level, char *text, size_t *len)
{
	static const char *const suffixes[] = {"", "CODE", "DATA"};
	const struct rdt_cache *cache = &v->m->cache[level];
	const struct rdt_alloc *a = &k->shares.alloc[level];
	const uint32_t *order[RDT_IDS_MAX];
	enum rdt_part part, end;
	if (!cache->present)
		return 0;
	sorted_ids(cache->ids, cache->n_ids, order);
	for (parts_of(cache, &part, &end); part < end; part++) {
		resolve_append(text, len, "%s%s:", rdt_level_name(level), suffixes[part]);
		for (uint32_t n = 0; n < cache->n_ids; n++) {
			uint32_t i = (uint32_t)(order[n] - cache->ids);
			uint64_t mask = v->masks[level][part][k->partition].of[i];
			if (a->given) {
				struct rdt_share s = share_of(a, *order[n], part);
				int32_t r = class_mask(v, cache, a, &s, mask, &mask);
				if (r)
					return r;
			}
			resolve_append(text, len, "%s%u=%llx", n ? ";" : "", *order[n],
				       (unsigned long long)mask);
		}
		resolve_append(text, len, "\n");
	}
	return 0;
}

/* Stores the share of an id in the machine's unit, percent or MBps. */
static int32_t rate_of(const struct resolver *v, const struct rdt_alloc *a, uint32_t id,
		       uint32_t *ret)
{
	bool mbps = v->m->mb.mbps;
	const struct rdt_entry *e = a->given ? entry_of(a, id) : NULL;
	*ret = mbps ? UINT32_MAX : 100;
	if (!e)
		return 0;
	*ret = mbps ? e->mbps : e->percent;
	if (*ret != UINT32_MAX)
		return 0;
	return modhost_refuse(v->h, e->node,
			      "the kernel needs bandwidth in %s here, but no such amount is set",
			      mbps ? "MBps" : "percent");
}

static int32_t class_bandwidth(const struct resolver *v, const struct rdt_class *k, char *text,
			       size_t *len)
{
	const uint32_t *order[RDT_IDS_MAX];
	if (!v->m->mb.present)
		return 0;
	sorted_ids(v->m->mb.ids, v->m->mb.n_ids, order);
	resolve_append(text, len, "MB:");
	for (uint32_t i = 0; i < v->m->mb.n_ids; i++) {
		uint32_t whole, own, rate;
		int32_t r = rate_of(v, &v->c->partitions[k->partition].shares.alloc[RDT_MB],
				    *order[i], &whole);
		if (!r)
			r = rate_of(v, &k->shares.alloc[RDT_MB], *order[i], &own);
		if (r)
			return r;
		rate = v->m->mb.mbps ? (own < whole ? own : whole) : own * whole / 100;
		if (!v->m->mb.mbps && rate < v->m->mb.min)
			rate = v->m->mb.min;
		resolve_append(text, len, "%s%u=%u", i ? ";" : "", *order[i], rate);
	}
	resolve_append(text, len, "\n");
	return 0;
}

static int32_t class_schemata(const struct resolver *v, struct rdt_class *k)
{
	size_t len = 0;
	char *text = malloc(RDT_SCHEMATA_MAX);
	if (!text)
		return modhost_no_memory(v->h);
	text[0] = '\0';
	int32_t r = 0;
	for (enum rdt_level l = 0; !r && l < RDT_N_LEVELS; l++)
		r = class_level(v, k, l, text, &len);
	if (!r)
		r = class_bandwidth(v, k, text, &len);
	if (!r)
		k->schemata = strdup(text);
	free(text);
	if (!r && !k->schemata)
		r = modhost_no_memory(v->h);
	return r;
}

/* ---- entry point ----------------------------------------------------------------------------- */

static void sort_names(const struct rdt_config *c, uint32_t *order)
{
	for (uint32_t i = 0; i < c->n_partitions; i++) {
		uint32_t at = i;
		for (; at && strcmp(c->partitions[order[at - 1]].name, c->partitions[i].name) > 0;
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static int32_t resolve_all(struct resolver *v)
{
	bool given;
	int32_t r = all_or_none(v, RDT_MB, &given);
	sort_names(v->c, v->by_name);
	for (enum rdt_level l = 0; !r && l < RDT_N_LEVELS; l++)
		r = partition_level(v, l);
	for (uint32_t i = 0; !r && i < v->c->n_classes; i++)
		r = class_schemata(v, &v->c->classes[i]);
	return r;
}

int32_t rdt_resolve(const struct modhost *h, struct rdt_config *c, const struct rdt_machine *m)
{
	struct resolver v = {.h = h, .c = c, .m = m};
	bool ok = true;
	if (!c->n_partitions)
		return 0;
	if (m->num_closids && c->n_classes + 1 > m->num_closids)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "%u classes are configured, but the hardware has %u, including that of "
			    "the root group",
			    c->n_classes, m->num_closids);
	v.by_name = calloc(c->n_partitions, sizeof *v.by_name);
	for (unsigned i = 0; i < RDT_N_LEVELS * RDT_N_PARTS; i++) {
		struct masks *list = calloc(c->n_partitions, sizeof *list);
		v.masks[i / RDT_N_PARTS][i % RDT_N_PARTS] = list;
		ok = ok && list;
	}
	int32_t r = ok && v.by_name ? resolve_all(&v) : modhost_no_memory(h);
	for (unsigned i = 0; i < RDT_N_LEVELS * RDT_N_PARTS; i++)
		free(v.masks[i / RDT_N_PARTS][i % RDT_N_PARTS]);
	free(v.by_name);
	return r;
}
