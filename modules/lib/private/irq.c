/* SPDX-License-Identifier: Apache-2.0 */
/* Affinity of interrupts: parsing of /proc/interrupts, a policy's rules, and the worker's
 * decision about each interrupt. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/glob.h>
#include "modules/lib/private/irq.h"
#include "modules/lib/private/room.h"
#include <nri-rp/lib/section.h>

#define TABLE "/proc/interrupts"
#define CLOSED " (the shipped service needs interrupts.conf, see nri-rpd(8))"
#define TABLE_FIRST (256u << 10)
#define TABLE_MAX (64u << 20)
#define NUMBER_MAX 65536u /* limit of interrupt numbers */
#define PATH_MAX_SIZE 40u
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
			r = modhost_refuse(h, h->config->item(h->ctx, list, i),
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
	struct irq_name **end;
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
	size_t len = strlen(description) + 1;
	for (uint32_t i = 0; i < s->controllable->n; i++)
		if (is_about(s->controllable->list[i], number, description))
			return 0;
	if (!s->controllable->n)
		return 0;
	struct irq_name *name = blocks_alloc(s->memory, 1, sizeof *name + len);
	if (!name)
		return -RP_ENOMEM;
	name->number = number;
	memcpy(name->description, description, len);
	*s->end = name;
	s->end = &name->next;
	return 0;
}

int32_t irq_read_denied(const struct modhost *h, struct blocks *memory,
			const struct texts *controllable, struct irq_name **ret)
{
	struct denied_search s = {memory, controllable, ret};
	*ret = NULL;
	return irq_each(h, add_denied, &s);
}

