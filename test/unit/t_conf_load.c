/* SPDX-License-Identifier: Apache-2.0 */
/* Files, merging, custom resources, the keys of the core: load.c, rewrite.c, core.c, errors.c. */
#include "test/unit/t_conf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- merging --------------------------------------------------------------------------------- */

static void test_merge(void **state)
{
	good("bare: {a: 1, m: {x: 1, y: 2}, l: [1, 2], s: {t: 1}, gone: {k: 1}, keep: 1}\n"
	     "---\n"
	     "bare: {b: 2, m: {y: 3, z: 4}, l: [3], s: 5, gone: ~, never: ~, keep: {k: 1}}\n");
	assert_string_equal(text_at("bare.a"), "1");
	assert_string_equal(text_at("bare.b"), "2");
	assert_string_equal(text_at("bare.m.x"), "1");
	assert_string_equal(text_at("bare.m.y"), "3");
	assert_string_equal(text_at("bare.m.z"), "4");
	assert_int_equal(conf_count(conf_get(conf_root(last.conf), "bare.l")), 1);
	assert_string_equal(text_at("bare.s"), "5");
	assert_null(conf_get(conf_root(last.conf), "bare.gone"));
	assert_non_null(conf_get(conf_root(last.conf), "bare.never"));
	assert_string_equal(text_at("bare.keep.k"), "1");
}

static void test_merge_keeps_places(void **state)
{
	struct conf_source sources[] = {
		source_of("rp.conf", "policy: balloons\nballoons:\n  reservedResources: {cpu: 1}\n "
				     " pinCPU: yes please\n"),
		source_of("rp.conf.d/50-types.conf", "balloons:\n  balloonTypes:\n  - name: a\n  - "
						     "name: b\n  - name: c\n    maxCPUs: many\n"),
	};
	(void)parse_sources(sources, 2, &test_schemas);
	assert_string_equal(
		problems(),
		"rp.conf:4:3: balloons.pinCPU: expected true or false, found \"yes please\"\n"
		"rp.conf.d/50-types.conf:6:5: balloons.balloonTypes[2].maxCPUs: expected an "
		"integer of at least 0, found "
		"\"many\"\n");
}

/* Checks that an error in an earlier file is ignored if a later file replaces the value. */
static void test_replaced_errors(void **state)
{
	good("policy: none\nlog: {level: loud}\n---\nlog: {level: debug}\n");
	assert_int_equal(core()->log.level, LOG_DEBUG);
}

/* ---- custom resources ------------------------------------------------------------------------ */

static void test_resource(void **state)
{
	good("cache: {dir: /x}\n"
	     "---\n" HEAD "metadata: {name: default, namespace: kube-system}\n"
	     "status: {nodes: {}}\n"
	     "spec:\n"
	     "  reservedResources: {cpu: 750m}\n"
	     "  balloonTypes:\n"
	     "  - name: a\n"
	     "  control: {rdt: {enable: false}, blockio: {enable: false}, cpu: {classes: {}}}\n"
	     "  log: {debug: [policy], source: true}\n"
	     "  instrumentation: {httpEndpoint: \":8891\", prometheusExport: true}\n"
	     "  agent: {nodeResourceTopology: false}\n"
	     "---\n"
	     "bare: {x: 1}\n");
	assert_string_equal(core()->policy, "balloons");
	char place[CONF_PLACE_MAX];
	assert_string_equal(conf_place(core()->policy_node, place, sizeof place),
			    "rp.conf:4:1: policy");
	assert_string_equal(text_at("balloons.reservedResources.cpu"), "750m");
	assert_string_equal(
		conf_place(conf_get(conf_root(last.conf), "balloons.reservedResources.cpu"), place,
			   sizeof place),
		"rp.conf:8:23: balloons.reservedResources.cpu");
	assert_null(conf_get(conf_root(last.conf), "balloons.log"));
	assert_null(conf_get(conf_root(last.conf), "control"));
	assert_string_equal(text_at("rdt.enable"), "false");
	assert_string_equal(text_at("blkio.enable"), "false");
	assert_non_null(conf_get(conf_root(last.conf), "cpu.classes"));
	assert_true(core()->log.source);
	check_strings(core()->log.debug, "policy");
	assert_string_equal(core()->metrics.listen, ":8891");
	assert_false(core()->agent.pod_resource_api);
	assert_string_equal(core()->cache_dir, "/x");
	assert_string_equal(text_at("bare.x"), "1");
}

static void test_resource_errors_have_places(void **state)
{
	bad(HEAD "spec:\n  reservedResources: {}\n  log: {debug: on}\n  balloonTypes: [{name: a, "
		 "maxCPUs: -1}]\n  control: {rdt: {enabel: true}}\n",
	    "rp.conf:4:3: balloons.reservedResources.cpu: missing required key\n"
	    "rp.conf:5:9: balloons.log.debug: expected a list, found \"on\"\n"
	    "rp.conf:6:28: balloons.balloonTypes[0].maxCPUs: expected an integer of at least 0, "
	    "found \"-1\"\n"
	    "rp.conf:7:19: balloons.control.rdt.enabel: unknown key, did you mean enable?\n");
}

