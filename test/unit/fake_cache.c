/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "test/unit/fake_impl.h"

#define DATA_TEXT_MAX 4096u /* as the host takes it */

/* ---- containers ------------------------------------------------------------------------------ */

static struct fake_container *find(struct fake_host *f, rp_ctr ctr)
{
	return ctr && ctr <= f->n_ctrs && f->ctrs[ctr - 1]->live ? f->ctrs[ctr - 1] : NULL;
}

struct fake_container *fake_container(struct fake_host *f, rp_ctr ctr)
{
	struct fake_container *c = find(f, ctr);
	if (!c)
		fake_die("no container %llu", (unsigned long long)ctr);
	return c;
}

/* Derives the requests that the kubelet would send to the runtime, where the test sets none. */
static void derive_asked(struct fake_container *c, const struct fake_ctr *desc)
{
	int64_t shares = c->cpu_request * 1024 / 1000;
	c->asked_shares = desc->asked_shares ? desc->asked_shares : shares < 2 ? 2 : shares;
	c->asked_quota = desc->asked_quota ? desc->asked_quota
			 : c->cpu_limit	   ? c->cpu_limit * 100
					   : RP_NOT_SET;
	c->asked_period = desc->asked_period ? desc->asked_period : 100000;
}

rp_ctr fake_ctr(struct fake_host *f, const struct fake_ctr *desc)
{
	struct fake_container *c = fake_alloc(sizeof *c);
	struct fake_out pod = {0};
	fake_print(&pod, "pod-%s", desc->name);
	c->live = true;
	c->name = fake_strdup(desc->name);
	c->pod_name = fake_strdup(desc->pod_name ? desc->pod_name : fake_out_text(&pod));
	c->pod_namespace = fake_strdup(desc->pod_namespace ? desc->pod_namespace : "default");
	c->annotations = fake_strdup(desc->annotations);
	c->labels = fake_strdup(desc->labels);
	c->mounts = fake_strdup(desc->mounts);
	c->devices = fake_strdup(desc->devices);
	c->pod_resources = fake_strdup(desc->pod_resources);
	c->args = fake_strdup(desc->args);
	c->qos = desc->qos;
	c->flags = desc->flags;
	c->state = desc->state;
	c->cpu_request = desc->cpu_request;
	c->cpu_limit = desc->cpu_limit;
	if (!c->cpu_limit && c->qos == RP_QOS_GUARANTEED)
		c->cpu_limit = c->cpu_request;
	derive_asked(c, desc);
	c->mem_request = desc->mem_request;
	c->mem_limit = desc->mem_limit;
	fake_values_init(&c->now);
	fake_values_init(&c->before);
	fake_out_fini(&pod);
	f->ctrs = fake_grow(f->ctrs, f->n_ctrs + 1, sizeof(struct fake_container *));
	f->ctrs[f->n_ctrs++] = c;
	return f->n_ctrs;
}

rp_ctr fake_ctr_named(struct fake_host *f, const char *name)
{
	for (uint32_t i = f->n_ctrs; i-- > 0;)
		if (f->ctrs[i]->live && strcmp(f->ctrs[i]->name, name) == 0)
			return i + 1;
	return 0;
}

void fake_request(struct fake_host *f, rp_ctr ctr, int64_t cpu_request, int64_t cpu_limit)
{
	struct fake_container *c = fake_container(f, ctr);
	c->old_request = c->cpu_request;
	c->old_limit = c->cpu_limit;
	c->cpu_request = cpu_request;
	c->cpu_limit = cpu_limit;
}

void fake_forget_devices(struct fake_host *f, rp_ctr ctr)
{
	struct fake_container *c = f->ctrs[ctr - 1];
	free(c->pod_resources);
	c->pod_resources = NULL;
}

void fake_forget(struct fake_host *f, rp_ctr ctr)
{
	struct fake_container *c = fake_container(f, ctr);
	c->live = false;
	fake_values_fini(&c->now);
}

uint32_t fake_n_ctrs(struct fake_host *f)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n_ctrs; i++)
		n += f->ctrs[i]->live;
	return n;
}

