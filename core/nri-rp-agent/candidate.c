/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/str.h"

#define WHOLE_FILE "rp.conf" /* key of a ConfigMap with a complete rp.conf */
/* indentation that puts each key on its own line, so that positions in messages are useful */
#define INDENT 2
#define NODE_SELECTOR "nodeSelector"

/* ---- texts ----------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static char *generation_of(const json_t *meta, bool config_map)
{
	if (config_map)
		return strdup(text_of(meta, "resourceVersion"));
	return str_printf("%" JSON_INTEGER_FORMAT,
			  json_integer_value(json_object_get(meta, "generation")));
}

/* Returns the parts of a custom resource that the daemon reads, without status and history. */
static char *resource_text(const struct candidate *c, const json_t *object)
{
	json_t *spec = json_object_get(object, "spec");
	json_t *out = json_pack("{s:s, s:s, s:{s:s, s:s}, s:O}", "apiVersion",
				text_of(object, "apiVersion"), "kind", c->kind, "metadata", "name",
				c->name, "namespace", c->ns, "spec", spec ? spec : json_null());
	char *text = json_dumps(out, JSON_INDENT(INDENT));
	json_decref(out);
	return text;
}

/* Returns YAML that has the text, indented, as the value of a key; for free(). NULL: out of
 * memory. */
static char *section_text(const char *key, const char *text)
{
	struct buf out = BUF_INIT;
	(void)buf_printf(&out, "%s:\n", key);
	while (*text) {
		size_t n = strcspn(text, "\n");
		(void)buf_add(&out, " ", 1);
		(void)buf_add(&out, text, n);
		(void)buf_add(&out, "\n", 1);
		text += n + (text[n] == '\n');
	}
	char *all = out.failed ? NULL : strdup(buf_text(&out));
	buf_fini(&out);
	return all;
}

/* ---- sections -------------------------------------------------------------------------------- */

static int add_section(struct candidate *c, const char *name, char *text, bool keyed, size_t *total)
{
	struct section *s = &c->sections[c->n_sections];
	if (!text)
		return -ENOMEM;
	s->text = text;
	s->keyed = keyed;
	s->name = strdup(name);
	c->n_sections++;
	*total += strlen(text);
	return !s->name ? -ENOMEM : *total > AGENT_CONFIG_MAX ? -E2BIG : 0;
}

static int add_sections(struct candidate *c, json_t *object, size_t *total)
{
	json_t *data = json_object_get(object, "data"), *value;
	const char *key;
	size_t n = c->config_map ? json_object_size(data) : 1;
	int r = n > AGENT_SECTIONS_MAX ? -E2BIG : 0;
	c->sections = r ? NULL : calloc(n + 1, sizeof *c->sections);
	if (!c->sections)
		return r ? r : -ENOMEM;
	if (!c->config_map)
		return add_section(c, "", resource_text(c, object), false, total);
	json_object_foreach(data, key, value)
	{
		const char *text = json_string_value(value);
		if (!text)
			return -EINVAL;
		bool whole = str_eq(key, WHOLE_FILE);
		r = add_section(c, key, whole ? strdup(text) : section_text(key, text), !whole,
				total);
		if (r)
			return r;
	}
	return 0;
}

static int candidate_fill(struct candidate *c, json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	json_t *selector = json_object_get(json_object_get(object, "spec"), NODE_SELECTOR);
	size_t total = 0;
	if (!json_is_null(selector))
		c->selector = json_incref(selector);
	c->kind = strdup(c->config_map ? "ConfigMap" : text_of(object, "kind"));
	c->ns = strdup(text_of(meta, "namespace"));
	c->name = strdup(text_of(meta, "name"));
	c->uid = strdup(text_of(meta, "uid"));
	c->created = strdup(text_of(meta, "creationTimestamp"));
	c->generation = generation_of(meta, c->config_map);
	if (!c->kind || !c->ns || !c->name || !c->uid || !c->created || !c->generation)
		return -ENOMEM;
	if (!*c->kind || !*c->name || !*c->uid)
		return -EINVAL;
	int r = add_sections(c, object, &total);
	if (r != -E2BIG && r != -EINVAL)
		return r;
	c->refused = r == -EINVAL ? strdup("data: expected only texts")
				  : str_printf("more than %u sections or %u bytes",
					       AGENT_SECTIONS_MAX, AGENT_CONFIG_MAX);
	return c->refused ? 0 : -ENOMEM;
}

int candidate_new(const json_t *object, bool config_map, struct candidate **ret, struct err *err)
{
	struct candidate *c = calloc(1, sizeof *c);
	if (!c)
		return err_errno(err, -ENOMEM, "a configuration");
	c->config_map = config_map;
	int r = candidate_fill(c, (json_t *)(uintptr_t)object);
	if (!r) {
		*ret = c;
		return 0;
	}
	(void)err_errno(err, r, "%s %s/%s", c->kind ? c->kind : "configuration", c->ns ? c->ns : "",
			c->name ? c->name : "");
	candidate_free(c);
	return r;
}

struct candidate *candidate_free(struct candidate *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->n_sections; i++) {
		free(c->sections[i].name);
		free(c->sections[i].text);
	}
	free(c->sections);
	free(c->kind);
	free(c->ns);
	free(c->name);
	free(c->uid);
	free(c->created);
	free(c->generation);
	free(c->refused);
	json_decref(c->selector);
	free(c);
	return NULL;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

bool candidate_selects(const struct candidate *c, const json_t *labels)
{
	const char *key;
	json_t *value;
	if (c->selector && !json_is_object(c->selector))
		return false;
	json_object_foreach(
		c->selector, key,
		value) if (!json_equal(value, json_object_get(labels, key))) return false;
	return true;
}

bool candidate_same(const struct candidate *a, const struct candidate *b)
{
	if (!a || !b)
		return a == b;
	return str_eq(a->uid, b->uid) && str_eq(a->generation, b->generation);
}

const struct candidate *candidate_better(const struct candidate *a, const struct candidate *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->config_map != b->config_map)
		return a->config_map ? b : a;
	int later = strcmp(a->created, b->created);
	return later ? (later > 0 ? a : b) : strcmp(a->kind, b->kind) <= 0 ? a : b;
}