static void test_bad_resources(void **state)
{
	bad("apiVersion: apps/v1\nkind: BalloonsPolicy\nspec: {}\n",
	    "rp.conf:1:1: apiVersion: expected config.nri/VERSION, found \"apps/v1\"\n");
	bad("kind: BalloonsPolicy\nspec: {}\n",
	    "rp.conf:1:1: apiVersion: expected config.nri/VERSION, found nothing\n");
	bad("apiVersion: [config.nri/v1]\nkind: BalloonsPolicy\nspec: {}\n",
	    "rp.conf:1:1: apiVersion: expected config.nri/VERSION, found a list\n");
	bad("apiVersion: config.nri/v1\nspec: {}\n",
	    "rp.conf:1:1: kind: expected the kind of a policy's custom resource, found nothing\n");
	bad("apiVersion: config.nri/v1\nkind: {}\nspec: {}\n",
	    "rp.conf:2:1: kind: expected the kind of a policy's custom resource, found a map\n");
	bad("apiVersion: config.nri/v1\nkind: Pod\nspec: {}\n",
	    "rp.conf:2:1: kind: no installed module has custom resources of kind "
	    "\"Pod\"\n");
	bad("apiVersion: config.nri/v1\nkind: BadName\nspec: {}\n",
	    "rp.conf:2:1: kind: no installed module has custom resources of kind "
	    "\"BadName\"\n");
	bad(HEAD, "rp.conf:1:1: spec: expected a map, found nothing\n");
	bad(HEAD "spec: [a]\n", "rp.conf:3:1: spec: expected a map, found a list\n");
	bad(HEAD "spec:\n", "rp.conf:3:1: spec: expected a map, found nothing\n");
	bad(HEAD "spec: {reservedResources: {cpu: 1}}\npolicy: none\n",
	    "rp.conf:4:1: policy: unknown key of a custom resource\n");
}

static void test_resource_and_files(void **state)
{
	/* The last word on the policy counts, and its common parts with it. */
	good("log: {level: warning, source: true}\n---\n" HEAD
	     "spec: {reservedResources: {cpu: 1}, log: {source: false}}\n---\npolicy: "
	     "topology-aware\n"
	     "topology-aware: {reservedResources: {cpu: 2}, agent: {nodeResourceTopology: "
	     "false}}\n");
	assert_string_equal(core()->policy, "topology-aware");
	assert_true(core()->log.source);
	assert_int_equal(core()->log.level, LOG_WARNING);
	assert_false(core()->agent.pod_resource_api);
	assert_null(conf_get(conf_root(last.conf), "topology-aware.agent"));
	/* A custom resource is merged like a file. */
	good("balloons: {pinCPU: false}\n---\n" HEAD
	     "spec: {reservedResources: {cpu: 1}}\n---\nballoons: {reservedResources: {cpu: 2}}\n");
	assert_string_equal(text_at("balloons.pinCPU"), "false");
	assert_string_equal(text_at("balloons.reservedResources.cpu"), "2");
}

static void test_pasted_spec(void **state)
{
	good("policy: balloons\n"
	     "balloons:\n"
	     "  reservedResources: {cpu: 1}\n"
	     "  log: {level: debug, source: true}\n"
	     "  control: {rdt: {enable: false}}\n"
	     "  instrumentation: {httpEndpoint: \":5\"}\n"
	     "log: {level: error}\n"
	     "control: {socket: /s}\n"
	     "rdt: {log: free}\n");
	assert_int_equal(core()->log.level, LOG_ERROR);
	assert_true(core()->log.source);
	assert_string_equal(core()->control_socket, "/s");
	assert_string_equal(text_at("rdt.enable"), "false");
	assert_string_equal(text_at("rdt.log"), "free");
	assert_string_equal(core()->metrics.listen, ":5");
	/* In the section of an inactive policy, log has no effect; in other sections log is an
	 * ordinary key. */
	good("policy: none\nballoons: {reservedResources: {cpu: 1}, log: {level: nonsense}}\n");
	assert_int_equal(core()->log.level, LOG_INFO);
	bad("types: {log: {level: debug}}\n", "rp.conf:1:9: types.log: unknown key\n");
	good("policy: types\ntypes: {log: {level: debug}}\n");
	assert_int_equal(core()->log.level, LOG_DEBUG);
	bad("policy: balloons\nballoons: {reservedResources: {cpu: 1}, log: [a]}\nlog: {level: "
	    "debug}\n---\nagent: 5\n",
	    "rp.conf:5:1: agent: expected a map, found \"5\"\n");
}

static void test_control_parts(void **state)
{
	good("controllers: [rdt, blkio, cpu]\ncontrol: {socket: /s, cpu: {a: 1}, rdt: {enable: "
	     "true}, blockio: {b: [1]}}\n"
	     "blkio: {b: [2, 3], c: 4}\nrdt: {enable: false}\n");
	assert_string_equal(core()->control_socket, "/s");
	assert_string_equal(text_at("cpu.a"), "1");
	assert_string_equal(text_at("rdt.enable"), "false");
	assert_int_equal(conf_count(conf_get(conf_root(last.conf), "blkio.b")), 2);
	assert_string_equal(text_at("blkio.c"), "4");
	bad("control: {rdt: [x], socket: \"\"}\n",
	    "rp.conf:1:11: control.rdt: expected a map, found a list\n"
	    "rp.conf:1:21: control.socket: expected a text that is not empty, found \"\"\n");
	bad("control: {socked: /x}\n",
	    "rp.conf:1:11: control.socked: unknown key, did you mean socket?\n");
}

