/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rpctl as people run it: the program itself, against a daemon's control socket that is real,
 * and against one that answers whatever a test likes.
 */
#include "core/nri-rpctl/call.c"
#include "core/lib/term/out.c"

#include <poll.h>
#include <pty.h>
#include <signal.h>

#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/wire/trunk.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"
#include "core/lib/util/clock.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"
#define ARGS_MAX 12u

extern char **environ;

static struct fixture fx;
static char program[PATH_MAX], modules[PATH_MAX];

/* ---- running it ------------------------------------------------------------------------------ */

struct run {
	const char *args[ARGS_MAX];
	unsigned columns; /* 0: no terminal */
	const char *const *environment; /* NAME=VALUE …, NULL */
	unsigned kill_after_ms; /* 0: wait for its end */
	int status;
	struct buf out, err;
};

static void child(const struct run *r, const int *out, const int *err, int slave)
{
	const char *argv[ARGS_MAX + 2] = {program};
	for (unsigned i = 0; i < ARGS_MAX; i++)
		argv[i + 1] = r->args[i];
	(void)setenv("NRI_RP_SOCKET", fx.socket, 1);
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("NO_COLOR", "1", 1);
	(void)setenv("TZ", "UTC", 1);
	(void)unsetenv("COLUMNS");
	for (unsigned i = 0; r->environment && r->environment[i]; i++)
		(void)putenv((char *)(uintptr_t)r->environment[i]);
	(void)dup2(r->columns ? slave : out[1], STDOUT_FILENO);
	(void)dup2(err[1], STDERR_FILENO);
	(void)execve(program, (char **)(uintptr_t)argv, environ);
	_exit(127);
}

static bool take(int fd, struct buf *into)
{
	uint8_t *to = buf_reserve(into, 65536);
	ssize_t n = read(fd, to, 65536);
	if (n <= 0)
		return false;
	buf_commit(into, (size_t)n);
	return true;
}

static void collect(struct run *r, int out, int err)
{
	uint64_t end = clock_ms() + (r->kill_after_ms ? r->kill_after_ms : 20000);
	struct pollfd p[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
	for (uint64_t now; (p[0].fd >= 0 || p[1].fd >= 0) && (now = clock_ms()) < end;) {
		if (poll(p, 2, (int)(end - now)) <= 0)
			continue;
		if (p[0].revents && !take(out, &r->out))
			p[0].fd = -1;
		if (p[1].revents && !take(err, &r->err))
			p[1].fd = -1;
	}
}

static void run_it(struct asking *a)
{
	struct run *r = a->arg;
	int out[2], err[2], master = -1, slave = -1;
	const struct winsize size = {.ws_row = 50, .ws_col = (unsigned short)r->columns};
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ||
	    (r->columns && openpty(&master, &slave, NULL, NULL, &size))) {
		a->result = -errno;
		return;
	}
	pid_t pid = fork();
	if (pid == 0)
		child(r, out, err, slave);
	(void)close(out[1]);
	(void)close(err[1]);
	if (slave >= 0)
		(void)close(slave);
	collect(r, r->columns ? master : out[0], err[0]);
	if (r->kill_after_ms)
		(void)kill(pid, SIGTERM);
	(void)waitpid(pid, &r->status, 0);
	(void)close(out[0]);
	(void)close(err[0]);
	if (master >= 0)
		(void)close(master);
}

static void run_fini(struct run *r)
{
	buf_fini(&r->out);
	buf_fini(&r->err);
}

/* Runs it to its end; the exit status has to be this one. */
static void run(struct run *r, int exit)
{
	struct asking a = {.f = &fx, .fn = run_it, .arg = r};
	fixture_run(&a);
	assert_int_equal(a.result, 0);
	if (r->kill_after_ms)
		return;
	if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) != exit)
		fail_msg("%s %s: status %x instead of %d\n%s%s", r->args[0] ? r->args[0] : "",
			 r->args[1] ? r->args[1] : "", r->status, exit, buf_text(&r->out),
			 buf_text(&r->err));
}

static void assert_has(struct buf *b, const char *words)
{
	if (!strstr(buf_text(b), words))
		fail_msg("no \"%s\" in:\n%s", words, buf_text(b));
}

/* Runs and looks for words in what it prints; in stderr when they begin with '@'. NULL ends both
 * lists. */
