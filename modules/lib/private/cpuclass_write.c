/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part of cpuclass: writes the files of classes. Each file is read first and written
 * only if its value differs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "modules/lib/private/cpuclass_impl.h"

#define CPU_DIR "/sys/devices/system/cpu"
#define UNCORE_DIR CPU_DIR "/intel_uncore_frequency"
#define VALUE_MAX 64u
#define CSTATES_SEEN_MAX 32u
#define CPU_LIST_MAX 4096u /* size of a buffer for a list of CPUs, the limit of sysfs */

/* The value of a file before its first change. Changes by other modules since then are recorded by
 * the host, if it has settings/1. */
struct before {
	bool taken;
	char text[VALUE_MAX];
};

/* Values of a CPU's class for files that CPUs may share. 0 and "": not set. */
struct wish {
	int64_t min_khz, max_khz, epp;
	uint32_t class;
	char governor[VALUE_MAX];
};

/* Recorded values of a CPU. Those of frequencies belong to all CPUs of a cpufreq policy and are
 * recorded at its first CPU only. */
struct cpu_known {
	struct before min, max, governor, epp;
	struct before cstates[CSTATES_SEEN_MAX];
	struct wish wish;
};

struct die_known {
	uint32_t package, die;
	struct before min, max;
};

struct cpuclass_back {
	const struct rp_host_work *work;
	/* host service for settings; NULL: an older host without it */
	const struct rp_host_settings *settings;
	void *ctx;
	struct cpu_known *cpus[RP_CPUS_MAX];
	struct die_known *dies;
	uint32_t n_dies;
	bool cstates; /* a class disabled C-states once */
};

struct cpuclass_back *cpuclass_back_new(const struct modhost *h)
{
	struct cpuclass_back *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->work = h->work;
	b->settings = h->settings;
	b->ctx = h->ctx;
	return b;
}

