/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `annotations`: {takers: …, takerNamespaces: [NAMESPACE, …], allow: {ANNOTATION: [NAMESPACE,
 * …]}} */
#include <string.h>

#include "core/lib/conf/internal.h"
#include "core/lib/util/str.h"

#define ANNOTATIONS_MAX 256u
#define NAMESPACES_MAX 256u
#define NAME_MAX_LEN 317u /* bytes of a key in Kubernetes: prefix of 253, a slash, 63 */

static int read_namespaces(struct conf_loader *l, rp_cfg list, struct conf_strings *ret)
{
	if (!node_is(list, RP_NODE_LIST) || list->n > NAMESPACES_MAX)
		return problem_node(
			l->errs, list, NULL,
			"expected a list of up to %u namespaces, as in [kube-system, \"infra-*\"]",
			NAMESPACES_MAX);
	const char **items = arena_array(l->conf->arena, list->n, sizeof *items);
	if (!items)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->n; i++) {
		items[i] = conf_text(list->members[i].node, "");
		if (!*items[i])
			return problem_node(l->errs, list->members[i].node, NULL,
					    "expected a namespace or a glob");
	}
	*ret = (struct conf_strings){items, list->n};
	return 0;
}

/* Returns the length of the name without the domain before or behind it, and moves *key to it; 0:
 * the name is not in that domain. */
static size_t stem_of(const char *domain, const char **key)
{
	size_t len = strlen(*key), n = strlen(domain);
	if (strncmp(*key, domain, n) == 0 && (*key)[n] == '/') {
		*key += n + 1;
		return strcspn(*key, "/") == len - n - 1 ? len - n - 1 : 0;
	}
	if (len <= n + 1 || !str_has_suffix(*key, domain) || (*key)[len - n - 1] != '.')
		return 0;
	return strcspn(*key, "/") == len ? len - n - 1 : 0;
}

static int read_name(struct conf_loader *l, const struct conf_member *m, const char **ret)
{
	static const char *const domains[] = {ANNOTATION_DOMAIN, ANNOTATION_ALIAS_DOMAIN};
	const char *stem = m->key;
	size_t len = strlen(stem);
	for (unsigned i = 0; i < sizeof domains / sizeof *domains; i++) {
		if (!strstr(m->key, domains[i]))
			continue;
		len = stem_of(domains[i], &stem);
		if (!len)
			return problem_node(
				l->errs, m->node, NULL,
				"expected a name with one part before ." ANNOTATION_DOMAIN
				", or only that name, as in cpu.preserve");
		break;
	}
	if (str_has_suffix(m->key, ".memory-qos"))
		return problem_node(
			l->errs, m->node, NULL,
			"annotations of this domain need the full name: write \"%s.nri.io\"",
			m->key);
	*ret = arena_strndup(l->conf->arena, stem, len);
	return *ret ? 0 : -ENOMEM;
}

static int read_one(struct conf_loader *l, const struct conf_member *m, struct conf_annotation *ret)
{
	if (!*m->key || strlen(m->key) > NAME_MAX_LEN)
		return problem_node(l->errs, m->node, NULL, "expected the key of an annotation");
	if (str_has_suffix(m->key, "/pod") || strstr(m->key, "/container."))
		return problem_node(l->errs, m->node, NULL,
				    "name an annotation without /pod and /container.NAME; the rule "
				    "applies to all its forms");
	int rc = read_name(l, m, &ret->name);
	return rc ? rc : read_namespaces(l, m->node, &ret->namespaces);
}

int annotations_fill(struct conf_loader *l, struct conf_annotations *ret)
{
	const struct rp_cfg_node *allow = conf_get(l->conf->root, "annotations.allow");
	rp_cfg named = conf_get(l->conf->root, "annotations.takerNamespaces");
	if (named && node_is(named, RP_NODE_LIST)) {
		int rc = read_namespaces(l, named, &ret->taker_namespaces);
		if (rc)
			return rc;
	}
	if (!allow || node_is(allow, RP_NODE_NULL))
		return 0;
	if (!node_is(allow, RP_NODE_MAP) || allow->n > ANNOTATIONS_MAX)
		return problem_node(l->errs, allow, NULL,
				    "expected a map of up to %u annotations to lists of namespaces",
				    ANNOTATIONS_MAX);
	struct conf_annotation *list = arena_array(l->conf->arena, allow->n, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < allow->n; i++) {
		int rc = read_one(l, &allow->members[i], &list[i]);
		if (rc == -ENOMEM)
			return rc;
	}
	ret->list = list;
	ret->n = allow->n;
	return 0;
}