void fake_decide(struct fake_host *f, rp_ctr ctr, const char *cpus, const char *exclusive,
		 const char *mems)
{
	struct fake_values *v = &fake_container(f, ctr)->now;
	fake_parse_set(&v->cpus, cpus);
	fake_parse_set(&v->exclusive, exclusive);
	fake_parse_set(&v->mems, mems);
}

void fake_cache_fini(struct fake_host *f)
{
	for (uint32_t i = 0; i < f->n_ctrs; i++) {
		struct fake_container *c = f->ctrs[i];
		fake_values_fini(&c->now);
		fake_values_fini(&c->before);
		fake_out_fini(&c->trail);
		free(c->name);
		free(c->pod_name);
		free(c->pod_namespace);
		free(c->annotations);
		free(c->labels);
		free(c->mounts);
		free(c->devices);
		free(c->pod_resources);
		free(c->args);
		free(c);
	}
	free(f->ctrs);
	free(f->annotation);
	for (size_t i = 0; i < sizeof f->fields / sizeof f->fields[0]; i++)
		free(f->fields[i]);
}

/* ---- answers for tests ----------------------------------------------------------------------- */

const char *fake_cpus(struct fake_host *f, rp_ctr ctr)
{
	return fake_answer(f, fake_cpu_ids(f, ctr));
}

const char *fake_mems(struct fake_host *f, rp_ctr ctr)
{
	return fake_answer(f, rp_ids_of(&fake_container(f, ctr)->now.mems));
}

const char *fake_exclusive(struct fake_host *f, rp_ctr ctr)
{
	return fake_answer(f, fake_exclusive_ids(f, ctr));
}

struct rp_ids fake_cpu_ids(struct fake_host *f, rp_ctr ctr)
{
	return rp_ids_of(&fake_container(f, ctr)->now.cpus);
}

struct rp_ids fake_exclusive_ids(struct fake_host *f, rp_ctr ctr)
{
	return rp_ids_of(&fake_container(f, ctr)->now.exclusive);
}

int64_t fake_int(struct fake_host *f, rp_ctr ctr, uint32_t field)
{
	return field < FAKE_N_INTS ? fake_container(f, ctr)->now.ints[field] : RP_NOT_SET;
}

void fake_adjust_toptier(struct fake_host *f, rp_ctr ctr, int64_t bytes)
{
	fake_container(f, ctr)->now.ints[RP_F_TOPTIER_LIMIT] = bytes;
}

const char *fake_text(struct fake_host *f, rp_ctr ctr, uint32_t field)
{
	uint32_t i = field - RP_F_RDT_CLASS;
	return i < FAKE_N_TEXTS ? fake_container(f, ctr)->now.texts[i] : NULL;
}

const char *fake_pair(struct fake_host *f, rp_ctr ctr, uint32_t field, const char *key)
{
	const struct fake_pair *p = fake_values_find_pair(&fake_container(f, ctr)->now, field, key);
	return p ? p->value : NULL;
}

const char *fake_data(struct fake_host *f, rp_ctr ctr, const char *key)
{
	return fake_pair(f, ctr, FAKE_DATA, key);
}

const char *fake_args(struct fake_host *f, rp_ctr ctr)
{
	return fake_pair(f, ctr, FAKE_ARGS, "args");
}

const char *fake_degraded(struct fake_host *f, rp_ctr ctr)
{
	return fake_container(f, ctr)->now.degraded;
}

const char *fake_trail(struct fake_host *f, rp_ctr ctr)
{
	return fake_out_text(&fake_container(f, ctr)->trail);
}

/* ---- transactions ---------------------------------------------------------------------------- */

void fake_begin(struct fake_host *f)
{
	f->txn = ++f->last_txn;
	f->n_changed = 0;
	fake_out_clear(&f->error);
}

static int32_t broken(struct fake_host *f, const struct fake_container *c, const char *what,
		      struct rp_ids ids)
{
	fake_out_clear(&f->error);
	fake_print(&f->error, "invariant: %s: %s (%s)", c->name, what, fake_answer(f, ids));
	return -RP_EINVAL;
}

