/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics and health of a real pipeline, and the server they come from. */
#include "core/nri-rpd/metrics/modules.c"
#undef LOG_SOURCE
#include "core/nri-rpctl/call.c"
#include "core/lib/term/out.c"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/un.h>

#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/metrics/health.h"
#include "core/nri-rpd/metrics/server.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"

static struct fixture fx;
static struct metrics *metrics;

static int setup(void **state)
{
	fixture_init(&fx, "modules");
	return 0;
}

static int teardown(void **state)
{
	metrics = metrics_free(metrics);
	fixture_fini(&fx);
	return 0;
}

static char *render(void)
{
	struct buf out = BUF_INIT;
	assert_int_equal(metrics_render(fx.pipeline, &out), 0);
	char *text = strdup(buf_text(&out));
	buf_fini(&out);
	return text;
}

/* Returns the value of a sample; fails if it is missing. */
static double sample(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == ' ')
			return strtod(line + n + 1, NULL);
	}
	fail_msg("there is no %s in\n%s", name, text);
	return 0;
}

/* ---- host metrics ---------------------------------------------------------------------------- */

static void test_host(void **state)
{
	fixture_start(&fx, STATIC);
	char *text = render();
	assert_true(sample(text, "nri_rp_runtime_connected") == 0);
	assert_true(sample(text, "nri_rp_degraded") == 1);
	assert_null(strstr(text, "nri_rp_runtime_info{"));
	free(text);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "own", 2000, NULL, 0), 0);
	assert_int_not_equal(fixture_create(&fx, "huge", 64000, NULL, 0), 0);
	text = render();
	assert_true(sample(text, "nri_rp_build_info{version=\"" NRI_RP_VERSION "\"}") == 1);
	assert_true(sample(text, "nri_rp_policy_info{policy=\"static\",version=\"1.0\",configured="
				 "\"static\"}") == 1);
	assert_true(sample(text, "nri_rp_runtime_info{name=\"containerd\",version=\"v2.0.0\",nri_"
				 "version=\"0.11\"}") == 1);
	assert_true(sample(text, "nri_rp_runtime_connected") == 1);
	assert_true(sample(text, "nri_rp_degraded") == 0);
	assert_true(sample(text, "nri_rp_safe_mode") == 0);
	assert_true(sample(text, "nri_rp_config_ok") == 1);
	assert_true(sample(text, "nri_rp_config_generation") == 1);
	assert_true(sample(text, "nri_rp_requests_total{event=\"CreateContainer\"}") == 2);
	assert_true(sample(text, "nri_rp_requests_failed_total{event=\"CreateContainer\"}") == 1);
	assert_true(sample(text, "nri_rp_requests_total{event=\"RemoveContainer\"}") == 0);
	assert_true(
		sample(text, "nri_rp_request_duration_seconds_count{event=\"CreateContainer\"}") ==
		2);
	assert_true(sample(text, "nri_rp_request_duration_seconds_bucket{event=\"CreateContainer\","
				 "le=\"+Inf\"}") == 2);
	assert_true(sample(text, "nri_rp_request_duration_seconds_sum{event=\"CreateContainer\"}") >
		    0);
	assert_true(sample(text, "nri_rp_request_duration_max_seconds{event=\"CreateContainer\"}") >
		    0);
	assert_true(sample(text, "nri_rp_store_commits_total") > 0);
	assert_true(sample(text, "process_resident_memory_bytes") > 1e6);
	double age = (double)clock_wall_ns() / 1e9 - sample(text, "process_start_time_seconds");
	assert_true(age > -1 && age < 3600);
	assert_true(sample(text, "process_open_fds") > 3);
	free(text);
}

/* Buckets never fall, and the last is the count. */
static void test_histogram_adds_up(void **state)
{
	double last = 0, inf = 0;
	unsigned n = 0;
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	for (unsigned i = 0; i < 20; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "p%u", i);
		assert_int_equal(fixture_create(&fx, name, 0, NULL, 0), 0);
	}
	char *text = render();
	static const char head[] =
		"nri_rp_request_duration_seconds_bucket{event=\"CreateContainer\",";
	for (const char *at = text; (at = strstr(at, head)); n++) {
		const char *value = strchr(at, '}') + 2;
		inf = strtod(value, NULL);
		assert_true(inf >= last);
		last = inf;
		at = value;
	}
	assert_int_equal(n, HISTOGRAM_BUCKETS);
	assert_true(inf == 20);
	free(text);
}

