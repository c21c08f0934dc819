/* SPDX-License-Identifier: Apache-2.0 */
/* Affinity of interrupts: parsing of /proc/interrupts, copies of a policy's wish, and the
 * worker's decision about each interrupt. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/glob.h>
#include "modules/lib/private/irq.h"
#include <nri-rp/lib/section.h>

#define TABLE "/proc/interrupts"
#define CLOSED " (the shipped service needs interrupts.conf, see nri-rpd(8))"
#define TABLE_FIRST (256u << 10)
#define TABLE_MAX (64u << 20)
#define NUMBER_MAX 65536u /* limit of interrupt numbers */
#define LIST_MAX RP_SETTING_MAX /* limit of an affinity in bytes */

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t count_words(const char *line, size_t len)
{
	uint32_t n = 0;
	for (size_t i = 0; i < len; i++)
		n += !isspace((unsigned char)line[i]) &&
		     (i == 0 || isspace((unsigned char)line[i - 1]));
	return n;
}

/* Reads the next word of a line. False: there is none. */
static bool next_word(const char **line, const char *end, const char **word, size_t *n)
{
	while (*line < end && isspace((unsigned char)**line))
		(*line)++;
	*word = *line;
	while (*line < end && !isspace((unsigned char)**line))
		(*line)++;
	*n = (size_t)(*line - *word);
	return *n > 0;
}

static bool is_number(const char *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word[i] < '0' || word[i] > '9')
			return false;
	return n > 0;
}

int32_t irq_parse_line(const char *line, size_t len, uint32_t n_cpus, uint32_t *ret_number,
		       char description[IRQ_TEXT_MAX])
{
	const char *end = line + len, *word;
	size_t n, used = 0;
	uint32_t number = 0;
	if (!next_word(&line, end, &word, &n) || word[n - 1] != ':' || !is_number(word, n - 1) ||
	    n > 6)
		return -RP_ENOENT;
	for (size_t i = 0; i + 1 < n; i++)
		number = number * 10 + (uint32_t)(word[i] - '0');
	if (number >= NUMBER_MAX)
		return -RP_ENOENT;
	for (uint32_t i = 0; i < n_cpus; i++)
		if (!next_word(&line, end, &word, &n) || !is_number(word, n))
			return -RP_ENOENT;
	description[0] = '\0';
	while (next_word(&line, end, &word, &n)) {
		if (used + (used > 0) + n >= IRQ_TEXT_MAX)
			break;
		if (used)
			description[used++] = ' ';
		memcpy(description + used, word, n);
		used += n;
		description[used] = '\0';
	}
	*ret_number = number;
	return 0;
}

/* Reads the whole table, NUL-terminated. NULL: *ret is an error. */
static char *read_table(const struct rp_host_work *work, void *ctx, int32_t *ret)
{
	for (uint32_t cap = TABLE_FIRST; cap <= TABLE_MAX; cap *= 2) {
		char *text = malloc(cap);
		*ret = text ? work->read_file(ctx, TABLE, text, cap) : -RP_ENOMEM;
		if (*ret >= 0 && (uint32_t)*ret < cap - 1)
			return text;
		free(text);
		if (*ret < 0 && *ret != -EFBIG && *ret != -EOVERFLOW)
			return NULL;
	}
	*ret = -RP_E2BIG;
	return NULL;
}

typedef int32_t (*irq_found)(void *arg, uint32_t number, const char *description);

static int32_t each_line(const char *text, irq_found found, void *arg)
{
	uint32_t n_cpus = 0, number;
	char description[IRQ_TEXT_MAX];
	bool head = true;
	while (*text) {
		size_t len = strcspn(text, "\n");
		int32_t r = 0;
		if (head)
			n_cpus = count_words(text, len);
		else if (irq_parse_line(text, len, n_cpus, &number, description) == 0)
			r = found(arg, number, description);
		if (r)
			return r;
		head = false;
		text += len + (text[len] == '\n');
	}
	return 0;
}

int32_t irq_each(const struct modhost *h, irq_found found, void *arg)
{
	int32_t r = -RP_ENOTSUP;
	char *text = h->work ? read_table(h->work, h->ctx, &r) : NULL;
	if (!text)
		return r;
	r = each_line(text, found, arg);
	free(text);
	return r;
}