static int32_t check_touched(struct fake_host *f, struct fake_container *c)
{
	struct rp_ids cpus = rp_ids_of(&c->now.cpus), mems = rp_ids_of(&c->now.mems);
	struct rp_ids was = rp_ids_of(&c->before.cpus);
	if (!rp_ids_subset(cpus, rp_ids_of(&f->topology.sets[RP_CPUS_ONLINE])))
		return broken(f, c, "CPUs that are not online", cpus);
	if (!rp_ids_subset(mems, rp_ids_of(&f->topology.sets[RP_NODES_MEMORY])))
		return broken(f, c, "nodes without memory", mems);
	if (!rp_ids_subset(rp_ids_of(&c->now.exclusive), cpus))
		return broken(f, c, "exclusive CPUs that it does not run on",
			      rp_ids_of(&c->now.exclusive));
	if (rp_ids_empty(cpus) && !rp_ids_empty(was))
		return broken(f, c, "nothing left of its CPUs", was);
	if ((c->flags & RP_CTR_PRESERVE_CPU) && !rp_ids_equal(cpus, was))
		return broken(f, c, "moved although it must not be", cpus);
	return 0;
}

/* Returns true if the container runs on exclusive CPUs of another one. Members of a group may
 * run on CPUs that they own as well. */
static bool is_intruder(const struct fake_container *c, const struct fake_container *other)
{
	struct rp_idset both;
	rp_idset_and(&both, rp_ids_of(&c->now.exclusive), rp_ids_of(&other->now.cpus));
	return other->now.group == c->now.group
		       ? !rp_ids_subset(rp_ids_of(&both), rp_ids_of(&other->now.exclusive))
		       : !rp_ids_empty(rp_ids_of(&both));
}

static int32_t check_groups(struct fake_host *f)
{
	for (uint32_t i = 0; i < f->n_ctrs; i++) {
		struct fake_container *c = f->ctrs[i];
		if (!c->live || !c->now.group || rp_ids_empty(rp_ids_of(&c->now.exclusive)))
			continue;
		for (uint32_t k = 0; k < f->n_ctrs; k++) {
			const struct fake_container *other = f->ctrs[k];
			if (other->live && is_intruder(c, other))
				return broken(f, other, "CPUs of a group",
					      rp_ids_of(&c->now.exclusive));
		}
	}
	return 0;
}

static int32_t check_invariants(struct fake_host *f)
{
	struct rp_idset exclusive, foreign;
	int32_t r = check_groups(f);
	if (r)
		return r;
	rp_idset_clear(&exclusive);
	for (uint32_t i = 0; i < f->n_ctrs; i++) {
		struct fake_container *c = f->ctrs[i];
		if (!c->live)
			continue;
		r = c->touched ? check_touched(f, c) : 0;
		if (r)
			return r;
		if (c->now.group)
			continue;
		if (rp_ids_overlap(rp_ids_of(&exclusive), rp_ids_of(&c->now.exclusive)))
			return broken(f, c, "exclusive CPUs of two", rp_ids_of(&c->now.exclusive));
		rp_idset_or(&exclusive, rp_ids_of(&exclusive), rp_ids_of(&c->now.exclusive));
	}
	for (uint32_t i = 0; i < f->n_ctrs; i++) {
		struct fake_container *c = f->ctrs[i];
		rp_idset_andnot(&foreign, rp_ids_of(&exclusive), rp_ids_of(&c->now.exclusive));
		if (c->live && !c->now.group &&
		    rp_ids_overlap(rp_ids_of(&c->now.cpus), rp_ids_of(&foreign)))
			return broken(f, c, "runs on CPUs that are exclusively another's",
				      rp_ids_of(&c->now.cpus));
	}
	return 0;
}