static void test_system(void **state)
{
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "own", 2000, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "one", 0, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "two", 0, NULL, 0), 0);
	char *text = render();
	assert_true(
		sample(text,
		       "nri_policy_mem_node_capacity_bytes{node_id=\"0\",node_type=\"DRAM\"}") ==
		1073741824.0);
	assert_true(sample(text, "nri_policy_mem_node_containers{node_id=\"1\"}") == 0);
	assert_true(sample(text, "nri_policy_mem_node_usage_bytes{node_id=\"0\"}") == 0);
	const struct ctr *own = cache_ctr_find(pipeline_cache(fx.pipeline), "own/c0", NULL);
	uint32_t first = rp_ids_first(own->cur.cpus->ids);
	double total = 0, count = 0;
	for (uint32_t cpu = 0; cpu < 8; cpu++) {
		char name[96];
		(void)snprintf(name, sizeof name, "nri_policy_cpu_allocation_cores{cpu_id=\"%u\"}",
			       cpu);
		total += sample(text, name);
		(void)snprintf(name, sizeof name, "nri_policy_cpu_containers{cpu_id=\"%u\"}", cpu);
		count += sample(text, name);
		assert_true(sample(text, name) == (rp_ids_has(own->cur.cpus->ids, cpu) ? 1 : 2));
	}
	assert_true(total > 1.999 && total < 2.001);
	assert_true(count == 2 + 2 * 6);
	assert_in_range(first, 1, 7);
	assert_true(sample(text, "nri_policy_static_cpus{set=\"exclusive\"}") == 2);
	assert_true(sample(text, "nri_rp_module_samples_rejected") == 0);
	free(text);
}

static void test_globs(void **state)
{
	fixture_start(&fx, STATIC
		      "instrumentation: {prometheusExport: true, metrics: {enabled: [system]}}\n");
	char *text = render();
	assert_non_null(strstr(text, "nri_policy_cpu_containers"));
	assert_null(strstr(text, "nri_policy_static_cpus"));
	assert_null(strstr(text, "nri_rp_build_info"));
	assert_non_null(strstr(text, "nri_rp_pods"));
	free(text);
}

static void test_globs_of_modules(void **state)
{
	fixture_start(&fx, STATIC "instrumentation: {prometheusExport: true, metrics: {enabled: "
				  "[], polled: [\"policy/st*\"]}}\n");
	char *text = render();
	assert_null(strstr(text, "nri_policy_cpu_containers"));
	assert_non_null(strstr(text, "nri_policy_static_cpus"));
	free(text);
}

/* ---- samples of modules ---------------------------------------------------------------------- */

static void test_module_samples(void **state)
{
	struct expo e;
	struct buf out = BUF_INIT;
	char longest[300];
	fixture_start(&fx, STATIC);
	expo_init(&e);
	struct scrape s = {.e = &e, .p = fx.pipeline, .instance = pipeline_policy(fx.pipeline)};
	on_gauge(&s, "policy_static_a", "A.", "", 1);
	on_gauge(&s, "static_b", "B.", NULL, 2);
	on_counter(&s, "c_total", NULL, "x=\"y\"", 3);
	on_gauge(&s, "static", "D.", "", 4);
	assert_int_equal(s.rejected, 0);
	on_gauge(&s, "policy_static_a", "A.", "", 1); /* twice */
	on_counter(&s, "policy_static_a", "A.", "x=\"y\"", 1); /* another type */
	on_gauge(&s, "bad name", "", "", 1);
	on_gauge(&s, "", "", "", 1);
	on_gauge(&s, NULL, "", "", 1);
	on_gauge(&s, "e", "", "x", 1);
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	on_gauge(&s, longest, "", "", 1);
	assert_int_equal(s.rejected, 7);
	assert_int_equal(expo_write(&e, &out), 0);
	assert_string_equal(
		buf_text(&out),
		"# HELP nri_policy_static_a A.\n# TYPE nri_policy_static_a "
		"gauge\nnri_policy_static_a 1\n"
		"# HELP nri_policy_static_b B.\n# TYPE nri_policy_static_b "
		"gauge\nnri_policy_static_b 2\n"
		"# TYPE nri_policy_static_c_total counter\nnri_policy_static_c_total{x=\"y\"} 3\n"
		"# HELP nri_policy_static_static D.\n# TYPE nri_policy_static_static gauge\n"
		"nri_policy_static_static 4\n");
	buf_fini(&out);
	expo_fini(&e);
}

static void test_module_samples_are_bounded(void **state)
{
	struct expo e;
	fixture_start(&fx, STATIC);
	expo_init(&e);
	struct scrape s = {.e = &e, .p = fx.pipeline, .instance = pipeline_policy(fx.pipeline)};
	for (unsigned i = 0; i < METRICS_SAMPLES_MAX + 5; i++) {
		char labels[32];
		(void)snprintf(labels, sizeof labels, "i=\"%u\"", i);
		on_gauge(&s, "many", "", labels, i);
	}
	assert_int_equal(s.rejected, 5);
	expo_fini(&e);
}

