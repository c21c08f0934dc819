/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of amounts of CPU, and their CPUs on this machine. Sets of cgroups are read through
 * the host, at the mount points of cgroup v1 and v2. */
#include <stdio.h>
#include <string.h>

#include "modules/lib/private/amount.h"
#include <nri-rp/lib/section.h>

#define CGROUP_PATH_MAX 4096u
#define SET_TEXT_MAX 256u

static const char cpuset_prefix[] = "cpuset:";
static const char except_prefix[] = "exclude-cpuset:";
static const char cgroup_prefix[] = "cgroup:";

static const char *after_prefix(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);
	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static int32_t read_list(const struct modhost *h, rp_cfg node, const char *list,
			 enum amount_kind kind, struct amount *ret)
{
	if (rp_idset_parse(&ret->cpus, list, RP_CPUS_MAX) || rp_ids_empty(rp_ids_of(&ret->cpus)))
		return modhost_refuse(h, node, "expected a list of CPUs as in 0-3,8, found \"%s\"",
				      list);
	ret->kind = kind;
	return 0;
}

/* Reads a set of CPUs from DIR/FILE. Returns 0, -RP_ENOENT if there is no such file, or -RP_EINVAL
 * if it is malformed. */
static int32_t read_cgroup_file(const struct modhost *h, const char *dir, const char *file,
				struct rp_idset *ret)
{
	char path[CGROUP_PATH_MAX], text[RP_IDSET_TEXT_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", dir, file);
	if (n < 0 || (size_t)n >= sizeof path)
		return -RP_ENOENT;
	if (h->work->read_file(h->ctx, path, text, sizeof text) < 0)
		return -RP_ENOENT;
	return rp_idset_parse(ret, text, RP_CPUS_MAX) ? -RP_EINVAL : 0;
}

/* Reads the CPUs of a cgroup directory. On cgroup v2 an empty cpuset.cpus means that the cgroup
 * uses the CPUs of its parents (cpuset.cpus.effective). */
static int32_t read_cgroup_dir(const struct modhost *h, const char *dir, struct rp_idset *ret)
{
	int32_t r = read_cgroup_file(h, dir, "cpuset.cpus", ret);
	if (r == 0 && rp_ids_empty(rp_ids_of(ret)))
		r = read_cgroup_file(h, dir, "cpuset.cpus.effective", ret);
	return r;
}

static int32_t read_cgroup(const struct modhost *h, rp_cfg node, const char *name,
			   struct amount *ret)
{
	static const char *const mounts[] = {"", "/sys/fs/cgroup", "/sys/fs/cgroup/cpuset"};
	if (!h->work)
		return modhost_fail_at(h, node, -RP_ENOTSUP, "this host cannot read cgroups");
	const char *slash = name[0] == '/' ? "" : "/";
	/* An absolute path is also tried without a mount point before it. */
	for (size_t i = name[0] == '/' ? 0 : 1; i < sizeof mounts / sizeof mounts[0]; i++) {
		char dir[CGROUP_PATH_MAX];
		int n = snprintf(dir, sizeof dir, "%s%s%s", mounts[i], slash, name);
		if (n < 0 || (size_t)n >= sizeof dir)
			break;
		int32_t r = read_cgroup_dir(h, dir, &ret->cpus);
		if (r == -RP_ENOENT)
			continue;
		if (r < 0 || rp_ids_empty(rp_ids_of(&ret->cpus)))
			return modhost_refuse(h, node, "the cpuset of cgroup \"%s\" is %s", name,
					      r < 0 ? "not a list of CPUs" : "empty");
		ret->kind = AMOUNT_CPUS;
		return 0;
	}
	return modhost_fail_at(h, node, -RP_ENOENT, "no cgroup \"%s\" with a cpuset", name);
}

static int32_t read_quantity(const struct modhost *h, rp_cfg node, const char *text,
			     struct amount *ret)
{
	/* "-0" is refused as well, which the range check would not do. */
	int64_t mcpu = text[0] == '-' ? -1 : h->config->value(h->ctx, node, RP_T_CPU, -1);
	if (mcpu < 0)
		return modhost_refuse(h, node,
				      "expected a quantity of CPUs as in 2 or 750m, cpuset:LIST, "
				      "exclude-cpuset:LIST or cgroup:PATH, found \"%s\"",
				      text);
	ret->kind = AMOUNT_QUANTITY;
	ret->mcpu = mcpu;
	return 0;
}

static uint32_t takes_bit(enum amount_kind kind)
{
	switch (kind) {
	case AMOUNT_QUANTITY:
		return AMOUNT_TAKES_QUANTITY;
	case AMOUNT_CPUS:
		return AMOUNT_TAKES_CPUS;
	case AMOUNT_EXCEPT:
		return AMOUNT_TAKES_EXCEPT;
	case AMOUNT_NONE:
		break;
	}
	return AMOUNT_TAKES_ANY;
}

static int32_t read_any(const struct modhost *h, rp_cfg node, const char *text, struct amount *ret)
{
	const char *rest = after_prefix(text, cpuset_prefix);
	if (rest)
		return read_list(h, node, rest, AMOUNT_CPUS, ret);
	rest = after_prefix(text, except_prefix);
	if (rest)
		return read_list(h, node, rest, AMOUNT_EXCEPT, ret);
	rest = after_prefix(text, cgroup_prefix);
	if (rest || text[0] == '/')
		return read_cgroup(h, node, rest ? rest : text, ret);
	if (text[0] != '-' && strpbrk(text, "-,") && !strchr(text, ':'))
		return read_list(h, node, text, AMOUNT_CPUS, ret);
	return read_quantity(h, node, text, ret);
}

int32_t amount_read(const struct modhost *h, rp_cfg node, uint32_t takes, struct amount *ret)
{
	struct amount a = {.kind = AMOUNT_NONE};
	rp_idset_clear(&a.cpus);
	if (node) {
		int32_t r = read_any(h, node, h->config->text(h->ctx, node, ""), &a);
		if (r < 0)
			return r;
	}
	if (!(takes & takes_bit(a.kind)))
		return modhost_refuse(h, node, "%s cannot be used here",
				      a.kind == AMOUNT_QUANTITY ? "a quantity"
				      : a.kind == AMOUNT_CPUS	? "a set of CPUs"
								: "exclude-cpuset:");
	*ret = a;
	return 0;
}

int32_t amount_read_both(const struct modhost *h, rp_cfg section, uint32_t reserved_takes,
			 struct amount *ret_available, struct amount *ret_reserved)
{
	int32_t r = amount_read(h, section_get(h, section, "availableResources.cpu"),
				AMOUNT_TAKES_CPUS | AMOUNT_TAKES_EXCEPT, ret_available);
	return r ? r
		 : amount_read(h, section_get(h, section, "reservedResources.cpu"), reserved_takes,
			       ret_reserved);
}

uint32_t amount_count(const struct amount *a)
{
	if (a->kind == AMOUNT_CPUS)
		return rp_ids_count(rp_ids_of(&a->cpus));
	if (a->kind != AMOUNT_QUANTITY)
		return 0;
	int64_t n = a->mcpu / 1000 + (a->mcpu % 1000 != 0);
	return n > RP_CPUS_MAX ? RP_CPUS_MAX + 1 : (uint32_t)n;
}

void amount_pick(const struct amount *a, struct rp_ids from, struct rp_idset *ret)
{
	if (a->kind == AMOUNT_CPUS)
		rp_idset_and(ret, from, rp_ids_of(&a->cpus));
	else if (a->kind == AMOUNT_EXCEPT)
		rp_idset_andnot(ret, from, rp_ids_of(&a->cpus));
	else
		rp_idset_copy(ret, from);
}

int32_t amount_check_reserved(const struct modhost *h, rp_cfg at, const struct reserve_past *past,
			      struct rp_ids listed, struct rp_ids allowed, struct rp_ids online,
			      struct rp_idset *ret_awaited)
{
	char text[SET_TEXT_MAX];
	struct rp_idset wrong;
	reserve_list(h, past, listed, allowed, online, &wrong, ret_awaited);
	if (rp_ids_empty(rp_ids_of(&wrong)))
		return 0;
	return modhost_refuse(h, at, "reserved CPUs %s are not available",
			      modhost_set_text(rp_ids_of(&wrong), text, sizeof text));
}