static void test_orm(void **state)
{
	(void)warned(
		"orm: {mode: nri, fallback: true, nri: {socket: /x, pluginName: a, pluginIndex: "
		"7, fallbackAfter: 3s}}\nruntime: {socket: /y}\n",
		"warning: rp.conf:1:18: orm.fallback: is an alias: write runtime.fallback: "
		"/run/nri-rp/bridge.sock\n"
		"warning: rp.conf:1:40: orm.nri.socket: is an alias: write runtime.socket: /x\n"
		"warning: rp.conf:1:52: orm.nri.pluginName: is an alias: write runtime.name: a\n"
		"warning: rp.conf:1:67: orm.nri.pluginIndex: is an alias: write runtime.index: 7\n"
		"warning: rp.conf:1:83: orm.nri.fallbackAfter: is an alias: write "
		"runtime.fallbackAfter: 3s\n");
	assert_string_equal(core()->runtime.socket, "/y");
	assert_string_equal(core()->runtime.fallback, "/run/nri-rp/bridge.sock");
	assert_int_equal(core()->runtime.fallback_after_ms, 3000);
	(void)warned("orm: {mode: bypass, fallback: false}\n",
		     "warning: rp.conf:1:7: orm.mode: is an alias: write runtime.socket: "
		     "/run/nri-rp/bridge.sock\nwarning: rp.conf:1:21: orm.fallback: is an alias: "
		     "write runtime.fallback: \n");
	assert_string_equal(core()->runtime.socket, "/run/nri-rp/bridge.sock");
	assert_string_equal(core()->runtime.fallback, "");
	assert_null(conf_get(conf_root(last.conf), "orm"));
	bad("orm: {mode: x, fallback: [1], nri: 3, bypass: {source: auto}, what: 1}\n",
	    "rp.conf:1:7: orm.mode: expected nri or bypass, found \"x\"\nrp.conf:1:16: "
	    "orm.fallback: expected true or false, found a list\nrp.conf:1:31: orm.nri: expected a "
	    "map, found \"3\"\nrp.conf:1:48: orm.bypass.source: not a key of nri-rp: use --pods of "
	    "nri-rp-bridge(8)\nrp.conf:1:63: orm.what: unknown key; the keys here are mode, "
	    "fallback, nri\n");
}

/* Checks that common keys which a policy's table declares remain in its section, and other common
 * keys move to their usual place. */
static void test_parts_of_ones_own(void **state)
{
	char place[CONF_PLACE_MAX];
	good("policy: own\ncontrollers: [rdt, cpu]\nown:\n  x: 1\n  log: text\n  control:\n    "
	     "rdt: {enable: true}\n"
	     "    cpu: {a: 1, classes: {b: {minFreq: 1GHz}, a: {}}, z: 2}\n    socket: /s\n");
	rp_cfg classes = conf_get(conf_root(last.conf), "own.control.cpu.classes");
	assert_int_equal(conf_count(classes), 2);
	assert_string_equal(text_at("own.control.cpu.classes.b.minFreq"), "1GHz");
	assert_string_equal(text_at("own.control.cpu.a"), "(none)");
	assert_string_equal(text_at("own.log"), "text");
	assert_string_equal(text_at("cpu.a"), "1");
	assert_string_equal(text_at("cpu.z"), "2");
	assert_null(conf_get(conf_root(last.conf), "cpu.classes"));
	assert_string_equal(text_at("rdt.enable"), "true");
	assert_string_equal(core()->control_socket, "/s");
	assert_string_equal(conf_place(classes, place, sizeof place),
			    "rp.conf:8:17: own.control.cpu.classes");
	/* All of it is the policy's. */
	good("apiVersion: config.nri/v1alpha1\nkind: OwnPolicy\nspec: {control: {cpu: {classes: "
	     "{a: "
	     "{}}}}}\n");
	assert_int_equal(conf_count(conf_get(conf_root(last.conf), "own.control.cpu.classes")), 1);
	assert_null(conf_get(conf_root(last.conf), "cpu"));
	assert_null(conf_get(conf_root(last.conf), "control"));
	/* Common keys of an inactive policy are not applied. */
	good("policy: none\nown: {control: {cpu: {classes: {a: {}}, b: 1}}}\n");
	assert_non_null(conf_get(conf_root(last.conf), "own.control.cpu.classes.a"));
	assert_null(conf_get(conf_root(last.conf), "cpu"));
	/* The policy's table checks these keys. */
	bad("policy: own\nown: {control: {cpu: {classes: {a: {minFrek: 1}}}}}\n",
	    "rp.conf:2:37: own.control.cpu.classes.a.minFrek: unknown key, did you mean "
	    "minFreq?\n");
	bad("policy: own\nown: {control: {cpu: {classes: [a]}}}\n",
	    "rp.conf:2:23: own.control.cpu.classes: expected a map, found a list\n");
	bad("policy: own\nown: {control: fast}\n",
	    "rp.conf:2:7: own.control: expected a map, found \"fast\"\n");
}

/* ---- modules --------------------------------------------------------------------------------- */