int32_t fake_end(struct fake_host *f, bool keep)
{
	int32_t r = keep ? check_invariants(f) : 0;
	for (uint32_t i = 0; i < f->n_ctrs; i++) {
		struct fake_container *c = f->ctrs[i];
		if (!c->touched)
			continue;
		c->touched = false;
		if (!keep || r) {
			fake_values_fini(&c->now);
			c->now = c->before;
			fake_values_init(&c->before);
			continue;
		}
		f->n_changed += !fake_values_same(&c->now, &c->before);
		fake_values_fini(&c->before);
	}
	f->txn = 0;
	return r;
}

/* ---- the service: reading -------------------------------------------------------------------- */

static int sync_before(const struct fake_container *a, const struct fake_container *b)
{
	return a->qos < b->qos; /* handles ascend with the time of creation */
}

static uint32_t cache_list(void *ctx, uint32_t order, rp_ctr *ret, uint32_t cap)
{
	struct fake_host *f = ctx;
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n_ctrs; i++) {
		if (!f->ctrs[i]->live || f->ctrs[i]->state == RP_STATE_EXITED ||
		    (order == RP_ORDER_SYNC && f->ctrs[i]->coming))
			continue;
		if (n < cap)
			ret[n] = i + 1;
		n++;
	}
	for (uint32_t i = 1; order == RP_ORDER_SYNC && i < n && i < cap; i++)
		for (uint32_t k = i; k && sync_before(f->ctrs[ret[k] - 1], f->ctrs[ret[k - 1] - 1]);
		     k--) {
			rp_ctr swap = ret[k];
			ret[k] = ret[k - 1];
			ret[k - 1] = swap;
		}
	return n;
}

/* Returns the number of the pod, which is the number of the first container it ever had. */
static rp_pod pod_of(const struct fake_host *f, const struct fake_container *c)
{
	for (uint32_t i = 0; i < f->n_ctrs; i++)
		if (strcmp(f->ctrs[i]->pod_name, c->pod_name) == 0 &&
		    strcmp(f->ctrs[i]->pod_namespace, c->pod_namespace) == 0)
			return i + 1;
	return 0;
}

static const struct fake_container *first_of(const struct fake_host *f, rp_pod pod)
{
	return pod && pod <= f->n_ctrs ? f->ctrs[pod - 1] : NULL;
}

static int32_t cache_get_ctr(void *ctx, rp_ctr ctr, struct rp_ctr_info *out)
{
	int32_t r = fake_call(ctx);
	const struct fake_container *c = find(ctx, ctr);
	if (r || !c)
		return r ? r : -RP_ESTALE;
	struct rp_ctr_info info = {
		.size = out->size,
		.state = c->state,
		.qos = c->qos,
		.flags = c->flags | (c->now.degraded ? RP_CTR_DEGRADED : 0),
		.ctr = ctr,
		.pod = pod_of(ctx, c),
		.id = c->name,
		.name = c->name,
		.pod_name = c->pod_name,
		.pod_namespace = c->pod_namespace,
		.created_ns = ctr,
		.cpu_request = c->cpu_request,
		.cpu_limit = c->cpu_limit,
		.mem_request = c->mem_request,
		.mem_limit = c->mem_limit,
		.cpus = rp_ids_of(&c->now.cpus),
		.mems = rp_ids_of(&c->now.mems),
		.exclusive = rp_ids_of(&c->now.exclusive),
		.shares = c->now.ints[RP_F_SHARES],
		.quota = c->now.ints[RP_F_QUOTA],
		.period = c->now.ints[RP_F_PERIOD],
		.asked_shares = c->asked_shares,
		.asked_quota = c->asked_quota,
		.asked_period = c->asked_period,
	};
	memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
	return 0;
}

static int32_t cache_get_pod(void *ctx, rp_pod pod, struct rp_pod_info *out)
{
	int32_t r = fake_call(ctx);
	const struct fake_container *c = first_of(ctx, pod);
	if (r || !c)
		return r ? r : -RP_ESTALE;
	struct rp_pod_info info = {
		.size = out->size,
		.qos = c->qos,
		.pod = pod,
		.id = c->pod_name,
		.name = c->pod_name,
		.pod_namespace = c->pod_namespace,
		.uid = c->pod_name,
		.flags = c->pod_stopped ? RP_POD_STOPPED : 0,
		.runtime_handler = "",
		.cgroup_parent = "",
		.cpu_request = RP_NOT_SET,
		.cpu_limit = RP_NOT_SET,
		.mem_limit = RP_NOT_SET,
	};
	memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
	return 0;
}