/* ---- controllable interrupts ----------------------------------------------------------------- */

int32_t irq_read_controllable(const struct modhost *h, struct blocks *memory, rp_cfg section,
			      struct texts *ret)
{
	rp_cfg list = section_get(h, section, "controllableInterrupts");
	bool all = false;
	int32_t r = texts_read(h, memory, list, 0, ret);
	for (uint32_t i = 0; !r && i < ret->n; i++) {
		if (!glob_valid(ret->list[i]))
			r = modhost_fail_at(h, h->config->item(h->ctx, list, i), -RP_EINVAL,
					    "\"%.64s\" is not a valid pattern", ret->list[i]);
		all = all || strcmp(ret->list[i], "*") == 0;
	}
	if (all)
		ret->n = 0;
	return r;
}

struct denied_search {
	struct blocks *memory;
	const struct texts *controllable;
	struct irq_names *names;
};

/* Returns true if a pattern names the interrupt by its number or matches its description. */
static bool is_about(const char *pattern, uint32_t number, const char *description)
{
	char digits[16];
	(void)snprintf(digits, sizeof digits, "%u", number);
	return strcmp(pattern, digits) == 0 || glob_match(pattern, description);
}

static int32_t add_denied(void *arg, uint32_t number, const char *description)
{
	struct denied_search *s = arg;
	struct irq_names *names = s->names;
	for (uint32_t i = 0; i < s->controllable->n; i++)
		if (is_about(s->controllable->list[i], number, description))
			return 0;
	if (!s->controllable->n)
		return 0;
	if (names->n == names->cap) {
		uint32_t cap = names->cap * 2 + 64;
		struct irq_name *list = blocks_alloc(s->memory, cap, sizeof *list);
		if (!list)
			return -RP_ENOMEM;
		if (names->n)
			memcpy(list, names->list, names->n * sizeof *list);
		names->list = list;
		names->cap = cap;
	}
	size_t len = strlen(description) + 1;
	char *copy = blocks_alloc(s->memory, len, 1);
	if (!copy)
		return -RP_ENOMEM;
	memcpy(copy, description, len);
	names->list[names->n++] = (struct irq_name){number, copy};
	return 0;
}

int32_t irq_read_denied(const struct modhost *h, struct blocks *memory,
			const struct texts *controllable, struct irq_names *ret)
{
	struct denied_search s = {memory, controllable, ret};
	*ret = (struct irq_names){0};
	return irq_each(h, add_denied, &s);
}

const struct irq_name *irq_find_denied(const struct irq_names *denied, const char *pattern)
{
	for (uint32_t i = 0; i < denied->n; i++)
		if (is_about(pattern, denied->list[i].number, denied->list[i].description))
			return &denied->list[i];
	return NULL;
}

/* ---- orders ---------------------------------------------------------------------------------- */

struct order_claim {
	char **patterns;
	uint32_t n;
	bool strict;
	struct rp_idset cpus;
};

/* A copy of a wish that owns all its parts, for the worker. */
struct order {
	uint32_t refs;
	bool active;
	struct order_claim *claims, *masks;
	uint32_t n_claims, n_masks;
	char **controllable;
	uint32_t n_controllable;
	struct rp_idset sink, isolate, allowed;
};

static void free_texts(char **texts, uint32_t n)
{
	for (uint32_t i = 0; texts && i < n; i++)
		free(texts[i]);
	free(texts);
}

static void free_claims(struct order_claim *claims, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free_texts(claims[i].patterns, claims[i].n);
	free(claims);
}

static struct order *order_unref(struct order *o)
{
	if (!o || --o->refs)
		return NULL;
	free_claims(o->claims, o->n_claims);
	free_claims(o->masks, o->n_masks);
	free_texts(o->controllable, o->n_controllable);
	free(o);
	return NULL;
}

static char **copy_texts(const struct irq_patterns *from)
{
	char **texts = calloc(from->n + 1u, sizeof *texts);
	for (uint32_t i = 0; texts && i < from->n; i++) {
		texts[i] = strdup(from->list[i]);
		if (texts[i])
			continue;
		free_texts(texts, i);
		return NULL;
	}
	return texts;
}