const struct irq_name *irq_find_denied(const struct irq_name *denied, const char *pattern)
{
	while (denied && !is_about(pattern, denied->number, denied->description))
		denied = denied->next;
	return denied;
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct irq_rule {
	struct irq_rule *next;
	enum irq_kind kind;
	struct rp_idset cpus;
	size_t size; /* bytes of the patterns, which end with a NUL each */
	char patterns[];
};

static struct irq_rules *irq_rules_unref(struct irq_rules *r)
{
	if (!r || --r->refs)
		return NULL;
	blocks_fini(&r->memory);
	free(r);
	return NULL;
}

struct irq_rules *irq_rules_new(bool active, struct rp_ids allowed)
{
	struct irq_rules *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->refs = 1;
	r->active = active;
	rp_idset_copy(&r->allowed, allowed);
	return r;
}

void irq_rules_add(struct irq_rules *r, enum irq_kind kind, const struct texts *patterns,
		   struct rp_ids cpus)
{
	size_t size = 0;
	for (uint32_t i = 0; i < patterns->n; i++)
		size += strlen(patterns->list[i]) + 1;
	struct irq_rule *rule = r && size ? blocks_alloc(&r->memory, 1, sizeof *rule + size) : NULL;
	if (r && size && !rule)
		r->failed = true;
	if (!rule)
		return;
	rule->kind = kind;
	rp_idset_copy(&rule->cpus, cpus);
	for (uint32_t i = 0; i < patterns->n; i++) {
		size_t len = strlen(patterns->list[i]) + 1;
		memcpy(rule->patterns + rule->size, patterns->list[i], len);
		rule->size += len;
	}
	r->active |= kind != IRQ_CONTROLLABLE;
	r->limited |= kind == IRQ_CONTROLLABLE;
	rule->next = r->first;
	r->first = rule;
}

static bool irq_sets_equal(const struct rp_idset *a, const struct rp_idset *b)
{
	return rp_ids_equal(rp_ids_of(a), rp_ids_of(b));
}

static bool irq_rules_equal(const struct irq_rules *a, const struct irq_rules *b)
{
	const struct irq_rule *x = a->first, *y = b->first;
	while (x && y && x->kind == y->kind && x->size == y->size &&
	       !memcmp(x->patterns, y->patterns, x->size) && irq_sets_equal(&x->cpus, &y->cpus)) {
		x = x->next;
		y = y->next;
	}
	return !x && !y && a->active == b->active && irq_sets_equal(&a->sink, &b->sink) &&
	       irq_sets_equal(&a->isolate, &b->isolate) && irq_sets_equal(&a->allowed, &b->allowed);
}

/* ---- the worker ------------------------------------------------------------------------------ */

/* An interrupt of the table: the worker's record. */
struct known {
	uint32_t number;
	bool stuck;
	bool moved; /* true: the module has moved the interrupt since `before` */
	char path[PATH_MAX_SIZE];
	char *before; /* affinity before the first move; NULL: no rule concerns this interrupt */
	char *placed; /* affinity after the move, as text */
};

struct irq {
	struct modhost h;
	struct known *known; /* by ascending numbers; used by the worker only */
	uint32_t n_known, cap_known;
	struct irq_rules *last;
	bool complained;
	struct irq_stats stats;
};

struct job {
	struct irq *owner;
	struct irq_rules *rules;
	uint64_t writes, failures;
	char message[256];
};

static struct known *known_of(struct irq *q, uint32_t number)
{
	uint32_t at = 0, end = q->n_known;
	while (at < end) {
		uint32_t middle = (at + end) / 2;
		if (q->known[middle].number < number)
			at = middle + 1;
		else
			end = middle;
	}
	struct known *k = &q->known[at];
	if (at < q->n_known && k->number == number)
		return k;
	if (!room_for(&q->known, &q->cap_known, q->n_known + 1, sizeof *q->known))
		return NULL;
	k = &q->known[at];
	memmove(k + 1, k, (q->n_known++ - at) * sizeof *k);
	*k = (struct known){.number = number};
	(void)snprintf(k->path, sizeof k->path, "/proc/irq/%u/smp_affinity_list", number);
	return k;
}

/* Returns the next rule of a kind that names the interrupt, from `r` on; NULL: none. */
static const struct irq_rule *irq_next_rule(const struct irq_rule *r, enum irq_kind kind,
					    uint32_t number, const char *description)
{
	for (; r; r = r->next)
		for (size_t at = 0; r->kind == kind && at < r->size;
		     at += strlen(r->patterns + at) + 1)
			if (is_about(r->patterns + at, number, description))
				return r;
	return NULL;
}

#define EACH_RULE(r, rules, kind)                                                                  \
	for (const struct irq_rule *r = irq_next_rule((rules)->first, kind, number, description);  \
	     r; r = irq_next_rule(r->next, kind, number, description))

/* Removes masked CPUs from the claimed ones, or from the allowed ones without a claim. False: no
 * mask applies to the interrupt. */
static bool irq_do_mask(const struct irq_rules *o, uint32_t number, const char *description,
			struct rp_idset *claimed)
{
	struct rp_idset to;
	bool any = false;
	rp_idset_copy(&to, rp_ids_of(&o->allowed));
	if (!rp_ids_empty(rp_ids_of(claimed)))
		rp_idset_and(&to, rp_ids_of(&to), rp_ids_of(claimed));
	EACH_RULE (m, o, IRQ_STRICT_MASK) {
		any = true;
		rp_idset_andnot(&to, rp_ids_of(&to), rp_ids_of(&m->cpus));
	}
	EACH_RULE (m, o, IRQ_MASK) {
		struct rp_idset off;
		any = true;
		rp_idset_andnot(&off, rp_ids_of(&m->cpus), rp_ids_of(claimed));
		rp_idset_andnot(&to, rp_ids_of(&to), rp_ids_of(&off));
	}
	if (any)
		rp_idset_copy(claimed, rp_ids_of(&to));
	return any;
}

/* Determines the affinity for an interrupt with the affinity `now`. False: the affinity need not
 * change. */
static bool irq_target(const struct irq_rules *o, uint32_t number, const char *description,
		       struct rp_ids now, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	EACH_RULE (c, o, IRQ_CLAIM)
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&c->cpus));
	if (irq_do_mask(o, number, description, ret) || !rp_ids_empty(rp_ids_of(ret)))
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

/* Returns true for errors that another attempt cannot mend, such as errors of kernel-managed
 * interrupts. */
static bool is_final(int32_t error)
{
	return error == -EPERM || error == -EACCES || error == -EIO || error == -EROFS;
}

static int32_t write_affinity(struct job *j, struct known *k, const char *text)
{
	const struct modhost *h = &j->owner->h;
	int32_t r = h->work->write_file(h->ctx, k->path, text);
	if (!r) {
		j->writes++;
		return 0;
	}
	k->stuck = is_final(r);
	j->failures++;
	if (!j->message[0])
		(void)snprintf(j->message, sizeof j->message, "%s: writing %.100s: %s%s", k->path,
			       text, strerror(-r), r == -EROFS ? CLOSED : "");
	return r;
}

