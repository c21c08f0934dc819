/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for common faults; each finding has a remedy. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/observe/kubelet.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/verify/drift.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/feed.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/topo/isst.h"
#include "core/lib/topo/sst.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/service.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/nri-rpd/control/doctor.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define NAMED_MAX 3u /* largest number of containers that a finding names */
#define RUNTIME_CONFIG_MAX (64u << 10) /* largest configuration of a runtime that is read */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define TOLERATION "tolerate-missing-plugins.nri-rp.io"

enum verdict { FINE, NOTE, WARNING, ERROR };

struct doctor {
	struct json *j;
	struct pipeline *p;
	struct ctl *ctl;
	const struct reload_result *plan; /* outcome for the present files; NULL: not tried */
	const char *check;
	enum verdict worst;
	unsigned n; /* findings of the running check */
};

__attribute__((format(printf, 4, 5))) static void doctor_finding(struct doctor *d,
								 enum verdict verdict,
								 const char *hint, const char *fmt,
								 ...)
{
	static const char *const names[] = {"ok", "note", "warning", "error"};
	char text[2 * ERR_TEXT_MAX], said[2 * ERR_TEXT_MAX], here[2 * ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	json_obj(d->j);
	json_kstr(d->j, "check", d->check);
	json_kstr(d->j, "verdict", names[verdict]);
	json_kstr(d->j, "text", service_text(text, said, sizeof said));
	json_kstr(d->j, "hint", service_text(hint, here, sizeof here));
	json_end_obj(d->j);
	if (verdict > d->worst)
		d->worst = verdict;
	d->n++;
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static const char nri_hint[] = "containerd: [plugins.\"io.containerd.nri.v1.nri\"] disable = false "
			       "(the default from 2.0 on); CRI-O: "
			       "[crio.nri] enable_nri = true; then restart the runtime; a runtime "
			       "without NRI: nri-rp-bridge(8)";

static void check_nri_socket(struct doctor *d)
{
	const struct runtime_state *rt = pipeline_runtime(d->p);
	/* The socket of the command line may differ from the configuration's. */
	const char *path = rt->socket ? rt->socket : conf_core(pipeline_conf(d->p))->runtime.socket;
	if (!rt->fallback || !*rt->fallback)
		doctor_finding(
			d, NOTE, "nri-rp-bridge(8)",
			"runtime.fallback is not set, so nri-rp-bridge cannot be used instead");
	struct stat st;
	struct err err = ERR_INIT;
	if (stat(path, &st) < 0) {
		doctor_finding(d, ERROR, nri_hint, "no NRI socket at %s: %s", path,
			       strerror(errno));
		return;
	}
	if (!S_ISSOCK(st.st_mode)) {
		doctor_finding(d, ERROR, "see runtime.socket in rp.conf", "%s is not a socket",
			       path);
		return;
	}
	if (wire_check_folder(path, &err))
		doctor_finding(d, WARNING, NULL, "%s", err.text);
	doctor_finding(d, ERROR, nri_hint,
		       "the NRI socket %s exists, but the runtime does not accept the daemon",
		       path);
}

static void check_runtime(struct doctor *d)
{
	const struct runtime_state *rt = pipeline_runtime(d->p);
	if (!rt->connected) {
		check_nri_socket(d);
		return;
	}
	if (rt->disconnects)
		doctor_finding(d, NOTE, NULL, "the connection was lost %llu times%s%s",
			       (unsigned long long)rt->disconnects,
			       rt->last_error[0] ? ", the last time: " : "", rt->last_error);
	if (rt->on_fallback)
		doctor_finding(d, WARNING, nri_hint, "connected to the fallback %s: %s",
			       rt->fallback, rt->fallback_why);
	if (rt->facts.flags & RP_RUNTIME_CREATION_IS_LATE)
		doctor_finding(
			d, NOTE, "nri-rp-bridge(8)",
			"containers are placed just after their start and cannot be refused");
	doctor_finding(d, FINE, NULL, "%s %s is connected", rt->facts.name, rt->facts.version);
}

static void check_requests(struct doctor *d)
{
	const struct pipeline_stats *st = pipeline_stats(d->p);
	const struct runtime_state *rt = pipeline_runtime(d->p);
	uint64_t limit_ns = rt->request_timeout_ms * 1000000, n = 0;
	for (unsigned r = 0; r < N_REQUESTS; r++) {
		const struct request_stats *s = &st->requests[r];
		n += s->n;
		if (limit_ns && s->max_ns > limit_ns / 2)
			doctor_finding(
				d, WARNING,
				"a runtime disconnects slow plugins: is the node overloaded?",
				"%s once took %llu ms; the runtime's timeout is %llu ms",
				request_name(r), (unsigned long long)(s->max_ns / 1000000),
				(unsigned long long)rt->request_timeout_ms);
	}
	if (st->unmanaged)
		doctor_finding(d, WARNING, "see onPolicyError in rp.conf",
			       "%llu containers were started unmanaged because the policy could "
			       "not place them",
			       (unsigned long long)st->unmanaged);
	if (st->invariant_breaks)
		doctor_finding(
			d, WARNING,
			"this is a defect of the policy module: please report it with the log",
			"%llu decisions of the policy violated an invariant and were dropped",
			(unsigned long long)st->invariant_breaks);
	doctor_finding(d, FINE, NULL, "%llu request%s answered", (unsigned long long)n,
		       n == 1 ? " was" : "s were");
}

static void check_updates(struct doctor *d)
{
	const struct pipeline_stats *st = pipeline_stats(d->p);
	unsigned waiting = updates_waiting(d->p);
	if (st->updates_failed)
		doctor_finding(d, waiting ? ERROR : WARNING, "nri-rpctl events has the reasons",
			       "%llu updates failed in the runtime; %u containers are waiting",
			       (unsigned long long)st->updates_failed, waiting);
	else if (waiting)
		doctor_finding(d, NOTE, NULL, "%u containers are waiting for an update", waiting);
	else
		doctor_finding(d, FINE, NULL, "all decisions are applied");
}

/* Returns true if the text of a runtime's configuration requires this plugin. */
static bool requires_plugin(const char *text, const char *name)
{
	for (const char *at = text; (at = strstr(at, "required_plugins")); at++) {
		const char *line = at, *end = strchr(at, ']');
		while (line > text && line[-1] != '\n')
			line--;
		line += strspn(line, " \t");
		const char *found = end && *line != '#' ? strstr(at, name) : NULL;
		size_t n = strlen(name);
		if (found && found < end && strchr("\"'", found[-1]) && found[-1] == found[n])
			return true;
	}
	return false;
}

/* Finds the runtime's configuration that requires this plugin; NULL: none is readable here. */
static const char *requiring_file(const struct doctor *d, const char *name)
{
	static const char *const files[] = {"etc/containerd/config.toml",
					    "etc/crio/crio.conf.d/99-nri-rp.conf",
					    "etc/crio/crio.conf"};
	_free_ char *text = malloc(RUNTIME_CONFIG_MAX);
	for (size_t i = 0; text && i < sizeof files / sizeof *files; i++)
		if (fs_read(pipeline_root(d->p), files[i], text, RUNTIME_CONFIG_MAX) >= 0 &&
		    requires_plugin(text, name))
			return files[i];
	return NULL;
}

/* Checks whether containers start while the daemon is away. Where the runtime requires the daemon,
 * names pods of kube-system that would not start without it. */
static void check_required(struct doctor *d)
{
	const char *name = conf_core(pipeline_conf(d->p))->runtime.name;
	const char *file = requiring_file(d, name);
	unsigned n = 0;
	if (!file) {
		doctor_finding(d, NOTE, "enable-nri --require-plugin; nri-rp-cluster(7)",
			       "no configuration of the runtime that can be read here requires %s: "
			       "containers start unplaced while nri-rpd is away",
			       name);
		return;
	}
	doctor_finding(d, FINE, NULL,
		       "/%s requires %s: no container starts while nri-rpd is away, except those "
		       "of pods with the annotation " TOLERATION ": \"true\"",
		       file, name);
	for (const struct pod *pod = cache_pods(pipeline_cache(d->p)); pod; pod = pod->hh.next) {
		const char *value = kvs_get(&pod->annotations, TOLERATION);
		if (!str_eq(pod->ns, "kube-system") || (value && str_eq(value, "true")))
			continue;
		if (++n <= NAMED_MAX)
			doctor_finding(d, NOTE, "annotate it with " TOLERATION ": \"true\"",
				       "%s/%s does not start while nri-rpd is away", pod->ns,
				       pod->name);
	}
	if (n > NAMED_MAX)
		doctor_finding(d, NOTE, NULL, "and %u more pods of kube-system", n - NAMED_MAX);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* Reports the problems of the configuration unless there is only one, which the condition above
 * names. */
static void put_problems(struct doctor *d, const char *lines)
{
	const char *first_end = lines ? strchr(lines, '\n') : NULL;
	if (!first_end || !first_end[1])
		return;
	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		doctor_finding(d, ERROR, NULL, "%.*s", (int)n, lines);
	}
}

/* Checks how a restart would read the files, which may have changed since they were read last. */
static void check_config(struct doctor *d)
{
	struct pipeline_status s;
	pipeline_status(d->p, &s);
	put_problems(d, s.config_problems);
	if (d->plan && d->plan->code && s.config_ok && !s.safe_mode)
		doctor_finding(
			d, ERROR, "nri-rpctl config check shows what is wrong",
			"%s is now invalid, so a restart would keep the active configuration: %s",
			s.config_path, err_text(&d->plan->err, d->plan->code));
	else if (d->plan && !d->plan->code && *d->plan->report->changes && s.config_ok &&
		 !s.config_undone)
		doctor_finding(d, NOTE, "nri-rpctl reload", "%s has changed and is not active",
			       s.config_path);
	if (!d->n && str_eq(s.policy, "none"))
		doctor_finding(
			d, NOTE,
			"set policy in rp.conf(5); nri-rpctl plan FILE shows what would move",
			"%s is active, policy none: no container is placed", s.config_path);
	else if (!d->n)
		doctor_finding(d, FINE, NULL, "%s is active, policy %s", s.config_path, s.policy);
}

static int check_module(const struct loader_item *item, void *arg)
{
	struct doctor *d = arg;
	if (item->hidden)
		return 0;
	if (item->quarantined)
		doctor_finding(d, ERROR,
			       "nri-rpctl modules clear NAME ends the quarantine; so does another "
			       "build of the module",
			       "module %s crashed %u times in a short time and is quarantined",
			       item->name, CRUMB_DEATHS);
	else if (item->err)
		doctor_finding(d, WARNING, NULL, "%s", err_text(item->err, item->err->code));
	return 0;
}

static int check_stale(struct instance *i, void *arg)
{
	struct doctor *d = arg;
	const struct module *m = instance_module(i);
	struct err err = ERR_INIT;
	if (module_restart(pipeline_loader(d->p), m, &err))
		doctor_finding(d, ERROR, "do not restart nri-rpd; reinstall the package",
			       "a restart could not use the active module %s: %s", m->name,
			       err.text);
	else if (module_stale(pipeline_loader(d->p), m) == MODULE_CHANGED)
		doctor_finding(d, WARNING,
			       "systemctl restart nri-rpd loads the new build; no container moves",
			       "module %s on disk is another build than the loaded one", m->name);
	return 0;
}

static void check_modules(struct doctor *d)
{
	const struct crumb_death *last = crumb_history(pipeline_crumb(d->p), 0);
	(void)loader_list(pipeline_loader(d->p), check_module, d);
	(void)pipeline_each_instance(d->p, check_stale, d);
	if (last)
		doctor_finding(d, WARNING, "nri-rpctl modules has the list",
			       "the daemon %s inside module %s, in %s of %s",
			       crumb_cause_text(last->cause), last->module,
			       crumb_call_name(last->call),
			       last->object[0] ? last->object : "no object");
	if (!d->n)
		doctor_finding(d, FINE, NULL, "modules are sound");
}

static void check_controllers(struct doctor *d)
{
	for (unsigned i = 0; i < pipeline_n_controllers(d->p); i++) {
		struct controller_status c;
		pipeline_controller(d->p, i, &c);
		if (c.running && (c.failed || c.partial))
			doctor_finding(d, WARNING, "nri-rpctl events has the reasons",
				       "controller %s failed for %u container%s, and partly for %u",
				       c.name, c.failed, PLURAL(c.failed), c.partial);
	}
	if (!d->n)
		doctor_finding(d, FINE, NULL,
			       pipeline_n_controllers(d->p) ? "all are running"
							    : "none is configured");
}

static void check_store(struct doctor *d)
{
	struct pipeline_status s;
	struct store_stats st;
	pipeline_status(d->p, &s);
	store_stats(pipeline_store(d->p), &st);
	if (st.failures)
		doctor_finding(d, st.commits ? WARNING : ERROR,
			       "is the disk full? df -h, and see cache.dir in rp.conf",
			       "%llu commit%s of the saved state failed, %llu succeeded",
			       (unsigned long long)st.failures, PLURAL(st.failures),
			       (unsigned long long)st.commits);
	if (!str_eq(s.store_state, "unusable") && !str_eq(s.store_state, "fresh") &&
	    !str_eq(s.store_state, "restored"))
		doctor_finding(d, NOTE, NULL, "the saved state at start: %s", s.store_state);
	if (!d->n)
		doctor_finding(d, FINE, NULL, "the saved state is %s, %llu commit%s",
			       str_eq(s.store_state, "fresh") ? "new" : s.store_state,
			       (unsigned long long)st.commits, PLURAL(st.commits));
}

static void check_containers(struct doctor *d)
{
	const struct ctr *ctr = cache_ctrs(pipeline_cache(d->p));
	unsigned n = 0;
	for (; ctr; ctr = ctr->next) {
		if (!ctr_live(ctr->cur.state) || !ctr->cur.degraded)
			continue;
		if (++n <= NAMED_MAX)
			doctor_finding(d, WARNING, "nri-rpctl explain CONTAINER", "%s: %s",
				       ctr->full_name, ctr->cur.degraded->data);
	}
	if (n > NAMED_MAX)
		doctor_finding(d, WARNING, "nri-rpctl containers",
			       "and %u more degraded container%s", n - NAMED_MAX,
			       PLURAL(n - NAMED_MAX));
	const unsigned all = cache_n_ctrs(pipeline_cache(d->p));
	if (!n)
		doctor_finding(d, FINE, NULL, "%u container%s placed as requested", all,
			       all == 1 ? " is" : "s are");
}

static void check_socket(struct doctor *d)
{
	struct err err = ERR_INIT;
	if (wire_check_folder(d->ctl->path, &err))
		doctor_finding(d, WARNING, NULL, "control socket: %s", err.text);
	else if (!d->n)
		doctor_finding(d, FINE, NULL, "%s, %u of %u clients", d->ctl->path,
			       d->ctl->n_clients, CTL_CLIENTS_MAX);
}

/* ---- the node -------------------------------------------------------------------------------- */

/* Reports a manager of the kubelet that is active beside a policy. Returns true if its state was
 * found. */
static bool check_kubelet_manager(struct doctor *d, enum kubelet_manager manager)
{
	static const struct {
		const char *name, *at_work, *key, *what;
	} managers[] = {
		[KUBELET_CPU] = {"CPU manager", "static", "cpuManagerPolicy: none", "CPUs"},
		[KUBELET_MEMORY] = {"memory manager", "Static", "memoryManagerPolicy: None",
				    "memory nodes"},
	};
	char hint[KUBELET_PATH_MAX + 64];
	struct kubelet_state state;
	struct pipeline_status s;
	pipeline_status(d->p, &s);
	if (!kubelet_read_state(pipeline_root(d->p), manager, &state))
		return false;
	(void)snprintf(hint, sizeof hint, "kubelet: %s, remove %s", managers[manager].key,
		       state.path);
	if (str_eq(state.policy, managers[manager].at_work) && !str_eq(s.policy, "none"))
		doctor_finding(d, ERROR, hint,
			       "the kubelet's %s (%s) and policy %s both set the %s of containers",
			       managers[manager].name, state.policy, s.policy,
			       managers[manager].what);
	return true;
}

static void check_kubelet(struct doctor *d)
{
	const bool cpu = check_kubelet_manager(d, KUBELET_CPU);
	const bool memory = check_kubelet_manager(d, KUBELET_MEMORY);
	if (!cpu && !memory)
		doctor_finding(
			d, NOTE,
			"check cpuManagerPolicy and memoryManagerPolicy of the kubelet: both must "
			"be none if a policy places containers",
			"not checked: no state of a kubelet was found in the usual directories, "
			"nor by the option --root-dir of a running one");
	else if (!d->n)
		doctor_finding(d, FINE, NULL, "the kubelet's CPU and memory managers are off");
}

static void check_claims(struct doctor *d, const struct devices_status *s)
{
	if (s->n_unlocated)
		doctor_finding(d, WARNING, "see TROUBLESHOOTING in nri-rp-dra(7)",
			       "the place of %u device%s of claims is unknown: %s", s->n_unlocated,
			       PLURAL(s->n_unlocated), s->unlocated);
	if (s->unclaimed[0])
		doctor_finding(d, WARNING,
			       "use Kubernetes 1.34 or later, or switch agent.resourceSlices off",
			       "%s", s->unclaimed);
}

static void check_agent(struct doctor *d)
{
	struct devices_status s;
	pipeline_devices_status(d->p, &s);
	if (!s.on) {
		doctor_finding(d, FINE, NULL, "not used");
		return;
	}
	if (!s.reachable) {
		doctor_finding(d, WARNING,
			       "systemctl status nri-rp-agent; agent.user in rp.conf sets the "
			       "allowed user",
			       "agent.podResourceAPI is set, but containers are placed without "
			       "their devices: %s",
			       s.why_not);
		return;
	}
	if (s.failed)
		doctor_finding(d, WARNING,
			       "check the log of nri-rp-agent, and whether the kubelet runs",
			       "%llu requests for devices of pods failed, the last one: %s",
			       (unsigned long long)s.failed, s.last_error);
	if (s.late)
		doctor_finding(d, WARNING, "is the kubelet slow?",
			       "%llu requests did not get the devices in time",
			       (unsigned long long)s.late);
	check_claims(d, &s);
	doctor_finding(d, FINE, NULL, "connected, devices of %u pod%s", s.n_known,
		       PLURAL(s.n_known));
}

static void check_feed(struct doctor *d)
{
	const struct admit_counts *c = pipeline_admit_counts(d->p);
	struct feed_status s;
	pipeline_feed_status(d->p, &s);
	if (s.counts.problem[0] && !s.counts.current)
		doctor_finding(d, WARNING, "see agent.podSource in rp.conf",
			       "requests of new pods are estimated: %s", s.counts.problem);
	if (!s.counts.current && str_eq(s.source, "feed"))
		doctor_finding(d, WARNING, "systemctl status nri-rp-agent; see admit in rp.conf",
			       "the policy admits pods, but no agent sends the cluster's pods");
	if (c->late)
		doctor_finding(
			d, WARNING, "see the log of nri-rp-agent, and admit in rp.conf",
			"%llu pods were created before their requests arrived from the cluster",
			(unsigned long long)c->late);
}

static void check_cluster(struct doctor *d)
{
	struct cluster_status s;
	pipeline_cluster_status(d->p, &s);
	check_feed(d);
	if (!s.on) {
		doctor_finding(d, FINE, NULL, "not used");
		return;
	}
	if (!s.state) {
		doctor_finding(d, WARNING,
			       "systemctl status nri-rp-agent; it needs --kubeconfig outside of a "
			       "container",
			       "agent.cluster is set, but no agent of the cluster is connected");
		return;
	}
	if (s.state->unreachable[0])
		doctor_finding(d, WARNING, "see the log of nri-rp-agent", "the API server %s: %s",
			       s.state->server, s.state->unreachable);
	for (unsigned i = 0; i < s.state->n_problems; i++)
		doctor_finding(d, WARNING, "nri-rp-agent(8) lists the rights that it needs", "%s",
			       s.state->problems[i]);
	if (!s.source)
		doctor_finding(d, WARNING, "kubectl apply one, named default, into that namespace",
			       "the cluster has no configuration for node %s in namespace %s",
			       s.state->node, s.state->ns);
	if (!d->n)
		doctor_finding(d, FINE, NULL, "node %s is configured by %s", s.state->node,
			       s.source);
}

static void check_drift(struct doctor *d)
{
	struct drift_stats s;
	pipeline_drift(d->p, &s);
	for (unsigned c = 0; c < N_CULPRITS; c++)
		if (s.by[c])
			doctor_finding(d, WARNING, culprit_hint((enum culprit)c),
				       "other programs changed CPUs or memory nodes of containers "
				       "%llu times, last those of %s: possibly %s",
				       (unsigned long long)s.by[c], s.last[c],
				       culprit_text((enum culprit)c));
	if (!s.watching)
		doctor_finding(
			d, NOTE, "sysctl fs.inotify",
			"cgroups cannot be watched: changes by other programs are not noticed");
	if (!d->n)
		doctor_finding(d, FINE, NULL, "no other program changed the %u watched cgroup%s",
			       s.n_watched, PLURAL(s.n_watched));
}

static const char *cgroup_driver(struct cache *cache)
{
	for (const struct pod *pod = cache_pods(cache); pod; pod = pod->hh.next)
		if (pod->cgroup_parent && pod->cgroup_parent[0])
			return str_has_suffix(pod->cgroup_parent, ".slice") ? "systemd"
									    : "cgroupfs";
	return "not yet known";
}

static void check_cgroup(struct doctor *d)
{
	const struct fs_root *root = pipeline_root(d->p);
	const char *driver = cgroup_driver(pipeline_cache(d->p));
	char controllers[1024];
	ssize_t n =
		fs_read(root, "sys/fs/cgroup/cgroup.controllers", controllers, sizeof controllers);
	if (n >= 0) {
		if (!strstr(controllers, "cpuset"))
			doctor_finding(
				d, ERROR,
				"the kernel lacks CONFIG_CPUSETS, or cgroup_disable=cpuset was "
				"given",
				"cgroup v2 without the controller cpuset: containers cannot be "
				"confined");
		else
			doctor_finding(d, FINE, NULL, "cgroup v2, driver %s", driver);
		return;
	}
	if (fs_exists(root, "sys/fs/cgroup/cpuset"))
		doctor_finding(d, FINE, NULL, "cgroup v1, driver %s", driver);
	else
		doctor_finding(d, NOTE, NULL, "cgroup file system not found, driver %s", driver);
}

static bool may_administer(void)
{
	return process_number("CapEff", 16) >> CAP_SYS_ADMIN & 1;
}

/* Command that installs a part of the unit. */
#define DROPIN(name)                                                                               \
	"install -D -m 644 -t /etc/systemd/system/nri-rpd.service.d " NRI_RP_DATADIR               \
	"/systemd/" name " && systemctl daemon-reload && systemctl restart nri-rpd"

/* Checks Speed Select. Most nodes do not use it, so a missing device is not reported. */
static void check_speedselect(struct doctor *d)
{
	struct topo *topo = pipeline_topo(d->p);
	/* Reading Speed Select takes time, so it is read only if the configuration uses it. */
	uint32_t n = sst_is_read(topo) ? sst_n_punits(topo) : 0;
	if (n && !may_administer())
		doctor_finding(d, NOTE,
			       "for pctPriority and sstClosID: " DROPIN("speed-select.conf"),
			       "Speed Select has %u punits; changing them needs CAP_SYS_ADMIN", n);
	else if (n)
		doctor_finding(d, FINE, NULL, "Speed Select has %u punits", n);
	else if (sst_is_read(topo) && fs_exists(pipeline_root(d->p), ISST_PATH))
		doctor_finding(d, NOTE, NULL, "Speed Select cannot be used: %s", sst_why(topo));
}

#define WORKQUEUE "sys/devices/virtual/workqueue/cpumask"

/* Checks whether the service may make partitions, if isolation.partition is used. */
static void check_partition(struct doctor *d, const char *policy)
{
	_free_ char *key = str_printf("%s.isolation.partition", policy);
	rp_cfg node = key ? conf_get(conf_root(pipeline_conf(d->p)), key) : NULL;
	if (node && str_eq(conf_text(node, ""), "isolated") && !may_administer())
		doctor_finding(d, WARNING, DROPIN("partition.conf"),
			       "%s: the kernel refuses partitions of a service without "
			       "CAP_SYS_ADMIN",
			       key);
}

/* Checks whether the service may do what isolation of the policy needs. */
static void check_isolation(struct doctor *d)
{
	const struct fs_root *root = pipeline_root(d->p);
	struct pipeline_status s;
	pipeline_status(d->p, &s);
	check_partition(d, s.policy);
	_free_ char *key = str_printf("%s.isolation.kernelWork", s.policy);
	rp_cfg node = key ? conf_get(conf_root(pipeline_conf(d->p)), key) : NULL;
	_free_ char *path = str_printf("%s/" WORKQUEUE, root->path);
	if (!node || !path || !str_eq(conf_text(node, ""), "away"))
		return;
	if (access(path, W_OK) < 0)
		doctor_finding(d, WARNING, DROPIN("interrupts.conf"),
			       "%s cannot keep kernel work off exclusive CPUs: /" WORKQUEUE ": %s",
			       key, strerror(errno));
	else
		doctor_finding(d, FINE, NULL, "kernel work is kept off exclusive CPUs");
}

static void check_machine(struct doctor *d)
{
	struct topo *topo = pipeline_topo(d->p);
	struct rp_idset off;
	char text[256];
	for (uint32_t i = 0; i < topo_n_notes(topo); i++)
		doctor_finding(d, NOTE, NULL, "%s", topo_note(topo, i));
	rp_idset_andnot(&off, topo_ids(topo, RP_CPUS_PRESENT), topo_ids(topo, RP_CPUS_ONLINE));
	if (!rp_ids_empty(rp_ids_of(&off))) {
		(void)rp_ids_format(rp_ids_of(&off), text, sizeof text);
		doctor_finding(d, NOTE, NULL, "CPUs that are offline: %s", text);
	}
	check_speedselect(d);
	const unsigned cpus = rp_ids_count(topo_ids(topo, RP_CPUS_ONLINE));
	const unsigned nodes = rp_ids_count(topo_ids(topo, RP_NODES_MEMORY));
	doctor_finding(d, FINE, NULL, "%u CPU%s, %u memory node%s", cpus, PLURAL(cpus), nodes,
		       PLURAL(nodes));
}

static void check_metrics(struct doctor *d)
{
	const char *listen = conf_core(pipeline_conf(d->p))->metrics.listen;
	if (!d->n)
		doctor_finding(d, FINE, NULL, *listen ? "served at %s" : "not served%s", listen);
}

#define TAKERS_HINT                                                                                \
	"annotations: {takers: named, takerNamespaces: [kube-system]} in rp.conf; "                \
	"nri-rp-annotations(7)"

/* Reports which CPUs and memory the author of any pod may take from other containers by
 * annotation. */
static void check_annotations(struct doctor *d)
{
	const struct conf_annotations *a = &conf_core(pipeline_conf(d->p))->annotations;
	struct buf names = BUF_INIT;
	if (!a->takers_named) {
		doctor_finding(
			d, NOTE, TAKERS_HINT,
			"annotations.takers is peers: a pod of any namespace may take from other "
			"containers, for example run on all exclusive CPUs (cpu.preserve, "
			"qos_level: system_cores) or get a whole NUMA node (numa_exclusive)");
		return;
	}
	for (unsigned i = 0; i < a->taker_namespaces.n; i++)
		(void)buf_printf(&names, "%s%s", i ? ", " : "", a->taker_namespaces.items[i]);
	doctor_finding(d, FINE, NULL,
		       "annotations.takers is named: annotations that take from other containers "
		       "are used in %s%s%s",
		       a->taker_namespaces.n ? "namespaces " : "no namespace",
		       buf_len(&names) ? buf_text(&names) : "",
		       a->n ? ", and where annotations.allow lists them" : "");
	buf_fini(&names);
}

/* ---- all checks ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(struct doctor *d);
} checks[] = {
	{"runtime", check_runtime},
	{"required", check_required},
	{"requests", check_requests},
	{"updates", check_updates},
	{"configuration", check_config},
	{"modules", check_modules},
	{"controllers", check_controllers},
	{"store", check_store},
	{"containers", check_containers},
	{"control socket", check_socket},
	{"metrics", check_metrics},
	{"kubelet", check_kubelet},
	{"agent", check_agent},
	{"cluster", check_cluster},
	{"drift", check_drift},
	{"annotations", check_annotations},
	{"cgroup", check_cgroup},
	{"isolation", check_isolation},
	{"machine", check_machine},
};

/* Reports a condition that belongs to the running check. */
static void put_condition(const struct condition *c, void *arg)
{
	struct doctor *d = arg;
	if (str_eq(c->about, d->check))
		doctor_finding(d, c->severity == SEVERITY_UNHEALTHY ? ERROR : WARNING, c->hint,
			       "%s", c->text);
}

static int doctor_examine(struct doctor *d)
{
	json_arr(d->j);
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
		d->check = checks[i].name;
		d->n = 0;
		(void)conditions_each(d->p, put_condition, d);
		checks[i].run(d);
	}
	json_end_arr(d->j);
	return d->worst == ERROR || conditions_each(d->p, NULL, NULL) ? CTL_DEGRADED : CTL_OK;
}

static void doctor_planned(const struct reload_result *res, void *arg)
{
	struct job *job = arg;
	struct buf out = BUF_INIT;
	struct json j;
	struct doctor d = {.j = &j, .ctl = job->ctl, .plan = res};
	int exit = CTL_FAILED;
	json_init(&j, &out);
	if (job->ctl) {
		d.p = job->ctl->pipeline;
		exit = doctor_examine(&d);
	}
	job_end(job, &out, exit);
	buf_fini(&out);
}

/* Runs doctor. The present files are tried, so that an error is found before a restart. */
enum call_result run_doctor(struct call *call)
{
	struct doctor d = {.j = &call->j, .p = call->p, .ctl = call->ctl};
	struct ctl *ctl = call->ctl;
	struct pipeline_status s;
	struct err err = ERR_INIT;
	struct job *job = ctl->n_plans < CTL_PLANS_MAX ? job_new(call, &ctl->jobs) : NULL;
	if (job) {
		pipeline_status(call->p, &s);
		job->plan = true;
		ctl->n_plans++;
		if (pipeline_plan(call->p, s.config_path, doctor_planned, job, &err) == 0)
			return CALL_LATER;
		job_drop(job, &ctl->jobs);
	}
	call->exit = doctor_examine(&d);
	return CALL_DONE;
}
