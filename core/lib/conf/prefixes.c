/* SPDX-License-Identifier: Apache-2.0 */
/* Reads nodeResources.prefixes: {koordinator.sh: example.com, …} */
#include "core/lib/conf/prefixes.h"

#include <stdio.h>
#include <string.h>

#include "core/lib/conf/internal.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/str.h"

#define LABEL_MAX 63u /* longest label of a domain (the text between two dots), in bytes */
#define QUOTED "\"%s\""

const char *const prefix_defaults[PREFIXES] = {"koordinator.sh", "node.koordinator.sh",
					       "scheduling.koordinator.sh", "kubernetes.io"};

const char *const prefix_resources[PREFIX_RESOURCES] = {
	"kubernetes.io/batch-cpu", "kubernetes.io/batch-memory", "kubernetes.io/mid-cpu",
	"kubernetes.io/mid-memory"};

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_resource(const char *name)
{
	for (unsigned i = 0; i < PREFIX_RESOURCES; i++)
		if (str_eq(name, prefix_resources[i]))
			return true;
	return false;
}

const char *site_name(const struct prefixes *p, const char *name, struct site_name *buf)
{
	const char *slash = p && p->any ? strchr(name, '/') : NULL;
	size_t len = slash ? (size_t)(slash - name) : 0;
	for (unsigned i = 0; slash && i < PREFIXES; i++) {
		if (!p->site[i][0] || strncmp(name, prefix_defaults[i], len) != 0 ||
		    prefix_defaults[i][len])
			continue;
		if (i == PREFIX_OF_RESOURCES && !is_resource(name))
			return name;
		int n = snprintf(buf->text, sizeof buf->text, "%s%s", p->site[i], slash);
		return n < (int)sizeof buf->text ? buf->text : name;
	}
	return name;
}

/* Finds the first of the resources between quotes, and its length. */
static const char *find_resource(const char *text, unsigned *ret, size_t *ret_len)
{
	const char *first = NULL;
	for (unsigned i = 0; i < PREFIX_RESOURCES; i++) {
		char quoted[PREFIX_MAX];
		int n = snprintf(quoted, sizeof quoted, QUOTED, prefix_resources[i]);
		const char *at = strstr(text, quoted);
		if (!at || (first && at > first))
			continue;
		first = at;
		*ret = i;
		*ret_len = (size_t)n;
	}
	return first;
}

const char *site_text(const struct prefixes *p, const char *text, struct buf *buf)
{
	const char *at;
	unsigned which;
	size_t len;
	if (!p || !p->site[PREFIX_OF_RESOURCES][0] || !find_resource(text, &which, &len))
		return text;
	while ((at = find_resource(text, &which, &len))) {
		struct site_name name;
		(void)buf_add(buf, text, (size_t)(at - text));
		(void)buf_printf(buf, QUOTED, site_name(p, prefix_resources[which], &name));
		text = at + len;
	}
	(void)buf_add_str(buf, text);
	return buf->failed ? NULL : buf_text(buf);
}

/* ---- the configuration ----------------------------------------------------------------------- */

static bool good_label(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
		if (!letter && (s[i] != '-' || i == 0 || i + 1 == n))
			return false;
	}
	return n && n <= LABEL_MAX;
}

static bool good_domain(const char *s)
{
	size_t len = strlen(s);
	for (size_t n; len <= PREFIX_MAX; s += n + 1) {
		n = strcspn(s, ".");
		if (!good_label(s, n))
			return false;
		if (!s[n])
			return true;
	}
	return false;
}

/* Returns the owner of names that must not be replaced: Kubernetes' names, and names of the
 * annotations that place containers. NULL: the name has no owner. */
static const char *taken_by(const char *domain)
{
	static const char *const others[] = {"kubernetes.io", "k8s.io", "nri.io", "nri-rp",
					     ANNOTATION_ALIAS_DOMAIN};
	size_t len = strlen(domain);
	for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
		size_t n = strlen(others[i]);
		if (str_has_suffix(domain, others[i]) && (len == n || domain[len - n - 1] == '.'))
			return others[i];
	}
	return NULL;
}

/* Returns the index of another prefix whose effective domain equals the site's replacement of
 * prefix `row`, or PREFIXES. The prefix of resources may equal another one, because its names
 * differ from all others. */
static unsigned row_with(const struct prefixes *p, unsigned row)
{
	for (unsigned i = 0; row != PREFIX_OF_RESOURCES && i < PREFIX_OF_RESOURCES; i++) {
		const char *has = p->site[i][0] ? p->site[i] : prefix_defaults[i];
		if (i != row && str_eq(has, p->site[row]))
			return i;
	}
	return PREFIXES;
}

static unsigned row_of(const char *key)
{
	unsigned i = 0;
	while (i < PREFIXES && !str_eq(prefix_defaults[i], key))
		i++;
	return i;
}

static void read_row(struct conf_errors *errs, const struct conf_member *m, struct prefixes *ret)
{
	unsigned row = row_of(m->key);
	const char *domain = conf_text(m->node, ""), *taken = taken_by(domain);
	if (row == PREFIXES) {
		(void)problem_node(errs, m->node, NULL,
				   "only the prefixes %s, %s, %s and %s can be replaced",
				   prefix_defaults[0], prefix_defaults[1], prefix_defaults[2],
				   prefix_defaults[3]);
	} else if (str_eq(domain, m->key)) {
		return; /* equal to the default */
	} else if (!node_is(m->node, RP_NODE_SCALAR) || !good_domain(domain)) {
		(void)problem_node(errs, m->node, NULL,
				   "expected a domain of at most %u bytes with lower-case letters, "
				   "digits, - and dots, as in batch.example.com",
				   PREFIX_MAX);
	} else if (taken) {
		(void)problem_node(errs, m->node, NULL,
				   "names of %s have another meaning: choose a domain of your own",
				   taken);
	} else {
		(void)snprintf(ret->site[row], sizeof ret->site[row], "%s", domain);
		ret->any = true;
	}
}

void prefixes_fill(struct conf_loader *l, struct prefixes *ret)
{
	rp_cfg table = conf_get(l->conf->root, "nodeResources.prefixes");
	*ret = (struct prefixes){.any = false};
	if (!table || node_is(table, RP_NODE_NULL))
		return;
	if (!node_is(table, RP_NODE_MAP))
		(void)problem_node(l->errs, table, NULL,
				   "expected a map from prefixes to those of this site");
	for (uint32_t i = 0; node_is(table, RP_NODE_MAP) && i < table->n; i++)
		read_row(l->errs, &table->members[i], ret);
	for (unsigned i = 0; i < PREFIXES; i++) {
		unsigned other = ret->site[i][0] ? row_with(ret, i) : PREFIXES;
		if (other != PREFIXES)
			(void)problem_node(l->errs, conf_get(table, prefix_defaults[i]), NULL,
					   "%s already replaces %s: give each a different prefix",
					   ret->site[i], prefix_defaults[other]);
	}
}