/* Reads an affinity without the newline. */
static int32_t read_affinity(const struct modhost *h, const struct known *k, char text[LIST_MAX])
{
	int32_t r = h->work->read_file(h->ctx, k->path, text, LIST_MAX);
	if (r >= 0)
		text[strcspn(text, "\n")] = '\0';
	return r;
}

static void read_back(struct job *j, struct known *k, struct rp_ids wanted)
{
	char text[LIST_MAX];
	struct rp_idset has;
	if (read_affinity(&j->owner->h, k, text) < 0 || rp_idset_parse(&has, text, RP_CPUS_MAX) ||
	    rp_ids_equal(rp_ids_of(&has), wanted))
		return;
	char *placed = strdup(text);
	if (placed) {
		free(k->placed);
		k->placed = placed;
	}
	j->failures++;
	if (!j->message[0])
		(void)snprintf(j->message, sizeof j->message,
			       "%s: the kernel changed the value to %.100s", k->path, text);
}

/* Returns the affinity to restore; NULL: none. */
static const char *rest_of(const struct modhost *h, const struct known *k, char buf[LIST_MAX])
{
	if (!h->settings)
		return k->before;
	return h->settings->without(h->ctx, k->path, buf, LIST_MAX) < 0 ? NULL : buf;
}

static void irq_forget(const struct modhost *h, struct known *k)
{
	if (h->settings)
		h->settings->drop(h->ctx, k->path);
	free(k->before);
	free(k->placed);
	k->before = k->placed = NULL;
	k->moved = false;
}

/* Restores an interrupt that no rule concerns, or that may no longer be moved. */
static void irq_restore(struct job *j, struct known *k)
{
	const struct modhost *h = &j->owner->h;
	char now[LIST_MAX], buf[LIST_MAX];
	if (!k->before || k->stuck)
		return;
	const char *rest = rest_of(h, k, buf);
	/* If no module moved it, a different affinity was set deliberately by another program and
	 * is kept. */
	bool is_due = rest && (k->moved || strcmp(rest, k->before) != 0);
	if (is_due && read_affinity(h, k, now) >= 0 && strcmp(now, rest) != 0 &&
	    write_affinity(j, k, rest))
		return;
	irq_forget(h, k);
}

/* Records the wanted affinity with the host, even if it is already effective: the module that set
 * it may end. False: out of memory; the interrupt could not be restored later. */
