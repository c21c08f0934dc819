/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and containers of the runtime. */
#include "core/nri-rp-sim/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rp-sim/sim.h"
#include "core/nri-rp-sim/kubelet.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define FIRST_PID 10000u

static const char pod_keys[] =
	"pod namespace uid again labels annotations containers critical handler cgroupParent "
	"resources";
static const char ctr_keys[] =
	"name cpu memory requests limits init image args env mounts devices labels annotations "
	"hugepages cdi cpus mems state";

int model_check_pod(const json_t *spec, const char *more, struct err *err)
{
	char keys[sizeof pod_keys + 32];
	json_t *ctr;
	size_t i;
	(void)snprintf(keys, sizeof keys, "%s %s", pod_keys, more);
	int r = arg_check(ARGS(spec, err), keys, "pod");
	json_array_foreach(json_object_get(spec, "containers"), i, ctr)
	{
		if (!r)
			r = arg_check(ARGS(ctr, err), ctr_keys, "container");
	}
	return r;
}

/* ---- names and numbers ----------------------------------------------------------------------- */

/* Returns the n-th pseudo-random number of the seed. */
static uint64_t model_hash(const struct sim *s, uint64_t n)
{
	uint64_t x =
		s->options.seed * UINT64_C(0x9e3779b97f4a7c15) + n * UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static char *new_id(struct sim *s)
{
	uint64_t n = ++s->n_ids * 8;
	return str_printf("%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, model_hash(s, n),
			  model_hash(s, n + 1), model_hash(s, n + 2), model_hash(s, n + 3));
}

static char *new_uid(struct sim *s)
{
	uint64_t n = ++s->n_ids * 8, a = model_hash(s, n + 4), b = model_hash(s, n + 5);
	return str_printf("%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(a >> 32),
			  (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
			  (unsigned)(b >> 48 & 0x3fff) | 0x8000u, b & UINT64_C(0xffffffffffff));
}

const char *model_name(const struct sim_ctr *ctr, char buf[MODEL_NAME_MAX])
{
	bool common = str_eq(ctr->pod->ns, "default");
	(void)snprintf(buf, MODEL_NAME_MAX, "%s%s%s/%s", common ? "" : ctr->pod->ns,
		       common ? "" : "/", ctr->pod->name, ctr->name);
	return buf;
}

const char *model_state_name(enum ctr_state state)
{
	static const char *const names[] = {"creating", "created", "running", "exited"};
	return names[state];
}

/* ---- look-up --------------------------------------------------------------------------------- */

struct sim_pod *model_find_pod(const struct sim *s, const char *name)
{
	const char *slash = strchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;
	struct sim_pod *found = NULL;
	for (struct sim_pod *p = s->pods; p; p = p->next)
		if (str_eq(p->name, slash ? slash + 1 : name) &&
		    (!slash || (strlen(p->ns) == n && strncmp(p->ns, name, n) == 0)))
			found = p;
	return found;
}

struct sim_ctr *model_ctr_of_id(const struct sim *s, const char *id)
{
	for (struct sim_ctr *c = s->ctrs; c; c = c->next)
		if (str_eq(c->id, id))
			return c;
	return NULL;
}

static bool has_name(const struct sim_ctr *c, const char *name)
{
	size_t len = strlen(name), own = strlen(c->name);
	if (str_eq(c->name, name))
		return true;
	if (len <= own + 1 || name[len - own - 1] != '/' || !str_eq(name + len - own, c->name))
		return false;
	size_t rest = len - own - 1, pod = strlen(c->pod->name), ns = strlen(c->pod->ns);
	if (rest < pod || strncmp(name + rest - pod, c->pod->name, pod) != 0)
		return false;
	return rest == pod ||
	       (rest == ns + 1 + pod && name[ns] == '/' && strncmp(name, c->pod->ns, ns) == 0);
}

/* Returns the latest live container of the name, otherwise the latest exited one. */
struct sim_ctr *model_find_ctr(const struct sim *s, const char *name)
{
	struct sim_ctr *found = NULL;
	for (struct sim_ctr *c = s->ctrs; c; c = c->next)
		if ((has_name(c, name) || str_eq(c->id, name)) &&
		    (!found || c->state != CTR_EXITED || found->state == CTR_EXITED))
			found = c;
	return found;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static int pod_own(const json_t *spec, struct sim_pod *p, struct err *err)
{
	struct args own = arg_sub(ARGS(spec, err), "resources", "cpu memory");
	if (own.r || !own.map)
		return own.r;
	int r = kubelet_wants(own.map, &p->own, err);
	if (r)
		return r;
	p->qos = kubelet_qos(&p->own, 1);
	kubelet_put_own(&p->own, &p->wants);
	return 0;
}

static int pod_wants(const json_t *spec, struct sim_pod *p, struct err *err)
{
	const json_t *list;
	int r = arg_list(ARGS(spec, err), "containers", &list);
	size_t n = json_array_size(list);
	_free_ struct wants *wants = calloc(n + 1, sizeof *wants);
	if (!wants)
		return err_errno(err, -ENOMEM, "pod");
	_free_ bool *init = calloc(n + 1, sizeof *init);
	if (!init)
		return err_errno(err, -ENOMEM, "pod");
	for (size_t i = 0; !r && i < n; i++) {
		const json_t *ctr = json_array_get(list, i);
		r = kubelet_wants(ctr, &wants[i], err);
		if (!r)
			r = arg_bool(ARGS(ctr, err), "init", false, &init[i]);
	}
	if (r)
		return r;
	p->qos = kubelet_qos(wants, n);
	kubelet_sum(wants, init, n, &p->wants);
	return pod_own(spec, p, err);
}

static json_t *own_map(const json_t *map)
{
	return map ? json_deep_copy(map) : json_object();
}

static int fill_pod(struct sim *s, const json_t *spec, struct sim_pod *p, struct err *err)
{
	const char *name, *ns, *uid, *handler, *parent;
	const json_t *labels, *annotations;
	struct args *a = ARGS(spec, err);
	(void)arg_check(a, pod_keys, "pod");
	(void)arg_text(a, "pod", NULL, &name);
	(void)arg_text(a, "namespace", "default", &ns);
	(void)arg_text(a, "uid", NULL, &uid);
	(void)arg_text(a, "handler", "", &handler);
	(void)arg_text(a, "cgroupParent", NULL, &parent);
	(void)arg_map(a, "labels", &labels);
	(void)arg_map(a, "annotations", &annotations);
	int r = arg_bool(a, "critical", false, &p->critical);
	if (!r)
		r = pod_wants(spec, p, err);
	if (r)
		return r;
	if (!name)
		return err_set(err, -EINVAL, "pod: missing name: write pod: NAME");
	p->id = new_id(s);
	p->uid = uid ? strdup(uid) : new_uid(s);
	p->name = strdup(name);
	p->ns = strdup(ns);
	p->handler = strdup(handler);
	p->labels = own_map(labels);
	p->annotations = own_map(annotations);
	p->cgroup_parent = parent   ? strdup(parent)
			   : p->uid ? kubelet_cgroup_parent(s->cgroups, p->qos, p->uid)
				    : NULL;
	p->pid = FIRST_PID + s->next_pid++;
	bool complete = p->id && p->uid && p->name && p->ns && p->handler && p->labels &&
			p->annotations && p->cgroup_parent;
	return complete ? 0 : err_errno(err, -ENOMEM, "pod");
}

static void free_pod(struct sim_pod *p)
{
	free(p->id);
	free(p->uid);
	free(p->name);
	free(p->ns);
	free(p->handler);
	free(p->cgroup_parent);
	json_decref(p->labels);
	json_decref(p->annotations);
	free(p);
}

int model_new_pod(struct sim *s, const json_t *spec, struct sim_pod **ret, struct err *err)
{
	struct sim_pod *p = calloc(1, sizeof *p);
	int r = p ? fill_pod(s, spec, p, err) : err_errno(err, -ENOMEM, "pod");
	if (r) {
		if (p)
			free_pod(p);
		return r;
	}
	DL_APPEND(s->pods, p);
	*ret = p;
	return 0;
}

void model_free_pod(struct sim *s, struct sim_pod *p)
{
	for (struct sim_ctr *c = s->ctrs, *next; c; c = next) {
		next = c->next;
		if (c->pod == p)
			model_free_ctr(s, c);
	}
	DL_DELETE(s->pods, p);
	free_pod(p);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int fill_resources(const struct sim_ctr *c, const json_t *spec, struct resources *res,
			  struct err *err)
{
	char cpus[ARG_NUMBER_MAX], mems[ARG_NUMBER_MAX];
	const char *cpus_text = arg_scalar(json_object_get(spec, "cpus"), cpus);
	const char *mems_text = arg_scalar(json_object_get(spec, "mems"), mems);
	int64_t quota = kubelet_quota(&c->wants);
	res->shares = kubelet_shares(&c->wants);
	res->quota = quota ? quota : SIM_NOT_SET;
	res->period = KUBELET_PERIOD;
	res->memory_limit = c->wants.memory_limit ? c->wants.memory_limit : SIM_NOT_SET;
	res->cpus = strdup(cpus_text ? cpus_text : "");
	res->mems = strdup(mems_text ? mems_text : "");
	return res->cpus && res->mems ? 0 : err_errno(err, -ENOMEM, "container");
}

static int read_state(const json_t *spec, enum ctr_state *ret, struct err *err)
{
	const char *state;
	int r = arg_text(ARGS(spec, err), "state", "creating", &state);
	if (r)
		return r;
	for (unsigned i = CTR_CREATING; i <= CTR_EXITED; i++)
		if (str_eq(state, model_state_name((enum ctr_state)i))) {
			*ret = (enum ctr_state)i;
			return 0;
		}
	return err_set(err, -EINVAL, "state: expected created, running or exited");
}

/* Converts the amounts of huge pages in a container's description to numbers of bytes. */
static int read_hugepages(json_t *spec, struct err *err)
{
	struct args *a = ARGS(spec, err);
	const json_t *map;
	const char *key;
	json_t *value;
	int r = arg_map(a, "hugepages", &map);
	struct args sizes = *ARGS(map, err);
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		int64_t bytes = 0;
		r = r ? r : arg_amount(&sizes, key, ARG_BYTES, 0, &bytes);
		if (r || json_is_integer(value))
			continue;
		if (json_object_set_new((json_t *)(uintptr_t)map, key, json_integer(bytes)))
			return err_errno(err, -ENOMEM, "container");
	}
	return r;
}

static int fill_ctr(struct sim *s, const json_t *spec, struct sim_ctr *c, struct err *err)
{
	const char *name;
	struct args *a = ARGS(spec, err);
	(void)arg_check(a, ctr_keys, "container");
	(void)arg_text(a, "name", NULL, &name);
	int r = arg_bool(a, "init", false, &c->init);
	if (!r)
		r = read_state(spec, &c->state, err);
	if (!r)
		r = kubelet_wants(spec, &c->wants, err);
	if (r)
		return r;
	kubelet_hand_down(&c->pod->own, &c->wants);
	if (!name)
		return err_set(err, -EINVAL, "container: missing name");
	c->id = new_id(s);
	c->name = strdup(name);
	c->spec = json_deep_copy(spec);
	c->given = json_object();
	c->pid = FIRST_PID + s->next_pid++;
	if (!c->id || !c->name || !c->spec || !c->given)
		return err_errno(err, -ENOMEM, "container");
	c->cgroups_path =
		kubelet_cgroups_path(s->cgroups, s->runtime, c->pod->cgroup_parent, c->id);
	c->oom_score_adj = kubelet_oom_score_adj(&c->wants, c->pod->qos, c->pod->critical,
						 (int64_t)topo_memory(s->topo));
	if (!c->cgroups_path)
		return err_errno(err, -ENOMEM, "container");
	r = read_hugepages(c->spec, err);
	return r ? r : fill_resources(c, spec, &c->res, err);
}

static void free_ctr(struct sim_ctr *c)
{
	free(c->id);
	free(c->name);
	free(c->cgroups_path);
	free(c->res.cpus);
	free(c->res.mems);
	json_decref(c->spec);
	json_decref(c->given);
	free(c);
}

int model_new_ctr(struct sim *s, struct sim_pod *pod, const json_t *spec, struct sim_ctr **ret,
		  struct err *err)
{
	struct sim_ctr *c = calloc(1, sizeof *c);
	if (c)
		c->pod = pod;
	int r = c ? fill_ctr(s, spec, c, err) : err_errno(err, -ENOMEM, "container");
	if (r) {
		if (c)
			free_ctr(c);
		return r;
	}
	c->number = s->n_ctrs_made++;
	DL_APPEND(s->ctrs, c);
	*ret = c;
	return 0;
}

void model_free_ctr(struct sim *s, struct sim_ctr *c)
{
	DL_DELETE(s->ctrs, c);
	free_ctr(c);
}

/* ---- effective CPUs and memory nodes --------------------------------------------------------- */

/* Intersects a set with the online ids, as the kernel does; an empty result means all online
 * ids. */
static void model_effective(const char *text, uint32_t max, struct rp_ids all, struct rp_idset *ret)
{
	if (!*text || rp_idset_parse(ret, text, max))
		rp_idset_clear(ret);
	rp_idset_and(ret, rp_ids_of(ret), all);
	if (rp_ids_empty(rp_ids_of(ret)))
		rp_idset_copy(ret, all);
}

void model_cpus(const struct sim *s, const struct sim_ctr *c, struct rp_idset *ret)
{
	model_effective(c->res.cpus, RP_CPUS_MAX, topo_ids(s->topo, RP_CPUS_ONLINE), ret);
}

void model_mems(const struct sim *s, const struct sim_ctr *c, struct rp_idset *ret)
{
	model_effective(c->res.mems, RP_NODES_MAX, sim_memory(s), ret);
}

static void put_set(json_t *to, const char *key, const struct rp_idset *set)
{
	_free_ char *text = malloc(RP_IDSET_TEXT_MAX);
	if (!text)
		return;
	(void)rp_ids_format(rp_ids_of(set), text, RP_IDSET_TEXT_MAX);
	doc_put_text(to, key, text);
}

json_t *model_describe(const struct sim *s, const struct sim_ctr *c)
{
	json_t *to = json_object();
	struct rp_idset set;
	char name[MODEL_NAME_MAX];
	doc_put_text(to, "name", model_name(c, name));
	doc_put_text(to, "id", c->id);
	doc_put_text(to, "pod", c->pod->name);
	doc_put_text(to, "namespace", c->pod->ns);
	doc_put_text(to, "container", c->name);
	doc_put_text(to, "state", model_state_name(c->state));
	doc_put_text(to, "qos", kubelet_qos_name(c->pod->qos));
	doc_put_bool(to, "pinned", *c->res.cpus);
	doc_put_bool(to, "pinnedMemory", *c->res.mems);
	model_cpus(s, c, &set);
	put_set(to, "cpus", &set);
	model_mems(s, c, &set);
	put_set(to, "mems", &set);
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {{"shares", c->res.shares},
		       {"quota", c->res.quota},
		       {"period", c->res.period},
		       {"memoryLimit", c->res.memory_limit}};
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (numbers[i].value != SIM_NOT_SET)
			doc_put_int(to, numbers[i].key, numbers[i].value);
	doc_put_int(to, "oomScoreAdj", c->oom_score_adj);
	doc_put_text(to, "cgroupsPath", c->cgroups_path);
	doc_put_int(to, "updates", (int64_t)c->n_updates);
	doc_put_int(to, "moves", (int64_t)c->n_moves);
	(void)json_object_set(to, "given", c->given);
	return to;
}