void cpuclass_back_free(struct cpuclass_back *b)
{
	for (uint32_t i = 0; b && i < RP_CPUS_MAX; i++)
		free(b->cpus[i]);
	if (b)
		free(b->dies);
	free(b);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads a file without its newline. */
static int32_t read_value(const struct cpuclass_back *b, const char *path, char text[VALUE_MAX])
{
	int32_t n = b->work->read_file(b->ctx, path, text, VALUE_MAX);
	if (n < 0)
		return n;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

static int64_t read_number(const struct cpuclass_back *b, const char *path)
{
	char text[VALUE_MAX];
	if (read_value(b, path, text))
		return 0;
	long long n = strtoll(text, NULL, 10);
	return n > 0 ? n : 0;
}

void cpuclass_complain(struct cpuclass_job *job, enum cpuclass_what what, const char *path,
		       const char *verb, const char *value, const char *result)
{
	if (!job->messages[what][0])
		(void)snprintf(job->messages[what], sizeof job->messages[what], "%s: %s %s: %s",
			       path, verb, value, result);
}

/* Returns true if the file has the written value. Energy preferences are written as numbers, and
 * those with a name are read back as the name. */
static bool same_value(enum cpuclass_what what, const char *wrote, const char *has)
{
	if (strcmp(wrote, has) == 0)
		return true;
	return what == WHAT_EPP && (*has < '0' || *has > '9');
}

static int32_t write_value(struct cpuclass_job *job, enum cpuclass_what what, const char *path,
			   const char *text)
{
	const struct cpuclass_back *b = job->back;
	char has[VALUE_MAX];
	int32_t r = b->work->write_file(b->ctx, path, text);
	if (r) {
		job->failures++;
		cpuclass_complain(job, what, path, "writing", text, strerror(-r));
		return r;
	}
	job->writes++;
	if (read_value(b, path, has) == 0 && !same_value(what, text, has)) {
		job->differing++;
		cpuclass_complain(job, what, path, "setting it to", text, has);
	}
	return 0;
}

bool cpuclass_is_final(int32_t r)
{
	return r == -EINVAL || r == -EPERM || r == -EACCES || r == -EROFS || r == -ENOENT ||
	       r == -ENOTSUP;
}

/* Returns the worse of two results. A failure that may be repeated is worse than a final failure,
 * which is worse than success. */
static int32_t cpuclass_write_worse(int32_t a, int32_t b)
{
	return a == -EBUSY || !b ? a : b;
}

/* Returns the value to restore; NULL: none. */
static const char *rest_of(const struct cpuclass_back *b, const char *path,
			   const struct before *before, char buf[VALUE_MAX])
{
	if (!before->taken)
		return NULL;
	if (!b->settings)
		return before->text;
	return b->settings->without(b->ctx, path, buf, VALUE_MAX) < 0 ? NULL : buf;
}

/* Returns the value that the file will have: the given one, or the one to restore; 0: neither. */
static int64_t aim_of(const struct cpuclass_back *b, const char *path, const char *text,
		      const struct before *before)
{
	char buf[VALUE_MAX];
	const char *rest = *text ? text : rest_of(b, path, before, buf);
	return rest ? strtoll(rest, NULL, 10) : 0;
}

static int32_t put_back(struct cpuclass_job *job, enum cpuclass_what what, const char *path,
			const char *has, struct before *before)
{
	const struct cpuclass_back *b = job->back;
	char buf[VALUE_MAX];
	const char *rest = rest_of(b, path, before, buf);
	int32_t r = rest && strcmp(has, rest) != 0 ? write_value(job, what, path, rest) : 0;
	if (r)
		return r;
	before->taken = false;
	if (b->settings)
		b->settings->drop(b->ctx, path);
	return 0;
}

static int32_t cpuclass_write_put(struct cpuclass_job *job, enum cpuclass_what what,
				  const char *path, const char *has, const char *text,
				  struct before *before)
{
	const struct cpuclass_back *b = job->back;
	if (!before->taken)
		(void)snprintf(before->text, sizeof before->text, "%s", has);
	int32_t r = b->settings ? b->settings->keep(b->ctx, path, text, before->text) : 0;
	if (r) {
		cpuclass_complain(job, what, path, "setting it to", text, strerror(-r));
		return r;
	}
	bool first = !before->taken;
	before->taken = true;
	r = strcmp(has, text) == 0 ? 0 : write_value(job, what, path, text);
	if (!r)
		return 0;
	/* The file is unchanged: do not record the refused value as one to restore. */
	before->taken = !first;
	if (b->settings && first)
		b->settings->drop(b->ctx, path);
	else if (b->settings)
		(void)b->settings->keep(b->ctx, path, has, before->text);
	return r;
}

/*
 * Writes a value; "" restores the original one. -EBUSY: may succeed later; -EINVAL: will not. A
 * missing file means that the machine does not have the property.
 */
static int32_t set_value(struct cpuclass_job *job, enum cpuclass_what what, const char *path,
			 const char *text, struct before *before)
{
	char has[VALUE_MAX];
	bool restore = !*text;
	if (restore && !before->taken)
		return 0;
	int32_t r = read_value(job->back, path, has);
	if (r) {
		if (!restore)
			cpuclass_complain(job, what, path, "setting it to", text, strerror(-r));
		return 0;
	}
	r = restore ? put_back(job, what, path, has, before)
		    : cpuclass_write_put(job, what, path, has, text, before);
	return !r ? 0 : cpuclass_is_final(r) ? -EINVAL : -EBUSY;
}

/* ---- frequencies ----------------------------------------------------------------------------- */

int64_t cpuclass_resolve(const struct cpuclass_job *job, const struct cpuclass_cpu *cpu,
			 int64_t wanted)
{
	char path[160];
	if (wanted >= 0)
		return wanted;
	bool base = wanted == RP_FREQ_BASE || (wanted == RP_FREQ_TURBO && !cpu->turbo);
	const char *file = wanted == RP_FREQ_MIN ? "cpuinfo_min_freq" : "cpuinfo_max_freq";
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/base_frequency", cpu->cpu);
	int64_t n = base ? read_number(job->back, path) : 0;
	if (n)
		return n;
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/%s", cpu->cpu, file);
	return read_number(job->back, path);
}

static void number_text(int64_t n, char text[VALUE_MAX])
{
	text[0] = '\0';
	if (n > 0)
		(void)snprintf(text, VALUE_MAX, "%lld", (long long)n);
}

/* A limit of a frequency range. */
struct end {
	enum cpuclass_what what;
	const char *path;
	const char *text; /* text to write; "": restore the original value */
	struct before *before;
};

static int32_t set_end(struct cpuclass_job *job, const struct end *e)
{
	return set_value(job, e->what, e->path, e->text, e->before);
}

static int64_t aim_of_end(const struct cpuclass_job *job, const struct end *e)
{
	return aim_of(job->back, e->path, e->text, e->before);
}

/*
 * Sets both limits of a range. Kernels before 5.3 and the uncore driver refuse a lowest frequency
 * above the highest one, so the limit that widens the range is written first. A refusal because of
 * the other limit is not final if that limit is another module's, which may restore it soon.
 */
static int32_t set_range(struct cpuclass_job *job, const struct end *min, const struct end *max)
{
	const struct cpuclass_back *b = job->back;
	bool raise = aim_of_end(job, max) > read_number(b, max->path);
	int32_t r_max = 0, r_min;
	if (raise)
		r_max = set_end(job, max);
	r_min = set_end(job, min);
	if (!raise)
		r_max = set_end(job, max);
	if (r_min == -EINVAL && aim_of_end(job, min) > read_number(b, max->path))
		r_min = -EBUSY;
	if (r_max == -EINVAL && aim_of_end(job, max) < read_number(b, min->path))
		r_max = -EBUSY;
	return cpuclass_write_worse(r_max, r_min);
}

static int32_t set_frequencies(struct cpuclass_job *job, uint32_t cpu, const struct wish *w,
			       struct cpu_known *known)
{
	char min_path[160], max_path[160], min[VALUE_MAX], max[VALUE_MAX];
	number_text(w->min_khz, min);
	number_text(w->max_khz, max);
	if (!*min && !*max && !known->min.taken && !known->max.taken)
		return 0;
	(void)snprintf(min_path, sizeof min_path, CPU_DIR "/cpu%u/cpufreq/scaling_min_freq", cpu);
	(void)snprintf(max_path, sizeof max_path, CPU_DIR "/cpu%u/cpufreq/scaling_max_freq", cpu);
	return set_range(job, &(struct end){WHAT_MIN, min_path, min, &known->min},
			 &(struct end){WHAT_MAX, max_path, max, &known->max});
}

static int32_t set_text(struct cpuclass_job *job, uint32_t cpu, enum cpuclass_what what,
			const char *file, const char *text, struct before *before)
{
	char path[160];
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/%s", cpu, file);
	return set_value(job, what, path, text, before);
}

/* ---- CPUs that share their frequencies ------------------------------------------------------- */

static struct cpu_known *known_of(struct cpuclass_back *b, uint32_t cpu)
{
	if (!b->cpus[cpu])
		b->cpus[cpu] = calloc(1, sizeof(struct cpu_known));
	return b->cpus[cpu];
}

/* Reads the next CPU of a list separated by spaces. False: there is none. */
static bool next_cpu(const char **at, uint32_t *ret_cpu)
{
	char *end;
	unsigned long cpu = strtoul(*at, &end, 10);
	if (end == *at || cpu >= RP_CPUS_MAX)
		return false;
	*at = end;
	*ret_cpu = (uint32_t)cpu;
	return true;
}

static bool has_frequencies(const struct cpuclass_back *b, uint32_t cpu)
{
	char path[160], text[VALUE_MAX];
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/scaling_max_freq", cpu);
	return read_value(b, path, text) == 0;
}

/*
 * Returns the CPU that represents all CPUs of a cpufreq policy: cpuN/cpufreq is one folder for all
 * of them, and the original values must be recorded once, before the first CPU is written. Offline
 * CPUs are included, so that the representative does not change with them.
 */
static uint32_t leader_of(const struct cpuclass_back *b, uint32_t cpu)
{
	char path[160], list[CPU_LIST_MAX];
	const char *at = list;
	uint32_t leader = cpu, other;
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/related_cpus", cpu);
	if (b->work->read_file(b->ctx, path, list, sizeof list) < 0)
		return cpu;
	while (next_cpu(&at, &other))
		if (other < leader && has_frequencies(b, other))
			leader = other;
	return leader;
}

/* Combines the values of two classes: the higher limits, and the governor of the first class. */
static void add_wish(struct wish *sum, const struct wish *w)
{
	if (w->min_khz > sum->min_khz)
		sum->min_khz = w->min_khz;
	if (w->max_khz > sum->max_khz)
		sum->max_khz = w->max_khz;
	if (w->epp && (!sum->epp || w->epp < sum->epp))
		sum->epp = w->epp;
	if (*w->governor && (!*sum->governor || w->class < sum->class)) {
		memcpy(sum->governor, w->governor, sizeof sum->governor);
		sum->class = w->class;
	}
}

static bool same_wish(const struct wish *a, const struct wish *b)
{
	return a->min_khz == b->min_khz && a->max_khz == b->max_khz && a->epp == b->epp &&
	       strcmp(a->governor, b->governor) == 0;
}

static bool is_wish(const struct wish *w)
{
	return w->min_khz || w->max_khz || w->epp || *w->governor;
}

static void complain_of_sharing(struct cpuclass_job *job, const char *path, const char *list)
{
	char cpus[VALUE_MAX]; /* the list without its end */
	(void)snprintf(cpus, sizeof cpus, "%.*s", (int)sizeof cpus - 1, list);
	for (size_t n = strlen(cpus); n && (cpus[n - 1] == '\n' || cpus[n - 1] == ' '); n--)
		cpus[n - 1] = '\0';
	cpuclass_complain(job, WHAT_SHARED, path, "CPUs", cpus,
			  "in different classes, but they share their frequencies: the higher "
			  "values are used");
}

/* Combines the values of all online CPUs of the policy, so that the order of writing does not
 * matter. */
static void sum_up(struct cpuclass_job *job, uint32_t cpu, const struct cpu_known *own,
		   struct wish *ret)
{
	struct cpuclass_back *b = job->back;
	char path[160], list[CPU_LIST_MAX];
	const char *at = list;
	uint32_t other;
	*ret = own->wish;
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/affected_cpus", cpu);
	if (b->work->read_file(b->ctx, path, list, sizeof list) < 0)
		return;
	bool differ = false;
	while (next_cpu(&at, &other)) {
		const struct wish *w =
			other == cpu || !b->cpus[other] ? NULL : &b->cpus[other]->wish;
		if (!w || !is_wish(w))
			continue;
		differ = differ || (is_wish(&own->wish) && !same_wish(&own->wish, w));
		add_wish(ret, w);
	}
	if (ret->min_khz && ret->max_khz && ret->max_khz < ret->min_khz)
		ret->max_khz = ret->min_khz;
	if (differ)
		complain_of_sharing(job, path, list);
}

static void take_wish(struct cpuclass_job *job, const struct cpuclass_cpu *cpu)
{
	struct cpuclass_back *b = job->back;
	const struct cpuclass_def *d =
		cpu->class == CPUCLASS_NONE ? NULL : &job->rules->defs.list[cpu->class];
	struct cpu_known *known = d ? known_of(b, cpu->cpu) : b->cpus[cpu->cpu];
	if (!known)
		return;
	known->wish = (struct wish){.class = cpu->class};
	if (!d)
		return;
	known->wish.min_khz = cpuclass_resolve(job, cpu, d->min_khz);
	known->wish.max_khz = cpuclass_resolve(job, cpu, d->max_khz);
	known->wish.epp = d->epp;
	(void)snprintf(known->wish.governor, VALUE_MAX, "%s", d->governor);
}

/* Writes all cpufreq settings of a CPU. */
static int32_t set_policy(struct cpuclass_job *job, uint32_t cpu, const struct cpu_known *own)
{
	struct wish w;
	char epp[VALUE_MAX];
	uint32_t leader = leader_of(job->back, cpu);
	struct cpu_known *known = known_of(job->back, leader);
	if (!known)
		return -EBUSY;
	sum_up(job, cpu, own, &w);
	int32_t r = set_frequencies(job, leader, &w, known);
	r = cpuclass_write_worse(r, set_text(job, leader, WHAT_GOVERNOR, "scaling_governor",
					     w.governor, &known->governor));
	number_text(w.epp, epp);
	return cpuclass_write_worse(r, set_text(job, leader, WHAT_EPP,
						"energy_performance_preference", epp, &known->epp));
}

/* ---- idle states ----------------------------------------------------------------------------- */

static bool is_disabled(const struct cpuclass_def *d, const char *name)
{
	for (uint32_t i = 0; d && i < d->n_disabled_cstates; i++)
		if (strcasecmp(d->disabled_cstates[i], name) == 0)
			return true;
	return false;
}

static int32_t set_cstates(struct cpuclass_job *job, const struct cpuclass_cpu *cpu,
			   const struct cpuclass_def *d, struct cpu_known *known)
{
	int32_t result = 0;
	if (!job->back->cstates)
		return 0;
	for (uint32_t i = 0; i < CSTATES_SEEN_MAX; i++) {
		char path[160], name[VALUE_MAX];
		(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpuidle/state%u/name", cpu->cpu,
			       i);
		if (read_value(job->back, path, name))
			break;
		bool off = is_disabled(d, name);
		(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpuidle/state%u/disable",
			       cpu->cpu, i);
		/* A class with a list determines all states; a class without one restores them. */
		const char *text = d && d->n_disabled_cstates ? (off ? "1" : "0") : "";
		int32_t r = set_value(job, WHAT_CSTATE, path, text, &known->cstates[i]);
		result = cpuclass_write_worse(result, r);
	}
	return result;
}

/* ---- one CPU --------------------------------------------------------------------------------- */

/* Returns true if the CPU went offline after the job was made. Its files are missing then, which
 * does not mean that the machine lacks the property. */
static bool is_offline(struct cpuclass_job *job, const struct cpuclass_cpu *cpu)
{
	char path[96], text[VALUE_MAX];
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/online", cpu->cpu);
	if (read_value(job->back, path, text) || strcmp(text, "0") != 0)
		return false;
	cpuclass_complain(job, WHAT_MIN, path, "it is", text, "the CPU is offline");
	return true;
}

static void set_cpu(struct cpuclass_job *job, struct cpuclass_cpu *cpu)
{
	struct cpuclass_back *b = job->back;
	const struct cpuclass_def *d =
		cpu->class == CPUCLASS_NONE ? NULL : &job->rules->defs.list[cpu->class];
	int32_t r = pct_associate(job, cpu);
	cpu->failed = r != 0;
	cpu->again = r == -EBUSY;
	if (!b->cpus[cpu->cpu] && !d)
		return;
	if (is_offline(job, cpu)) {
		cpu->failed = cpu->again = true;
		return;
	}
	struct cpu_known *known = known_of(b, cpu->cpu);
	if (!known) {
		cpu->failed = cpu->again = true;
		return;
	}
	r = cpuclass_write_worse(r, set_policy(job, cpu->cpu, known));
	r = cpuclass_write_worse(r, set_cstates(job, cpu, d, known));
	cpu->failed = r != 0;
	cpu->again = r == -EBUSY;
}

/* ---- uncore ---------------------------------------------------------------------------------- */

static struct die_known *die_known(struct cpuclass_back *b, const struct cpuclass_die *d)
{
	for (uint32_t i = 0; i < b->n_dies; i++)
		if (b->dies[i].package == d->package && b->dies[i].die == d->die)
			return &b->dies[i];
	struct die_known *grown = realloc(b->dies, (b->n_dies + 1u) * sizeof *grown);
	if (!grown)
		return NULL;
	b->dies = grown;
	b->dies[b->n_dies] = (struct die_known){.package = d->package, .die = d->die};
	return &b->dies[b->n_dies++];
}

/* Returns the highest value that a class on the die has, within the hardware's limits. */
static int64_t uncore_wish(const struct cpuclass_job *job, const struct cpuclass_die *d, bool max,
			   int64_t low, int64_t high)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < job->rules->defs.n; i++) {
		const struct cpuclass_def *c = &job->rules->defs.list[i];
		int64_t wants = max ? c->uncore_max_khz : c->uncore_min_khz;
		if (wants == RP_FREQ_MIN)
			wants = low;
		else if (wants < 0)
			wants = high;
		if ((d->classes >> i & 1) && wants > n)
			n = wants;
	}
	if (n && low && n < low)
		n = low;
	return n && high && n > high ? high : n;
}

