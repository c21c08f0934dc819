/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline's life: pipeline_new() opens its parts in order, pipeline_free() closes them. Also
 * events of modules, changes of the topology, and access for the rest of the daemon. Requests,
 * reloads and everything else are in the rooms (pipeline.h).
 */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/crash_marks.h"
#include "core/nri-rpd/pipeline/reload/apply.h"
#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/reload/pushed.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/node/evict.h"
#include "core/nri-rpd/pipeline/node/forecast.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/nri-rpd/pipeline/observe/zones.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/host/service/settings.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/reload/startup.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/pipeline/request/updates.h"
#include "core/nri-rpd/pipeline/state/state.h"

#define LOG_SOURCE "pipeline"
#define RESERVED_ATTRIBUTE "reserved cpuset" /* attribute of zones */
#define ZONES_BLOCK (16u << 10)
/* largest memory for the description of a policy's zones, in bytes */
#define ZONES_MAX (32u << 20)

/* ---- events of modules and topology changes -------------------------------------------------- */

DECISION_STEP(pipeline_deliver, instance_event(p->policy, arg, err))

static void on_event(struct instance *i, const struct rp_event *ev, void *arg)
{
	struct pipeline *p = arg;
	struct rp_event own = *ev;
	struct err err = ERR_INIT;
	if (i != p->policy) {
		controllers_timer(p, i, ev->cookie);
		return;
	}
	if (WATCHED(p, decide_event(p, pipeline_deliver, &own, &err)))
		log_warning("policy %s: %s %llu: %s", instance_name(i),
			    ev->type == RP_EVENT_TIMER ? "timer" : "event",
			    (unsigned long long)ev->cookie, err.text);
}

static void on_reported(struct instance *i, rp_ctr ctr, uint32_t result, const char *text,
			void *arg)
{
	controllers_reported(arg, i, ctr, result, text);
}

static void on_wished(void *arg)
{
	const struct pipeline *p = arg;
	if (p->cfg.decided && !p->env.trial)
		p->cfg.decided(p->cfg.arg);
}

static void describe_change(struct pipeline *p, const struct topo_change *c)
{
	char on[256], off[256];
	(void)rp_ids_format(rp_ids_of(&c->cpus_on), on, sizeof on);
	(void)rp_ids_format(rp_ids_of(&c->cpus_off), off, sizeof off);
	char text[sizeof on + sizeof off + 64];
	(void)snprintf(text, sizeof text, "%s%s%s%s%s", *on ? "CPUs came online: " : "", on,
		       *on && *off ? "; " : "", *off ? "CPUs went offline: " : "", off);
	if (!*on && !*off)
		(void)snprintf(text, sizeof text,
			       "memory or isolated CPUs changed; online CPUs did not");
	log_notice("the topology of the machine has changed: %s", text);
	pipeline_event(p, EV_MACHINE, "%s", text);
}

/* Replaces the topology by a new snapshot, which is owned from then on, and notifies policy and
 * controllers. */
static void take_machine(struct pipeline *p, struct topo *now, const struct topo_change *change)
{
	struct topo *old = p->env.topo;
	struct err err = ERR_INIT;
	describe_change(p, change);
	p->env.topo = now;
	cache_set_memory_total(p->env.cache, topo_memory(now));
	watchdog_begin(p->watchdog);
	if (apply_topology(p, &err)) {
		log_error("policy %s cannot use the changed topology: %s", instance_name(p->policy),
			  err.text);
		pipeline_event(p, EV_DEGRADED, "changed machine: %s", err.text);
	}
	controllers_sync(p);
	watchdog_end(p->watchdog);
	settings_put_back(&p->env); /* restores settings of CPUs that were offline */
	topo_free(old);
}

static void machine_changed(void *arg)
{
	struct pipeline *p = arg;
	struct topo *now;
	struct topo_change change;
	struct err err = ERR_INIT;
	if (topo_reread(p->env.topo, &now, &err)) {
		log_error("the topology cannot be read again: %s", err.text);
		return;
	}
	speedselect_overtaken(p);
	if (!topo_diff(p->env.topo, now, &change)) {
		topo_free(now);
		return;
	}
	recover_soon(p); /* the missing resource may be there now */
	if (!speedselect_first(p, now, &change, take_machine))
		take_machine(p, now, &change);
}