static bool copy_claim(const struct irq_claim *from, struct order_claim *ret)
{
	ret->n = from->patterns.n;
	rp_idset_copy(&ret->cpus, from->cpus);
	ret->patterns = copy_texts(&from->patterns);
	return ret->patterns != NULL;
}

static bool copy_claims(const struct irq_wish *w, struct order *o)
{
	o->claims = calloc(w->n_claims + 1u, sizeof *o->claims);
	o->masks = calloc(w->n_masks + 1u, sizeof *o->masks);
	if (!o->claims || !o->masks)
		return false;
	for (; o->n_claims < w->n_claims; o->n_claims++)
		if (!copy_claim(&w->claims[o->n_claims], &o->claims[o->n_claims]))
			return false;
	for (; o->n_masks < w->n_masks; o->n_masks++) {
		o->masks[o->n_masks].strict = w->masks[o->n_masks].strict;
		if (!copy_claim(&w->masks[o->n_masks].of, &o->masks[o->n_masks]))
			return false;
	}
	return true;
}

static struct order *order_new(const struct irq_wish *w)
{
	struct order *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->refs = 1;
	o->active = w->active;
	rp_idset_copy(&o->sink, w->sink);
	rp_idset_copy(&o->isolate, w->isolate);
	rp_idset_copy(&o->allowed, w->allowed);
	o->controllable = copy_texts(&w->controllable);
	o->n_controllable = o->controllable ? w->controllable.n : 0;
	return o->controllable && copy_claims(w, o) ? o : order_unref(o);
}

static bool same_texts(const struct irq_patterns *a, char *const *b, uint32_t n)
{
	bool same = a->n == n;
	for (uint32_t i = 0; same && i < a->n; i++)
		same = strcmp(a->list[i], b[i]) == 0;
	return same;
}

static bool same_claim(const struct order_claim *a, const struct irq_claim *b)
{
	return rp_ids_equal(rp_ids_of(&a->cpus), b->cpus) &&
	       same_texts(&b->patterns, a->patterns, a->n);
}

static bool same_order(const struct order *o, const struct irq_wish *w)
{
	bool same = o->active == w->active && o->n_claims == w->n_claims &&
		    o->n_masks == w->n_masks && rp_ids_equal(rp_ids_of(&o->sink), w->sink) &&
		    rp_ids_equal(rp_ids_of(&o->isolate), w->isolate) &&
		    rp_ids_equal(rp_ids_of(&o->allowed), w->allowed) &&
		    same_texts(&w->controllable, o->controllable, o->n_controllable);
	for (uint32_t i = 0; same && i < w->n_claims; i++)
		same = same_claim(&o->claims[i], &w->claims[i]);
	for (uint32_t i = 0; same && i < w->n_masks; i++)
		same = o->masks[i].strict == w->masks[i].strict &&
		       same_claim(&o->masks[i], &w->masks[i].of);
	return same;
}

/* ---- the worker ------------------------------------------------------------------------------ */

/* An interrupt that was moved or that cannot be moved. */
struct known {
	uint32_t number;
	bool stuck;
	bool moved; /* true: the module has moved the interrupt since `before` */
	char *before; /* affinity before the first move; NULL: no wish for this interrupt */
	char *placed; /* affinity after the move, as text */
};

struct back {
	const struct rp_host_work *work;
	/* host service for settings; NULL: an older host without it */
	const struct rp_host_settings *settings;
	void *ctx;
	struct known *known;
	uint32_t n_known, cap_known;
};

struct irq {
	struct modhost h;
	struct back back; /* original affinities, used by the worker only */
	struct order *last;
	bool used, complained;
	struct irq_stats stats;
};

struct job {
	struct irq *owner;
	struct order *order;
	uint64_t writes, failures;
	int32_t error; /* error of reading the table */
	char message[256];
};

static struct known *find_known(const struct back *b, uint32_t number)
{
	for (uint32_t i = 0; i < b->n_known; i++)
		if (b->known[i].number == number)
			return &b->known[i];
	return NULL;
}

static struct known *known_of(struct back *b, uint32_t number)
{
	struct known *k = find_known(b, number);
	if (k)
		return k;
	if (b->n_known == b->cap_known) {
		uint32_t cap = b->cap_known * 2 + 32;
		struct known *grown = realloc(b->known, cap * sizeof *grown);
		if (!grown)
			return NULL;
		b->known = grown;
		b->cap_known = cap;
	}
	b->known[b->n_known] = (struct known){.number = number};
	return &b->known[b->n_known++];
}

