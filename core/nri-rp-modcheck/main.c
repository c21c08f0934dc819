/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp-modcheck: options, the list of cases, and each case in a child. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/trial.h"
#include "core/nri-rp-modcheck/check.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/vectors.h"
#include "core/nri-rp-modcheck/watch.h"
#include "core/nri-rp-modcheck/machines.h"
#include "core/nri-rp-modcheck/config.h"
#include "core/nri-rp-modcheck/report.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define FAST_MS 10000u
#define SLOW_MS 120000u
#define OUTPUT_MAX (8u << 20)
#define WRITTEN_SHOWN 4000u /* bytes shown of what a module has written to its standard output */
#define SLOW_CALL_MS 100u
#define NS_PER_MS UINT64_C(1000000)
#define LOG_SILENT ((enum log_level)0)

static const struct check_group *const groups[] = {
	&static_cases,	   &abi_cases,	    &life_cases,      &place_cases, &value_cases,
	&annotation_cases, &work_cases,	    &unmanaged_cases, &fault_cases, &report_cases,
	&controller_cases, &creation_cases, &calculator_cases};
#define N_GROUPS (sizeof groups / sizeof *groups)

/* ---- a single case --------------------------------------------------------------------------- */

struct run {
	const struct options *o;
	struct machines machines;
	struct report report;
	struct crumb *crumb;
	struct scene *scene;
	uint32_t kinds; /* kinds that the module has, as bits */
	uint32_t role; /* kind that is being checked */
	char closed[256]; /* name of the failed gate; "": none. Later cases are skipped. */
	unsigned planned;
	bool counting; /* only count the cases */
};

struct job {
	struct run *run;
	const struct check_case *what;
	struct check check;
	int written; /* receives the child's stdout and stderr */
	off_t log_from; /* position in valgrind's log where the case begins */
	struct fragment *annotations; /* text of check.own */
};

static int modcheck_load(struct job *j, struct err *err)
{
	struct check *c = &j->check;
	const char *dir = c->o->dir;
	check_doing(c, "the constructors of its libraries");
	int r = loader_new(&dir, 1, loader_default_flags(), j->run->crumb, &c->loader, err);
	r = r ? r : loader_open(c->loader, c->o->name, &c->module, err);
	check_doing(c, "%s", "");
	r = r ? r : module_schema(c->loader, c->module, &c->schema, err);
	if (!r && !(j->what->flags & CASE_NO_CONFIG))
		r = config_load(c, &c->conf, err);
	if (!r && c->o->annotations)
		r = config_annotations(c->o->annotations, &c->own, &c->n_own, &j->annotations, err);
	return r;
}

static int modcheck_facts(struct check *c, struct err *err)
{
	_close_ int fd = open(c->o->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "%s", c->o->path);
	return note_read(fd, c->o->path, &c->facts, err);
}

/* Runs the case on the rig that its flags require. */
static int modcheck_run(struct job *j, struct err *err)
{
	struct check *c = &j->check;
	_cleanup_(rig_close) struct rig rig = {.check = c};
	struct churn churn;
	uint32_t flags = j->what->flags;
	c->rig = &rig;
	c->churn = &churn;
	int r = flags & (CASE_OPEN | CASE_CREATED | CASE_STARTED) ? rig_open(&rig, c, NULL, err)
								  : 0;
	if (!r && rig.pipeline)
		churn_init(&churn, &rig, c->seed);
	rig.late = flags & CASE_LATE;
	if (rig.late)
		check_doing(c, "when results arrive late");
	if (!r && flags & CASE_CREATED)
		r = rig_create(&rig, err);
	if (!r && flags & CASE_STARTED)
		r = rig_start(&rig, err);
	return r ? r : j->what->fn(c, err);
}