/* Warns of nodes of the setting that have CPUs, because they remain in use. */
static void warn_device_nodes(const struct topo *topo, const char *setting)
{
	struct rp_idset named, with_cpus;
	char text[256];
	if (rp_idset_parse(&named, setting, RP_NODES_MAX))
		return; /* auto or none */
	rp_idset_clear(&with_cpus);
	RP_IDS_EACH (node, rp_ids_of(&named)) {
		struct rp_node_info info = {.size = sizeof info};
		if (!topo_node(topo, node, &info) && !rp_ids_empty(info.cpus))
			rp_idset_add(&with_cpus, node);
	}
	if (rp_ids_empty(rp_ids_of(&with_cpus)))
		return;
	(void)rp_ids_format(rp_ids_of(&with_cpus), text, sizeof text);
	log_warning("topology.deviceMemoryNodes: nodes %s have CPUs, so containers still use them; "
		    "list nodes without CPUs",
		    text);
}

void pipeline_device_nodes(struct pipeline *p, const struct conf *conf, bool starting)
{
	struct topo *now;
	struct err err = ERR_INIT;
	if (!topo_set_device_nodes(p->env.topo, conf_core(conf)->device_nodes))
		return;
	warn_device_nodes(p->env.topo, conf_core(conf)->device_nodes);
	if (!starting) {
		machine_changed(p);
		return;
	}
	if (topo_reread(p->env.topo, &now, &err)) {
		log_error("the machine cannot be read again: %s", err.text);
		return;
	}
	topo_free(p->env.topo);
	p->env.topo = now;
}

/* ---- start and end --------------------------------------------------------------------------- */

static int open_crumb_file(struct pipeline *p, struct err *err)
{
	char path[CACHE_PATH_MAX];
	int r = fs_mkdirs(p->run_dir, 0750, err);
	if (r)
		return r;
	if (snprintf(path, sizeof path, "%s/breadcrumb", p->run_dir) >= (int)sizeof path)
		return err_set(err, -ENAMETOOLONG, "directory %s: the path is too long",
			       p->run_dir);
	return crumb_open(path, &p->env.crumb, err);
}

static int open_crumb(struct pipeline *p, struct err *err)
{
	struct err why = ERR_INIT;
	int r = open_crumb_file(p, &why);
	if (r && r != -EBUSY && r != -ENOMEM) {
		(void)snprintf(p->state.run_error, sizeof p->state.run_error, "%s", why.text);
		log_error("%s; crashes inside modules are not counted", why.text);
		p->env.crumb = crumb_private();
		r = p->env.crumb ? 0 : -ENOMEM;
	}
	if (r)
		return err_set(err, r, "%s", err_text(&why, r));
	ends_note(p->env.crumb);
	const char *message = crumb_message(p->env.crumb);
	if (message) {
		log_error("%s", message);
		pipeline_event(p, EV_MODULE, "%s", message);
	}
	return watchdog_new(p->env.crumb,
			    p->cfg.hang_limit_ms ? p->cfg.hang_limit_ms : WATCHDOG_LIMIT_MS,
			    &p->watchdog, err);
}

static int open_machine(struct pipeline *p, struct err *err)
{
	int r = fs_root_open(&p->root, p->cfg.host_root, err);
	if (r)
		return r;
	p->env.root = &p->root;
	r = topo_read(&p->root, &p->env.topo, err);
	if (r)
		return r;
	for (uint32_t i = 0; i < topo_n_notes(p->env.topo); i++)
		log_info("machine: %s", topo_note(p->env.topo, i));
	p->env.cache = cache_new(topo_memory(p->env.topo));
	p->env.worker = worker_new(p->env.loop, "modules");
	p->disk = worker_new(p->env.loop, "disk");
	p->state.persist_timer = loop_timer_new(p->env.loop, persist_timer, p);
	p->state.quiet_timer = loop_timer_new(p->env.loop, persist_quiet, p);
	p->requests.rebalance_timer = loop_timer_new(p->env.loop, rebalance_timer, p);
	if (!p->env.cache || !p->env.worker || !p->disk || !p->state.persist_timer ||
	    !p->state.quiet_timer || !p->requests.rebalance_timer || noderes_init(p) ||
	    evict_init(p) || plugins_init(p) || undo_init(p) || watch_files_init(p) ||
	    recover_init(p) || updates_init(p) || verify_init(p) || hold_init(p))
		return err_errno(err, -ENOMEM, "start");
	return 0;
}

static int open_modules(struct pipeline *p, struct err *err)
{
	struct conf_strings dirs = {p->cfg.module_dirs, p->cfg.n_module_dirs};
	if (!dirs.n)
		dirs = conf_module_dirs;
	return loader_new(dirs.items, dirs.n, loader_default_flags(), p->env.crumb, &p->loader,
			  err);
}

/* Removes temporary files of a process that was killed during a write. The lock of the breadcrumb
 * file excludes other writers. */
