/* SPDX-License-Identifier: Apache-2.0 */
/* What classes say, and which CPUs are in them: all of it on the host's main thread. cpuclass_write.c is the worker's part. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "modules/lib/cpuclass_impl.h"
#include "modules/lib/ctl_queue.h"

#define UNCORE_DIR "/sys/devices/system/cpu/intel_uncore_frequency"

/* ---- definitions --------------------------------------------------------------------------------------------------- */

static rp_cfg get(const struct modhost *h, rp_cfg node, const char *path)
{
	return h->config->get(h->ctx, node, path);
}

static const char *get_text(const struct modhost *h, rp_cfg node, const char *path)
{
	return h->config->text(h->ctx, get(h, node, path), "");
}

static int64_t get_value(const struct modhost *h, rp_cfg node, const char *path, uint32_t type,
			 int64_t fallback)
{
	return h->config->value(h->ctx, get(h, node, path), type, fallback);
}

/* kHz or RP_FREQ_…; 0 when the key is not there. */
static int64_t get_freq(const struct modhost *h, rp_cfg node, const char *path)
{
	static const struct {
		const char *word;
		int64_t value;
	} words[] = {{"min", RP_FREQ_MIN}, {"base", RP_FREQ_BASE}, {"turbo", RP_FREQ_TURBO}};
	const char *text = get_text(h, node, path);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcasecmp(words[i].word, text) == 0)
			return words[i].value;
	return get_value(h, node, path, RP_T_FREQ, 0);
}

static int32_t read_cstates(const struct modhost *h, rp_cfg node, struct cpuclass_def *d)
{
	rp_cfg list = get(h, node, "disabledCstates");
	uint32_t n = h->config->count(h->ctx, list);
	if (n > CPUCLASS_CSTATES_MAX)
		return modhost_fail_at(h, list, -RP_EINVAL, "more than %u idle states",
				       CPUCLASS_CSTATES_MAX);
	for (uint32_t i = 0; i < n; i++)
		d->disabled_cstates[i] =
			h->config->text(h->ctx, h->config->item(h->ctx, list, i), "");
	d->n_disabled_cstates = n;
	return 0;
}

static int32_t read_class(const struct modhost *h, rp_cfg node, const char *name,
			  struct cpuclass_def *d)
{
	const char *pct = get_text(h, node, "pctPriority");
	*d = (struct cpuclass_def){
		.name = name,
		.min_khz = get_freq(h, node, "minFreq"),
		.max_khz = get_freq(h, node, "maxFreq"),
		.uncore_min_khz = get_freq(h, node, "uncoreMinFreq"),
		.uncore_max_khz = get_freq(h, node, "uncoreMaxFreq"),
		.governor = get_text(h, node, "freqGovernor"),
		.epp = get_value(h, node, "energyPerformancePreference", RP_T_INT, 0),
		.turbo_priority = get_value(h, node, "turboPriority", RP_T_INT, 0),
		.pct_high = !*pct ? -1 : strcmp(pct, "high") == 0,
		.clos = (int32_t)get_value(h, node, "sstClosID", RP_T_INT, -1),
		.pct_min_khz = get_freq(h, node, "pctMinFreq"),
		.pct_max_khz = get_freq(h, node, "pctMaxFreq"),
		.publish = get_value(h, node, "publishExtendedResource", RP_T_BOOL, 0) == 1,
	};
	if (!*d->name || strlen(d->name) >= CPUCLASS_NAME_MAX)
		return modhost_fail_at(h, node, -RP_EINVAL,
				       "a CPU class needs a name of at most %u bytes",
				       CPUCLASS_NAME_MAX - 1);
	if (d->min_khz > 0 && d->max_khz > 0 && d->min_khz > d->max_khz)
		return modhost_fail_at(h, node, -RP_EINVAL,
				       "CPU class %s: minFreq is higher than maxFreq", d->name);
	return read_cstates(h, node, d);
}