static int run_child(void *arg, struct buf *out, struct err *err)
{
	struct job *j = arg;
	j->check.out = out;
	log_set_level(LOG_SILENT);
	if (dup2(j->written, STDOUT_FILENO) < 0 || dup2(j->written, STDERR_FILENO) < 0)
		return err_errno(err, -errno, "standard output");
	int r = j->what->flags & CASE_FILE ? modcheck_facts(&j->check, err) : modcheck_load(j, err);
	r = r ? r : modcheck_run(j, err);
	/* a positive result of a rig is a refusal that the case did not expect */
	if (r > 0 && r != CHECK_SKIPPED)
		r = -EPROTO;
	/* a controller may report at any point that the machine has nothing to control */
	if (r == -RP_ENOTSUP && j->check.role == RP_KIND_CONTROLLER)
		r = check_skip(&j->check, "%s", err->text);
	(void)fflush(NULL);
	if (j->check.hung)
		return r;
	free(j->check.own);
	j->annotations = fragment_free(j->annotations);
	j->check.conf = conf_free(j->check.conf);
	j->check.loader = loader_free(j->check.loader);
	return r;
}

static void read_from(int fd, off_t from, const char *what, struct buf *ret)
{
	char text[WRITTEN_SHOWN];
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof text, from) : 0;
	if (n > 0)
		(void)buf_printf(ret, "%s%.*s", what, (int)n, text);
}

/* Reads the child's output (writing there breaks a rule), and valgrind's log of a child that has
 * ended early. */
static void read_written(const struct job *j, const struct trial_result *res, struct buf *ret)
{
	read_from(j->written, 0, "written to standard output or error: ", ret);
	if (res->outcome != TRIAL_DONE && res->outcome != TRIAL_REFUSED)
		read_from(watch_valgrind_log(), j->log_from, "", ret);
}

static bool is_slow(const struct job *j)
{
	const struct options *o = j->run->o;
	return o->slow_ms && j->run->scene->slowest_ns > o->slow_ms * NS_PER_MS;
}

/* Composes the reason of a failure; "": none. A broken rule takes precedence, as it explains later
 * failures. */
static void put_reason(const struct job *j, const struct trial_result *res, struct buf *written,
		       struct buf *ret)
{
	const struct scene *s = j->run->scene;
	bool ended = res->outcome != TRIAL_DONE && res->outcome != TRIAL_REFUSED;
	bool slow = is_slow(j) && (j->what->flags & CASE_CLOCK || res->outcome == TRIAL_DONE);
	if (ended)
		watch_finding(buf_text(written), ret);
	if (buf_len(ret) && *res->module)
		(void)buf_printf(ret, "; %s", res->err.text);
	else if (buf_len(ret))
		; /* the finding is the reason */
	else if (s->broken[0] && !slow)
		(void)buf_printf(ret, "%s", s->broken);
	else if (slow)
		(void)buf_printf(ret, "%s took %.1f ms: a call may take %llu ms (--slow)",
				 s->slowest, (double)s->slowest_ns / 1e6,
				 (unsigned long long)j->run->o->slow_ms);
	else if (res->outcome != TRIAL_DONE)
		(void)buf_printf(ret, "%s", res->err.text);
	else
		(void)buf_printf(ret, "%s", buf_text(written));
	if (ended && s->doing[0])
		(void)buf_printf(ret, ", %s", s->doing);
	if (res->outcome == TRIAL_TIMED_OUT && s->n_calls)
		(void)buf_printf(ret, "; %llu calls took %.1f ms each, the slowest, %s, %.1f ms",
				 (unsigned long long)s->n_calls,
				 (double)s->total_ns / 1e6 / (double)s->n_calls, s->slowest,
				 (double)s->slowest_ns / 1e6);
}

static enum verdict verdict_of(const struct job *j, const struct trial_result *res,
			       const struct buf *reason)
{
	bool ours = is_slow(j) || res->outcome == TRIAL_TIMED_OUT || res->code == -ETIME;
	if (buf_len(reason) && (j->what->flags & CASE_CLOCK) && !ours)
		return VERDICT_SKIPPED;
	if (res->outcome == TRIAL_DONE && res->code == CHECK_SKIPPED && !j->run->scene->broken[0])
		return VERDICT_SKIPPED;
	return buf_len(reason) ? VERDICT_FAILED : VERDICT_PASSED;
}

