/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/metrics/reader.h"

#include <errno.h>
#include <stdlib.h>

#include "core/nri-rpd/host/cgroup.h"
#include "core/lib/util/hash.h"

#define SLOW_MS 8000u
#define SPREAD 8u /* parts of that time; spreads containers that were created together */

struct known {
	rp_ctr ctr;
	struct figures_place place;
	uint64_t slow_ms; /* time at which slow figures are due again */
	uint64_t round; /* latest round with this container */
	unsigned n_files; /* part of the reader's count */
	UT_hash_handle hh;
};

struct reader {
	const struct fs_root *root;
	unsigned files_max, n_files;
	bool unified;
	uint64_t round, now_ms;
	struct known *list;
	char buf[FIGURES_FILE_MAX];
};

struct reader *reader_new(const struct fs_root *root, unsigned files_max)
{
	struct reader *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->root = root;
	r->files_max = files_max;
	return r;
}

static void reader_count(struct reader *r, struct known *k)
{
	r->n_files -= k->n_files;
	k->n_files = figures_place_files(&k->place);
	r->n_files += k->n_files;
}

static void reader_do_forget(struct reader *r, struct known *k)
{
	figures_place_close(&k->place);
	reader_count(r, k);
	HASH_DEL(r->list, k);
	free(k);
}

void reader_forget(struct reader *r)
{
	struct known *k, *next;
	HASH_ITER (hh, r->list, k, next)
		reader_do_forget(r, k);
}

struct reader *reader_free(struct reader *r)
{
	if (!r)
		return NULL;
	reader_forget(r);
	free(r);
	return NULL;
}

void reader_begin(struct reader *r, uint64_t now_ms)
{
	r->round++;
	r->now_ms = now_ms;
	r->unified = cgroup_unified(r->root);
}

static bool is_due(struct reader *r, struct known *k)
{
	if (r->now_ms < k->slow_ms)
		return false;
	uint64_t early = k->slow_ms ? 0 : k->ctr % SPREAD * (SLOW_MS / SPREAD);
	k->slow_ms = r->now_ms + SLOW_MS - early;
	return true;
}

int reader_read(struct reader *r, rp_ctr ctr, const struct figures_cgroup *of, uint32_t waits,
		struct figures *ret)
{
	struct known *k = HASH_FIND_OR_ADD(r->list, ctr, ctr);
	if (!k)
		return -ENOMEM;
	bool keep = r->n_files - k->n_files + 2 * FIGURES_SOURCES <= r->files_max;
	bool slow = is_due(r, k);
	if (slow && !figures_place_complete(&k->place))
		figures_place_close(&k->place);
	int e = k->place.open ? 0 : figures_place_open(r->root, r->unified, of, &k->place);
	if (!e)
		e = figures_read(&k->place,
				 (slow ? FIGURES_SLOW : 0) | (keep ? FIGURES_KEEP : 0) | waits,
				 r->buf, ret);
	if (e) {
		reader_do_forget(r, k);
		return e;
	}
	if (!keep)
		figures_place_close(&k->place);
	k->round = r->round;
	reader_count(r, k);
	return 0;
}

void reader_end(struct reader *r)
{
	struct known *k, *next;
	HASH_ITER (hh, r->list, k, next)
		if (k->round != r->round)
			reader_do_forget(r, k);
}