static void check_begin(const char *text, const char *wanted)
{
	char told[512] = "";
	struct conf_schemas schemas = test_schemas;
	schemas.ctx = told;
	struct conf_source source = source_of("rp.conf", text);
	(void)parse_sources(&source, 1, &schemas);
	assert_string_equal(told, wanted);
}

static void test_begin_path(void **state)
{
	check_begin("policy: none\n", "/usr/lib/nri-rp/modules:/usr/local/lib/nri-rp/modules");
	check_begin("modules: {path: [/a, /b]}\n---\npolicy: none\n", "/a:/b");
	check_begin("modules: {path: [/a, /b]}\n---\nmodules: {path: [/c]}\n", "/c");
	check_begin("modules: {path: /a}\n",
		    "/usr/lib/nri-rp/modules:/usr/local/lib/nri-rp/modules");
}

/* ---- core keys ------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
	good("");
	const struct conf_core *c = core();
	assert_string_equal(c->policy, "none");
	assert_null(c->policy_node);
	assert_int_equal(c->n_controllers, 0);
	check_strings(c->module_path, "/usr/lib/nri-rp/modules /usr/local/lib/nri-rp/modules");
	assert_string_equal(c->runtime.socket, "/var/run/nri/nri.sock");
	assert_string_equal(c->runtime.name, "nri-rp");
	assert_int_equal(c->runtime.index, 90);
	assert_string_equal(c->cache_dir, "/var/lib/nri-rp");
	assert_string_equal(c->control_socket, "/run/nri-rp/control.sock");
	assert_string_equal(c->metrics.listen, "127.0.0.1:8891");
	assert_true(c->metrics.prometheus);
	check_strings(c->metrics.enabled, "policy buildinfo");
	check_strings(c->metrics.polled, "");
	assert_int_equal(c->log.level, LOG_INFO);
	assert_int_equal(c->log.debug.n, 0);
	assert_false(c->log.source);
	assert_int_equal(c->on_policy_error, CONF_REJECT);
	assert_int_equal(c->admit.source, CONF_REQUESTS_AUTO);
	assert_int_equal(c->admit.timeout_ms, 1500);
	assert_int_equal(c->admit.on_timeout, CONF_REFUSE);
	assert_false(c->reset_on_switch);
	assert_true(c->agent.accept_all);
	assert_false(c->agent.pod_resource_api);
	assert_true(c->strict);
}

static void test_all_core_keys(void **state)
{
	good("policy: bare\nonPolicyError: unmanaged\nresetOnSwitch: true\nstrict: false\n"
	     "admit: {requestSource: feed, timeout: 1s, onTimeout: allow}\n"
	     "modules: {path: [/m]}\nruntime: {frontend: nri, socket: /n, name: me, index: "
	     "5}\ncache: {dir: /c}\n"
	     "control: {socket: /s}\nmetrics: {listen: \"\"}\nlog: {level: warning, debug: [a], "
	     "source: true, klog: {v: 5}}\n"
	     "agent: {accept: [], cluster: true, nodeResourceTopology: false, podResourceAPI: "
	     "false}\n"
	     "instrumentation: {httpEndpoint: \":1\", prometheusExport: false, metricsExporter: "
	     "\"\", reportPeriod: 0s,\n"
	     "  metrics: {enabled: [\"*\"], polled: [x, y]}, samplingRatePerMillion: 0, "
	     "tracingCollector: \"\",\n"
	     "  logExporter: \"\", logExportPeriod: 1s}\n");
	const struct conf_core *c = core();
	assert_string_equal(c->policy, "bare");
	assert_int_equal(c->on_policy_error, CONF_UNMANAGED);
	assert_int_equal(c->admit.source, CONF_REQUESTS_FEED);
	assert_int_equal(c->admit.timeout_ms, 1000);
	assert_int_equal(c->admit.on_timeout, CONF_ALLOW);
	assert_true(c->reset_on_switch);
	assert_false(c->strict);
	check_strings(c->module_path, "/m");
	assert_string_equal(c->runtime.socket, "/n");
	assert_string_equal(c->runtime.name, "me");
	assert_int_equal(c->runtime.index, 5);
	assert_string_equal(c->cache_dir, "/c");
	assert_string_equal(c->control_socket, "/s");
	assert_string_equal(c->metrics.listen, "");
	assert_false(c->metrics.prometheus);
	check_strings(c->metrics.enabled, "*");
	check_strings(c->metrics.polled, "x y");
	assert_int_equal(c->log.level, LOG_WARNING);
	assert_true(c->log.source);
	assert_false(c->agent.accept_all);
}

static void test_policy_name(void **state)
{
	bad("policy: ../evil\n",
	    "rp.conf:1:1: policy: expected a module's name, found \"../evil\"\n");
	bad("policy: Balloons\n", "rp.conf:1:1: policy: expected a module's name, found "
				  "\"Balloons\"; did you mean balloons?\n");
	bad("policy: -x\n", "rp.conf:1:1: policy: expected a module's name, found \"-x\"\n");
	bad("policy: [none]\n",
	    "rp.conf:1:1: policy: expected a text that is not empty, found a list\n");
	bad("policy: a123456789b123456789c123456789-x\n",
	    "rp.conf:1:1: policy: expected a module's name, found "
	    "\"a123456789b123456789c123456789-x\"\n");
	good("policy: a123456789b123456789c123456789x\n");
}

static void test_controllers(void **state)
{
	good("controllers: [rdt, bare]\n");
	assert_int_equal(core()->n_controllers, 2);
	assert_string_equal(core()->controllers[1].name, "bare");
	assert_int_equal(core()->controllers[1].mode, CONF_RELAXED);
	char place[CONF_PLACE_MAX];
	assert_string_equal(conf_place(core()->controllers[1].node, place, sizeof place),
			    "rp.conf:1:20: controllers[1]");
	good("controllers: {rdt: required, a: optional, b: relaxed, c: disabled, d: }\n");
	static const enum conf_mode modes[] = {CONF_REQUIRED, CONF_OPTIONAL, CONF_RELAXED,
					       CONF_DISABLED, CONF_RELAXED};
	assert_int_equal(core()->n_controllers, COUNT(modes));
	for (size_t i = 0; i < COUNT(modes); i++)
		assert_int_equal(core()->controllers[i].mode, modes[i]);
	good("controllers: []\n");
	good("controllers:\n");
	bad("controllers: [rdt, rdt, Bad, [x]]\n",
	    "rp.conf:1:20: controllers[1]: rdt is listed twice\n"
	    "rp.conf:1:25: controllers[2]: expected a module's name, found \"Bad\"; did you mean "
	    "bad?\n"
	    "rp.conf:1:30: controllers[3]: expected a module's name, found a list\n");
	bad("controllers: {rdt: always, B: required}\n",
	    "rp.conf:1:15: controllers.rdt: expected required, optional, relaxed or disabled, "
	    "found \"always\"\n"
	    "rp.conf:1:28: controllers.B: expected a module's name, found \"B\"; did you mean "
	    "b?\n");
	bad("controllers: rdt\n", "rp.conf:1:1: controllers: expected a list of names or a map of "
				  "names to modes, found \"rdt\"\n");
	struct buf b = BUF_INIT;
	(void)buf_add_str(&b, "controllers: [");
	for (unsigned i = 0; i <= CONF_CONTROLLERS_MAX; i++)
		(void)buf_printf(&b, "c%u,", i);
	(void)buf_add_str(&b, "]\n");
	bad(buf_text(&b), "rp.conf:1:1: controllers: more than 64 controllers\n");
	buf_fini(&b);
}

static void test_log(void **state)
{
	good("log: {debug: [a, \"b:on, c:off\", \"d,e\", \"e:off\", \"c:on\", a]}\n");
	check_strings(core()->log.debug, "a b c d");
	good("log: {debug: [all]}\n");
	check_strings(core()->log.debug, "*");
	good("log: {debug: [\"*:off\", a]}\n");
	check_strings(core()->log.debug, "a");
	warned("log: {debug: [\"*\", \"a:off\"]}\n", "warning: rp.conf:1:7: log.debug: :off has no "
						     "effect while * switches all sources on\n");
	bad("log: {debug: [\"a:perhaps\"]}\n", "rp.conf:1:15: log.debug[0]: expected SOURCE, "
					       "SOURCE:on or SOURCE:off, found \"a:perhaps\"\n");
	bad("log: {debug: [\":on\"]}\n", "rp.conf:1:15: log.debug[0]: expected SOURCE, SOURCE:on "
					 "or SOURCE:off, found \":on\"\n");
	bad("log: {debug: [[x]]}\n",
	    "rp.conf:1:15: log.debug[0]: expected a text that is not empty, found a list\n");
	struct buf b = BUF_INIT;
	(void)buf_add_str(&b, "log:\n  debug:\n");
	for (unsigned i = 0; i < LOG_SOURCES_MAX; i++)
		(void)buf_printf(&b, "  - s%u\n", i);
	good(buf_text(&b));
	assert_int_equal(core()->log.debug.n, LOG_SOURCES_MAX);
	(void)buf_add_str(&b, "  - more\n");
	bad(buf_text(&b), "rp.conf:67:5: log.debug[64]: more than 64 sources\n");
	buf_fini(&b);
}

static void test_metrics(void **state)
{
	good("instrumentation: {httpEndpoint: \":1\"}\nmetrics: {listen: \":2\"}\n");
	assert_string_equal(core()->metrics.listen, ":2");
	good("instrumentation: {metricsExporter: prometheus, prometheusExport: true}\n");
	bad("instrumentation: {metricsExporter: otlp-http, prometheusExport: true}\n",
	    "rp.conf:1:19: instrumentation.metricsExporter: cannot be used together with "
	    "prometheusExport\n");
	warned("instrumentation: {metricsExporter: otlp-grpc, samplingRatePerMillion: 5, "
	       "tracingCollector: x, logExporter: otlp-http}\n",
	       "warning: rp.conf:1:19: instrumentation.metricsExporter: has no effect: nri-rp "
	       "sends nothing to collectors\nwarning: rp.conf:1:47: "
	       "instrumentation.samplingRatePerMillion: has no effect: nri-rp sends "
	       "nothing to collectors\nwarning: rp.conf:1:74: instrumentation.tracingCollector: "
	       "has no effect: nri-rp sends nothing to collectors\nwarning: "
	       "rp.conf:1:95: instrumentation.logExporter: has no effect: nri-rp "
	       "sends nothing to collectors\n");
}

static void test_core_types(void **state)
{
	bad("runtime: {index: 100, socket: \"\", frontend: cri}\nonPolicyError: ignore\nmodules: "
	    "{path: []}\nlog: 5\n",
	    "rp.conf:1:11: runtime.index: expected an integer from 0 to 99, found \"100\"\n"
	    "rp.conf:1:23: runtime.socket: expected a text that is not empty, found \"\"\n"
	    "rp.conf:1:35: runtime.frontend: expected nri, found \"cri\"\n"
	    "rp.conf:2:1: onPolicyError: expected reject or unmanaged, found \"ignore\"\n"
	    "rp.conf:3:11: modules.path: expected a list that is not empty, found an empty value\n"
	    "rp.conf:4:1: log: expected a map, found \"5\"\n");
	bad("admit: {requestSource: kubelet, onTimeout: wait}\n",
	    "rp.conf:1:9: admit.requestSource: expected auto, feed or runtime, found \"kubelet\"\n"
	    "rp.conf:1:33: admit.onTimeout: expected reject or allow, found \"wait\"\n");
	bad("admit: {requestSource: feed}\n",
	    "rp.conf:1:9: admit.requestSource: pods would have no requests: set agent.cluster, or "
	    "agent.podSource: kubelet\n");
	good("agent: {podSource: kubelet}\nadmit: {requestSource: feed}\n");
}

/* ---- files ----------------------------------------------------------------------------------- */