static bool irq_do_claim(const struct modhost *h, struct known *k, const char *now,
			 const char *wanted)
{
	char *placed = strdup(wanted), *before = k->before ? k->before : strdup(now);
	if (!placed || !before ||
	    (h->settings && h->settings->keep(h->ctx, k->path, wanted, before))) {
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

/* Returns true if another program has moved the interrupt since. */
static bool is_taken(const struct known *k, struct rp_ids now)
{
	struct rp_idset placed;
	return k->before && (rp_idset_parse(&placed, k->placed, RP_CPUS_MAX) ||
			     !rp_ids_equal(rp_ids_of(&placed), now));
}

/*
 * Stores the affinity to decide from: the original one, so that equal rules have equal results
 * whatever rules came before, of this policy, the previous one or the previous process. It is the
 * present one if no module has moved the interrupt, or if another program has moved it since.
 */
static void decide_from(const struct modhost *h, const struct known *k, const struct rp_idset *now,
			struct rp_idset *ret)
{
	char buf[LIST_MAX];
	const char *found = k->before;
	if (RP_HAS(h->settings, found) && h->settings->found(h->ctx, k->path, buf, LIST_MAX) >= 0)
		found = buf;
	if (!found || is_taken(k, rp_ids_of(now)) || rp_idset_parse(ret, found, RP_CPUS_MAX))
		rp_idset_copy(ret, rp_ids_of(now));
}

static int32_t irq_move(void *arg, uint32_t number, const char *description)
{
	struct job *j = arg;
	const struct irq_rules *o = j->rules;
	const struct modhost *h = &j->owner->h;
	struct known *k = known_of(j->owner, number);
	char text[LIST_MAX], wanted[RP_IDSET_TEXT_MAX];
	struct rp_idset now, from, to;
	if (!k) {
		j->failures++;
		return 0;
	}
	if (o->limited && !irq_next_rule(o->first, IRQ_CONTROLLABLE, number, description)) {
		irq_restore(j, k);
		return 0;
	}
	if (read_affinity(h, k, text) < 0 || rp_idset_parse(&now, text, RP_CPUS_MAX))
		return 0;
	decide_from(h, k, &now, &from);
	bool is_due = irq_target(o, number, description, rp_ids_of(&from), &to);
	if (is_due && rp_ids_empty(rp_ids_of(&to)) && !j->message[0])
		(void)snprintf(j->message, sizeof j->message,
			       "%s: the claims, masks and isolated CPUs of containers leave no CPU "
			       "for the interrupt, so it is not moved",
			       k->path);
	if (!is_due || rp_ids_empty(rp_ids_of(&to))) {
		if (!is_taken(k, rp_ids_of(&now)))
			irq_restore(j, k);
		return 0;
	}
	bool is_there = irq_sets_equal(&to, &now), is_first = !k->before;
	if (k->stuck || (is_there && !h->settings && is_first))
		return 0;
	(void)rp_ids_format(rp_ids_of(&to), wanted, sizeof wanted);
	/* An interrupt that could not be restored is not moved. */
	if (!irq_do_claim(h, k, text, is_there ? text : wanted)) {
		j->failures++;
		return 0;
	}
	if (is_there)
		return 0;
	if (write_affinity(j, k, wanted)) {
		if (is_first)
			irq_forget(h, k);
		else
			/* the recorded affinity was never effective: record the present one */
			(void)irq_do_claim(h, k, text, text);
		return 0;
	}
	k->moved = true;
	read_back(j, k, rp_ids_of(&to));
	return 0;
}

static int32_t job_run(void *arg)
{
	struct job *j = arg;
	struct irq *q = j->owner;
	int32_t r = 0;
	if (!j->rules->active) {
		for (uint32_t i = 0; i < q->n_known; i++)
			irq_restore(j, &q->known[i]);
		return 0;
	}
	char *text = read_table(q->h.work, q->h.ctx, &r);
	if (text)
		(void)each_line(text, irq_move, j);
	else
		(void)snprintf(j->message, sizeof j->message, TABLE ": %s", strerror(-r));
	free(text);
	return 0;
}

/* ---- main thread ----------------------------------------------------------------------------- */

static void job_done(void *arg, int32_t result)
{
	struct job *j = arg;
	struct irq *q = j->owner;
	q->stats.writes += j->writes;
	q->stats.failures += j->failures;
	if (j->message[0] && !q->complained)
		modhost_log(&q->h, RP_LOG_WARNING, 0, "%s (further ones are not logged)",
			    j->message);
	q->complained = q->complained || j->message[0];
	irq_rules_unref(j->rules);
	free(j);
}

struct irq *irq_free(struct irq *q)
{
	if (!q)
		return NULL;
	irq_rules_unref(q->last);
	for (uint32_t i = 0; i < q->n_known; i++) {
		free(q->known[i].before);
		free(q->known[i].placed);
	}
	free(q->known);
	free(q);
	return NULL;
}

/* Returns true if the rules change nothing. */
static bool irq_is_settled(const struct irq *q, const struct modhost *h, const struct irq_rules *r)
{
	if (!r || r->failed)
		return false;
	return !h->work || (q ? q->last && irq_rules_equal(q->last, r) : !r->active);
}

static struct irq *irq_new(const struct modhost *h)
{
	struct irq *q = calloc(1, sizeof *q);
	if (q)
		q->h = *h;
	return q;
}

void irq_commit(struct irq **q, const struct modhost *h, struct irq_rules *r)
{
	if (irq_is_settled(*q, h, r)) {
		irq_rules_unref(r);
		return;
	}
	if (r && !*q)
		*q = irq_new(h);
	struct job *j = r && !r->failed && *q ? calloc(1, sizeof *j) : NULL;
	if (!j) {
		irq_rules_unref(r);
		modhost_log(h, RP_LOG_ERROR, 0, "out of memory: interrupts are not moved");
		return;
	}
	*j = (struct job){.owner = *q, .rules = r};
	r->refs++;
	irq_rules_unref((*q)->last);
	(*q)->last = r;
	if (!h->work->submit(h->ctx, job_run, job_done, j))
		return;
	r->refs--;
	(*q)->last = irq_rules_unref(r);
	free(j);
}

void irq_stop(struct irq *q)
{
	if (q)
		irq_commit(&q, &q->h, irq_rules_new(false, rp_ids_none()));
}

void irq_stats(const struct irq *q, struct irq_stats *ret)
{
	*ret = q ? q->stats : (struct irq_stats){0};
}