static void test_squeeze(void **state)
{
	char name[RP_NAME_MAX];
	modules_squeeze("topology-aware", name);
	assert_string_equal(name, "topologyaware");
	modules_squeeze("static", name);
	assert_string_equal(name, "static");
}

/* ---- health ---------------------------------------------------------------------------------- */

static void test_health(void **state)
{
	struct buf out = BUF_INIT;
	fixture_start(&fx, STATIC);
	assert_false(health_check(fx.pipeline, &out));
	assert_non_null(strstr(buf_text(&out), "runtime: the runtime is not connected"));
	buf_reset(&out);
	pipeline_runtime(fx.pipeline)->connected = true;
	assert_false(health_check(fx.pipeline, &out));
	assert_string_equal(buf_text(&out),
			    "runtime: the runtime has not sent its list of containers yet\n");
	buf_reset(&out);
	fixture_connect(&fx);
	assert_true(health_check(fx.pipeline, &out));
	assert_int_equal(buf_len(&out), 0);
	fixture_write(fx.config, "policy: {}\n");
	json_decref(fixture_get(&fx, "Reload", NULL, CTL_CONFIG));
	assert_false(health_check(fx.pipeline, &out));
	assert_non_null(strstr(buf_text(&out), "configuration: the last reload was refused: "));
	buf_fini(&out);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int connect_to(struct asking *a)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)metrics_port(metrics))};
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0) {
		a->result = -errno;
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* Sends, and reads to the end. */
static char *exchange(struct asking *a, const char *request)
{
	struct buf in = BUF_INIT;
	int fd = connect_to(a);
	if (fd < 0)
		return NULL;
	if (write(fd, request, strlen(request)) < 0)
		a->result = -errno;
	for (;;) {
		uint8_t *to = buf_reserve(&in, 65536);
		ssize_t n = read(fd, to, 65536);
		if (n <= 0) {
			if (n < 0)
				a->result = -errno;
			break;
		}
		buf_commit(&in, (size_t)n);
	}
	(void)close(fd);
	char *text = strdup(buf_text(&in));
	buf_fini(&in);
	return text;
}

static void send_one(struct asking *a)
{
	const char **texts = a->arg; /* request, answer */
	texts[1] = exchange(a, texts[0]);
}

static char *http(const char *request)
{
	const char *texts[2] = {request, NULL};
	struct asking a = {.f = &fx, .fn = send_one, .arg = texts};
	fixture_run(&a);
	assert_int_equal(a.result, 0);
	return (char *)(uintptr_t)texts[1];
}

static void start_metrics(const char *listen)
{
	struct err err = ERR_INIT;
	if (metrics_new(fx.loop, fx.pipeline, listen, &metrics, &err))
		fail_msg("%s", err.text);
}

static void assert_status(const char *request, const char *status, const char *body)
{
	char *text = http(request);
	if (strncmp(text, status, strlen(status)) != 0 || !strstr(text, body))
		fail_msg("%s gives %s", request, text);
	free(text);
}

static void test_routes(void **state)
{
	fixture_start(&fx, STATIC "instrumentation: {prometheusExport: true}\n");
	start_metrics("127.0.0.1:0");
	assert_status("GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 500 Internal",
		      "runtime: the runtime is not connected");
	fixture_connect(&fx);
	assert_status("GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nok\n");
	assert_status("GET /readyz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nok\n");
	assert_status("GET /livez HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nok\n");
	assert_status("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\nnri_rp_pods 0\n");
	assert_status("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "version=0.0.4");
	assert_status("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "/metrics");
	assert_status("GET /other HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "/metrics");
	assert_status("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n");
	assert_status("GET /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 413 ",
		      "");
	assert_status("nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", "");
	char *text = http("HEAD /metrics HTTP/1.1\r\n\r\n");
	assert_non_null(strstr(text, "HTTP/1.1 200 OK\r\n"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	assert_true(strtoul(strstr(text, "Content-Length: ") + 16, NULL, 10) > 1000);
	free(text);
}

static void test_export_off(void **state)
{
	fixture_start(&fx, NONE "instrumentation: {prometheusExport: false}\n");
	start_metrics("127.0.0.1:0");
	assert_status("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "prometheusExport is off");
	assert_status("GET /livez HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "ok");
}

static void test_long_header(void **state)
{
	static char request[METRICS_HEADER_MAX + 101];
	fixture_start(&fx, NONE);
	start_metrics("127.0.0.1:0");
	memset(request, 'a', sizeof request - 1);
	memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
	assert_status(request, "HTTP/1.1 4", "");
}

/* Connects so often and asks nothing; then a probe is answered. Returns how many were closed. */
static unsigned crowd_of(struct asking *a, int *fds, unsigned n)
{
	unsigned closed = 0;
	for (unsigned i = 0; i < n; i++)
		fds[i] = connect_to(a);
	(void)usleep(3 * METRICS_YOUNG_MS * 1000);
	char *answer = exchange(a, "GET /livez HTTP/1.1\r\n\r\n");
	if (!answer || !strstr(answer, "200 OK"))
		a->result = -EPROTO;
	free(answer);
	for (unsigned i = 0; i < n; i++) {
		char byte;
		closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
	}
	return closed;
}

/* Opens more connections than a client, and than all clients, may have: a probe is answered, and
 * the newest connections are served. */
static void crowd(struct asking *a)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
	int fds[METRICS_ACCEPTED_MAX + 40];
	char text[512];
	const unsigned numbers[] = {METRICS_ADDRESS_MAX + 3, METRICS_ACCEPTED_MAX + 40};
	for (unsigned k = 0; k < 2; k++) {
		unsigned n = numbers[k];
		if (crowd_of(a, fds, n) != n + 1 - METRICS_ADDRESS_MAX)
			a->result = -EPROTO;
		if (write(fds[n - 1], request, sizeof request - 1) < 0 ||
		    read(fds[n - 1], text, sizeof text) <= 0)
			a->result = -EPROTO;
		for (unsigned i = 0; i < n; i++)
			(void)close(fds[i]);
	}
}

static void test_crowd(void **state)
{
	struct asking a = {.f = &fx, .fn = crowd};
	fixture_start(&fx, NONE);
	start_metrics("127.0.0.1:0");
	fixture_run(&a);
	assert_int_equal(a.result, 0);
}

/* Sends a byte from time to time, which does not extend the time limit. */
static void dripping(struct asking *a)
{
	int fd = connect_to(a);
	uint64_t before = clock_ms();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool closed = false;
	if (write(fd, "GET / HTTP/1.1\r\nX: ", 19) < 0)
		a->result = -errno;
	while (!closed && clock_ms() - before < 4ull * METRICS_REQUEST_MS) {
		char byte;
		if (poll(&p, 1, 200) == 1)
			closed = read(fd, &byte, 1) <= 0;
		else if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
			closed = true;
	}
	if (!closed)
		a->result = -EPROTO;
	(void)close(fd);
}

static void test_dripping(void **state)
{
	struct asking a = {.f = &fx, .fn = dripping};
	fixture_start(&fx, NONE);
	start_metrics("127.0.0.1:0");
	fixture_run(&a);
	assert_int_equal(a.result, 0);
}

/* Connects from a bound address: the kernel passes it to the server, however long it is. */
static void named_client(struct asking *a)
{
	static const char request[] = "GET /livez HTTP/1.1\r\n\r\n";
	struct sockaddr_un own = {.sun_family = AF_UNIX}, to = {.sun_family = AF_UNIX};
	char text[64] = "";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(to.sun_path, sizeof to.sun_path, "%s", (const char *)a->arg);
	(void)snprintf(own.sun_path, sizeof own.sun_path, "%.60s-%032d", to.sun_path, 0);
	if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ||
	    write(fd, request, sizeof request - 1) < 0)
		a->result = -errno;
	else if (read(fd, text, sizeof text - 1) < 12 || memcmp(text, "HTTP/1.1 200", 12) != 0)
		a->result = -EPROTO;
	(void)unlink(own.sun_path);
	(void)close(fd);
}

static void test_named_client(void **state)
{
	char listen[128];
	struct asking a = {.f = &fx, .fn = named_client, .arg = listen + 5};
	fixture_start(&fx, NONE);
	(void)snprintf(listen, sizeof listen, "unix:%s/m.sock", fx.dir);
	start_metrics(listen);
	fixture_run(&a);
	assert_int_equal(a.result, 0);
}

/* Connects a client that never finishes its request, a client that leaves at once, and a client
 * that resets. */
static void bad_clients(struct asking *a)
{
	const struct linger reset = {1, 0};
	char byte;
	int slow = connect_to(a), gone = connect_to(a), broken = connect_to(a);
	(void)close(gone);
	if (write(slow, "GET /", 5) < 0 || write(broken, "GET / HTTP/1.1\r\n\r\n", 18) < 0)
		a->result = -errno;
	(void)setsockopt(broken, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	(void)close(broken);
	uint64_t before = clock_ms();
	struct pollfd p = {.fd = slow, .events = POLLIN};
	(void)poll(&p, 1, 20000);
	if (read(slow, &byte, 1) != 0 || clock_ms() - before < METRICS_REQUEST_MS / 2)
		a->result = -EPROTO;
	(void)close(slow);
}

static void test_bad_clients(void **state)
{
	struct asking a = {.f = &fx, .fn = bad_clients};
	fixture_start(&fx, NONE);
	start_metrics("127.0.0.1:0");
	fixture_run(&a);
	assert_int_equal(a.result, 0);
	assert_status("GET /livez HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "ok");
}

/* Reads slowly an answer that exceeds the socket's buffers, and leaves another unread when the
 * server ends. */
static void slow_reader(struct asking *a)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
	const int small = 4096;
	char text[8192];
	size_t total = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)metrics_port(metrics))};
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 ||
	    write(fd, request, sizeof request - 1) < 0)
		a->result = -errno;
	(void)usleep(50000);
	for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;)
		total += (size_t)n;
	if (total < 10000)
		a->result = -EPROTO;
	(void)close(fd);
}

static void test_slow_reader(void **state)
{
	struct asking a = {.f = &fx, .fn = slow_reader};
	fixture_start(&fx, STATIC "instrumentation: {prometheusExport: true}\n");
	fixture_connect(&fx);
	start_metrics("127.0.0.1:0");
	fixture_run(&a);
	assert_int_equal(a.result, 0);
}

static void test_unix_socket(void **state)
{
	struct err err = ERR_INIT;
	struct stat st;
	char listen[128];
	fixture_start(&fx, NONE);
	(void)snprintf(listen, sizeof listen, "unix:%s/m.sock", fx.dir);
	start_metrics(listen);
	assert_int_equal(metrics_port(metrics), 0);
	assert_int_equal(stat(listen + 5, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	struct metrics *second = NULL;
	assert_int_equal(metrics_new(fx.loop, fx.pipeline, listen, &second, &err), -EADDRINUSE);
	assert_null(second);
	assert_int_equal(metrics_set_listen(metrics, "", &err), 0);
	assert_int_equal(stat(listen + 5, &st), -1);
	assert_int_equal(metrics_set_listen(metrics, listen, &err), 0);
	metrics = metrics_free(metrics);
	assert_int_equal(stat(listen + 5, &st), -1);
}

static void test_set_listen(void **state)
{
	struct err err = ERR_INIT;
	char same[64], all[64], other[64];
	fixture_start(&fx, NONE);
	start_metrics("");
	assert_int_equal(metrics_port(metrics), 0);
	assert_int_equal(metrics_set_listen(metrics, "127.0.0.1:0", &err), 0);
	unsigned port = metrics_port(metrics);
	assert_int_not_equal(port, 0);
	(void)snprintf(same, sizeof same, "127.0.0.1:%u", port);
	(void)snprintf(all, sizeof all, "0.0.0.0:%u", port);
	/* The old address is in the way of the new one. */
	assert_int_equal(metrics_set_listen(metrics, all, &err), 0);
	assert_int_equal(metrics_port(metrics), port);
	assert_int_equal(metrics_set_listen(metrics, same, &err), 0);
	assert_status("GET /livez HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "ok");
	assert_int_equal(metrics_set_listen(metrics, "nonsense", &err), -EINVAL);
	assert_int_equal(metrics_port(metrics), port);
	/* Another process uses the address, so the previous one is restored. */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t len = sizeof sa;
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	(void)snprintf(other, sizeof other, "127.0.0.1:%u", ntohs(sa.sin_port));
	err = (struct err)ERR_INIT;
	assert_int_equal(metrics_set_listen(metrics, other, &err), -EADDRINUSE);
	assert_true(err.text[0]);
	assert_int_equal(metrics_port(metrics), port);
	(void)close(fd);
	assert_status("GET /livez HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "ok");
	assert_int_equal(metrics_set_listen(metrics, same, &err), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_host),
		TEST(test_histogram_adds_up),
		TEST(test_system),
		TEST(test_globs),
		TEST(test_globs_of_modules),
		TEST(test_module_samples),
		TEST(test_module_samples_are_bounded),
		TEST(test_squeeze),
		TEST(test_health),
		TEST(test_routes),
		TEST(test_export_off),
		TEST(test_long_header),
		TEST(test_crowd),
		TEST(test_bad_clients),
		TEST(test_dripping),
		TEST(test_named_client),
		TEST(test_slow_reader),
		TEST(test_unix_socket),
		TEST(test_set_listen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