static char dir[] = "/tmp/t_conf_XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[2][256];
	static unsigned turn;
	turn ^= 1;
	(void)snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
	return path[turn];
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

static int load_file(const char *name)
{
	forget();
	conf_errors_init(&last.errs);
	last.rc = conf_load(in_dir(name), &test_schemas, &last.conf, &last.errs);
	return last.rc;
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {
		"rp.conf.d/9.conf",  "rp.conf.d/10.conf", "rp.conf.d/B.conf", "rp.conf.d/.h.conf",
		"rp.conf.d/x.conf~", "rp.conf.d/z.conf",  "rp.conf",	      "fifo",
		"big.conf",	     "d.conf.d"};
	for (size_t i = 0; i < COUNT(names); i++)
		(void)unlink(in_dir(names[i]));
	(void)rmdir(in_dir("rp.conf.d"));
	(void)rmdir(dir);
	forget();
	return 0;
}

static void check_problem(const char *format)
{
	char wanted[600];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(wanted, sizeof wanted, format, dir);
#pragma GCC diagnostic pop
	assert_string_equal(problems(), wanted);
}

static void test_files(void **state)
{
	put("rp.conf", "bare: {order: [main], a: 1}\n");
	assert_int_equal(load_file("rp.conf"), 0);
	assert_int_equal(mkdir(in_dir("rp.conf.d"), 0700), 0);
	assert_int_equal(load_file("rp.conf"), 0);
	put("rp.conf.d/9.conf", "bare: {nine: 1, last: nine}\n");
	put("rp.conf.d/10.conf", "bare: {ten: 1, last: ten}\n");
	put("rp.conf.d/B.conf", "bare: {big: 1, last: big}\n");
	put("rp.conf.d/.h.conf", "[");
	put("rp.conf.d/x.conf~", "[");
	assert_int_equal(load_file("rp.conf"), 0);
	assert_string_equal(text_at("bare.a"), "1");
	assert_string_equal(text_at("bare.ten"), "1");
	assert_string_equal(text_at("bare.nine"), "1");
	assert_string_equal(text_at("bare.last"), "big");
	put("rp.conf.d/10.conf", "bare: {ten: 1\n");
	assert_int_equal(load_file("rp.conf"), -EINVAL);
	check_problem("%s/rp.conf.d/10.conf:2:1: not valid YAML: did not find expected ',' or '}', "
		      "while parsing a flow mapping that "
		      "begins at line 1\n");
	assert_int_equal(unlink(in_dir("rp.conf.d/10.conf")), 0);
	assert_int_equal(symlink("/nonexistent", in_dir("rp.conf.d/z.conf")), 0);
	assert_int_equal(load_file("rp.conf"), -ENOENT);
	check_problem("%s/rp.conf.d/z.conf: cannot be opened: No such file or directory\n");
	/* Problems of other files are reported as well, so that all can be corrected in one go. */
	put("rp.conf.d/10.conf", "policcy: none\n");
	assert_int_equal(load_file("rp.conf"), -ENOENT);
	assert_int_equal(last.errs.n_errors, 2);
	assert_non_null(strstr(problems(), "z.conf: cannot be opened"));
	assert_non_null(strstr(problems(), "10.conf:1:1: policcy: unknown key"));
	assert_int_equal(unlink(in_dir("rp.conf.d/10.conf")), 0);
}

