/* SPDX-License-Identifier: Apache-2.0 */
/* Shows installed modules and their deaths, log levels and the version. */
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/reload/recover.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/modules.h"

#define LOG_SOURCE "control"

/* ---- modules --------------------------------------------------------------------------------- */

struct listing {
	struct json *j;
	struct pipeline *p;
	const struct module *in_use[LOADER_MODULES_MAX];
	bool listed[LOADER_MODULES_MAX];
	unsigned n_in_use;
};

static int note_in_use(struct instance *i, void *arg)
{
	struct listing *l = arg;
	if (l->n_in_use < LOADER_MODULES_MAX)
		l->in_use[l->n_in_use++] = instance_module(i);
	return 0;
}

/* Marks every use of the module, which may be both policy and controller. Returns true if it is in
 * use. */
static bool mark_in_use(struct listing *l, const struct module *m)
{
	bool found = false;
	for (unsigned i = 0; m && i < l->n_in_use; i++)
		if (l->in_use[i] == m)
			found = l->listed[i] = true;
	return found;
}

static void put_kinds(struct json *j, uint32_t kinds)
{
	static const struct bit_name names[] = {{RP_KIND_POLICY, "policy"},
						{RP_KIND_CONTROLLER, "controller"},
						{RP_KIND_CALCULATOR, "calculator"}};
	PUT_BITS(j, "kinds", kinds, names);
}

static const char *stale_name(int stale)
{
	if (stale == MODULE_CHANGED)
		return "changed";
	return stale == MODULE_GONE ? "gone" : NULL;
}

static void put_loaded(struct listing *l, const struct module *m)
{
	const struct loader *loader = pipeline_loader(l->p);
	json_kbool(l->j, "loaded", m != NULL);
	json_kbool(l->j, "in_use", mark_in_use(l, m));
	put_text(l->j, "stale", m ? stale_name(module_stale(loader, m)) : NULL);
	put_text(l->j, "summary", m ? m->summary : NULL);
	put_text(l->j, "licence", m ? m->licence : NULL);
}

static int put_item(const struct loader_item *item, void *arg)
{
	struct listing *l = arg;
	struct json *j = l->j;
	char abi[32] = "";
	if (item->facts)
		(void)snprintf(abi, sizeof abi, "%u.%u", item->facts->note.abi_major,
			       item->facts->note.abi_minor);
	json_obj(j);
	JSON_MEMBERS(j, item, name, path);
	put_text(j, "version", item->facts ? item->facts->note.version : NULL);
	put_text(j, "abi", abi);
	put_kinds(j, item->facts ? item->facts->note.kinds : 0);
	put_loaded(l, item->module);
	JSON_MEMBERS(j, item, quarantined, hidden);
	json_kuint(j, "deaths", crumb_deaths(pipeline_crumb(l->p), item->name));
	put_text(j, "error", item->err ? err_text(item->err, item->err->code) : NULL);
	json_end_obj(j);
	return 0;
}

/* Lists modules in use whose file no longer exists. */
static void put_vanished(struct listing *l)
{
	struct json *j = l->j;
	char abi[32];
	for (unsigned i = 0; i < l->n_in_use; i++) {
		const struct module *m = l->in_use[i];
		if (l->listed[i])
			continue;
		(void)snprintf(abi, sizeof abi, "%u.%u", RP_ABI_MAJOR, m->abi_minor);
		json_obj(j);
		JSON_MEMBERS(j, m, name, path, version);
		json_kstr(j, "abi", abi);
		put_kinds(j, m->kinds);
		put_loaded(l, m);
		json_kbool(j, "quarantined", false);
		json_kbool(j, "hidden", false);
		json_kuint(j, "deaths", crumb_deaths(pipeline_crumb(l->p), m->name));
		json_kstr(j, "error", NULL);
		json_end_obj(j);
	}
}