static void remove_leftovers(const struct pipeline *p)
{
	static const char *const names[] = {KEPT_FILE, FORMER_FILE, UNDONE_FILE, PUSHED_FILE,
					    FORECAST_FILE};
	const char *const dirs[] = {p->reloads.dir, p->reloads.run_dir, p->state_dir};
	char path[CACHE_PATH_MAX + 32];
	unsigned n = 0;
	for (unsigned i = 0; i < sizeof dirs / sizeof *dirs; i++)
		for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
			(void)snprintf(path, sizeof path, "%s/%s", dirs[i], names[k]);
			n += fs_remove_leftovers(path);
		}
	if (n)
		log_info("%u temporary files of a killed process were removed", n);
}

static struct pipeline *new_bare(const struct pipeline_config *config)
{
	struct pipeline *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->cfg = *config;
	p->root.fd = p->verify.drift.fd = -1;
	p->env.loop = config->loop;
	p->env.event = on_event;
	p->env.reported = on_reported;
	p->env.wished = on_wished;
	p->env.runtime = &p->runtime.facts;
	p->env.arg = p;
	p->observe.started_ns = clock_wall_ns();
	p->config_path = strdup(config->config_path);
	return p->config_path ? p : pipeline_free(p);
}

int pipeline_check(const struct pipeline_config *config, struct buf *report, struct err *err)
{
	struct pipeline_config with_loop = *config;
	with_loop.loop = loop_new();
	struct pipeline *p = with_loop.loop ? new_bare(&with_loop) : NULL;
	if (p)
		p->env.crumb = crumb_private();
	int r = p && p->env.crumb ? first_read(p, err) : err_errno(err, -ENOMEM, "check");
	if (!r)
		(void)first_dirs(p, NULL);
	if (!r)
		r = open_machine(p, err);
	if (!r)
		r = open_modules(p, err);
	if (!r)
		r = config_check(p, report, err);
	pipeline_free(p);
	loop_free(with_loop.loop);
	return r;
}

int pipeline_new(const struct pipeline_config *config, struct pipeline **ret, struct err *err)
{
	struct err soft = ERR_INIT;
	struct pipeline *p = new_bare(config);
	int r = p ? first_read(p, err) : err_errno(err, -ENOMEM, "start");
	if (!r)
		r = first_dirs(p, err);
	if (!r)
		r = open_machine(p, err);
	if (!r)
		r = state_open(p, err);
	if (!r && !p->state.state_error[0])
		events_open(p);
	if (!r)
		r = open_crumb(p, err);
	if (!r)
		remove_leftovers(p);
	if (!r)
		r = state_open_settings(p, err);
	if (!r)
		r = open_modules(p, err);
	if (!r)
		r = config_first(p, err);
	if (r) {
		pipeline_free(p);
		return r;
	}
	if (hotplug_new(p->env.loop, &p->root, machine_changed, p, &p->hotplug, &soft))
		log_warning("hot-plug of CPUs will not be noticed: %s", soft.text);
	*ret = p;
	return 0;
}

int pipeline_new_alone(const struct pipeline_config *config, struct pipeline **ret, struct err *err)
{
	struct pipeline *p = new_bare(config);
	int r = p ? open_machine(p, err) : err_errno(err, -ENOMEM, "start");
	if (r) {
		pipeline_free(p);
		return r;
	}
	p->cfg.alone = true;
	*ret = p;
	return 0;
}

/* Leaves a hanging job behind. Marks the crash record, so that the next start blames no module for
 * the exit. */
static struct pipeline *leave_hanging(struct pipeline *p)
{
	log_error("a module's job has not ended within %u ms: not waiting for it",
		  PIPELINE_STOP_MS);
	crumb_leave(p->env.crumb, CRUMB_WORKER);
	return p;
}

struct pipeline *pipeline_free(struct pipeline *p)
{
	if (!p)
		return NULL;
	p->reloads.stopping = true;
	pipeline_devices_off(p);
	p->hotplug = hotplug_free(p->hotplug);
	attempts_fini(p);
	if (p->store && p->state.persist_timer)
		persist_now(p); /* saves the state of the modules before they end */
	config_fini(p);
	p->env.worker = worker_free_within(p->env.worker, PIPELINE_STOP_MS);
	if (p->store && p->state.persist_timer)
		persist_now(p);
	events_log(p);
	p->disk = worker_free_within(p->disk, PIPELINE_STOP_MS);
	if (!p->disk) {
		updates_fini(p);
		verify_fini(p);
		hold_fini(p);
	}
	loop_timer_free(p->state.persist_timer);
	loop_timer_free(p->state.quiet_timer);
	loop_timer_free(p->requests.rebalance_timer);
	noderes_fini(p);
	evict_fini(p);
	plugins_fini(p);
	adjustments_free(p->requests.adjustments);
	undo_fini(p);
	watch_files_fini(p);
	recover_fini(p);
	pushed_fini(p);
	(void)pipeline_cluster_told(p, NULL);
	pipeline_node_take(p, NULL, NULL);
	p->store = store_close(p->store);
	if (p->env.worker || p->disk)
		return leave_hanging(p);
	settings_close(&p->env);
	p->loader = loader_free(p->loader);
	p->env.cache = cache_free(p->env.cache);
	p->env.topo = topo_free(p->env.topo);
	p->watchdog = watchdog_free(p->watchdog);
	ends_note(NULL);
	p->env.crumb = crumb_close(p->env.crumb);
	if (p->root.fd >= 0)
		fs_root_close(&p->root);
	free(p->config_path);
	free(p->reloads.problems);
	first_forget(p);
	events_close(p);
	free(p);
	return NULL;
}