static void test_bad_files(void **state)
{
	assert_int_equal(load_file("none.conf"), -ENOENT);
	check_problem("%s/none.conf: cannot be opened: No such file or directory\n");
	struct err err = ERR_INIT;
	assert_int_equal(conf_errors_to_err(&last.errs, last.rc, &err), -ENOENT);
	assert_non_null(strstr(err.text, "none.conf: cannot be opened"));
	assert_int_equal(load_file("."), -EISDIR);
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	assert_int_equal(load_file("fifo"), -EINVAL);
	check_problem("%s/fifo: not a regular file\n");
	put("d.conf.d", "x");
	assert_int_equal(rename(in_dir("d.conf.d"), in_dir("fifo.d")), 0);
	put("big.conf", "");
	assert_int_equal(truncate(in_dir("big.conf"), CONF_FILE_MAX + 5), 0);
	assert_int_equal(load_file("big.conf"), -EINVAL);
	check_problem("%s/big.conf: larger than 1048576 bytes\n");
	assert_int_equal(rename(in_dir("fifo.d"), in_dir("big.conf.d")), 0);
	assert_int_equal(load_file("big.conf"), -ENOTDIR);
	assert_int_equal(last.errs.n_errors, 2);
	assert_non_null(strstr(problems(), "big.conf.d: the directory cannot be read: Not a dir"));
	assert_int_equal(unlink(in_dir("big.conf.d")), 0);
}