static bool irq_matches(char *const *patterns, uint32_t n, uint32_t number, const char *description)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_about(patterns[i], number, description))
			return true;
	return false;
}

/* Removes masked CPUs from the claimed ones, or from the allowed ones without a claim. False: no
 * mask applies to the interrupt. */
static bool irq_do_mask(const struct job *j, uint32_t number, const char *description,
			struct rp_idset *claimed)
{
	const struct order *o = j->order;
	struct rp_idset to;
	bool any = false;
	rp_idset_copy(&to, rp_ids_of(&o->allowed));
	if (!rp_ids_empty(rp_ids_of(claimed)))
		rp_idset_and(&to, rp_ids_of(&to), rp_ids_of(claimed));
	for (uint32_t i = 0; i < o->n_masks; i++) {
		const struct order_claim *m = &o->masks[i];
		struct rp_idset off;
		if (!irq_matches(m->patterns, m->n, number, description))
			continue;
		any = true;
		rp_idset_copy(&off, rp_ids_of(&m->cpus));
		if (!m->strict)
			rp_idset_andnot(&off, rp_ids_of(&off), rp_ids_of(claimed));
		rp_idset_andnot(&to, rp_ids_of(&to), rp_ids_of(&off));
	}
	if (any)
		rp_idset_copy(claimed, rp_ids_of(&to));
	return any;
}

/* Determines the affinity for an interrupt with the affinity `now`. False: the affinity need not
 * change. */
static bool irq_target(const struct job *j, uint32_t number, const char *description,
		       struct rp_ids now, struct rp_idset *ret)
{
	const struct order *o = j->order;
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < o->n_claims; i++) {
		const struct order_claim *c = &o->claims[i];
		if (irq_matches(c->patterns, c->n, number, description))
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&c->cpus));
	}
	if (irq_do_mask(j, number, description, ret) || !rp_ids_empty(rp_ids_of(ret)))
		return true;
	if (!rp_ids_empty(rp_ids_of(&o->sink))) {
		rp_idset_copy(ret, rp_ids_of(&o->sink));
		return true;
	}
	if (!rp_ids_overlap(now, rp_ids_of(&o->allowed)))
		return false;
	if (rp_ids_empty(rp_ids_of(&o->isolate))) {
		rp_idset_copy(ret, rp_ids_of(&o->allowed));
		return true;
	}
	rp_idset_or(ret, now, rp_ids_of(&o->allowed));
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&o->isolate));
	return true;
}

static void path_of(uint32_t number, char path[64])
{
	(void)snprintf(path, 64, "/proc/irq/%u/smp_affinity_list", number);
}

/* Returns true for errors that another attempt cannot mend, such as errors of kernel-managed
 * interrupts. */
static bool is_final(int32_t error)
{
	return error == -EPERM || error == -EACCES || error == -EIO || error == -EROFS;
}

static int32_t write_affinity(struct job *j, struct known *k, const char *text)
{
	const struct back *b = &j->owner->back;
	char path[64];
	path_of(k->number, path);
	int32_t r = b->work->write_file(b->ctx, path, text);
	if (!r) {
		j->writes++;
		return 0;
	}
	k->stuck = is_final(r);
	j->failures++;
	if (!j->message[0])
		(void)snprintf(j->message, sizeof j->message, "%s: writing %.100s: %s%s", path,
			       text, strerror(-r), r == -EROFS ? CLOSED : "");
	return r;
}

/* Reads an affinity without the newline. */
static int32_t read_affinity(const struct back *b, uint32_t number, char text[LIST_MAX])
{
	char path[64];
	path_of(number, path);
	int32_t r = b->work->read_file(b->ctx, path, text, LIST_MAX);
	if (r >= 0)
		text[strcspn(text, "\n")] = '\0';
	return r;
}