static void expect(int exit, const char *const *args, const char *const *words)
{
	struct run r = {.columns = 0};
	for (unsigned i = 0; args[i]; i++)
		r.args[i] = args[i];
	run(&r, exit);
	for (; *words; words++)
		assert_has(**words == '@' ? &r.err : &r.out, *words + (**words == '@'));
	run_fini(&r);
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- a daemon of our own --------------------------------------------------------------------- */

struct canned {
	const char *method, *json;
	int exit;
	enum ttrpc_code code; /* not 0: an error with json as its text */
};

static struct {
	const struct canned *answers;
	struct trunk *trunk[64];
	unsigned n_trunks;
	int fd;
	struct loop_io *io;
	bool garbage; /* answers with bytes that are no Response */
} fake;

static void serve(struct rpc_request *req, void *arg)
{
	static const ProtobufCMessage *const nothing = NULL;
	for (const struct canned *c = fake.answers; c->method; c++) {
		Control__Response res = CONTROL__RESPONSE__INIT;
		if (!str_eq(c->method, req->method))
			continue;
		if (c->code) {
			(void)rpc_reply_error(req, c->code, "%s", c->json);
			return;
		}
		res.json.data = (uint8_t *)(uintptr_t)c->json;
		res.json.len = strlen(c->json);
		res.exit = c->exit;
		(void)rpc_reply(req, &res.base);
		return;
	}
	(void)rpc_reply(req, nothing);
}

static void ignore_closed(struct trunk *t, const struct err *err, void *arg)
{
}

static void fake_accept(unsigned events, void *arg)
{
	const struct trunk_config config = {.closed = ignore_closed};
	struct err err = ERR_INIT;
	int fd = wire_accept(fake.fd);
	assert_true(fd >= 0 && fake.n_trunks < 64);
	assert_int_equal(trunk_new(fx.loop, fd, &config, &fake.trunk[fake.n_trunks], &err), 0);
	rpc_serve(trunk_rpc(fake.trunk[fake.n_trunks++], 0), serve, NULL);
}

static void fake_start(const struct canned *answers)
{
	struct err err = ERR_INIT;
	fake.answers = answers;
	fake.n_trunks = 0;
	(void)mkdir(fx.run, 0750);
	fake.fd = wire_listen_unix(fx.socket, 0600, &err);
	assert_true(fake.fd >= 0);
	fake.io = loop_io_new(fx.loop, fake.fd, LOOP_READ, fake_accept, NULL);
}

static void fake_stop(void)
{
	while (fake.n_trunks)
		trunk_free(fake.trunk[--fake.n_trunks]);
	fake.io = loop_io_free(fake.io);
	if (fake.fd >= 0)
		(void)close(fake.fd);
	fake.fd = -1;
}

static int setup(void **state)
{
	fixture_init(&fx, "modules");
	strcpy(modules, fx.modules);
	(void)snprintf(program, sizeof program, "%.4000s/../bin/nri-rpctl", fx.modules);
	fake.fd = -1;
	return access(program, X_OK);
}

static int teardown(void **state)
{
	fake_stop();
	fixture_fini(&fx);
	return 0;
}

/* ---- configurations without a daemon --------------------------------------------------------- */

static void test_local(void **state)
{
	fixture_write(fx.config, STATIC);
	const char *const dir = modules;
	expect(0, ARGS("config", "check", fx.config, "--module-dir", dir), WORDS("Good: "));
	expect(0, ARGS("config", "check", "--config", fx.config, "--module-dir", dir, "--json"),
	       WORDS("\"outcome\":\"accepted\"", "\"problems\":[]"));
	expect(0, ARGS("config", "show", "--config", fx.config, "--module-dir", dir, "--origin"),
	       WORDS("policy: static", "rp.conf:1"));
	expect(0, ARGS("config", "show", "--config", fx.config, "--module-dir", dir, "--json"),
	       WORDS("\"yaml\":\"policy"));
	fixture_write(fx.config,
		      "policy: static\nstatic: {reservedResource: {cpu: 1}}\nstrict: true\n");
	expect(78, ARGS("config", "check", fx.config, "--module-dir", dir),
	       WORDS("error: ", "static.reservedResource: unknown key"));
	expect(78, ARGS("config", "check", fx.config, "--module-dir", dir, "--json"),
	       WORDS("\"outcome\":\"refused\"", "unknown key"));
	expect(78, ARGS("config", "show", "--config", fx.config, "--module-dir", dir),
	       WORDS("unknown key"));
	fixture_write(fx.config, "policy: none\nstrict: false\nnobody: {a: 1}\n");
	expect(0, ARGS("config", "check", fx.config, "--module-dir", dir),
	       WORDS("warning: ", "nobody", "Good: "));
	expect(1, ARGS("config", "check", "/no/such/file"), WORDS("@No such file"));
	/* The directory is the configuration's own. */
	char text[PATH_MAX + 100];
	(void)snprintf(text, sizeof text,
		       "policy: static\nmodules: {path: [%s]}\nstatic: {reservedResource: 1}\n",
		       dir);
	fixture_write(fx.config, text);
	expect(78, ARGS("config", "check", fx.config), WORDS("unknown key"));
	expect(0, ARGS("config", "schema", "--config", fx.config, "static", "core"),
	       WORDS("static\n", "reservedResources.cpu\n", "core\n", "control.socket\n"));
}

static void test_local_kinds(void **state)
{
	char faulty[128], command[2 * PATH_MAX + 256];
	(void)snprintf(faulty, sizeof faulty, "%s/faulty", fx.dir);
	(void)snprintf(command, sizeof command,
		       "mkdir %s && cp %.4000s/../test/modules/good.so "
		       "%.4000s/../test/modules/undefined.so %s",
		       faulty, modules, modules, faulty);
	assert_int_equal(system(command), 0);
	fixture_write(fx.config,
		      "apiVersion: config.nri/v1alpha1\nkind: GoodPolicy\nmetadata: {name: x}\n"
		      "spec: {reservedResources: {cpu: 1}}\n");
	expect(0, ARGS("config", "show", "--config", fx.config, "--module-dir", faulty),
	       WORDS("policy: good\n"));
	fixture_write(fx.config,
		      "apiVersion: config.nri/v1alpha1\nkind: NobodysPolicy\nspec: {}\n");
	expect(78, ARGS("config", "check", fx.config, "--module-dir", faulty),
	       WORDS("NobodysPolicy"));
	/* Modules that are there and cannot be loaded. */
	fixture_write(fx.config,
		      "policy: good\ngood: {reservedResources: {cpu: 1}}\nundefined: {x: 1}\n");
	expect(0, ARGS("config", "check", fx.config, "--module-dir", faulty), WORDS("Good: "));
}

/* ---- with answers that no daemon of ours gives ----------------------------------------------- */

static void test_strange_answers(void **state)
{
	static const struct canned answers[] = {
		{"Status", "refused for a reason", 0, TTRPC_UNAVAILABLE},
		{"Pods", "no JSON", 0, 0},
		{"Containers", "{\"error\":\"a \\u001b[31mbad\\u001b[0m thing\"}", 0, 0},
		{"Events", "not now", 0, TTRPC_INTERNAL},
		{"Doctor", "not now", 0, TTRPC_INTERNAL},
		{NULL, NULL, 0, 0},
	};
	fake_start(answers);
	expect(1, ARGS("status"), WORDS("@nri-rpctl: refused for a reason\n"));
	expect(1, ARGS("pods"), WORDS("@the daemon's reply is not JSON"));
	expect(1, ARGS("containers"), WORDS("@nri-rpctl: a ?[31mbad?[0m thing\n"));
	expect(1, ARGS("events"), WORDS("@not now"));
	expect(1, ARGS("doctor"), WORDS("does not answer: not now"));
	/* An answer of nothing. */
	expect(1, ARGS("zones"), WORDS("@is not JSON"));
}

/* Documents of a daemon that means ill, or of another version. */
static const struct canned hostile[] = {
	{"Containers",
	 "[{\"full_name\":\"a/\\u001b]0;title\\u0007/"
	 "c\",\"state\":\"running\",\"qos\":\"x\",\"cpus\":\"0\","
	 "\"degraded\":\"why\\nnot\",\"wanted\":{\"cpu_request_milli\":1500,\"memory_"
	 "request\":1}},"
	 "{\"full_name\":\"b\",\"state\":\"exited\",\"cpus\":\"0-3\",\"exclusive\":\"1\"},{"
	 "}]",
	 0, 0},
	{"Status", "{}", 4, 0},
	{"Pods", "[{\"containers\":3,\"live\":1,\"stopped\":true},{\"degraded\":1}]", 0, 0},
	{"Explain",
	 "{\"values\":[{\"name\":\"x\",\"decided\":null,\"asked\":null,\"in_force\":null},"
	 "{\"name\":\"memory_limit\",\"decided\":1024,\"asked\":1.5,\"in_force\":\"s\"}],"
	 "\"cpus\":\"0-3\",\"exclusive\":\"1\",\"degraded\":\"it is bad\",\"remark\":\"so "
	 "it is\","
	 "\"rdt_class\":\"gold\",\"flags\":[\"memory-estimated\"],\"why\":[\"t1\",\"t2\"]"
	 ","
	 "\"update_waits\":true,\"section\":\"s:1\",\"configured_at\":\"c:2\","
	 "\"controllers\":[{\"name\":\"rdt\",\"result\":\"failed\",\"text\":\"no room\"},"
	 "{\"name\":\"cpu\",\"result\":\"done\"}],"
	 "\"annotations\":{\"k\\u001b\":\"v\"}}",
	 0, 0},
	{"Zones",
	 "[{\"name\":\"a\",\"parent\":\"a\"},{\"name\":\"b\",\"parent\":\"nobody\"},"
	 "{\"name\":\"c\",\"type\":\"t\",\"parent\":\"b\",\"resources\":[{\"name\":\"cpu\","
	 "\"available\":-5,"
	 "\"allocatable\":1000},{\"name\":\"memory\",\"available\":-1,\"allocatable\":2048}"
	 "]}]",
	 0, 0},
	{"Modules",
	 "{\"modules\":[{\"name\":\"a\",\"quarantined\":true,\"deaths\":3},{\"name\":\"b\","
	 "\"hidden\":true},"
	 "{\"name\":\"c\",\"error\":\"is "
	 "broken\"},{\"name\":\"d\",\"stale\":\"changed\",\"in_use\":true},"
	 "{\"name\":\"e\",\"stale\":\"gone\"},{\"name\":\"f\",\"loaded\":true},"
	 "{\"name\":\"g\",\"kinds\":[\"policy\",\"controller\"]},{\"name\":\"h\",\"stale\":"
	 "\"changed\"},"
	 "{\"name\":\"i\",\"stale\":\"gone\",\"in_use\":true}],"
	 "\"deaths\":[{\"module\":\"a\",\"cause\":\"hung\",\"call\":\"allocate\","
	 "\"object\":\"x/y/z\","
	 "\"time\":\"2026-01-31T12:00:00.000Z\"},{\"module\":\"a\",\"cause\":\"died\","
	 "\"call\":\"sync\"}]}",
	 0, 0},
	{"ModulesClear", "{\"cleared\":\"a\"}", 0, 0},
	{"Reload",
	 "{\"outcome\":\"in "
	 "force\",\"generation\":3,\"took_us\":1500,\"problems\":[\"w1\"],\"changes\":["
	 "\"c1\"],"
	 "\"restart_needed\":true,\"moves\":[{\"container\":\"d/p/"
	 "c\",\"from_cpus\":\"0\",\"to_cpus\":\"1\",\"moved\":true,\"note\":\"n\"}]}",
	 0, 0},
	{"Plan", "{\"outcome\":\"failed\",\"error\":\"of another kind\",\"problems\":[\"first\"]}",
	 1, 0},
	{"Events",
	 "{\"events\":[{\"seq\":1,\"time\":\"2026-01-31T12:00:00Z\",\"kind\":\"a-kind-of-"
	 "another-version\","
	 "\"text\":\"x\\u009by\"}],\"last\":1}",
	 0, 0},
	{"Doctor",
	 "[{\"check\":\"a check with a long "
	 "name\",\"verdict\":\"note\",\"text\":\"t\",\"hint\":\"do it\"},"
	 "{\"check\":\"b\",\"verdict\":\"strange\",\"text\":\"t\"}]",
	 4, 0},
	{"LogLevel", "[]", 0, 0},
	{"ConfigShow", "{\"yaml\":\"a: 1\\n  b: \\\"\\u001b\\\"\\n\"}", 0, 0},
	{NULL, NULL, 0, 0},
};

static void test_hostile_documents(void **state)
{
	fixture_write(fx.config, NONE);
	fake_start(hostile);
	expect(0, ARGS("containers"),
	       WORDS("a/?]0;title?/c", "1.5", "1 B", "! a/?]0;title?/c: why?not\n"));
	expect(4, ARGS("status"), WORDS("healthy", "not connected"));
	expect(0, ARGS("pods"), WORDS("1/3", "stopped", "degraded"));
	expect(0, ARGS("explain", "x"),
	       WORDS("Degraded      it is bad\n", "0-3, exclusive: 1\n",
		     "estimated from its OOM score", "RDT class     gold\n",
		     "rdt           failed: no room\n", "cpu           done\n", "1 KiB",
		     "an update is waiting to be sent", "  so it is\n  t1\n  t2\n", "k?: v"));
	expect(0, ARGS("zones"), WORDS("  c", "-5m of 1", "0 B of 2 KiB"));
	expect(0, ARGS("modules"),
	       WORDS("quarantined", "hidden", "unusable", "in use, replaced on disk",
		     "loaded, file gone", "policy, controller", "! is broken\n",
		     "a hung in allocate of x/y/z\n", "in use, file gone",
		     "loaded, replaced on disk"));
	expect(0, ARGS("modules", "clear", "a"), WORDS("Module a is no longer quarantined"));
	expect(0, ARGS("reload"),
	       WORDS("Active, generation 3; 1 container moved (1.5 ms)\n", "Warnings\n  w1\n",
		     "Changes\n  c1\n", "after a restart of nri-rpd", "d/p/c", "→ CPUs"));
	expect(1, ARGS("plan", fx.config), WORDS("Failed:\n  first\n  of another kind\n"));
	expect(0, ARGS("events"), WORDS("Jan 31 12:00:00  a-kind-of-another-version  x?y\n"));
	expect(4, ARGS("doctor"), WORDS("• a check with a long name  t\n", "→ do it\n"));
	expect(0, ARGS("log", "level"), WORDS("Debug sources none\n"));
	expect(0, ARGS("config", "show"), WORDS("a: 1\n  b: \"?\"\n"));
}

/* Machines as maps: many caches, many groups, memory-only nodes, thousands of CPUs. */
static char *machine(unsigned n_cpus, unsigned per_node, unsigned per_cache, unsigned n_groups)
{
	struct buf b = BUF_INIT;
	(void)buf_printf(
		&b,
		"{\"n_packages\":1,\"n_nodes\":2,\"n_cores\":%u,\"n_cpus\":%u,\"memory\":1024,"
		"\"isolated\":\"1\",\"online\":\"0-%u\",\"present\":\"0-%u\",\"unconfined\":2,"
		"\"cpus\":[",
		n_cpus / 2, n_cpus, n_cpus - 1, n_cpus);
	for (unsigned i = 0; i < n_cpus; i++)
		(void)buf_printf(&b,
				 "%s{\"cpu\":%u,\"package\":0,\"node\":%u,\"cache_unit\":%u,\"core_"
				 "unit\":%u}",
				 i ? "," : "", i, i / per_node, i / per_cache, i / 2);
	(void)buf_add_str(
		&b,
		"],\"nodes\":[{\"node\":0,\"type\":\"DRAM\",\"memory\":1073741824,\"cpus\":\"0\"},"
		"{\"node\":9,\"type\":\"CXL\",\"memory\":1073741824,\"package\":0,\"cpus\":\"\"}],"
		"\"groups\":[");
	for (unsigned i = 0; i < n_groups; i++)
		(void)buf_printf(&b,
				 "%s{\"exclusive\":%s,\"cpus\":\"%u\",\"containers\":[\"c%u\"]}",
				 i ? "," : "", i + 1 < n_groups ? "true" : "false", i, i);
	(void)buf_add_str(&b, ",{\"exclusive\":false,\"cpus\":\"not a set\",\"containers\":"
			      "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}]}");
	char *text = strdup(buf_text(&b));
	buf_fini(&b);
	return text;
}

static void show_machine(const char *json, const char *const *args, const char *const *words)
{
	const struct canned answers[] = {{"Topology", json, 0, 0}, {NULL, NULL, 0, 0}};
	fake_start(answers);
	expect(0, args, words);
	fake_stop();
}

static void test_maps(void **state)
{
	char *json = machine(16, 8, 4, 3);
	show_machine(json, ARGS("topology"),
		     WORDS("isolated: 1\n", "offline: 16\n", "cache 0    0 A  1 B │  2 a  3 ·\n",
			   "cache 3   12 ·", "memory node 9  CXL 1 GiB, near package 0\n",
			   "2 containers may run on any CPU", "1, 2, 3", ", …\n",
			   "8 CPUs: 2 exclusive, 1 shared, 5 free", "8 CPUs: 8 free"));
	show_machine(json, ARGS("topology", "--table"),
		     WORDS("exclusive  c0\n", "free       -\n", "shared     c2\n"));
	free(json);
	json = machine(128, 64, 64, 60);
	show_machine(json, ARGS("topology"), WORDS("  0 AA   1 AB", " 58 CG  59 aa", "  · "));
	free(json);
	json = machine(1024, 512, 512, 2);
	show_machine(json, ARGS("topology"),
		     WORDS("  node 0  DRAM 1 GiB, 512 CPUs: 1 exclusive, 1 shared, 510 free\n"
			   "    A 0   a 1   free 2-511\n"));
	free(json);
	show_machine("{}", ARGS("topology"), WORDS("0 packages"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_local),
		TEST(test_local_kinds),
		TEST(test_strange_answers),
		TEST(test_hostile_documents),
		TEST(test_maps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
