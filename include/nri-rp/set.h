/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of small ids: CPUs (0 … 8191) and memory nodes (0 … 1023).
 *
 * There are two types with one meaning:
 *   struct rp_ids    a read-only view of words that another object owns; sets cross the ABI so.
 *   struct rp_idset  storage that the caller owns, as large as the largest set. The cost of an
 *                    operation depends on the words in use (nw), not on the size of the storage.
 *
 * Id n is bit n % 64 of word n / 64. Words beyond nw count as zero. A view becomes stale when its
 * set grows, is cleared or is assigned; take a new one with rp_ids_of().
 *
 * Nothing here allocates memory, and only parsing can fail. All functions may be called on any
 * thread. The limits are fixed for the major. On a machine with more CPUs or nodes the host refuses
 * to start with a message.
 *
 * The text form is the kernel's list format: "0-3,8". The empty set is "".
 */
#ifndef NRI_RP_SET_H
#define NRI_RP_SET_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_CPUS_MAX 8192u /* ids of CPUs are below this */
#define RP_NODES_MAX 1024u /* ids of memory nodes are below this */
#define RP_IDSET_WORDS (RP_CPUS_MAX / 64u)
#define RP_IDSET_NONE UINT32_MAX /* returned by first, last and next: there is no such id */
#define RP_IDSET_TEXT_MAX 32768u /* size of a buffer that holds the text of any set, with its NUL */

/* A read-only view of a set. The words stay with their owner and must outlive the view. */
struct rp_ids {
	const uint64_t *w;
	uint32_t nw;
	uint32_t pad;
};

struct rp_idset {
	uint32_t nw; /* words in use; w[nw] and later ones are not initialised */
	uint32_t pad;
	uint64_t w[RP_IDSET_WORDS];
};

/*
 * Visits the members of a view in ascending order: RP_IDS_EACH(cpu, ids) { … }
 *
 * `ids` is an expression that is evaluated again for each member. With rp_ids_of(&set) the loop
 * follows the live set: the body may delete members, and a member deleted before its turn is not
 * visited. A member added above the current id is visited. To visit the members as they were at the
 * start, loop over a copy of the set. The body must not clear or assign the set while it loops over
 * a stored view.
 */
#define RP_IDS_EACH(id, ids)                                                                       \
	for (uint32_t id = rp_ids_first(ids); id != RP_IDSET_NONE; id = rp_ids_next(ids, id))

/* Returns a view of the set. */
static inline struct rp_ids rp_ids_of(const struct rp_idset *set)
{
	struct rp_ids v = {set->w, set->nw, 0};
	return v;
}

/* Returns the empty set. */
static inline struct rp_ids rp_ids_none(void)
{
	struct rp_ids v = {NULL, 0, 0};
	return v;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Returns word i of the view, 0 beyond its end. */
static inline uint64_t rp_ids_word(struct rp_ids v, uint32_t i)
{
	return i < v.nw ? v.w[i] : 0;
}

/* Returns 1 if `id` is a member, else 0. */
static inline int rp_ids_has(struct rp_ids v, uint32_t id)
{
	return (int)(rp_ids_word(v, id / 64) >> (id % 64) & 1);
}

/* Returns the number of members. */
static inline uint32_t rp_ids_count(struct rp_ids v)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < v.nw; i++)
		n += (uint32_t)__builtin_popcountll(v.w[i]);
	return n;
}

/* Returns 1 if the set has no members, else 0. */
static inline int rp_ids_empty(struct rp_ids v)
{
	for (uint32_t i = 0; i < v.nw; i++)
		if (v.w[i])
			return 0;
	return 1;
}

/* Returns the smallest member above `id`, or RP_IDSET_NONE. */
static inline uint32_t rp_ids_next(struct rp_ids v, uint32_t id)
{
	uint32_t i = (id + 1) / 64, bit = (id + 1) % 64;
	if (i >= v.nw)
		return RP_IDSET_NONE;
	uint64_t w = v.w[i] >> bit << bit;
	while (!w) {
		if (++i >= v.nw)
			return RP_IDSET_NONE;
		w = v.w[i];
	}
	return i * 64 + (uint32_t)__builtin_ctzll(w);
}

/* Returns the smallest member, or RP_IDSET_NONE. */
static inline uint32_t rp_ids_first(struct rp_ids v)
{
	return rp_ids_next(v, UINT32_MAX);
}