static void read_back(struct job *j, struct known *k, struct rp_ids wanted)
{
	const struct back *b = &j->owner->back;
	char path[64], text[LIST_MAX];
	struct rp_idset has;
	if (read_affinity(b, k->number, text) < 0 || rp_idset_parse(&has, text, RP_CPUS_MAX) ||
	    rp_ids_equal(rp_ids_of(&has), wanted))
		return;
	char *placed = strdup(text);
	if (placed) {
		free(k->placed);
		k->placed = placed;
	}
	j->failures++;
	path_of(k->number, path);
	if (!j->message[0])
		(void)snprintf(j->message, sizeof j->message,
			       "%s: the kernel changed the value to %.100s", path, text);
}

/* Returns the affinity to restore; NULL: none. */
static const char *rest_of(const struct back *b, const struct known *k, char buf[LIST_MAX])
{
	char path[64];
	if (!b->settings)
		return k->before;
	path_of(k->number, path);
	return b->settings->without(b->ctx, path, buf, LIST_MAX) < 0 ? NULL : buf;
}

static void irq_forget(const struct back *b, struct known *k)
{
	char path[64];
	path_of(k->number, path);
	if (b->settings)
		b->settings->drop(b->ctx, path);
	free(k->before);
	free(k->placed);
	k->before = k->placed = NULL;
	k->moved = false;
}

static void irq_restore(struct job *j, struct known *k)
{
	const struct back *b = &j->owner->back;
	char now[LIST_MAX], buf[LIST_MAX];
	if (!k->before || k->stuck)
		return;
	const char *rest = rest_of(b, k, buf);
	/* If no module moved it, a different affinity was set deliberately by another program and
	 * is kept. */
	bool is_due = rest && (k->moved || strcmp(rest, k->before) != 0);
	if (is_due && read_affinity(b, k->number, now) >= 0 && strcmp(now, rest) != 0 &&
	    write_affinity(j, k, rest))
		return;
	irq_forget(b, k);
}

/* Records the wanted affinity with the host, even if it is already effective: the module that set
 * it may end. False: out of memory; the interrupt could not be restored later. */
static bool irq_do_claim(const struct back *b, struct known *k, const char *now, const char *wanted)
{
	char path[64];
	path_of(k->number, path);
	char *placed = strdup(wanted), *before = k->before ? k->before : strdup(now);
	if (!placed || !before ||
	    (b->settings && b->settings->keep(b->ctx, path, wanted, before))) {
		free(placed);
		if (!k->before)
			free(before);
		return false;
	}
	free(k->placed);
	k->placed = placed;
	k->before = before;
	return true;
}

static bool is_ours(const struct known *k)
{
	return k && k->before;
}

/* Returns true if another program has moved the interrupt since. */
static bool is_taken(const struct known *k, struct rp_ids now)
{
	struct rp_idset placed;
	return is_ours(k) && (rp_idset_parse(&placed, k->placed, RP_CPUS_MAX) ||
			      !rp_ids_equal(rp_ids_of(&placed), now));
}

/* Returns the affinity before any module moved the interrupt; NULL: no module has. */
static const char *found_of(const struct back *b, const struct known *k, uint32_t number,
			    char buf[LIST_MAX])
{
	char path[64];
	path_of(number, path);
	if (RP_HAS(b->settings, found) && b->settings->found(b->ctx, path, buf, LIST_MAX) >= 0)
		return buf;
	return is_ours(k) ? k->before : NULL;
}

/*
 * Stores the affinity to decide from: the original one, so that the same wish has the same result
 * whatever was wished before, by this policy, the previous one or the previous process. It is the
 * present one if no module has moved the interrupt, or if another program has moved it since.
 */
static void decide_from(const struct back *b, const struct known *k, uint32_t number,
			const struct rp_idset *now, struct rp_idset *ret)
{
	char buf[LIST_MAX];
	const char *found = is_taken(k, rp_ids_of(now)) ? NULL : found_of(b, k, number, buf);
	if (!found || rp_idset_parse(ret, found, RP_CPUS_MAX))
		rp_idset_copy(ret, rp_ids_of(now));
}

/* Restores an interrupt that is no longer controllable, or that is fine where it was found. */
static void let_go(struct job *j, struct known *k)
{
	if (k)
		irq_restore(j, k);
}