static int32_t check_pct(const struct modhost *h, rp_cfg node, const struct cpuclass_defs *defs)
{
	const struct cpuclass_def *d = &defs->list[defs->n - 1];
	bool managed = d->pct_high >= 0, associated = d->clos >= 0;
	if (managed && associated)
		return modhost_fail_at(h, node, -RP_EINVAL,
				       "CPU class %s: pctPriority and sstClosID exclude each other",
				       d->name);
	if ((d->pct_min_khz || d->pct_max_khz) && !managed)
		return modhost_fail_at(h, node, -RP_EINVAL,
				       "CPU class %s: pctMinFreq and pctMaxFreq need a pctPriority",
				       d->name);
	if (d->publish && !managed && !associated)
		return modhost_fail_at(
			h, node, -RP_EINVAL,
			"CPU class %s: publishExtendedResource needs pctPriority or sstClosID",
			d->name);
	for (uint32_t i = 0; i + 1 < defs->n; i++) {
		const struct cpuclass_def *o = &defs->list[i];
		if ((managed && o->clos >= 0) || (associated && o->pct_high >= 0))
			return modhost_fail_at(h, node, -RP_EINVAL,
					       "CPU classes %s and %s mix pctPriority and "
					       "sstClosID",
					       o->name, d->name);
		if (managed && o->pct_high == d->pct_high)
			return modhost_fail_at(h, node, -RP_EINVAL,
					       "CPU classes %s and %s have the same pctPriority",
					       o->name, d->name);
	}
	return 0;
}

static int32_t check_uncore(const struct modhost *h, rp_cfg node, const struct cpuclass_def *d)
{
	struct rp_ids online;
	struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
	char path[160], text[64];
	if ((!d->uncore_min_khz && !d->uncore_max_khz) || !h->work)
		return 0;
	if (h->topology->set(h->ctx, RP_CPUS_ONLINE, &online) ||
	    h->topology->cpu(h->ctx, rp_ids_first(online), &info))
		return 0;
	(void)snprintf(path, sizeof path, UNCORE_DIR "/package_%02u_die_%02u/max_freq_khz",
		       info.package_id, info.die_id);
	if (h->work->read_file(h->ctx, path, text, sizeof text) >= 0)
		return 0;
	return modhost_fail_at(h, node, -RP_EINVAL,
			       "CPU class %s has uncore frequencies, but the kernel has no uncore "
			       "frequency driver loaded",
			       d->name);
}

int32_t cpuclass_read(const struct modhost *h, rp_cfg section, struct cpuclass_defs *ret)
{
	rp_cfg list = get(h, section, "cpuClasses");
	uint32_t n = h->config->count(h->ctx, list);
	bool speed_select = false;
	ret->n = 0;
	ret->turbo_system = strcmp(get_text(h, section, "turboDomain"), "system") == 0;
	if (n > CPUCLASS_MAX)
		return modhost_fail_at(h, list, -RP_EINVAL, "more than %u CPU classes",
				       CPUCLASS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg node = h->config->item(h->ctx, list, i);
		struct cpuclass_def *d = &ret->list[i];
		int32_t r = read_class(h, node, get_text(h, node, "name"), d);
		if (!r && cpuclass_find(ret, d->name) != CPUCLASS_NONE)
			r = modhost_fail_at(h, node, -RP_EINVAL, "two CPU classes are named \"%s\"",
					    d->name);
		ret->n++;
		if (!r)
			r = check_pct(h, node, ret);
		if (!r)
			r = check_uncore(h, node, d);
		if (r)
			return r;
		speed_select = speed_select || d->pct_high >= 0 || d->clos >= 0;
	}
	if (speed_select)
		modhost_log(h, RP_LOG_WARNING, 0,
			    "pctPriority and sstClosID have no effect: Speed Select is not "
			    "available");
	return 0;
}

/* ---- the older form ------------------------------------------------------------------------------------------------ */

static bool same_states(const struct cpuclass_def *a, const struct cpuclass_def *b)
{
	if (a->n_disabled_cstates != b->n_disabled_cstates)
		return false;
	for (uint32_t i = 0; i < a->n_disabled_cstates; i++)
		if (strcmp(a->disabled_cstates[i], b->disabled_cstates[i]) != 0)
			return false;
	return true;
}

/* In what the older form can say. */
static bool same_class(const struct cpuclass_def *a, const struct cpuclass_def *b)
{
	return a->min_khz == b->min_khz && a->max_khz == b->max_khz &&
	       a->uncore_min_khz == b->uncore_min_khz && a->uncore_max_khz == b->uncore_max_khz &&
	       a->epp == b->epp && strcmp(a->governor, b->governor) == 0 && same_states(a, b);
}