static void test_too_many_files(void **state)
{
	put("rp.conf", "policy: none\n");
	char name[64];
	(void)unlink(in_dir("rp.conf.d/z.conf"));
	for (unsigned i = 0; i < CONF_FILES_MAX; i++) {
		(void)snprintf(name, sizeof name, "rp.conf.d/m%02u.conf", i);
		put(name, "bare: {x: 1}\n");
	}
	assert_int_equal(load_file("rp.conf"), -EINVAL);
	check_problem("%s/rp.conf.d: more than 63 files\n");
	for (unsigned i = 0; i < CONF_FILES_MAX; i++) {
		(void)snprintf(name, sizeof name, "rp.conf.d/m%02u.conf", i);
		assert_int_equal(unlink(in_dir(name)), 0);
	}
	assert_int_equal(load_file("rp.conf"), 0);
}

/* ---- the sample and the manual page ---------------------------------------------------------- */

/* "#policy: x" and "#  level: info" are settings, "# Text" is not. */
static char *uncomment(const char *text)
{
	char *out = strdup(text);
	assert_non_null(out);
	char *to = out;
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, "\n") + 1;
		bool setting = at[0] == '#' && (at[1] != ' ' || at[2] == ' ') && at[1] != '\n';
		memcpy(to, at + setting, len - setting);
		to += len - setting;
		at += len;
	}
	*to = '\0';
	return out;
}

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	char *text = calloc(1, 1 << 16);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
	(void)fclose(f);
	return text;
}

static void test_sample(void **state)
{
	_free_ char *text = read_all("conf/rp.conf");
	good(text);
	assert_string_equal(core()->policy, "none");
	_free_ char *settings = uncomment(text);
	struct conf_source source = source_of("rp.conf", settings);
	(void)parse_sources(&source, 1, NULL);
	assert_string_equal(problems(), "");
	_free_ char *page = read_all("man/rp.conf.5");
	const struct rp_schema *schema = conf_core_schema();
	for (uint32_t i = 0; i < schema->n_keys; i++) {
		struct rp_key row = schema_row(schema, i);
		if (row.type != RP_T_MAP && !strchr(row.path, '[')) {
			char item[100];
			(void)snprintf(item, sizeof item, "\n.It Ic %s\n", row.path);
			if (!strstr(page, item))
				fail_msg("%s is not in the manual page", row.path);
		}
		/* The sample gives defaults, except for keys without one and for
		 * annotations.takers, whose default is that of the predecessors. */
		if (strchr(row.path, '[') || str_has_prefix(row.path, "control.") ||
		    str_has_prefix(row.path, "orm") || str_eq(row.path, "annotations.takers"))
			continue;
		rp_cfg node = conf_get(conf_root(last.conf), row.path);
		if (!node)
			fail_msg("%s is not in the sample", row.path);
		if (row.fallback && conf_kind(node) == RP_NODE_SCALAR)
			assert_string_equal(conf_text(node, ""), row.fallback);
	}
}

/* ---- problems -------------------------------------------------------------------------------- */

static void test_many_problems(void **state)
{
	struct buf b = BUF_INIT;
	(void)buf_add_str(&b, "strict: false\ntypes:\n  ints:\n");
	for (unsigned i = 0; i < 100; i++)
		(void)buf_printf(&b, "  - v%u\n", i);
	for (unsigned i = 0; i < 70; i++)
		(void)buf_printf(&b, "zzzzzzz%u: {x: 1}\n", i);
	(void)parse(buf_text(&b));
	buf_fini(&b);
	assert_int_equal(last.errs.n_items, CONF_ERRORS_MAX);
	assert_int_equal(last.errs.n_errors, 100);
	assert_int_equal(last.errs.n_warnings, 70);
	const char *end = strstr(problems(), "and 106 more\n");
	assert_non_null(end);
	assert_string_equal(end, "and 106 more\n");
	struct err err = ERR_INIT;
	assert_int_equal(conf_errors_to_err(&last.errs, -EINVAL, &err), -EINVAL);
	assert_string_equal(err.text, "rp.conf:4:5: types.ints[0]: expected an integer from 1 to "
				      "9, found \"v0\" (and 99 more)");
}