/* Returns the largest member, or RP_IDSET_NONE. */
static inline uint32_t rp_ids_last(struct rp_ids v)
{
	for (uint32_t i = v.nw; i-- > 0;)
		if (v.w[i])
			return i * 64 + 63 - (uint32_t)__builtin_clzll(v.w[i]);
	return RP_IDSET_NONE;
}

/* Returns 1 if both sets have the same members, else 0. */
static inline int rp_ids_equal(struct rp_ids a, struct rp_ids b)
{
	uint32_t n = a.nw > b.nw ? a.nw : b.nw;
	for (uint32_t i = 0; i < n; i++)
		if (rp_ids_word(a, i) != rp_ids_word(b, i))
			return 0;
	return 1;
}

/* Returns 1 if every member of a is in b, else 0. The empty set is a subset of every set. */
static inline int rp_ids_subset(struct rp_ids a, struct rp_ids b)
{
	for (uint32_t i = 0; i < a.nw; i++)
		if (a.w[i] & ~rp_ids_word(b, i))
			return 0;
	return 1;
}

/* Returns 1 if the sets have a member in common, else 0. */
static inline int rp_ids_overlap(struct rp_ids a, struct rp_ids b)
{
	uint32_t n = a.nw < b.nw ? a.nw : b.nw;
	for (uint32_t i = 0; i < n; i++)
		if (a.w[i] & b.w[i])
			return 1;
	return 0;
}

/* Returns the number of members that the sets have in common. */
static inline uint32_t rp_ids_count_and(struct rp_ids a, struct rp_ids b)
{
	uint32_t n = a.nw < b.nw ? a.nw : b.nw, count = 0;
	for (uint32_t i = 0; i < n; i++)
		count += (uint32_t)__builtin_popcountll(a.w[i] & b.w[i]);
	return count;
}

/* ---- changes; the destination may be one of the operands ------------------------------------- */

/* Makes the set empty. Also initialises storage that was never used. */
static inline void rp_idset_clear(struct rp_idset *dst)
{
	dst->nw = 0;
	dst->pad = 0;
}

/* Drops zero words at the end, so that nw is the number of words in use. */
static inline void rp_idset_trim(struct rp_idset *dst)
{
	while (dst->nw && !dst->w[dst->nw - 1])
		dst->nw--;
}

/* Copies src to dst. Ids of RP_CPUS_MAX and above are dropped. */
static inline void rp_idset_copy(struct rp_idset *dst, struct rp_ids src)
{
	uint32_t n = src.nw < RP_IDSET_WORDS ? src.nw : RP_IDSET_WORDS;
	if (n)
		memmove(dst->w, src.w, n * sizeof dst->w[0]);
	dst->nw = n;
	dst->pad = 0;
	rp_idset_trim(dst);
}

/* Adds an id. Ids of RP_CPUS_MAX and above are ignored. */
static inline void rp_idset_add(struct rp_idset *dst, uint32_t id)
{
	uint32_t i = id / 64;
	if (i >= RP_IDSET_WORDS)
		return;
	while (dst->nw <= i)
		dst->w[dst->nw++] = 0;
	dst->w[i] |= UINT64_C(1) << (id % 64);
}

/* Removes an id, which need not be a member. */
static inline void rp_idset_del(struct rp_idset *dst, uint32_t id)
{
	if (id / 64 >= dst->nw)
		return;
	dst->w[id / 64] &= ~(UINT64_C(1) << (id % 64));
	rp_idset_trim(dst);
}

/* Adds the ids first … last, both included. Ids of RP_CPUS_MAX and above are ignored. */
static inline void rp_idset_add_range(struct rp_idset *dst, uint32_t first, uint32_t last)
{
	for (uint32_t id = first; id <= last && id < RP_CPUS_MAX; id++)
		rp_idset_add(dst, id);
}

/* Stores the union of a and b. */
static inline void rp_idset_or(struct rp_idset *dst, struct rp_ids a, struct rp_ids b)
{
	uint32_t n = a.nw > b.nw ? a.nw : b.nw;
	if (n > RP_IDSET_WORDS)
		n = RP_IDSET_WORDS;
	for (uint32_t i = 0; i < n; i++)
		dst->w[i] = rp_ids_word(a, i) | rp_ids_word(b, i);
	dst->nw = n;
	dst->pad = 0;
	rp_idset_trim(dst);
}