static int32_t add_old(const struct modhost *h, rp_cfg node, const char *name,
		       struct cpuclass_defs *defs)
{
	struct cpuclass_def d;
	uint32_t known = cpuclass_find(defs, name);
	int32_t r = read_class(h, node, name, &d);
	if (r)
		return r;
	if (known != CPUCLASS_NONE) {
		if (!same_class(&defs->list[known], &d))
			modhost_log(h, RP_LOG_WARNING, 0,
				    "CPU class %s is defined twice: what cpuClasses says counts",
				    name);
		return 0;
	}
	if (defs->n == CPUCLASS_MAX)
		return modhost_fail_at(h, node, -RP_EINVAL, "more than %u CPU classes",
				       CPUCLASS_MAX);
	defs->list[defs->n++] = d;
	return check_uncore(h, node, &d);
}

/* The member whose name comes next after one; NULL: none does. */
static const char *next_name(const struct modhost *h, rp_cfg map, const char *after, uint32_t *ret)
{
	const char *next = NULL;
	uint32_t n = h->config->count(h->ctx, map);
	for (uint32_t i = 0; i < n; i++) {
		const char *name = h->config->key(h->ctx, map, i);
		if ((after && strcmp(name, after) <= 0) || (next && strcmp(name, next) >= 0))
			continue;
		next = name;
		*ret = i;
	}
	return next;
}

int32_t cpuclass_read_old(const struct modhost *h, rp_cfg map, struct cpuclass_defs *defs)
{
	uint32_t at = 0;
	const char *name = NULL;
	int32_t r = 0;
	while (!r && (name = next_name(h, map, name, &at)))
		r = add_old(h, h->config->item(h->ctx, map, at), name, defs);
	return r;
}

uint32_t cpuclass_find(const struct cpuclass_defs *defs, const char *name)
{
	for (uint32_t i = 0; i < defs->n; i++)
		if (strcmp(defs->list[i].name, name) == 0)
			return i;
	return CPUCLASS_NONE;
}

/* ---- definitions that outlive a configuration ---------------------------------------------------------------------- */

static char *own(struct rules *r, const char *text)
{
	char *copy = strdup(text);
	if (copy && r->n_texts < RULES_TEXTS)
		r->texts[r->n_texts++] = copy;
	return copy;
}

static struct rules *rules_unref(struct rules *r)
{
	if (!r || --r->refs)
		return NULL;
	for (uint32_t i = 0; i < r->n_texts; i++)
		free(r->texts[i]);
	free(r);
	return NULL;
}

static struct rules *rules_new(const struct cpuclass_defs *defs)
{
	struct rules *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->refs = 1;
	r->defs = *defs;
	bool ok = true;
	for (uint32_t i = 0; i < defs->n; i++) {
		struct cpuclass_def *d = &r->defs.list[i];
		d->name = own(r, d->name);
		d->governor = own(r, d->governor);
		ok = ok && d->name && d->governor;
		for (uint32_t k = 0; k < d->n_disabled_cstates; k++) {
			d->disabled_cstates[k] = own(r, d->disabled_cstates[k]);
			ok = ok && d->disabled_cstates[k];
		}
	}
	return ok ? r : rules_unref(r);
}

/* ---- CPUs ---------------------------------------------------------------------------------------------------------- */

#define NOT_DONE UINT16_MAX

struct seat {
	uint32_t package, die; /* index of the die in c->dies */
	uint16_t wanted, done; /* class + 1 (0: none); done also says whether with turbo */
	bool allowed, failed, again;
};
#define WITH_TURBO 0x8000u

struct die {
	uint32_t package, die;
	uint64_t classes, done; /* those with CPUs here; bit 63 of a full set is a class as well */
	bool known, again;
};

struct cpuclass {
	struct modhost h;
	struct rules *rules;
	struct cpuclass_back *back;
	struct seat *seats;
	uint32_t n_seats;
	struct die *dies;
	uint32_t n_dies;
	bool used; /* classes were defined once: from then on there may be something to take back */
	struct cpuclass_stats stats;
	uint32_t complained; /* WHAT_… that were logged already */
	/* Attempts by the clock. */
	uint64_t cookie; /* 0: none */
	void (*done)(void *arg);
	void *arg;
	uint32_t n_tries; /* that have failed in a row */
	uint32_t n_failing, n_again; /* CPUs; CPUs and dies that are worth another attempt */
	char why[320];
};