/* Returns the value of KEY in "key=value;key=value". */
static const char *look_up(struct fake_host *f, const char *list, const char *key)
{
	size_t len = strlen(key);
	for (const char *p = list; p && *p; p += strcspn(p, ";"), p += *p == ';') {
		if (strncmp(p, key, len) != 0 || p[len] != '=')
			continue;
		size_t n = strcspn(p + len + 1, ";");
		free(f->annotation);
		f->annotation = fake_alloc(n + 1);
		memcpy(f->annotation, p + len + 1, n);
		return f->annotation;
	}
	return NULL;
}

static const char *cache_annotation(void *ctx, rp_ctr ctr, const char *key, uint32_t *ret_scope)
{
	const struct fake_container *c = find(ctx, ctr);
	const char *value = NULL;
	for (uint32_t scope = RP_SCOPE_CONTAINER; c && !value && scope <= RP_SCOPE_UNSCOPED;
	     scope++) {
		struct fake_out full = {0};
		if (scope == RP_SCOPE_CONTAINER)
			fake_print(&full, "%s/container.%s", key, c->name);
		else
			fake_print(&full, "%s%s", key, scope == RP_SCOPE_POD ? "/pod" : "");
		value = look_up(ctx, c->annotations, fake_out_text(&full));
		fake_out_fini(&full);
		if (value && ret_scope)
			*ret_scope = scope;
	}
	return value;
}

static const char *cache_pod_annotation(void *ctx, rp_pod pod, const char *key)
{
	const struct fake_container *c = first_of(ctx, pod);
	return c ? look_up(ctx, c->annotations, key) : NULL;
}

static const char *cache_pod_label(void *ctx, rp_pod pod, const char *key)
{
	const struct fake_container *c = first_of(ctx, pod);
	return c ? look_up(ctx, c->labels, key) : NULL;
}

static const char *cache_ctr_label(void *ctx, rp_ctr ctr, const char *key)
{
	const struct fake_container *c = find(ctx, ctr);
	return c ? look_up(ctx, c->labels, key) : NULL;
}

static const char *cache_nothing(void *ctx, rp_ctr ctr, const char *key)
{
	(void)ctx, (void)ctr, (void)key;
	return NULL;
}

/* Splits the n-th item of "A:B:…;A:B:…" into at most 4 fields, which live until the next call. */
static uint32_t split_item(struct fake_host *f, const char *list, uint32_t n,
			   const char *ret[static 4])
{
	const char *p = list;
	while (p && *p && n--) {
		p += strcspn(p, ";");
		p += *p == ';';
	}
	size_t len = p ? strcspn(p, ";") : 0;
	uint32_t n_fields = 0;
	for (const char *end = p ? p + len : NULL; len && p <= end && n_fields < 4; n_fields++) {
		size_t field = strcspn(p, ":;");
		free(f->fields[n_fields]);
		f->fields[n_fields] = fake_alloc(field + 1);
		memcpy(f->fields[n_fields], p, field);
		ret[n_fields] = f->fields[n_fields];
		p += field + 1;
	}
	return n_fields;
}

static int32_t cache_mount(void *ctx, rp_ctr ctr, uint32_t index, struct rp_mount_info *out)
{
	const struct fake_container *c = find(ctx, ctr);
	const char *field[4];
	uint32_t n = c ? split_item(ctx, c->mounts, index, field) : 0;
	if (n < 2)
		return -RP_ENOENT;
	struct rp_mount_info info = {out->size, n > 2, field[0], field[1], "bind"};
	memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
	return 0;
}