static void set_die(struct cpuclass_job *job, struct cpuclass_die *d)
{
	char dir[96], path[160], max_path[160], min[VALUE_MAX], max[VALUE_MAX];
	struct die_known *known = die_known(job->back, d);
	(void)snprintf(dir, sizeof dir, UNCORE_DIR "/package_%02u_die_%02u", d->package, d->die);
	if (!known)
		return;
	bool wanted = false;
	for (uint32_t i = 0; i < job->rules->defs.n; i++)
		wanted = wanted || job->rules->defs.list[i].uncore_min_khz ||
			 job->rules->defs.list[i].uncore_max_khz;
	if (!wanted && !known->min.taken && !known->max.taken)
		return;
	(void)snprintf(path, sizeof path, "%s/initial_min_freq_khz", dir);
	int64_t low = read_number(job->back, path);
	(void)snprintf(path, sizeof path, "%s/initial_max_freq_khz", dir);
	int64_t high = read_number(job->back, path);
	int64_t min_khz = uncore_wish(job, d, false, low, high);
	int64_t max_khz = uncore_wish(job, d, true, low, high);
	number_text(min_khz, min);
	number_text(max_khz, max);
	(void)snprintf(path, sizeof path, "%s/min_freq_khz", dir);
	if (max_khz && min_khz > max_khz)
		cpuclass_complain(job, WHAT_UNCORE, path, "setting it to", min,
				  "the classes on the die have a lower uncoreMaxFreq");
	(void)snprintf(max_path, sizeof max_path, "%s/max_freq_khz", dir);
	int32_t r = set_range(job, &(struct end){WHAT_UNCORE, path, min, &known->min},
			      &(struct end){WHAT_UNCORE, max_path, max, &known->max});
	d->again = r == -EBUSY;
}

int32_t cpuclass_run(void *arg)
{
	struct cpuclass_job *job = arg;
	pct_run(job);
	for (uint32_t i = 0; i < job->rules->defs.n; i++)
		job->back->cstates =
			job->back->cstates || job->rules->defs.list[i].n_disabled_cstates;
	for (uint32_t i = 0; i < job->n_cpus; i++) /* all, before the first write */
		take_wish(job, &job->cpus[i]);
	for (uint32_t i = 0; i < job->n_cpus; i++)
		set_cpu(job, &job->cpus[i]);
	for (uint32_t i = 0; i < job->n_dies; i++)
		set_die(job, &job->dies[i]);
	return 0;
}