struct cpuclass *cpuclass_new(const struct modhost *h)
{
	struct cpuclass *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->h = *h;
	c->back = cpuclass_back_new(h);
	return c->back ? c : cpuclass_free(c);
}

struct cpuclass *cpuclass_free(struct cpuclass *c)
{
	if (!c)
		return NULL;
	rules_unref(c->rules);
	cpuclass_back_free(c->back);
	free(c->seats);
	free(c->dies);
	free(c);
	return NULL;
}

static uint32_t die_of(struct cpuclass *c, uint32_t package, uint32_t die)
{
	for (uint32_t i = 0; i < c->n_dies; i++)
		if (c->dies[i].package == package && c->dies[i].die == die)
			return i;
	c->dies[c->n_dies] = (struct die){.package = package, .die = die};
	return c->n_dies++;
}

static int32_t take_seats(struct cpuclass *c, struct rp_ids allowed)
{
	struct rp_ids online;
	if (c->h.topology->set(c->h.ctx, RP_CPUS_ONLINE, &online) || rp_ids_empty(online))
		return -RP_EINVAL;
	uint32_t n = rp_ids_last(online) + 1;
	struct seat *seats = calloc(n, sizeof *seats);
	struct die *dies = calloc(rp_ids_count(online), sizeof *dies);
	if (!seats || !dies) {
		free(seats);
		free(dies);
		return -RP_ENOMEM;
	}
	free(c->seats);
	free(c->dies);
	c->seats = seats;
	c->dies = dies;
	c->n_seats = n;
	c->n_dies = 0;
	RP_IDS_EACH (cpu, online) {
		struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
		if (c->h.topology->cpu(c->h.ctx, cpu, &info))
			continue;
		seats[cpu] = (struct seat){
			.package = info.package_id,
			.die = die_of(c, info.package_id, info.die_id),
			.done = NOT_DONE,
			.allowed = rp_ids_has(allowed, cpu),
		};
	}
	return 0;
}

int32_t cpuclass_configure(struct cpuclass *c, const struct cpuclass_defs *defs,
			   struct rp_ids allowed)
{
	c->used = c->used || defs->n;
	if (!c->used)
		return 0;
	struct rules *rules = rules_new(defs);
	if (!rules)
		return -RP_ENOMEM;
	int32_t r = take_seats(c, allowed);
	if (r) {
		rules_unref(rules);
		return r;
	}
	rules_unref(c->rules);
	c->rules = rules;
	c->complained = 0;
	c->n_failing = c->n_again = c->n_tries = 0;
	return 0;
}

void cpuclass_use(struct cpuclass *c, uint32_t class, struct rp_ids cpus)
{
	uint16_t wanted = class == CPUCLASS_NONE ? 0 : (uint16_t)(class + 1);
	if (!c->rules)
		return;
	RP_IDS_EACH (cpu, cpus)
		if (cpu < c->n_seats && c->seats[cpu].allowed)
			c->seats[cpu].wanted = wanted;
}

uint32_t cpuclass_of(const struct cpuclass *c, uint32_t cpu)
{
	if (cpu >= c->n_seats || !c->seats[cpu].wanted)
		return CPUCLASS_NONE;
	return c->seats[cpu].wanted - 1u;
}

void cpuclass_retry(struct cpuclass *c, uint64_t cookie, void (*done)(void *arg), void *arg)
{
	c->cookie = cookie;
	c->done = done;
	c->arg = arg;
}

void cpuclass_timer(struct cpuclass *c, uint64_t cookie)
{
	if (c->cookie && cookie == c->cookie)
		cpuclass_commit(c);
}

uint32_t cpuclass_n_failing(const struct cpuclass *c)
{
	return c->n_failing;
}

bool cpuclass_fails(const struct cpuclass *c, uint32_t cpu)
{
	return cpu < c->n_seats && c->seats[cpu].failed;
}

const char *cpuclass_why(const struct cpuclass *c)
{
	return c->n_failing ? c->why : "";
}