static void put_deaths(struct json *j, const struct crumb *crumb)
{
	const struct crumb_death *d;
	json_karr(j, "deaths");
	for (unsigned i = 0; (d = crumb_history(crumb, i)); i++) {
		json_obj(j);
		json_kstr(j, "module", d->module);
		json_kstr(j, "call", crumb_call_name(d->call));
		put_text(j, "object", d->object);
		json_kstr(j, "cause", crumb_cause_name(d->cause));
		json_kbool(j, "counted", d->counted);
		put_time(j, "time", d->wall_ns);
		json_kuint(j, "pid", d->pid);
		json_end_obj(j);
	}
	json_end_arr(j);
}

enum call_result run_modules(struct call *call)
{
	struct listing l = {.j = &call->j, .p = call->p};
	(void)pipeline_each_instance(call->p, note_in_use, &l);
	json_obj(&call->j);
	json_karr(&call->j, "modules");
	(void)loader_list(pipeline_loader(call->p), put_item, &l);
	put_vanished(&l);
	json_end_arr(&call->j);
	put_deaths(&call->j, pipeline_crumb(call->p));
	json_end_obj(&call->j);
	return CALL_DONE;
}

enum call_result run_modules_clear(struct call *call)
{
	const char *name = call->req->args[0];
	if (!note_name_valid(name))
		return call_fail(call, CTL_USAGE, "\"%.64s\" is not a module's name", name);
	int r = crumb_clear(pipeline_crumb(call->p), name);
	if (r == -ENOENT)
		return call_fail(call, CTL_FAILED, "module %s is not quarantined", name);
	if (r)
		return call_fail(call, CTL_FAILED, "module %s: %s", name, strerror(-r));
	log_notice("module %s is no longer quarantined", name);
	recover_soon(call->p);
	json_obj(&call->j);
	json_kstr(&call->j, "cleared", name);
	json_end_obj(&call->j);
	return CALL_DONE;
}

/* ---- log ------------------------------------------------------------------------------------- */

/* Writes the log sources in debug mode: the sources set by hand since the last configuration, or
 * set by the configuration. */
static void put_debug(struct call *call)
{
	const struct ctl *ctl = call->ctl;
	const struct conf_strings *c = &conf_core(pipeline_conf(call->p))->log.debug;
	char copy[CTL_DEBUG_MAX], *rest = copy;
	json_karr(&call->j, "debug");
	if (ctl->log_generation == pipeline_conf_generation(call->p)) {
		(void)snprintf(copy, sizeof copy, "%s", ctl->log_debug);
		for (char *name; (name = strsep(&rest, ","));)
			if (*name)
				json_str(&call->j, name);
	} else {
		for (unsigned i = 0; i < c->n; i++)
			json_str(&call->j, c->items[i]);
	}
	json_end_arr(&call->j);
}

static enum call_result put_log(struct call *call)
{
	json_obj(&call->j);
	json_kstr(&call->j, "level", log_level_name(log_get_level()));
	put_debug(call);
	json_end_obj(&call->j);
	return CALL_DONE;
}

enum call_result run_log_level(struct call *call)
{
	enum log_level level;
	if (!call->req->n_args)
		return put_log(call);
	if (log_level_from_name(call->req->args[0], &level))
		return call_fail(
			call, CTL_USAGE,
			"unknown log level \"%.64s\"; use error, warning, notice, info or debug",
			call->req->args[0]);
	log_set_level(level);
	log_notice("log level %s, until the next reload", log_level_name(level));
	return put_log(call);
}

