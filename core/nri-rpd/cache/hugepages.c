/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/cache/hugepages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/util/number.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/internal.h"
#include "core/nri-rpd/cache/txn.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

uint64_t hugepages_size(const char *text)
{
	static const char units[] = "KMGT";
	char digits[HUGE_SIZE_TEXT];
	size_t n = strspn(text, "0123456789");
	const char *unit = text[n] ? strchr(units, text[n]) : NULL;
	uint64_t size;
	if (!n || n >= sizeof digits || !unit ||
	    (strcmp(text + n + 1, "B") != 0 && strcmp(text + n + 1, "i") != 0))
		return 0;
	memcpy(digits, text, n);
	digits[n] = '\0';
	unsigned shift = 10 * (unsigned)(unit - units + 1);
	return str_to_u64(digits, &size) == 0 && size <= UINT64_MAX >> 8 >> shift ? size << shift
										  : 0;
}

const char *hugepages_text(uint64_t page, char text[HUGE_SIZE_TEXT])
{
	static const char *const units[] = {"Ki", "Mi", "Gi", "Ti"};
	unsigned i = 0;
	for (page >>= 10; i < 3 && page && page % 1024 == 0; i++)
		page >>= 10;
	(void)snprintf(text, HUGE_SIZE_TEXT, "%" PRIu64 "%s", page, units[i]);
	return text;
}

int hugepages_set(struct ctr *ctr, const struct huge *huge)
{
	struct huge *copy = huge->n ? malloc(sizeof *copy) : NULL;
	if (huge->n && !copy)
		return -ENOMEM;
	if (copy)
		*copy = *huge;
	free(ctr->huge);
	ctr->huge = copy;
	return 0;
}

static uint64_t huge_of(const struct ctr *ctr, uint64_t page)
{
	for (uint32_t i = 0; ctr->huge && i < ctr->huge->n; i++)
		if (ctr->huge->of[i].page == page)
			return ctr->huge->of[i].bytes;
	return 0;
}

bool hugepages_equal(const struct ctr *ctr, const struct huge *huge)
{
	bool same = (ctr->huge ? ctr->huge->n : 0) == huge->n;
	for (uint32_t i = 0; same && i < huge->n; i++)
		same = huge_of(ctr, huge->of[i].page) == huge->of[i].bytes;
	return same;
}

/* Returns true if the pages of a container are those of the claim that it uses. */
static bool huge_is_claimed(const struct ctr *ctr, uint64_t page)
{
	bool claimed = ctr->claim && txn_view(ctr)->claimed;
	const struct ctr *part = claimed ? ctr->claim->pod->ctrs : NULL;
	while (part && !huge_of(part, page))
		part = part->pod_next;
	return part != NULL;
}

/* ---- pages of a node ------------------------------------------------------------------------- */

/* Pages of one size on the nodes that have some, in ascending order. */
struct pages {
	uint32_t n;
	struct {
		uint32_t node;
		uint64_t free;
		struct huge_node is;
	} of[TOPO_HUGE_NODES_MAX];
};

/* Grants a container's pages on its nodes. */
static void pages_grant(struct pages *p, const struct ctr *ctr, uint64_t bytes)
{
	const struct iset *mems = txn_view(ctr)->mems;
	for (uint32_t i = 0; i < p->n && bytes; i++) {
		struct huge_node *n = &p->of[i].is;
		uint64_t left = n->total - (n->granted < n->total ? n->granted : n->total);
		if (mems && mems->count && !rp_ids_has(mems->ids, p->of[i].node))
			continue;
		left = left < bytes ? left : bytes;
		n->granted += left;
		n->claimed += ctr->device ? left : 0;
		bytes -= left;
	}
}

/* Grants the pages of all containers and claims but one; `old`: leaves out claims that are being
 * allocated. */
static void pages_grant_all(struct pages *p, struct cache *c, uint64_t page, const struct ctr *but,
			    bool old)
{
	const struct ctr *ctr;
	for (uint32_t i = 0; i < p->n; i++)
		p->of[i].is.granted = p->of[i].is.claimed = 0;
	DL_FOREACH (cache_ctrs(c), ctr) {
		const struct decision *d = old ? &ctr->cur : txn_view(ctr);
		if (ctr->huge && ctr != but && ctr_live(txn_view(ctr)->state) &&
		    (!ctr->device || d->exclusive) && !huge_is_claimed(ctr, page))
			pages_grant(p, ctr, huge_of(ctr, page));
	}
}

/* Returns the remembered number of pages of other programs on a node; NULL: out of memory. */
static uint64_t *others_of(struct cache *c, uint32_t node, uint64_t page)
{
	for (uint32_t i = 0; i < c->n_huge_others; i++)
		if (c->huge_others[i].node == node && c->huge_others[i].page == page)
			return &c->huge_others[i].bytes;
	struct huge_others *grown = realloc(c->huge_others, (c->n_huge_others + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	c->huge_others = grown;
	grown[c->n_huge_others] = (struct huge_others){.node = node, .page = page};
	return &grown[c->n_huge_others++].bytes;
}

/* Estimates the pages of other programs, while `granted` counts all containers that exist. */
static void pages_find_others(struct pages *p, struct cache *c, uint64_t page)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct huge_node *n = &p->of[i].is;
		uint64_t used = n->total - p->of[i].free;
		uint64_t least = used > n->granted ? used - n->granted : 0;
		uint64_t *known = others_of(c, p->of[i].node, page);
		n->others = known ? *known : least;
		if (n->others < least || !n->granted)
			n->others = least;
		if (n->others > used)
			n->others = used;
		if (known)
			*known = n->others;
	}
}