void cpuclass_stats(const struct cpuclass *c, struct cpuclass_stats *ret)
{
	*ret = c->stats;
}

/* ---- commit -------------------------------------------------------------------------------------------------------- */

static int64_t turbo_of(const struct cpuclass *c, uint64_t classes)
{
	int64_t winner = 0;
	for (uint32_t i = 0; i < c->rules->defs.n; i++)
		if ((classes >> i & 1) && c->rules->defs.list[i].turbo_priority > winner)
			winner = c->rules->defs.list[i].turbo_priority;
	return winner;
}

/* Classes with CPUs in the turbo domain of a die. */
static uint64_t domain_of(const struct cpuclass *c, const struct die *d)
{
	uint64_t classes = 0;
	for (uint32_t i = 0; i < c->n_dies; i++)
		if (c->rules->defs.turbo_system || c->dies[i].package == d->package)
			classes |= c->dies[i].classes;
	return classes;
}

static void count_classes(struct cpuclass *c)
{
	for (uint32_t i = 0; i < c->n_dies; i++)
		c->dies[i].classes = 0;
	for (uint32_t i = 0; i < c->n_seats; i++)
		if (c->seats[i].wanted)
			c->dies[c->seats[i].die].classes |= UINT64_C(1) << (c->seats[i].wanted - 1);
}

/* What a CPU should be done as. */
static uint16_t aim(const struct cpuclass *c, const struct seat *s, const int64_t *winners)
{
	if (!s->wanted)
		return 0;
	int64_t winner = winners[s->die];
	bool turbo = !winner || c->rules->defs.list[s->wanted - 1].turbo_priority >= winner;
	return (uint16_t)(s->wanted | (turbo ? WITH_TURBO : 0u));
}

static void add_cpus(struct cpuclass *c, struct cpuclass_job *job, const int64_t *winners)
{
	for (uint32_t i = 0; i < c->n_seats; i++) {
		struct seat *s = &c->seats[i];
		uint16_t to = aim(c, s, winners);
		if (!s->allowed || s->done == to)
			continue;
		job->cpus[job->n_cpus++] = (struct cpuclass_cpu){
			.cpu = i,
			.class = s->wanted ? s->wanted - 1u : CPUCLASS_NONE,
			.turbo = to & WITH_TURBO,
		};
		s->done = to;
	}
}

static void add_dies(struct cpuclass *c, struct cpuclass_job *job)
{
	for (uint32_t i = 0; i < c->n_dies; i++) {
		struct die *d = &c->dies[i];
		if (d->known && d->classes == d->done)
			continue;
		job->dies[job->n_dies++] = (struct cpuclass_die){
			.package = d->package, .die = d->die, .classes = d->classes};
		d->known = true;
		d->done = d->classes;
	}
}

static void free_job(struct cpuclass_job *job)
{
	rules_unref(job->rules);
	free(job->cpus);
	free(job->dies);
	free(job);
}

static void arm(struct cpuclass *c, uint64_t delay_ms)
{
	if (c->cookie && c->h.timer)
		(void)c->h.timer->arm(c->h.ctx, c->cookie, delay_ms);
}

static const char *first_message(const struct cpuclass_job *job)
{
	for (uint32_t i = 0; i < N_WHATS; i++)
		if (job->messages[i][0])
			return job->messages[i];
	return "out of memory";
}

/* A job that had nothing to do with what is tried again, as that was not known yet, changes nothing about it. */
static void try_again(struct cpuclass *c, const struct cpuclass_job *job, bool failed, bool again)
{
	const char *more = "";
	if (!c->n_again && c->n_tries) {
		c->n_tries = 0;
		arm(c, 0);
	}
	if (again && c->cookie && c->h.timer) {
		uint64_t delay = (uint64_t)CTL_AGAIN_FIRST_MS << c->n_tries;
		bool last = ++c->n_tries >= CTL_TRIES_MAX;
		more = last ? "; given up" : "; trying again";
		if (delay > CTL_AGAIN_LAST_MS)
			delay = CTL_AGAIN_LAST_MS;
		arm(c, last ? 0 : delay);
		/* What happens next is a chance of its own. */
		c->n_tries = last ? CTL_TRIES_MAX - 1 : c->n_tries;
	}
	if (failed)
		(void)snprintf(c->why, sizeof c->why, "%s%s", first_message(job), more);
}

