/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/rbac_hint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/util/str.h"

/* largest number of parts of a path: apis GROUP VERSION namespaces NS PLURAL NAME SUBRESOURCE */
#define PARTS_MAX 8u
#define PART_MAX 80u /* longest part that is printed */

struct part {
	const char *text;
	size_t len;
};

/* Resource of a path: /api/V/… or /apis/G/V/…, with or without namespaces/NS. */
struct resource {
	struct part group, plural, name, sub;
};

static unsigned rbac_hint_split(const char *path, struct part ret[PARTS_MAX])
{
	unsigned n = 0;
	while (*path == '/' && n < PARTS_MAX) {
		path++;
		ret[n] = (struct part){path, strcspn(path, "/?")};
		path += ret[n++].len;
	}
	return n;
}

static bool rbac_hint_is(struct part p, const char *text)
{
	return p.len == strlen(text) && memcmp(p.text, text, p.len) == 0;
}

static bool rbac_hint_parse(const char *path, struct resource *ret)
{
	struct part parts[PARTS_MAX];
	unsigned n = rbac_hint_split(path, parts), at = 2;
	*ret = (struct resource){.group = {"", 0}};
	if (n && rbac_hint_is(parts[0], "apis") && n > 1) {
		ret->group = parts[1];
		at = 3;
	}
	if (at + 2 < n && rbac_hint_is(parts[at], "namespaces"))
		at += 2;
	if (at >= n)
		return false;
	ret->plural = parts[at];
	ret->name = at + 1 < n ? parts[at + 1] : (struct part){"", 0};
	ret->sub = at + 2 < n ? parts[at + 2] : (struct part){"", 0};
	return true;
}

static const char *rbac_hint_verbs(const char *method, const struct resource *r)
{
	if (str_eq(method, "GET"))
		return r->name.len ? "get" : "get, list, watch";
	if (str_eq(method, "DELETE"))
		return "delete";
	return str_eq(method, "POST") ? "create" : "patch";
}

static int rbac_hint_width(struct part p)
{
	return (int)(p.len < PART_MAX ? p.len : PART_MAX);
}

void rights_remedy(const char *method, const char *path, unsigned status, char *ret, size_t size)
{
	struct resource r;
	*ret = '\0';
	if (!rbac_hint_parse(path, &r))
		return;
	if (status == 403)
		(void)snprintf(
			ret, size,
			"needs {apiGroups: [\"%.*s\"], resources: [%.*s%s%.*s], verbs: [%s]}",
			rbac_hint_width(r.group), r.group.text, rbac_hint_width(r.plural),
			r.plural.text, r.sub.len ? "/" : "", rbac_hint_width(r.sub), r.sub.text,
			rbac_hint_verbs(method, &r));
	else if (status == 404 && r.group.len && !r.name.len)
		(void)snprintf(ret, size, "the cluster has no such kind");
}