/* ---- access ---------------------------------------------------------------------------------- */

struct runtime_state *pipeline_runtime(struct pipeline *p)
{
	return &p->runtime;
}

DEFINE_GETTER(pipeline_cache, struct cache *, p->env.cache)
DEFINE_GETTER(pipeline_topo, struct topo *, p->env.topo)
DEFINE_GETTER(pipeline_store, struct store *, p->store)
DEFINE_GETTER(pipeline_loader, struct loader *, p->loader)
DEFINE_GETTER(pipeline_crumb, struct crumb *, p->env.crumb)
DEFINE_GETTER(pipeline_root, const struct fs_root *, &p->root)
DEFINE_GETTER(pipeline_policy, struct instance *, p->policy)

int pipeline_zones(struct pipeline *p, const struct rp_zone_sink *sink, struct err *err)
{
	int r = WATCHED(p, p->policy ? instance_zones(p->policy, sink, err) : 0);
	/* zones of the calculators have other names than those of the policy */
	bool more = (!r || r == -ENOTSUP) && p->node.noderes && noderes_zones(p, sink);
	return r == -ENOTSUP && more ? 0 : r;
}

int pipeline_extended(struct pipeline *p, const struct rp_extended_sink *sink, struct err *err)
{
	return WATCHED(p, p->policy ? instance_extended(p->policy, sink, err) : 0);
}

/* Finds the allocatable CPUs of a policy that does not report them: all except those that its zones
 * call reserved. */
static int pipeline_unreserved(struct pipeline *p, struct rp_idset *ret, struct err *err)
{
	_arena_ struct arena *a = arena_new(ZONES_BLOCK, ZONES_MAX);
	Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
	struct rp_idset reserved, more;
	rp_idset_clear(&reserved);
	int r = a ? zones_collect(p, a, &m, err) : -ENOMEM;
	for (size_t i = 0; !arena_failed(a) && i < m.n_zones; i++)
		for (size_t k = 0; k < m.zones[i]->n_attributes; k++)
			if (str_eq(m.zones[i]->attributes[k]->name, RESERVED_ATTRIBUTE) &&
			    !rp_idset_parse(&more, m.zones[i]->attributes[k]->value, RP_CPUS_MAX))
				rp_idset_or(&reserved, rp_ids_of(&reserved), rp_ids_of(&more));
	rp_idset_andnot(ret, topo_ids(pipeline_topo(p), RP_CPUS_ONLINE), rp_ids_of(&reserved));
	return arena_failed(a) ? err_errno(err, -ENOMEM, "the policy's zones") : r;
}

int pipeline_allocatable(struct pipeline *p, struct rp_idset *ret, struct err *err)
{
	int r = WATCHED(p, p->policy ? instance_allocatable(p->policy, ret, err) : 0);
	if (r == 0)
		return pipeline_unreserved(p, ret, err);
	if (r > 0)
		rp_idset_and(ret, rp_ids_of(ret), topo_ids(pipeline_topo(p), RP_CPUS_ONLINE));
	return r < 0 ? r : 0;
}

int pipeline_memory(struct pipeline *p, struct ctr *ctr, const struct rp_memory_sink *sink,
		    struct err *err)
{
	return WATCHED(p, p->policy ? instance_memory(p->policy, ctr, sink, err) : 0);
}

int pipeline_collect(struct pipeline *p, struct instance *i, const struct rp_metric_sink *sink,
		     struct err *err)
{
	return WATCHED(p, instance_collect(i, sink, err));
}

int pipeline_each_instance(struct pipeline *p, int (*fn)(struct instance *i, void *arg), void *arg)
{
	int r = p->policy ? fn(p->policy, arg) : 0;
	for (unsigned i = 0; i < p->controllers.n && !r; i++)
		if (p->controllers.list[i]->instance)
			r = fn(p->controllers.list[i]->instance, arg);
	return r;
}