static int32_t irq_move(void *arg, uint32_t number, const char *description)
{
	struct job *j = arg;
	struct back *b = &j->owner->back;
	const struct order *o = j->order;
	struct known *k = find_known(b, number);
	char text[LIST_MAX], wanted[RP_IDSET_TEXT_MAX];
	struct rp_idset now, from, to;
	if (o->n_controllable &&
	    !irq_matches(o->controllable, o->n_controllable, number, description)) {
		let_go(j, k);
		return 0;
	}
	if (read_affinity(b, number, text) < 0 || rp_idset_parse(&now, text, RP_CPUS_MAX))
		return 0;
	decide_from(b, k, number, &now, &from);
	if (!irq_target(j, number, description, rp_ids_of(&from), &to) ||
	    rp_ids_empty(rp_ids_of(&to))) {
		if (!is_taken(k, rp_ids_of(&now)))
			let_go(j, k);
		return 0;
	}
	bool is_there = rp_ids_equal(rp_ids_of(&to), rp_ids_of(&now));
	if (is_there && !b->settings && !is_ours(k))
		return 0;
	k = known_of(b, number);
	if (k && k->stuck)
		return 0;
	bool is_first = k && !k->before;
	(void)rp_ids_format(rp_ids_of(&to), wanted, sizeof wanted);
	/* An interrupt that could not be restored is not moved. */
	if (!k || !irq_do_claim(b, k, text, is_there ? text : wanted)) {
		j->failures++;
		return 0;
	}
	if (is_there)
		return 0;
	if (write_affinity(j, k, wanted)) {
		if (is_first)
			irq_forget(b, k);
		else
			/* the recorded wish was never effective: record the present affinity */
			(void)irq_do_claim(b, k, text, text);
		return 0;
	}
	k->moved = true;
	read_back(j, k, rp_ids_of(&to));
	return 0;
}

static void restore_all(struct job *j)
{
	struct back *b = &j->owner->back;
	for (uint32_t i = 0; i < b->n_known; i++)
		irq_restore(j, &b->known[i]);
}

static int32_t job_run(void *arg)
{
	struct job *j = arg;
	const struct back *b = &j->owner->back;
	if (!j->order->active) {
		restore_all(j);
		return 0;
	}
	char *text = read_table(b->work, b->ctx, &j->error);
	if (text)
		(void)each_line(text, irq_move, j);
	else
		(void)snprintf(j->message, sizeof j->message, TABLE ": %s", strerror(-j->error));
	free(text);
	return 0;
}

/* ---- main thread ----------------------------------------------------------------------------- */

static void job_done(void *arg, int32_t result)
{
	struct job *j = arg;
	struct irq *q = j->owner;
	(void)result;
	q->stats.writes += j->writes;
	q->stats.failures += j->failures;
	if (j->message[0] && !q->complained)
		modhost_log(&q->h, RP_LOG_WARNING, 0, "%s (further ones are not logged)",
			    j->message);
	q->complained = q->complained || j->message[0];
	order_unref(j->order);
	free(j);
}

struct irq *irq_new(const struct modhost *h)
{
	struct irq *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->h = *h;
	q->back = (struct back){.work = h->work, .settings = h->settings, .ctx = h->ctx};
	return q;
}

struct irq *irq_free(struct irq *q)
{
	if (!q)
		return NULL;
	order_unref(q->last);
	for (uint32_t i = 0; i < q->back.n_known; i++) {
		free(q->back.known[i].before);
		free(q->back.known[i].placed);
	}
	free(q->back.known);
	free(q);
	return NULL;
}

void irq_commit(struct irq *q, const struct irq_wish *w)
{
	q->used = q->used || w->active;
	if (!q->used || !q->h.work || (q->last && same_order(q->last, w)))
		return;
	struct order *o = order_new(w);
	struct job *j = o ? calloc(1, sizeof *j) : NULL;
	if (!j) {
		order_unref(o);
		return;
	}
	j->owner = q;
	j->order = o;
	o->refs++;
	order_unref(q->last);
	q->last = o;
	if (!q->h.work->submit(q->h.ctx, job_run, job_done, j))
		return;
	(void)order_unref(q->last);
	q->last = order_unref(j->order);
	free(j);
}

void irq_stop(struct irq *q)
{
	if (q)
		irq_commit(q, &(struct irq_wish){.active = false});
}

void irq_stats(const struct irq *q, struct irq_stats *ret)
{
	*ret = q->stats;
}
