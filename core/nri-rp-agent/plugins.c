/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/plugins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/grants.h"
#include "core/lib/util/getter.h"
#include "core/nri-rp-agent/link.h"
#include "core/nri-rp-agent/unary.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rp-agent/pluginask.h"

#define LOG_SOURCE "plugins"
#define REGISTER_METHOD "/resourceplugin.v1alpha1.Registration/Register"
#define REGISTER_MAX (64u << 10)
#define SOCKET_MODE 0660
#define FOLDER_MODE 0750
#define LOOK_MS 5000u /* interval of checks for stopped plugins, and of sweeps */
#define QUIET_MS 5u
#define TELL_MS 5000u
#define FILE_HEAD "nri-rp resource plugins 1\n"
#define FILE_MAX (64u << 10)

struct plugins {
	struct plugins_config config;
	char *folder;
	struct grpc_server *server;
	struct unary_service service;
	struct known_plugin *list; /* known plugins, in the order of registration */
	unsigned n;
	struct loop_timer *look, *tell;
};

/* ---- list for the daemon --------------------------------------------------------------------- */

static void on_told(const struct rpc_result *result, void *arg)
{
	if (result->error && result->error != -ECANCELED)
		log_warning("nri-rpd did not accept the list of resource plugins: %s",
			    result->text);
}

static void tell_now(void *arg)
{
	struct plugins *p = arg;
	Agent__SetPluginsRequest m = AGENT__SET_PLUGINS_REQUEST__INIT;
	Agent__Plugin plugins[AGENT_PLUGINS_MAX], *list[AGENT_PLUGINS_MAX];
	const struct known_plugin *k;
	DL_FOREACH (p->list, k) {
		plugin_describe(k->plugin, &plugins[m.n_plugins]);
		list[m.n_plugins] = &plugins[m.n_plugins];
		m.n_plugins++;
	}
	m.plugins = list;
	(void)link_call(p->config.link, "SetPlugins", &m.base, TELL_MS, on_told, NULL);
}

static void plugins_tell(struct plugins *p)
{
	if (!loop_timer_armed(p->tell))
		(void)loop_timer_arm(p->tell, QUIET_MS);
}

/* ---- saved list ------------------------------------------------------------------------------ */

static void plugins_do_keep(const struct plugins *p)
{
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	_free_ char *path = str_printf("%s/" PLUGINS_FILE, p->folder);
	const struct known_plugin *k;
	(void)buf_add_str(&text, FILE_HEAD);
	DL_FOREACH (p->list, k) {
		Agent__Plugin m;
		plugin_describe(k->plugin, &m);
		(void)buf_printf(&text, "%s %s %d %d %d\n", m.resource, m.endpoint, m.aligns,
				 m.pre_start, m.reconciles);
	}
	int r = path && !text.failed
			? fs_replace(path, buf_bytes(&text), buf_len(&text), 0600, false, &err)
			: -ENOMEM;
	if (r)
		log_warning("cannot save the list of resource plugins: %s", err_text(&err, r));
}

static bool good_endpoint(const char *name)
{
	return grant_name(name) && !strchr(name, '/') && *name != '.' &&
	       !str_eq(name, PLUGINS_SOCKET) && !str_eq(name, PLUGINS_FILE);
}

static void plugins_changed(struct plugin *plugin, void *arg)
{
	struct known_plugin *k = arg;
	bool came = plugin_connected(plugin) && !k->connected;
	k->connected = plugin_connected(plugin);
	plugins_do_keep(k->all);
	plugins_tell(k->all);
	if (!came)
		return; /* plugins_look() repeats failed calls */
	k->sweep = true;
	if (!k->sweeping)
		ask_sweep(k);
}

static struct known_plugin *known_free(struct known_plugin *k)
{
	plugin_free(k->plugin);
	free(k->resource);
	free(k->endpoint);
	free(k);
	return NULL;
}

static struct known_plugin *known_new(struct plugins *p, struct plugin_config *config)
{
	struct known_plugin *k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	config->loop = p->config.loop;
	config->folder = p->folder;
	config->changed = plugins_changed;
	config->arg = k;
	k->all = p;
	k->resource = strdup(config->resource);
	k->endpoint = strdup(config->endpoint);
	k->plugin = plugin_new(config);
	return k->resource && k->endpoint && k->plugin ? k : known_free(k);
}

static void plugins_drop(struct plugins *p, struct known_plugin *k)
{
	DL_DELETE(p->list, k);
	p->n--;
	known_free(k);
}

/* Reads a line of the file. An invalid line is skipped: another version of the agent has written
 * it. */