static void modcheck_judge(struct job *j, const char *name, const struct trial_result *res)
{
	_cleanup_(buf_fini) struct buf notes = BUF_INIT, written = BUF_INIT, reason = BUF_INIT;
	struct run *run = j->run;
	read_written(j, res, &written);
	put_reason(j, res, &written, &reason);
	enum verdict verdict = verdict_of(j, res, &reason);
	if (res->data)
		(void)buf_add(&notes, res->data, res->size);
	if (verdict == VERDICT_SKIPPED) {
		const char *why =
			j->what->flags & CASE_CLOCK ? "an unknown error" : buf_text(&notes);
		report_case(&run->report, name, verdict, why, "", res->took_us);
		return;
	}
	if (buf_len(&written) && res->outcome != TRIAL_DONE)
		(void)buf_printf(&notes, "%s", buf_text(&written));
	report_case(&run->report, name, verdict, buf_text(&reason), buf_text(&notes), res->took_us);
	if (verdict == VERDICT_FAILED && (j->what->flags & CASE_GATE))
		(void)snprintf(run->closed, sizeof run->closed, "%s", name);
}

static int run_case(struct run *run, const struct check_case *what, const char *name,
		    struct check_machine *machine, uint64_t seed)
{
	struct err err = ERR_INIT;
	struct trial_result res = {.code = 0};
	int r = machine ? machine_make(machine, &err) : 0;
	_close_ int written = memfd_create("written", MFD_CLOEXEC);
	off_t log_from = watch_valgrind_log() < 0 ? 0 : lseek(watch_valgrind_log(), 0, SEEK_END);
	struct job job = {run,
			  what,
			  {.o = run->o,
			   .machine = machine,
			   .seed = seed,
			   .role = run->role,
			   .detail = what->flags >> 16,
			   .crumb = run->crumb,
			   .scene = run->scene},
			  written,
			  log_from,
			  NULL};
	uint32_t ms = (what->flags & CASE_SLOW ? SLOW_MS : FAST_MS) * watch_factor();
	struct trial_spec spec = {.what = "the case ran",
				  .fn = run_child,
				  .arg = &job,
				  .limits = {ms, ms / 500, UINT64_C(1) << 30, OUTPUT_MAX, 0},
				  .crumb = run->crumb,
				  .keep_fds = {written},
				  .n_keep_fds = 1};
	(void)fflush(NULL); /* otherwise the child would write the buffered text again */
	*run->scene = (struct scene){.slowest_ns = 0};
	r = r ? r : written < 0 ? -errno : trial_run(&spec, &res, &err);
	if (r) {
		(void)fprintf(stderr, "nri-rp-modcheck: %s: %s\n", name, err_text(&err, r));
		return r;
	}
	modcheck_judge(&job, name, &res);
	trial_result_fini(&res);
	return 0;
}

/* ---- list of cases --------------------------------------------------------------------------- */

static int modcheck_offer(struct run *run, const struct check_case *what,
			  struct check_machine *machine, bool seeded, uint64_t seed)
{
	char name[256], number[32] = "";
	bool gate = what->flags & CASE_GATE;
	if (seeded)
		(void)snprintf(number, sizeof number, " seed %llu", (unsigned long long)seed);
	(void)snprintf(name, sizeof name, "%s%s%s%s", what->name,
		       machine && !(what->flags & CASE_SMALL) ? " " : "",
		       machine && !(what->flags & CASE_SMALL) ? machine->name : "", number);
	if (!gate && run->o->has_cases && regexec(&run->o->cases, name, 0, NULL, 0) != 0)
		return 0;
	if (run->counting) {
		run->planned++;
		return 0;
	}
	if (run->closed[0] && !(what->flags & CASE_FILE)) {
		char why[288];
		(void)snprintf(why, sizeof why, "%s failed", run->closed);
		report_case(&run->report, name, VERDICT_SKIPPED, why, "", 0);
		return 0;
	}
	return run_case(run, what, name, machine, seed);
}

static int offer_seeds(struct run *run, const struct check_case *what,
		       struct check_machine *machine)
{
	bool seeded = what->flags & CASE_SEEDS;
	unsigned n = seeded && !run->o->reproduce ? CHECK_SEEDS : 1;
	int r = 0;
	for (unsigned i = 0; !r && i < n; i++)
		r = modcheck_offer(run, what, machine, seeded, run->o->seed + i);
	return r;
}