/* Errors take the place of warnings when there is no room for both. */
static void test_errors_before_warnings(void **state)
{
	struct conf_errors *errs = &last.errs;
	conf_errors_init(errs);
	for (unsigned i = 0; i < CONF_ERRORS_MAX + 5; i++)
		warning_node(errs, NULL, NULL, "w%u", i);
	for (unsigned i = 0; i < CONF_ERRORS_MAX + 5; i++)
		(void)problem_at(errs, NULL, 0, 0, "e%u", i);
	assert_int_equal(errs->n_items, CONF_ERRORS_MAX);
	for (unsigned i = 0; i < errs->n_items; i++)
		assert_false(errs->items[i].warning);
	conf_errors_sort(errs);
	assert_string_equal(errs->items[0].text, "e0");
	struct err err = ERR_INIT;
	conf_errors_init(errs);
	warning_node(errs, NULL, "x.y", "careful");
	assert_string_equal(problems(), "warning: x.y: careful\n");
	assert_int_equal(conf_errors_to_err(errs, -ENOMEM, &err), -ENOMEM);
	assert_string_equal(err.text, "cannot load the configuration: Cannot allocate memory");
	(void)problem_at(errs, NULL, 0, 0, "bad");
	assert_int_equal(conf_errors_to_err(errs, -EINVAL, &err), -EINVAL);
	assert_string_equal(err.text, "bad");
}

static void test_long_problem(void **state)
{
	char key[CONF_KEY_MAX + 1] = "", text[4000] = "bare: ";
	for (unsigned i = 0; i < CONF_KEY_MAX / 2; i++)
		strcat(key, "\xc3\xa4");
	for (unsigned i = 0; i < 4; i++)
		(void)snprintf(text + strlen(text), sizeof text - strlen(text), "{%s: ", key);
	strcat(text, "{a: 1, a: 2}}}}}");
	(void)parse(text);
	assert_int_equal(last.rc, -EINVAL);
	assert_int_equal(last.errs.n_items, 1);
	size_t len = strlen(last.errs.items[0].text);
	assert_true(len > CONF_PROBLEM_TEXT_MAX - 8 && len < CONF_PROBLEM_TEXT_MAX);
	assert_true(utf8_valid(last.errs.items[0].text, len));
}

static void test_sections(void **state)
{
	struct buf b = BUF_INIT;
	for (unsigned i = 0; i < CONF_SECTIONS_MAX; i++)
		(void)buf_printf(&b, "bare-%u:\n", i);
	good(buf_text(&b));
	(void)buf_add_str(&b, "one-more:\n");
	bad(buf_text(&b), "rp.conf:1:1: more than 256 keys at the top level\n");
	buf_consume(&b, strlen("bare-0:\n"));
	(void)buf_add_str(&b, "---\nbare-0:\n");
	bad(buf_text(&b), "rp.conf:258:1: more than 256 keys at the top level\n");
	buf_fini(&b);
}

/* Checks each failing allocation: the result is an error, without leaks or partial results. */
static void test_out_of_memory(void **state)
{
	static const char text[] =
		"policy: balloons\ncontrollers: [rdt]\nlog: {debug: [a, b], level: "
		"debug}\nmodules: {path: [/x]}\n"
		"balloons: {reservedResources: {cpu: 1}, log: {source: true}, control: {rdt: "
		"{enable: true}}, agent: {accept: [x]}}\n"
		"fold: {POOLS: [{maxPods: 1}]}\nbare: {a: &x [1, 2, {b: c}], d: *x, e: [~, 1, 2, "
		"3, 4]}\n---\n" HEAD "spec: {reservedResources: {cpu: 1}, agent: {podResourceAPI: "
		"true}}\n---\nbare: {f: {g: h}}\n";
	struct conf_source sources[] = {
		source_of("rp.conf", text),
		source_of("agent", "agent: {podResourceAPI: true}\nbare: {y: 1}\n")};
	sources[1].pushed = true;
	unsigned n_failed = 0;
	for (size_t limit = 1; limit < 1 << 20; limit += 16) {
		forget();
		conf_errors_init(&last.errs);
		last.rc =
			conf_parse_within(limit, sources, 2, &test_schemas, &last.conf, &last.errs);
		if (last.rc == 0)
			break;
		assert_int_equal(last.rc, -ENOMEM);
		assert_null(last.conf);
		assert_string_equal(last.errs.items[0].text, "out of memory for the configuration");
		n_failed++;
	}
	assert_int_equal(last.rc, 0);
	assert_true(n_failed > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_merge_keeps_places),
		cmocka_unit_test(test_replaced_errors),
		cmocka_unit_test(test_resource),
		cmocka_unit_test(test_resource_errors_have_places),
		cmocka_unit_test(test_bad_resources),
		cmocka_unit_test(test_resource_and_files),
		cmocka_unit_test(test_pasted_spec),
		cmocka_unit_test(test_control_parts),
		cmocka_unit_test(test_orm),
		cmocka_unit_test(test_parts_of_ones_own),
		cmocka_unit_test(test_begin_path),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all_core_keys),
		cmocka_unit_test(test_policy_name),
		cmocka_unit_test(test_controllers),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_core_types),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_too_many_files),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_many_problems),
		cmocka_unit_test(test_errors_before_warnings),
		cmocka_unit_test(test_long_problem),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