/* Stores the intersection of a and b. */
static inline void rp_idset_and(struct rp_idset *dst, struct rp_ids a, struct rp_ids b)
{
	uint32_t n = a.nw < b.nw ? a.nw : b.nw;
	if (n > RP_IDSET_WORDS)
		n = RP_IDSET_WORDS;
	for (uint32_t i = 0; i < n; i++)
		dst->w[i] = a.w[i] & b.w[i];
	dst->nw = n;
	dst->pad = 0;
	rp_idset_trim(dst);
}

/* Stores the members of a that are not in b. */
static inline void rp_idset_andnot(struct rp_idset *dst, struct rp_ids a, struct rp_ids b)
{
	uint32_t n = a.nw < RP_IDSET_WORDS ? a.nw : RP_IDSET_WORDS;
	for (uint32_t i = 0; i < n; i++)
		dst->w[i] = a.w[i] & ~rp_ids_word(b, i);
	dst->nw = n;
	dst->pad = 0;
	rp_idset_trim(dst);
}

/* ---- text form ------------------------------------------------------------------------------- */

/* Returns the last member of the unbroken run of members that begins at the member `id`. */
static inline uint32_t rp_ids_run(struct rp_ids v, uint32_t id)
{
	uint32_t i = id / 64;
	uint64_t gaps = ~v.w[i] >> (id % 64) << (id % 64);
	while (!gaps && ++i < v.nw)
		gaps = ~v.w[i];
	return gaps ? i * 64 + (uint32_t)__builtin_ctzll(gaps) - 1 : v.nw * 64 - 1;
}

/* Writes a number in decimal digits at text[n], without a NUL. Returns n plus the number of
 * digits. */
static inline uint32_t rp_ids_put_number(char *text, uint32_t n, uint32_t number)
{
	char digits[10];
	uint32_t k = 0;
	do {
		digits[k++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (k)
		text[n++] = digits[--k];
	return n;
}

/*
 * Writes the list form into buf, always NUL-terminated when size > 0. Returns the length of the
 * whole text, as snprintf does: a result of `size` or more means that the text was cut.
 */
static inline uint32_t rp_ids_format(struct rp_ids v, char *buf, uint32_t size)
{
	uint32_t len = 0, id = rp_ids_first(v);
	if (size)
		buf[0] = '\0';
	while (id != RP_IDSET_NONE) {
		uint32_t end = rp_ids_run(v, id), n = 0;
		char item[32];
		if (len)
			item[n++] = ',';
		n = rp_ids_put_number(item, n, id);
		if (end != id) {
			item[n++] = '-';
			n = rp_ids_put_number(item, n, end);
		}
		if (len + n < size) {
			memcpy(buf + len, item, n);
			buf[len + n] = '\0';
		}
		len += n;
		id = rp_ids_next(v, end);
	}
	return len;
}

/* Reads a decimal number below `max` and moves *text behind it. Returns 0, or -1 for no such
 * number. */
static inline int rp_idset_parse_number(const char **text, uint32_t max, uint32_t *ret)
{
	const char *p = *text;
	uint32_t n = 0;
	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (uint32_t)(*p - '0');
		if (n >= max)
			return -1;
	}
	*text = p;
	*ret = n;
	return 0;
}

/*
 * Reads the list form. Blanks around items and one newline at the end are allowed; the empty text
 * is the empty set. Every id must be below `max` (RP_CPUS_MAX or RP_NODES_MAX). Returns 0, or -1
 * for malformed text; then dst is undefined.
 */
static inline int rp_idset_parse(struct rp_idset *dst, const char *text, uint32_t max)
{
	const char *p = text;
	rp_idset_clear(dst);
	if (max > RP_CPUS_MAX)
		max = RP_CPUS_MAX;
	while (*p == ' ' || *p == '\t')
		p++;
	if (*p == '\n' && !p[1])
		p++;
	if (!*p)
		return 0;
	for (;;) {
		uint32_t first, last;
		while (*p == ' ' || *p == '\t')
			p++;
		if (rp_idset_parse_number(&p, max, &first))
			return -1;
		last = first;
		if (*p == '-') {
			p++;
			if (rp_idset_parse_number(&p, max, &last) || last < first)
				return -1;
		}
		rp_idset_add_range(dst, first, last);
		while (*p == ' ' || *p == '\t')
			p++;
		if (*p == '\n' && !p[1])
			p++;
		if (!*p)
			return 0;
		if (*p++ != ',')
			return -1;
	}
}

#ifdef __cplusplus
}
#endif
#endif