static int32_t cache_device(void *ctx, rp_ctr ctr, uint32_t index, struct rp_device_info *out)
{
	const struct fake_container *c = find(ctx, ctr);
	const char *field[4];
	uint32_t n = c ? split_item(ctx, c->devices, index, field) : 0;
	if (n < 3)
		return -RP_ENOENT;
	struct rp_device_info info = {.size = out->size, .writable = n == 3, .path = field[0]};
	info.type = field[1][0] == 'c' ? "c" : "b";
	info.major = atoi(field[1] + 1);
	info.minor = atoi(field[2]);
	memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
	return 0;
}

static int32_t cache_pod_resource(void *ctx, rp_ctr ctr, uint32_t index,
				  struct rp_pod_resource_info *out)
{
	struct fake_host *f = ctx;
	const struct fake_container *c = find(ctx, ctr);
	const char *field[4];
	uint32_t n = c ? split_item(ctx, c->pod_resources, index, field) : 0;
	if (n < 2)
		return -RP_ENOENT;
	(void)rp_idset_parse(&f->device_nodes, field[1], RP_NODES_MAX);
	struct rp_pod_resource_info info = {out->size, 0, field[0], rp_ids_of(&f->device_nodes)};
	memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
	return 0;
}

/* Returns NULL, as containers have no CDI devices. */
static const char *cache_cdi(void *ctx, rp_ctr ctr, uint32_t index)
{
	(void)ctx, (void)ctr, (void)index;
	return NULL;
}

static const char *cache_arg(void *ctx, rp_ctr ctr, uint32_t index)
{
	struct fake_host *f = ctx;
	const struct fake_container *c = find(ctx, ctr);
	const char *p = c ? c->args : NULL;
	for (; p && *p && index; index--) {
		p += strcspn(p, ";");
		p += *p == ';';
	}
	if (!p || !*p)
		return NULL;
	size_t len = strcspn(p, ";");
	free(f->annotation);
	f->annotation = fake_alloc(len + 1);
	memcpy(f->annotation, p, len);
	return f->annotation;
}

static int32_t cache_get_int(void *ctx, rp_ctr ctr, uint32_t field, int64_t *ret)
{
	int32_t r = fake_call(ctx);
	const struct fake_container *c = find(ctx, ctr);
	if (r || !c)
		return r ? r : -RP_ESTALE;
	if (!field || field >= FAKE_N_INTS)
		return -RP_EINVAL;
	if (c->now.ints[field] == RP_NOT_SET)
		return -RP_ENOENT;
	*ret = c->now.ints[field];
	return 0;
}

static const char *cache_get_text(void *ctx, rp_ctr ctr, uint32_t field)
{
	return find(ctx, ctr) ? fake_text(ctx, ctr, field) : NULL;
}

static int32_t cache_get_private(void *ctx, rp_ctr ctr, const void **ret, uint32_t *ret_size)
{
	struct fake_host *f = ctx;
	int32_t r = fake_call(ctx);
	const struct fake_container *c = find(ctx, ctr);
	if (r || !c)
		return r ? r : -RP_ESTALE;
	if (!c->now.private_size || strcmp(c->now.private_of, f->module->name) != 0)
		return -RP_ENOENT;
	*ret = c->now.private_data;
	*ret_size = c->now.private_size;
	return 0;
}

/* Returns 0: nodes have no huge pages, and every container without a request for them fits. */
static int32_t cache_hugepages(void *ctx, rp_pod pod, rp_ctr ctr, struct rp_ids nodes, char *why,
			       uint32_t cap)
{
	(void)ctx, (void)pod, (void)ctr, (void)nodes, (void)why, (void)cap;
	return 0;
}

static int32_t cache_node_hugepages(void *ctx, uint32_t node, uint32_t index,
				    struct rp_hugepages_info *out)
{
	(void)ctx, (void)node, (void)index, (void)out;
	return -RP_ENOENT;
}

static int32_t cache_extended(void *ctx, rp_ctr ctr, const char *resource, int64_t *ret_request,
			      int64_t *ret_limit)
{
	(void)ctx, (void)ctr, (void)resource, (void)ret_request, (void)ret_limit;
	return -RP_ENOENT;
}