static int offer_machines(struct run *run, const struct check_case *what)
{
	struct machines *m = &run->machines;
	int r = 0;
	if (what->flags & CASE_LARGEST)
		return offer_seeds(run, what, machines_largest(m));
	if (what->flags & CASE_SMALL)
		return offer_seeds(run, what, machines_middle(m));
	if (!(what->flags & CASE_MACHINES))
		return offer_seeds(run, what, NULL);
	for (unsigned i = 0; !r && i < m->n; i++)
		r = offer_seeds(run, what, &m->items[i]);
	return r;
}

/* Runs a case once for each kind of the module. */
static int offer_roles(struct run *run, const struct check_case *what)
{
	uint32_t roles = run->kinds & (what->kinds ? what->kinds : UINT32_MAX);
	int r = 0;
	for (uint32_t role = RP_KIND_POLICY; !r && roles >= role; role <<= 1) {
		if (!(roles & role))
			continue;
		run->role = role;
		r = offer_machines(run, what);
	}
	return r;
}

static int run_all(struct run *run)
{
	int r = 0;
	for (unsigned g = 0; g < N_GROUPS; g++)
		for (unsigned i = 0; !r && i < groups[g]->n; i++)
			r = offer_roles(run, &groups[g]->cases[i]);
	return r;
}

static void list_all(void)
{
	for (unsigned g = 0; g < N_GROUPS; g++)
		for (unsigned i = 0; i < groups[g]->n; i++)
			printf("%-26s %s\n", groups[g]->cases[i].name, groups[g]->cases[i].about);
}

/* Returns the module's kinds from the note in its file, which select the cases. A file without a
 * note is treated as a policy. */
static uint32_t kinds_of(const char *path)
{
	struct note_facts facts;
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || note_read(fd, path, &facts, NULL))
		return RP_KIND_POLICY;
	return facts.note.kinds;
}

static int check_module(const struct options *o)
{
	struct err err = ERR_INIT;
	char path[CHECK_DIR_MAX + 8];
	struct run run = {.o = o, .kinds = kinds_of(o->path)};
	int status = 1, r = machines_init(&run.machines, o->machines, &err);
	(void)snprintf(path, sizeof path, "%s/crumb", run.machines.dir);
	r = r ? r : crumb_open(path, &run.crumb, &err);
	run.scene = mmap(NULL, sizeof *run.scene, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!r && run.scene == MAP_FAILED)
		r = err_errno(&err, -errno, "shared memory");
	if (r) {
		(void)fprintf(stderr, "nri-rp-modcheck: %s\n", err_text(&err, r));
	} else {
		run.counting = true;
		(void)run_all(&run);
		run.counting = false;
		report_begin(&run.report, o, run.planned);
		r = run_all(&run);
		status = report_end(&run.report);
	}
	crumb_close(run.crumb);
	machines_fini(&run.machines);
	return r ? 1 : status;
}

/* ---- options --------------------------------------------------------------------------------- */

static int __attribute__((format(printf, 1, 2))) modcheck_wrong(const char *fmt, ...)
{
	va_list ap;
	(void)fprintf(stderr, "nri-rp-modcheck: ");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, ". ");
	return -1;
}

static int __attribute__((format(printf, 1, 2))) modcheck_usage(const char *fmt, ...)
{
	va_list ap;
	(void)fprintf(stderr, "nri-rp-modcheck: ");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\nTry nri-rp-modcheck --help.\n");
	return EXIT_USAGE;
}

static int take_seed(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	return str_to_u64(argument, &o->seed) ? modcheck_wrong("%s is not a seed", argument) : 0;
}

static int take_cases(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	return regcomp(&o->cases, argument, REG_EXTENDED | REG_NOSUB)
		       ? modcheck_wrong("%s is not a regular expression", argument)
		       : 0;
}

static int take_slow(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	return str_to_u64(argument, &o->slow_ms)
		       ? modcheck_wrong("%s: not a number of milliseconds", argument)
		       : 0;
}

#define OPTION_AT(member) offsetof(struct options, member)