static void plugins_recall(struct plugins *p, const char *line)
{
	char resource[GRANT_NAME_MAX], endpoint[GRANT_NAME_MAX];
	int flags[3];
	if (sscanf(line, "%255s %255s %d %d %d", resource, endpoint, &flags[0], &flags[1],
		   &flags[2]) != 5 ||
	    !grant_name(resource) || !good_endpoint(endpoint) || p->n == AGENT_PLUGINS_MAX ||
	    plugins_find(p, resource)) {
		log_warning("%s/" PLUGINS_FILE ": ignoring an invalid line", p->folder);
		return;
	}
	struct known_plugin *k = known_new(p, &(struct plugin_config){.resource = resource,
								      .endpoint = endpoint,
								      .aligns = flags[0],
								      .pre_start = flags[1],
								      .reconciles = flags[2]});
	if (!k)
		return;
	DL_APPEND(p->list, k);
	p->n++;
}

static void recall_all(struct plugins *p)
{
	_free_ char *path = str_printf("%s/" PLUGINS_FILE, p->folder);
	_free_ char *text = NULL;
	struct err err = ERR_INIT;
	size_t len;
	int r = path ? fs_read_own(path, FILE_MAX, &text, &len, &err) : -ENOMEM;
	if (r && r != -ENOENT)
		log_warning("cannot read the saved list of resource plugins: %s",
			    err_text(&err, r));
	if (r || !str_has_prefix(text, FILE_HEAD))
		return;
	char *save = NULL;
	for (char *line = strtok_r(text + strlen(FILE_HEAD), "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		plugins_recall(p, line);
}

/* ---- registration ---------------------------------------------------------------------------- */

static const char *plugins_refusal(const struct plugins *p,
				   const Resourceplugin__RegisterRequest *m, char *text,
				   size_t size)
{
	if (!m)
		(void)snprintf(text, size, "a request that cannot be decoded");
	else if (!str_eq(m->version, PLUGINS_VERSION))
		(void)snprintf(text, size,
			       "version \"%.64s\" is not supported, " PLUGINS_VERSION " is",
			       m->version);
	else if (!grant_name(m->resource_name))
		(void)snprintf(text, size,
			       "resource_name: expected a name like vendor.example/gpu");
	else if (!good_endpoint(m->endpoint))
		(void)snprintf(text, size,
			       "endpoint \"%.64s\": expected the name of a socket in this folder",
			       m->endpoint);
	else if (p->n == AGENT_PLUGINS_MAX &&
		 !plugins_find((struct plugins *)(uintptr_t)p, m->resource_name))
		(void)snprintf(text, size, "%u plugins are already registered", AGENT_PLUGINS_MAX);
	else
		return NULL;
	return text;
}

/* Registers a plugin. It replaces an earlier one for the same resource. */
static int plugins_take(struct plugins *p, const Resourceplugin__RegisterRequest *m)
{
	const Resourceplugin__Options *o = m->options;
	struct known_plugin *old = plugins_find(p, m->resource_name);
	struct known_plugin *k =
		known_new(p, &(struct plugin_config){.resource = m->resource_name,
						     .endpoint = m->endpoint,
						     .aligns = o && o->with_topology_alignment,
						     .pre_start = o && o->pre_start_required,
						     .reconciles = o && o->need_reconcile,
						     .ask_options = !o});
	if (!k)
		return -ENOMEM;
	if (old) {
		DL_REPLACE_ELEM(p->list, old, k);
		known_free(old);
	} else {
		DL_APPEND(p->list, k);
		p->n++;
	}
	plugin_connect(k->plugin);
	return 0;
}

static void serve_register(struct unary *u, const char *path, const uint8_t *payload, size_t n,
			   void *arg)
{
	struct plugins *p = arg;
	char text[256];
	if (!str_eq(path, REGISTER_METHOD)) {
		unary_fail(u, GRPC_UNIMPLEMENTED, "only " REGISTER_METHOD " is supported");
		return;
	}
	Resourceplugin__RegisterRequest *m =
		resourceplugin__register_request__unpack(NULL, n, payload);
	const char *why = plugins_refusal(p, m, text, sizeof text);
	int r = why ? 0 : plugins_take(p, m);
	if (why)
		log_warning("refused a resource plugin: %s", why);
	if (m)
		resourceplugin__register_request__free_unpacked(m, NULL);
	Resourceplugin__Empty empty = RESOURCEPLUGIN__EMPTY__INIT;
	if (why)
		unary_fail(u, GRPC_INVALID_ARGUMENT, why);
	else if (r)
		unary_fail(u, GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		unary_answer(u, &empty.base);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static bool is_over(const struct plugins *p, const struct known_plugin *k)
{
	uint64_t since = plugin_stopped_ms(k->plugin);
	return since && clock_ms() - since >= p->config.grace_s * UINT64_C(1000);
}

static bool is_swept(const struct known_plugin *k, bool reconciles)
{
	return reconciles || k->sweep || clock_ms() < k->unsure_until_ms;
}

static void look_later(struct plugins *p)
{
	uint64_t every = p->config.grace_s * UINT64_C(1000) / 2;
	(void)loop_timer_arm(p->look, every && every < LOOK_MS ? every : LOOK_MS);
}

static void plugins_look(void *arg)
{
	struct plugins *p = arg;
	struct known_plugin *k, *next;
	DL_FOREACH_SAFE(p->list, k, next)
	{
		Agent__Plugin m;
		plugin_describe(k->plugin, &m);
		if (is_over(p, k)) {
			log_warning("resource plugin %s (%s) has not returned within %u s: "
				    "dropping its allocations",
				    m.resource, m.endpoint, p->config.grace_s);
			plugins_drop(p, k);
			plugins_do_keep(p);
			plugins_tell(p);
		} else if (m.connected && is_swept(k, m.reconciles) && !k->sweeping) {
			ask_sweep(k);
		}
	}
	look_later(p);
}

void plugins_daemon_connected(struct plugins *p)
{
	struct known_plugin *k;
	tell_now(p);
	DL_FOREACH (p->list, k)
		k->sweep = true;
}

/* ---- functions for pluginask.c --------------------------------------------------------------- */

struct known_plugin *plugins_find(struct plugins *p, const char *resource)
{
	struct known_plugin *k;
	DL_FOREACH (p->list, k)
		if (str_eq(k->resource, resource))
			return k;
	return NULL;
}

DEFINE_GETTER_OF(plugins_first, struct known_plugin *, struct plugins *p, p->list)
DEFINE_GETTER_OF(plugins_link, struct link *, struct plugins *p, p->config.link)

bool plugins_serve(struct plugins *p, struct rpc_request *req)
{
	return ask_serve(p, req);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Removes sockets of an earlier time; plugins notice that kubelet.sock is new and create theirs
 * again. The agent already listens, so no other agent can be using the folder. */
static int clear_folder(const struct plugins *p, struct err *err)
{
	struct stat st;
	DIR *dir = opendir(p->folder);
	if (!dir)
		return err_errno(err, -errno, "the folder of resource plugins, %s", p->folder);
	for (const struct dirent *e; (e = readdir(dir));) {
		if (str_eq(e->d_name, PLUGINS_FILE) || str_eq(e->d_name, PLUGINS_SOCKET) ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !(S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode)))
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0))
			log_warning("%s/%s: %s", p->folder, e->d_name, strerror(errno));
	}
	(void)closedir(dir);
	return 0;
}

static int plugins_start(struct plugins *p, struct err *err)
{
	_free_ char *socket = str_printf("%s/" PLUGINS_SOCKET, p->folder);
	p->look = loop_timer_new(p->config.loop, plugins_look, p);
	p->tell = loop_timer_new(p->config.loop, tell_now, p);
	if (!socket || !p->look || !p->tell)
		return err_errno(err, -ENOMEM, "resource plugins");
	if (mkdir(p->folder, FOLDER_MODE) && errno != EEXIST)
		return err_errno(err, -errno, "the folder of resource plugins, %s", p->folder);
	int r = unary_listen(&p->service, socket, SOCKET_MODE, &p->server, err);
	if (!r)
		r = clear_folder(p, err);
	if (r)
		return r;
	recall_all(p);
	look_later(p);
	log_info("resource plugins register at %s", socket);
	return 0;
}

int plugins_new(const struct plugins_config *config, struct plugins **ret, struct err *err)
{
	struct plugins *p = calloc(1, sizeof *p);
	if (!p)
		return err_errno(err, -ENOMEM, "resource plugins");
	p->config = *config;
	p->folder = strdup(config->folder);
	p->service = (struct unary_service){.loop = config->loop,
					    .message_max = REGISTER_MAX,
					    .handle = serve_register,
					    .arg = p};
	int r = p->folder ? plugins_start(p, err) : err_errno(err, -ENOMEM, "resource plugins");
	if (r) {
		plugins_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct plugins *plugins_free(struct plugins *p)
{
	if (!p)
		return NULL;
	grpc_server_free(p->server);
	while (p->list)
		plugins_drop(p, p->list);
	loop_timer_free(p->look);
	loop_timer_free(p->tell);
	free(p->folder);
	free(p);
	return NULL;
}