/* ---- the service: staging -------------------------------------------------------------------- */

/* Returns the container's staged values, or NULL with *ret_r. */
static struct fake_values *stage(void *ctx, rp_txn txn, rp_ctr ctr, int32_t *ret_r)
{
	struct fake_host *f = ctx;
	struct fake_container *c = find(f, ctr);
	*ret_r = fake_call(f);
	if (*ret_r)
		return NULL;
	if (!c || !txn || txn != f->txn) {
		*ret_r = c ? -RP_EINVAL : -RP_ESTALE;
		return NULL;
	}
	if (!c->touched) {
		fake_values_copy(&c->before, &c->now);
		c->touched = true;
	}
	return &c->now;
}

static int32_t cache_set_cpus(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids cpus)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		rp_idset_copy(&v->cpus, cpus);
	return r;
}

static int32_t cache_set_mems(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids mems)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		rp_idset_copy(&v->mems, mems);
	return r;
}

static int32_t cache_set_exclusive(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids cpus)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		rp_idset_copy(&v->exclusive, cpus);
	return r;
}

static int32_t cache_set_int(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, int64_t value)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v && field && field < RP_F_TOPTIER_LIMIT)
		v->ints[field] = value;
	else if (v)
		r = -RP_EINVAL;
	return r;
}

static int32_t cache_set_text(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *value)
{
	int32_t r;
	uint32_t i = field - RP_F_RDT_CLASS;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (!v)
		return r;
	if (i >= FAKE_N_TEXTS)
		return -RP_EINVAL;
	free(v->texts[i]);
	v->texts[i] = *value ? fake_strdup(value) : NULL;
	return 0;
}

static int32_t cache_set_pair(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *key,
			      const char *value)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		fake_values_put_pair(v, field, key, value);
	return r;
}

static int32_t cache_set_private(void *ctx, rp_txn txn, rp_ctr ctr, const void *data, uint32_t size)
{
	int32_t r;
	struct fake_host *f = ctx;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (!v)
		return r;
	if (size > RP_PRIVATE_MAX)
		return -RP_E2BIG;
	free(v->private_data);
	v->private_data = NULL;
	v->private_size = size;
	(void)snprintf(v->private_of, sizeof v->private_of, "%s", f->module->name);
	if (size) {
		v->private_data = fake_alloc(size);
		memcpy(v->private_data, data, size);
	}
	return 0;
}

static int32_t cache_set_degraded(void *ctx, rp_txn txn, rp_ctr ctr, const char *reason)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (!v)
		return r;
	free(v->degraded);
	v->degraded = fake_strdup(reason);
	return 0;
}

static int32_t cache_set_data(void *ctx, rp_txn txn, rp_ctr ctr, const char *key, const char *value)
{
	int32_t r;
	if (value && (strlen(value) > DATA_TEXT_MAX || strchr(value, '\n')))
		return -RP_EINVAL;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		fake_values_put_pair(v, FAKE_DATA, key, value ? value : "");
	return r;
}

static int32_t cache_set_args(void *ctx, rp_txn txn, rp_ctr ctr, const char *const *args,
			      uint32_t n)
{
	int32_t r;
	struct fake_out all = {0};
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (!v)
		return r;
	if (!n || !*args[0])
		return -RP_EINVAL;
	for (uint32_t i = 0; i < n; i++)
		fake_print(&all, "%s%s", i ? ";" : "", args[i]);
	fake_values_put_pair(v, FAKE_ARGS, "args", fake_out_text(&all));
	fake_out_fini(&all);
	return 0;
}

/* Stores the mount as a pair: the destination, and the rest of the mount as text. */
static int32_t cache_add_mount(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_mount *m)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	struct fake_out text = {0};
	if (!v)
		return r;
	fake_print(&text, "%s %s %s,%s", m->type, m->source, m->options,
		   m->read_only ? "ro" : "rw");
	fake_values_put_pair(v, FAKE_MOUNT, m->destination, fake_out_text(&text));
	fake_out_fini(&text);
	return 0;
}