static bool take_cpu(struct cpuclass *c, const struct cpuclass_cpu *cpu)
{
	if (cpu->cpu >= c->n_seats)
		return false;
	struct seat *s = &c->seats[cpu->cpu];
	c->n_failing += (uint32_t)cpu->failed - s->failed;
	c->n_again += (uint32_t)cpu->again - s->again;
	s->failed = cpu->failed;
	s->again = cpu->again;
	if (cpu->again)
		s->done = NOT_DONE;
	return cpu->failed;
}

static void take_die(struct cpuclass *c, const struct cpuclass_die *die)
{
	for (uint32_t i = 0; i < c->n_dies; i++) {
		struct die *d = &c->dies[i];
		if (d->package != die->package || d->die != die->die)
			continue;
		c->n_again += (uint32_t)die->again - d->again;
		d->again = die->again;
		d->known = d->known && !die->again;
	}
}

static void take_results(struct cpuclass *c, const struct cpuclass_job *job)
{
	bool failed = false, again = false;
	for (uint32_t i = 0; i < job->n_cpus; i++) {
		failed |= take_cpu(c, &job->cpus[i]);
		again |= job->cpus[i].again;
	}
	for (uint32_t i = 0; i < job->n_dies; i++) {
		take_die(c, &job->dies[i]);
		again |= job->dies[i].again;
	}
	try_again(c, job, failed, again);
}

/* [main] */
static void job_done(void *arg, int32_t result)
{
	struct cpuclass_job *job = arg;
	struct cpuclass *c = job->owner;
	(void)result;
	c->stats.writes += job->writes;
	c->stats.failures += job->failures;
	c->stats.differing += job->differing;
	take_results(c, job);
	for (uint32_t i = 0; i < N_WHATS; i++) {
		if (!job->messages[i][0] || (c->complained >> i & 1))
			continue;
		c->complained |= 1u << i;
		modhost_log(&c->h, RP_LOG_WARNING, 0, "%s (further ones like it are not logged)",
			    job->messages[i]);
	}
	free_job(job);
	if (c->done)
		c->done(c->arg);
}

static struct cpuclass_job *new_job(struct cpuclass *c)
{
	struct cpuclass_job *job = calloc(1, sizeof *job);
	if (!job)
		return NULL;
	job->owner = c;
	job->back = c->back;
	job->rules = c->rules;
	c->rules->refs++;
	job->cpus = calloc(c->n_seats, sizeof *job->cpus);
	job->dies = calloc(c->n_dies, sizeof *job->dies);
	if (job->cpus && job->dies)
		return job;
	free_job(job);
	return NULL;
}

static bool something_to_do(const struct cpuclass *c, const int64_t *winners)
{
	for (uint32_t i = 0; i < c->n_seats; i++)
		if (c->seats[i].allowed && c->seats[i].done != aim(c, &c->seats[i], winners))
			return true;
	for (uint32_t i = 0; i < c->n_dies; i++)
		if (!c->dies[i].known || c->dies[i].classes != c->dies[i].done)
			return true;
	return false;
}

static void submit(struct cpuclass *c, struct cpuclass_job *job)
{
	if (!c->h.work->submit(c->h.ctx, cpuclass_run, job_done, job))
		return;
	for (uint32_t i = 0; i < job->n_cpus; i++)
		c->seats[job->cpus[i].cpu].done = NOT_DONE;
	for (uint32_t i = 0; i < c->n_dies; i++)
		c->dies[i].known = false;
	free_job(job);
}

void cpuclass_commit(struct cpuclass *c)
{
	if (!c->rules || !c->h.work || !c->n_dies)
		return;
	int64_t *winners = calloc(c->n_dies, sizeof *winners);
	struct cpuclass_job *job = NULL;
	count_classes(c);
	for (uint32_t i = 0; winners && i < c->n_dies; i++)
		winners[i] = turbo_of(c, domain_of(c, &c->dies[i]));
	if (winners && something_to_do(c, winners))
		job = new_job(c);
	if (job) {
		add_cpus(c, job, winners);
		add_dies(c, job);
		submit(c, job);
	}
	free(winners);
}
