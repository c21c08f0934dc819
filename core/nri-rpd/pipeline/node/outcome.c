/* SPDX-License-Identifier: Apache-2.0 */
/* File with the published entries: composes JSON, and writes it on the disk worker. */
#include "core/nri-rpd/pipeline/node/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/json.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/worker.h"

#define LOG_SOURCE "node"
#define UNIT 1000 /* amounts are in thousandths of a unit */

struct writing {
	struct outcome *outcome;
	char *path, *text;
	struct err err;
};

static void writing_free(struct writing *w)
{
	free(w->path);
	free(w->text);
	free(w);
}

static void put_pairs(struct json *j, const char *key, const struct nr_pair *pairs, unsigned n)
{
	json_kobj(j, key);
	for (unsigned i = 0; i < n; i++)
		json_kstr(j, pairs[i].key, pairs[i].value);
	json_end_obj(j);
}

/* Returns the file's content, owned by the caller; NULL: out of memory. */
static char *outcome_compose(const struct nr_result *stands)
{
	struct buf out = {0};
	struct json j;
	json_init(&j, &out);
	json_obj(&j);
	json_kobj(&j, "resources");
	for (unsigned i = 0; i < stands->n_values; i++)
		json_kint(&j, stands->values[i].name, stands->values[i].quantity / UNIT);
	json_end_obj(&j);
	put_pairs(&j, "labels", stands->labels, stands->n_labels);
	put_pairs(&j, "annotations", stands->annotations, stands->n_annotations);
	json_end_obj(&j);
	(void)buf_add_str(&out, "\n");
	char *text = out.failed ? NULL : strdup(buf_text(&out));
	buf_fini(&out);
	return text;
}

/* Writes the file. Runs on the disk worker. */
static int write_file(void *arg)
{
	struct writing *w = arg;
	return fs_replace(w->path, w->text, strlen(w->text), 0644, false, &w->err);
}

static void file_written(void *arg, int result)
{
	struct writing *w = arg;
	struct outcome *o = w->outcome;
	const char *why = result ? err_text(&w->err, result) : "";
	o->writing = false;
	if (*why && !str_eq(why, o->error))
		log_warning("nodeResources.file: %s", why);
	(void)snprintf(o->error, sizeof o->error, "%s", why);
	if (!result && o->path && str_eq(o->path, w->path)) {
		free(o->written);
		o->written = w->text;
		w->text = NULL;
	}
	writing_free(w);
}

void outcome_configure(struct outcome *o, const char *path)
{
	free(o->written);
	o->written = NULL;
	o->path = path;
}

void outcome_put(struct pipeline *p, struct outcome *o, const struct nr_result *stands)
{
	if (!o->path || o->writing)
		return;
	struct writing *w = calloc(1, sizeof *w);
	if (!w)
		return; /* the next pass tries again */
	*w = (struct writing){.outcome = o,
			      .path = strdup(o->path),
			      .text = outcome_compose(stands),
			      .err = ERR_INIT};
	bool same = w->text && o->written && str_eq(w->text, o->written);
	if (same || !w->path || !w->text || worker_submit(p->disk, write_file, file_written, w))
		writing_free(w);
	else
		o->writing = true;
}

void outcome_fini(struct outcome *o)
{
	free(o->written);
	o->written = NULL;
}