static int32_t cache_add_device(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_device *d)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	struct fake_out text = {0};
	if (!v)
		return r;
	fake_print(&text, "%s %lld:%lld %o", d->type, (long long)d->major, (long long)d->minor,
		   d->mode);
	fake_values_put_pair(v, FAKE_DEVICE, d->path, fake_out_text(&text));
	fake_out_fini(&text);
	return 0;
}

static int32_t cache_add_cdi(void *ctx, rp_txn txn, rp_ctr ctr, const char *name)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		fake_values_put_pair(v, FAKE_CDI, name, "");
	return r;
}

static int32_t cache_set_group(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t group)
{
	int32_t r;
	struct fake_values *v = stage(ctx, txn, ctr, &r);
	if (v)
		v->group = group;
	return r;
}

/* Checks only the limits: the fake host sends no updates that could be delayed. */
static int32_t cache_may_wait(void *ctx, rp_txn txn, uint32_t quiet_ms, uint32_t longest_ms)
{
	(void)ctx, (void)txn;
	return quiet_ms > longest_ms || longest_ms > RP_WAIT_MAX_MS ? -RP_EINVAL : 0;
}

/* Fails, as there is no cluster. */
static int32_t cache_pod_ctr(void *ctx, rp_pod pod, uint32_t index, struct rp_pod_ctr_info *out)
{
	(void)ctx, (void)pod, (void)index, (void)out;
	return -RP_ENOENT;
}

/* Lists the pods that containers have or had. */
static uint32_t cache_list_pods(void *ctx, rp_pod *ret, uint32_t cap)
{
	const struct fake_host *f = ctx;
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n_ctrs; i++)
		if (pod_of(f, f->ctrs[i]) == i + 1 && n++ < cap)
			ret[n - 1] = i + 1;
	return n;
}

static int32_t cache_get_pod_private(void *ctx, rp_pod pod, const void **ret, uint32_t *ret_size)
{
	(void)ret, (void)ret_size;
	return first_of(ctx, pod) ? -RP_ENOENT : -RP_ESTALE;
}

static int32_t cache_set_pod_private(void *ctx, rp_txn txn, rp_pod pod, const void *data,
				     uint32_t size)
{
	(void)txn, (void)data, (void)size;
	return first_of(ctx, pod) ? -RP_ENOTSUP : -RP_ESTALE;
}

const struct rp_host_cache fake_cache_service = {
	.size = offsetof(struct rp_host_cache, pod_annotations),
	.list = cache_list,
	.get_ctr = cache_get_ctr,
	.get_pod = cache_get_pod,
	.annotation = cache_annotation,
	.pod_annotation = cache_pod_annotation,
	.pod_label = cache_pod_label,
	.ctr_label = cache_ctr_label,
	.ctr_annotation = cache_nothing,
	.env = cache_nothing,
	.mount = cache_mount,
	.device = cache_device,
	.pod_resource = cache_pod_resource,
	.get_int = cache_get_int,
	.get_text = cache_get_text,
	.get_private = cache_get_private,
	.extended = cache_extended,
	.set_cpus = cache_set_cpus,
	.set_mems = cache_set_mems,
	.set_exclusive = cache_set_exclusive,
	.set_int = cache_set_int,
	.set_text = cache_set_text,
	.set_pair = cache_set_pair,
	.set_private = cache_set_private,
	.set_degraded = cache_set_degraded,
	.set_data = cache_set_data,
	.arg = cache_arg,
	.set_args = cache_set_args,
	.add_mount = cache_add_mount,
	.add_device = cache_add_device,
	.add_cdi = cache_add_cdi,
	.cdi = cache_cdi,
	.set_group = cache_set_group,
	.list_pods = cache_list_pods,
	.get_pod_private = cache_get_pod_private,
	.set_pod_private = cache_set_pod_private,
	.may_wait = cache_may_wait,
	.hugepages = cache_hugepages,
	.node_hugepages = cache_node_hugepages,
	.pod_ctr = cache_pod_ctr,
};
