/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes packed pods and containers directly into the descriptions that the pipeline takes. A
 * runtime sends everything about a pod and its container with each request. Most of it (arguments,
 * hooks, limits, seccomp) is not used, and of a tracked object only the name matters. Unused fields
 * are therefore skipped in place, and only text that is used is copied, to get its NUL.
 *
 * The last one of repeated scalar fields counts, embedded messages are merged, and a field with an
 * unexpected wire type is an error, as usual for protobuf.
 */
#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/nri-rpd/nri/decode.h"

static const struct pod_desc empty_pod = {"", "", "", "", "", "", NULL, NULL, 0, 0, NULL};

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Passes all fields of a message to `take`, in order, until it refuses one. Compiled separately for
 * each kind of message, so that no call is left. */
FIELDS_INLINE int each_field(struct span s, int (*take)(void *arg, const struct field *f),
			     void *arg)
{
	struct field f;
	int r = 0, more;
	while (!r && (more = field_next(&s, &f)) != 0)
		r = more < 0 ? more : take(arg, &f);
	return r;
}

static int take_text(struct arena *a, const struct field *f, const char **ret)
{
	if (f->wire != WIRE_LEN)
		return -EBADMSG;
	const char *text = arena_text(a, f->bytes.p, span_len(&f->bytes));
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

static int take_number(const struct field *f, uint64_t *ret)
{
	if (f->wire != WIRE_VARINT)
		return -EBADMSG;
	*ret = f->value;
	return 0;
}

FIELDS_INLINE int take_message(const struct field *f, int (*take)(void *arg, const struct field *f),
			       void *arg)
{
	return f->wire == WIRE_LEN ? each_field(f->bytes, take, arg) : -EBADMSG;
}

static int wrapped_field(void *arg, const struct field *f)
{
	return f->number == 1 ? take_number(f, arg) : 0;
}

/* Decodes a number in a wrapper message, which distinguishes zero from absent. */
static int take_wrapped(const struct field *f, uint64_t *ret)
{
	uint64_t value = 0;
	int r = take_message(f, wrapped_field, &value);
	if (!r)
		*ret = value;
	return r;
}

/* Decodes a wrapped amount and ignores values above INT64_MAX. */
static int take_amount(const struct field *f, int64_t *ret)
{
	uint64_t value;
	int r = take_wrapped(f, &value);
	if (!r && value <= INT64_MAX)
		*ret = (int64_t)value;
	return r;
}

static int take_signed(const struct field *f, int64_t *ret)
{
	uint64_t value;
	int r = take_wrapped(f, &value);
	if (!r)
		*ret = (int64_t)value;
	return r;
}

#define NUMBERS 21u /* highest field number of a list, plus 1 */

/* Counts the occurrences of each field, so that lists are allocated in one piece. */
static int count_fields(struct span s, uint32_t ret[NUMBERS])
{
	struct field f;
	int more;
	for (unsigned i = 0; i < NUMBERS; i++)
		ret[i] = 0;
	while ((more = field_next(&s, &f)) > 0)
		if (f.number < NUMBERS)
			ret[f.number]++;
	return more;
}

/* ---- rows of fields -------------------------------------------------------------------------- */

/* Each row decodes a field into a member of the struct `to`, with its text in the arena `a`. */
#define ROW(number, take)                                                                          \
	case number:                                                                               \
		return take;
#define TEXT(number, member) ROW(number, take_text(a, f, &to->member))
#define NUMBER(number, member) ROW(number, take_number(f, (uint64_t *)&to->member))
#define SIGNED(number, member) ROW(number, take_signed(f, &to->member))
#define AMOUNT(number, member) ROW(number, take_amount(f, &to->member))

struct destination {
	struct arena *a;
	void *to;
};

/* Defines take_NAME(), which decodes an embedded message into a struct by rows. */
#define EMBEDDED(name, type, rows)                                                                 \
	static int name##_field(void *arg, const struct field *f)                                  \
	{                                                                                          \
		const struct destination *d = arg;                                                 \
		struct arena *a = d->a;                                                            \
		type *to = d->to;                                                                  \
		(void)a;                                                                           \
		switch (f->number) {                                                               \
			rows default : return 0;                                                   \
		}                                                                                  \
	}                                                                                          \
	static int take_##name(struct arena *a, const struct field *f, type *to)                   \
	{                                                                                          \
		struct destination d = {a, to};                                                    \
		return take_message(f, name##_field, &d);                                          \
	}

/* ---- entries of maps ------------------------------------------------------------------------- */

EMBEDDED(pair, struct kv, TEXT(1, key) TEXT(2, value))

static int take_entry(struct arena *a, const struct field *f, struct kv *pairs, uint32_t *n)
{
	pairs[*n] = (struct kv){"", ""};
	int r = take_pair(a, f, &pairs[*n]);
	if (!r)
		++*n;
	return r;
}

/* ---- pods ------------------------------------------------------------------------------------ */

struct pod_decoder {
	struct arena *a;
	bool whole;
	struct pod_desc *ret;
	struct kv *labels, *annotations;
};

/* Decodes the summed resources of the pod's containers. */
static int take_sums(const struct pod_decoder *d, const struct field *f)
{
	struct res_desc *sums = arena_array(d->a, 1, sizeof *sums);
	if (!sums || f->wire != WIRE_LEN)
		return sums ? -EBADMSG : -ENOMEM;
	d->ret->sums = sums;
	return decode_resources(d->a, f->bytes, sums);
}

static int linux_pod_field(void *arg, const struct field *f)
{
	struct pod_decoder *d = arg;
	if (f->number == 2)
		return take_sums(d, f);
	return f->number == 3 ? take_text(d->a, f, &d->ret->cgroup_parent) : 0;
}

static int pod_field(void *arg, const struct field *f)
{
	struct pod_decoder *d = arg;
	struct arena *a = d->a;
	struct pod_desc *to = d->ret;
	if (!d->whole && f->number > 4)
		return 0;
	switch (f->number) {
		TEXT(1, id);
		TEXT(2, name);
		TEXT(3, uid);
		TEXT(4, ns);
		TEXT(7, runtime_handler);
	case 5:
		return take_entry(a, f, d->labels, &to->n_labels);
	case 6:
		return take_entry(a, f, d->annotations, &to->n_annotations);
	case 8:
		return take_message(f, linux_pod_field, d);
	default:
		return 0;
	}
}

int decode_pod(struct arena *a, struct span s, enum decode_depth depth, struct pod_desc *ret)
{
	struct pod_decoder d = {.a = a, .whole = depth != DECODE_NAME, .ret = ret};
	uint32_t n[NUMBERS];
	*ret = empty_pod;
	int r = d.whole ? count_fields(s, n) : 0;
	if (!r && d.whole) {
		ret->labels = d.labels = arena_array(a, n[5], sizeof *d.labels);
		ret->annotations = d.annotations = arena_array(a, n[6], sizeof *d.annotations);
		r = d.labels && d.annotations ? 0 : -ENOMEM;
	}
	return r ? r : each_field(s, pod_field, &d);
}

/* ---- resources ------------------------------------------------------------------------------- */

/* Rule of a device cgroup. */
struct rule {
	uint64_t allow;
	const char *type, *access;
	int64_t major, minor; /* RP_NOT_SET: any */
};

struct res_decoder {
	struct arena *a;
	struct res_desc *ret;
	struct huge *huge; /* receives huge pages; NULL: the caller does not need them */
	struct rule *rules; /* receives rules for devices; NULL: the caller does not need them */
	uint32_t n_rules, cap_rules;
};

/* Limits an amount to `max`. Negative amounts mean "unlimited": all become -1. */
static void cut_amount(int64_t *amount, int64_t max)
{
	if (*amount > max)
		*amount = max;
	if (*amount < -1 && *amount != RP_NOT_SET)
		*amount = -1;
}

static void cut_resources(struct res_desc *ret)
{
	cut_amount(&ret->shares, DERIVE_CPU_MAX);
	cut_amount(&ret->quota, DERIVE_CPU_MAX);
	cut_amount(&ret->period, DERIVE_CPU_MAX);
	cut_amount(&ret->mem_limit, DERIVE_BYTES_MAX);
}

EMBEDDED(memory, struct res_desc, SIGNED(1, mem_limit))
EMBEDDED(cpu, struct res_desc,
	 AMOUNT(1, shares) SIGNED(2, quota) AMOUNT(3, period) TEXT(6, cpus) TEXT(7, mems))
EMBEDDED(rule, struct rule,
	 NUMBER(1, allow) TEXT(2, type) SIGNED(3, major) SIGNED(4, minor) TEXT(5, access))

static int add_rule(struct res_decoder *d, const struct field *f)
{
	if (d->n_rules == d->cap_rules) {
		uint32_t cap = d->cap_rules ? d->cap_rules * 2 : 8;
		struct rule *grown = arena_array(d->a, cap, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		if (d->n_rules)
			memcpy(grown, d->rules, d->n_rules * sizeof *grown);
		d->rules = grown;
		d->cap_rules = cap;
	}
	struct rule *rule = &d->rules[d->n_rules++];
	*rule = (struct rule){.type = "", .access = "", .major = RP_NOT_SET, .minor = RP_NOT_SET};
	return take_rule(d->a, f, rule);
}

struct huge_limit {
	const char *size;
	uint64_t bytes;
};

EMBEDDED(huge_limit, struct huge_limit, TEXT(1, size) NUMBER(2, bytes))

/* Reads a limit of huge pages. The kubelet sends one of 0 for each size that is not requested. */
static int take_huge(struct res_decoder *d, const struct field *f)
{
	struct huge_limit limit = {.size = ""};
	int r = take_huge_limit(d->a, f, &limit);
	const struct huge_request is = {hugepages_size(limit.size), limit.bytes};
	if (!r && is.page && is.bytes && is.bytes <= DERIVE_BYTES_MAX &&
	    d->huge->n < HUGE_SIZES_MAX)
		d->huge->of[d->huge->n++] = is;
	return r;
}

static int res_field(void *arg, const struct field *f)
{
	struct res_decoder *d = arg;
	switch (f->number) {
	case 1:
		return take_memory(d->a, f, d->ret);
	case 2:
		return take_cpu(d->a, f, d->ret);
	case 3:
		return d->huge ? take_huge(d, f) : 0;
	case 7:
		return d->rules ? add_rule(d, f) : 0;
	default:
		return 0;
	}
}

static void clear_resources(struct res_desc *ret)
{
	*ret = (struct res_desc){.amounts = CPU_AMOUNTS_NONE};
}

int decode_resources(struct arena *a, struct span s, struct res_desc *ret)
{
	struct res_decoder d = {.a = a, .ret = ret};
	clear_resources(ret);
	int r = each_field(s, res_field, &d);
	cut_resources(ret);
	return r;
}

/* ---- mounts and devices ---------------------------------------------------------------------- */

static int take_option(const struct field *f, uint32_t *ret_read_only)
{
	if (f->wire != WIRE_LEN)
		return -EBADMSG;
	if (span_len(&f->bytes) == 2 && memcmp(f->bytes.p, "ro", 2) == 0)
		*ret_read_only = 1;
	return 0;
}

EMBEDDED(mount, struct rp_mount_info,
	 TEXT(1, destination) TEXT(2, type) TEXT(3, source) ROW(4, take_option(f, &to->read_only)))
EMBEDDED(device, struct rp_device_info,
	 TEXT(1, path) TEXT(2, type) NUMBER(3, major) NUMBER(4, minor))

static bool rule_covers(const struct rule *rule, const struct rp_device_info *dev)
{
	bool any_type = !*rule->type || strcmp(rule->type, "a") == 0;
	if (!any_type && strcmp(rule->type, dev->type) != 0)
		return false;
	return (rule->major == RP_NOT_SET || rule->major == dev->major) &&
	       (rule->minor == RP_NOT_SET || rule->minor == dev->minor);
}

/* Returns true if the rules of the device cgroup let the container write to the device. As in the
 * kernel, the last rule that covers the device decides. Without rules: writable. */
static bool device_writable(const struct res_decoder *res, const struct rp_device_info *dev)
{
	for (uint32_t i = res->n_rules; i-- > 0;) {
		const struct rule *rule = &res->rules[i];
		if (rule_covers(rule, dev))
			return rule->allow && strchr(rule->access, 'w');
	}
	return true;
}

/* ---- containers ------------------------------------------------------------------------------ */

struct ctr_decoder {
	struct arena *a, *rest;
	enum decode_depth depth;
	struct ctr_desc *ret;
	struct kv *labels, *annotations;
	const char **env, **args, **cdi;
	struct rp_mount_info *mounts;
	struct rp_device_info *devices;
	struct res_decoder res;
};

uint32_t decode_state(uint64_t state)
{
	switch (state) {
	case NRI__CONTAINER_STATE__CONTAINER_CREATED:
		return RP_STATE_CREATED;
	case NRI__CONTAINER_STATE__CONTAINER_PAUSED:
		return RP_STATE_PAUSED;
	case NRI__CONTAINER_STATE__CONTAINER_RUNNING:
		return RP_STATE_RUNNING;
	case NRI__CONTAINER_STATE__CONTAINER_STOPPED:
		return RP_STATE_EXITED;
	default:
		return RP_STATE_CREATING;
	}
}

static int add_device(struct ctr_decoder *d, const struct field *f)
{
	struct rp_device_info *dev = &d->devices[d->ret->n_devices++];
	*dev = (struct rp_device_info){.size = sizeof *dev, .path = "", .type = ""};
	return take_device(d->rest, f, dev);
}

static int linux_field(void *arg, const struct field *f)
{
	struct ctr_decoder *d = arg;
	struct arena *a = d->a;
	struct ctr_desc *to = d->ret;
	switch (f->number) {
		SIGNED(4, oom_score_adj);
		TEXT(5, cgroups_path);
	case 2:
		return d->devices ? add_device(d, f) : 0;
	case 3:
		return take_message(f, res_field, &d->res);
	default:
		return 0;
	}
}

/* Decodes the message `linux`. A container has one such message, which may be split: each part
 * extends the list of devices. */
static int take_linux(struct ctr_decoder *d, const struct field *f)
{
	uint32_t n[NUMBERS];
	if (f->wire != WIRE_LEN)
		return -EBADMSG;
	int r = d->depth == DECODE_ALL ? count_fields(f->bytes, n) : 0;
	if (!r && d->depth == DECODE_ALL && n[2]) {
		struct rp_device_info *all =
			arena_array(d->rest, d->ret->n_devices + n[2], sizeof *all);
		if (!all)
			return -ENOMEM;
		if (d->ret->n_devices)
			memcpy(all, d->devices, d->ret->n_devices * sizeof *all);
		d->ret->devices = d->devices = all;
		if (!d->res.rules)
			d->res.rules = arena_array(d->a, 0, sizeof *d->res.rules);
		if (!d->res.rules)
			return -ENOMEM;
	}
	return r ? r : each_field(f->bytes, linux_field, d);
}

static int add_mount(struct ctr_decoder *d, const struct field *f)
{
	struct rp_mount_info *mount = &d->mounts[d->ret->n_mounts++];
	*mount = (struct rp_mount_info){sizeof *mount, 0, "", "", ""};
	return take_mount(d->rest, f, mount);
}

/* Decodes the name of a CDI device (Container Device Interface). */
EMBEDDED(cdi, const char *, ROW(1, take_text(a, f, to)))

static int add_cdi(struct ctr_decoder *d, const struct field *f)
{
	const char **name = &d->cdi[d->ret->n_cdi++];
	*name = "";
	return take_cdi(d->rest, f, name);
}

static int long_field(struct ctr_decoder *d, const struct field *f)
{
	struct ctr_desc *ret = d->ret;
	switch (f->number) {
	case 5:
		return take_entry(d->a, f, d->labels, &ret->n_labels);
	case 6:
		return take_entry(d->a, f, d->annotations, &ret->n_annotations);
	case 7:
		return d->args ? take_text(d->rest, f, &d->args[ret->n_args++]) : 0;
	case 8:
		return d->env ? take_text(d->rest, f, &d->env[ret->n_env++]) : 0;
	case 9:
		return d->mounts ? add_mount(d, f) : 0;
	case 11:
		return take_linux(d, f);
	case 20:
		return d->cdi ? add_cdi(d, f) : 0;
	default:
		return 0;
	}
}

static int ctr_field(void *arg, const struct field *f)
{
	struct ctr_decoder *d = arg;
	struct arena *a = d->a;
	struct ctr_desc *to = d->ret;
	uint64_t number = 0;
	int r;
	switch (f->number) {
		TEXT(1, id);
		TEXT(2, pod_id);
		TEXT(3, name);
	case 4:
		r = take_number(f, &number);
		to->state = decode_state(number);
		return r;
	case 12:
		r = take_number(f, &number);
		to->pid = (uint32_t)number;
		return r;
	case 14:
		r = take_number(f, &number);
		to->created_ns = number <= INT64_MAX ? number : 0;
		return r;
	default:
		return d->depth == DECODE_NAME ? 0 : long_field(d, f);
	}
}

static int make_lists(struct ctr_decoder *d, struct span s)
{
	struct ctr_desc *ret = d->ret;
	uint32_t n[NUMBERS];
	int r = count_fields(s, n);
	if (r)
		return r;
	ret->labels = d->labels = arena_array(d->a, n[5], sizeof *d->labels);
	ret->annotations = d->annotations = arena_array(d->a, n[6], sizeof *d->annotations);
	if (!d->labels || !d->annotations)
		return -ENOMEM;
	if (d->depth != DECODE_ALL)
		return 0;
	ret->args = d->args = arena_array(d->rest, n[7], sizeof *d->args);
	ret->env = d->env = arena_array(d->rest, n[8], sizeof *d->env);
	ret->mounts = d->mounts = arena_array(d->rest, n[9], sizeof *d->mounts);
	ret->cdi = d->cdi = arena_array(d->rest, n[20], sizeof *d->cdi);
	return d->args && d->env && d->mounts && d->cdi ? 0 : -ENOMEM;
}

int decode_ctr(struct arena *a, struct arena *rest, struct span s, enum decode_depth depth,
	       struct ctr_desc *ret)
{
	struct ctr_decoder d = {.a = a,
				.rest = rest,
				.depth = depth,
				.ret = ret,
				.res = {.a = a, .ret = &ret->res, .huge = &ret->huge}};
	*ret = (struct ctr_desc){.id = "",
				 .pod_id = "",
				 .name = "",
				 .cgroups_path = "",
				 .state = RP_STATE_CREATING,
				 .oom_score_adj = RP_NOT_SET};
	clear_resources(&ret->res);
	int r = depth == DECODE_NAME ? 0 : make_lists(&d, s);
	if (!r)
		r = each_field(s, ctr_field, &d);
	cut_resources(&ret->res);
	for (uint32_t i = 0; !r && d.devices && i < ret->n_devices; i++)
		d.devices[i].writable = device_writable(&d.res, &d.devices[i]);
	return r;
}