static const struct ctr *created_now(struct cache *c)
{
	const struct ctr *ctr;
	DL_FOREACH (cache_ctrs(c), ctr) {
		if (ctr->huge && ctr->coming)
			return ctr;
	}
	return NULL;
}

static void pages_read(struct pages *p, struct cache *c, const struct topo *t, uint64_t page,
		       const struct ctr *but)
{
	struct rp_ids nodes = topo_ids(t, RP_NODES_MEMORY);
	p->n = 0;
	RP_IDS_EACH (node, nodes) {
		uint64_t total, free;
		if (p->n == TOPO_HUGE_NODES_MAX || topo_hugepages(t, node, page, &total, &free) ||
		    !total)
			continue;
		p->of[p->n].node = node;
		p->of[p->n].free = free < total ? free : total;
		p->of[p->n++].is = (struct huge_node){.total = total};
	}
	pages_grant_all(p, c, page, created_now(c), true);
	pages_find_others(p, c, page);
	pages_grant_all(p, c, page, but, false);
}

int hugepages_count(struct cache *c, const struct topo *t, uint32_t node, uint64_t page,
		    const struct ctr *but, struct huge_node *ret)
{
	struct pages p;
	pages_read(&p, c, t, page, but);
	for (uint32_t i = 0; i < p.n; i++) {
		if (p.of[i].node != node)
			continue;
		*ret = p.of[i].is;
		return 0;
	}
	return -ENOENT;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Adds the huge pages that the cluster reports for a container. */
static void huge_add(const struct fed_ctr *fed, struct huge *ret)
{
	for (uint32_t i = 0; i < fed->n_extended; i++) {
		const struct fed_amount *e = &fed->extended[i];
		uint64_t page = str_has_prefix(e->name, HUGE_RESOURCE)
					? hugepages_size(e->name + strlen(HUGE_RESOURCE))
					: 0;
		uint32_t at = 0;
		while (at < ret->n && ret->of[at].page != page)
			at++;
		if (!page || at == HUGE_SIZES_MAX || e->request <= 0 ||
		    e->request > DERIVE_BYTES_MAX)
			continue;
		if (at == ret->n)
			ret->of[ret->n++] = (struct huge_request){.page = page};
		ret->of[at].bytes += (uint64_t)e->request;
	}
}

/* Adds up the huge pages that the containers of a pod request, as the cluster reports it. */
static void huge_of_pod(const struct fed_pod *fed, struct huge *ret)
{
	*ret = (struct huge){.n = 0};
	for (uint32_t i = 0; i < fed->n_ctrs; i++)
		if (fed->ctrs[i].kind != FED_INIT)
			huge_add(&fed->ctrs[i], ret);
}

int hugepages_set_fed(struct ctr *ctr, const struct fed_pod *pod, const struct fed_ctr *fed)
{
	struct huge huge = {.n = 0}, all;
	huge_of_pod(pod, &all);
	if (!all.n || (ctr->huge && !pod->has_own))
		return 0;
	huge_add(fed, &huge);
	return hugepages_set(ctr, &huge);
}

static int check_size(struct cache *c, const struct topo *t, const struct ctr *ctr,
		      const struct huge_request *want, struct rp_ids nodes, char *why, size_t size)
{
	struct pages p;
	char page[HUGE_SIZE_TEXT], set[64];
	uint64_t has = 0;
	pages_read(&p, c, t, want->page, ctr);
	for (uint32_t i = 0; i < p.n; i++) {
		const struct huge_node *n = &p.of[i].is;
		if (rp_ids_has(nodes, p.of[i].node) && n->total > n->others + n->granted)
			has += n->total - n->others - n->granted;
	}
	/* A kernel without huge pages cannot grant any, so the limit has no effect. */
	if (has >= want->bytes || !topo_hugepage_size(t, 0))
		return 0;
	(void)rp_ids_format(nodes, set, sizeof set);
	(void)snprintf(why, size,
		       HUGE_RESOURCE "%s: memory nodes %s have %" PRIu64 " pages left, %" PRIu64
				     " are requested",
		       hugepages_text(want->page, page), set, has / want->page,
		       want->bytes / want->page);
	return -ENOSPC;
}

int hugepages_check(struct cache *c, const struct topo *t, const struct pod *pod,
		    const struct ctr *ctr, struct rp_ids nodes, char *why, size_t size)
{
	struct huge of_pod;
	const struct fed_pod *fed = !ctr && pod ? pod_fed(c, pod) : NULL;
	const struct huge *huge = ctr ? ctr->huge : NULL;
	if (fed) {
		huge_of_pod(fed, &of_pod);
		huge = of_pod.n ? &of_pod : NULL;
	}
	for (uint32_t i = 0; huge && i < huge->n; i++) {
		int r = check_size(c, t, ctr, &huge->of[i], nodes, why, size);
		if (r)
			return r;
	}
	return huge != NULL;
}