static bool source_valid(const char *s)
{
	return *s &&
	       (str_eq(s, "*") ||
		!s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")]);
}

/* Splits arguments that are names or lists of names: "cache,topo". "off" is the empty set. */
static int split_sources(const Control__Request *req, char joined[CTL_DEBUG_MAX],
			 const char *sources[LOG_SOURCES_MAX], unsigned *ret_n)
{
	size_t used = 0;
	*ret_n = 0;
	for (size_t i = 0; i < req->n_args; i++) {
		size_t len = strlen(req->args[i]);
		if (used + len + 1 >= CTL_DEBUG_MAX)
			return -E2BIG;
		memcpy(joined + used, req->args[i], len + 1);
		for (char *rest = joined + used, *name; (name = strsep(&rest, ","));) {
			if (!*name || str_eq(name, "off"))
				continue;
			if (!source_valid(name))
				return -EINVAL;
			if (*ret_n == LOG_SOURCES_MAX)
				return -E2BIG;
			sources[(*ret_n)++] = name;
		}
		used += len + 1;
	}
	return 0;
}

/* Sources of the daemon's log messages; the source of a module is its name. */
static const char *const log_sources[] = {
	"admit",   "agent",   "cache",	"claims",  "config",	"control", "controller",
	"devices", "drift",   "events", "evict",   "export",	"feed",	   "loop",
	"machine", "metrics", "module", "node",	   "nri",	"nri-rpd", "pipeline",
	"plugins", "pods",    "policy", "publish", "rebalance", "request", "settings",
	"store",   "sync",    "topo",	"updates", "verify",	"wire",
};
#define N_LOG_SOURCES (sizeof log_sources / sizeof log_sources[0])

static int is_module(const struct loader_item *item, void *arg)
{
	return str_eq(item->name, arg);
}

static bool source_known(struct pipeline *p, const char *name)
{
	for (size_t i = 0; i < N_LOG_SOURCES; i++)
		if (str_eq(log_sources[i], name))
			return true;
	return str_eq(name, "*") ||
	       loader_list(pipeline_loader(p), is_module, (char *)(uintptr_t)name) != 0;
}

static enum call_result unknown_source(struct call *call, const char *name)
{
	struct buf list = BUF_INIT;
	const char *close = str_closest(name, log_sources, N_LOG_SOURCES);
	for (size_t i = 0; i < N_LOG_SOURCES; i++)
		(void)buf_printf(&list, "%s, ", log_sources[i]);
	(void)call_fail(call, CTL_USAGE,
			"unknown log source \"%s\"%s%s%s sources are %smodules' names, * and off",
			name, close ? "; did you mean " : ";", close ? close : "", close ? "?" : "",
			buf_text(&list));
	buf_fini(&list);
	return CALL_DONE;
}

enum call_result run_log_debug(struct call *call)
{
	struct ctl *ctl = call->ctl;
	char joined[CTL_DEBUG_MAX] = "";
	const char *sources[LOG_SOURCES_MAX];
	unsigned n;
	if (!call->req->n_args)
		return put_log(call);
	int r = split_sources(call->req, joined, sources, &n);
	if (r == -E2BIG)
		return call_fail(call, CTL_USAGE, "at most %u sources in %u bytes", LOG_SOURCES_MAX,
				 CTL_DEBUG_MAX - 1);
	if (r)
		return call_fail(call, CTL_USAGE, "sources are names like cache, or *, or off");
	for (unsigned i = 0; i < n; i++)
		if (!source_known(call->p, sources[i]))
			return unknown_source(call, sources[i]);
	(void)log_set_debug(sources, n);
	ctl->log_debug[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		size_t len = strlen(ctl->log_debug);
		(void)snprintf(ctl->log_debug + len, sizeof ctl->log_debug - len, "%s%s",
			       i ? "," : "", sources[i]);
	}
	ctl->log_generation = pipeline_conf_generation(call->p);
	log_notice("debugging %s, until the next reload", n ? ctl->log_debug : "nothing");
	return put_log(call);
}

/* ---- version --------------------------------------------------------------------------------- */

enum call_result run_version(struct call *call)
{
	char abi[32];
	(void)snprintf(abi, sizeof abi, "%u.%u", RP_ABI_MAJOR, RP_ABI_MINOR);
	json_obj(&call->j);
	json_kstr(&call->j, "version", NRI_RP_VERSION);
	json_kstr(&call->j, "module_abi", abi);
	json_kint(&call->j, "pid", getpid());
	json_end_obj(&call->j);
	return CALL_DONE;
}