static const struct cmdline_option table[] = {
	OPTION("machines", "DIR",
	       "recorded machines instead of generated ones: folders with sys/ and proc/",
	       OPTION_TEXT(machines)),
	OPTION("seed", "N", "first seed of random cases, default 1", .take = take_seed),
	OPTION("cases", "RE",
	       "only cases whose name has a match of this extended regular expression",
	       .take = take_cases, .mark = OPTION_AT(has_cases)),
	OPTION("reproduce", "SEED", "run only this seed and show every request", .take = take_seed,
	       .mark = OPTION_AT(reproduce)),
	OPTION("config", "FILE", "the module's section of rp.conf, or a whole rp.conf",
	       OPTION_TEXT(config)),
	OPTION("vectors", "FILE",
	       "instead, check a table of inputs and results for the calculators in the folder of "
	       "MODULE.so",
	       OPTION_TEXT(vectors)),
	OPTION("annotations", "FILE",
	       "annotations that the module reads, as a YAML map of values or lists of values",
	       OPTION_TEXT(annotations)),
	OPTION("slow", "MS", "fail if a call of the module takes longer, default 100; 0: no limit",
	       .take = take_slow),
	OPTION("sanitize", NULL, "the module was built with sanitizers: use the sanitized checker",
	       OPTION_FLAG(sanitize)),
	OPTION("valgrind", NULL, "run in valgrind, with a normal build of the module; slow",
	       OPTION_FLAG(valgrind)),
	OPTION("strict-time", NULL, "fail if a call is slow", OPTION_FLAG(strict_time)),
	OPTION("json", NULL, "one JSON document instead of TAP", OPTION_FLAG(json)),
	OPTION("list", NULL, "list the cases and exit", OPTION_FLAG(list)),
};

static const struct cmdline line = {
	.program = "nri-rp-modcheck",
	.version = NRI_RP_VERSION,
	.before = "Usage: nri-rp-modcheck [OPTION]… MODULE.so\n"
		  "Proves a module of nri-rp without a cluster.\n",
	.after = "Exit status: 0 all passed, 1 something failed, 2 wrong usage.\n"
		 "See nri-rp-modcheck(1), nri-rp-module(7).\n",
	.options = table,
	.n_options = sizeof table / sizeof *table,
	.column = 20,
	.words = true,
};

static int take_module(struct options *o, const char *path)
{
	if (!realpath(path, o->path))
		return modcheck_usage("%s: no such file", path);
	char *slash = strrchr(o->path, '/');
	size_t len = strlen(slash + 1);
	if (!str_has_suffix(slash, ".so") || len < 4 || len - 3 >= sizeof o->name)
		return modcheck_usage("%s: a module must be named NAME.so", path);
	(void)snprintf(o->dir, sizeof o->dir, "%.*s", slash == o->path ? 1 : (int)(slash - o->path),
		       o->path);
	(void)snprintf(o->name, sizeof o->name, "%.*s", (int)(len - 3), slash + 1);
	return 0;
}

/*
 * Makes the heap's balance exact: without the cache for each thread, whose size varies by tens of
 * kilobytes. Fills freed and new memory with a pattern, so that uses of it become visible. These
 * settings apply only at the start of a program.
 */
#define HEAP "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1:glibc.malloc.perturb=165"
static void start_with_plain_heap(char **argv)
{
	if (watch_valgrind_log() >= 0 || getenv("GLIBC_TUNABLES") ||
	    setenv("GLIBC_TUNABLES", HEAP, 1))
		return;
	(void)execv("/proc/self/exe", argv);
}

static int modcheck_start(struct options *o, int argc, char **argv)
{
	enum options_result r = cmdline_parse(&line, argc, argv, o);
	if (r != OPTIONS_RUN)
		return r;
	if (o->list) {
		list_all();
		return EXIT_SUCCESS;
	}
	if (optind != argc - 1)
		return modcheck_usage(optind < argc ? "too many modules; check one at a time"
						    : "missing module");
	int status = take_module(o, argv[optind]);
	if (status)
		return status;
	struct err err = ERR_INIT;
	status = o->sanitize ? watch_with_sanitizers(argv, &err) : 0;
	status = !status && o->valgrind ? watch_with_valgrind(argv, &err) : status;
	if (status)
		return modcheck_usage("%s", err_text(&err, status));
	return o->vectors ? vectors_run(o->vectors, o->dir) : check_module(o);
}

int main(int argc, char **argv)
{
	start_with_plain_heap(argv);
	struct options o = {.seed = 1, .slow_ms = (uint64_t)SLOW_CALL_MS * watch_factor()};
	int status = modcheck_start(&o, argc, argv);
	if (o.has_cases)
		regfree(&o.cases);
	return status;
}
