/* SPDX-License-Identifier: Apache-2.0 */
/* Plays scenario files: each document is a node of its own with a list of steps. */
#include "core/nri-rp-sim/play.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rp-sim/daemon.h"
#include "core/nri-rp-sim/map.h"
#include "core/nri-rp-sim/show.h"
#include "core/nri-rp-sim/steps.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_LINES 15u
#define WHERE_MAX 300
#define TITLE_MAX 160

static const char head_keys[] =
	"name about machine nri runtime cgroups syncParts requirePlugin "
	"requestTimeout registrationTimeout config files links cgroupFiles existing steps";

struct player {
	const struct sim_options *options;
	struct doc doc; /* the file being played */
	struct sim *s;
	struct term term;
	json_t *places; /* places of containers in the last map */
	json_t *results; /* results of all scenarios, for --json */
	unsigned n_passed, n_failed;
	bool interrupted;
};

/* ---- output ---------------------------------------------------------------------------------- */

static void play_draw(struct player *p, FILE *to)
{
	struct out text;
	out_init(&text, &p->term);
	map_draw(p->s, p->places, &text);
	(void)fprintf(to, "\n%s\n", buf_text(&text.buf));
	out_fini(&text);
	json_decref(p->places);
	p->places = map_remember(p->s);
}

static void play_join(const json_t *list, char *buf, size_t size)
{
	json_t *item;
	size_t i, used = 0;
	buf[0] = '\0';
	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);
		if (text && used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? "; " : "",
						 text);
	}
}

/* Composes the title of a step, such as "create: web". */
static void play_title(const char *name, const json_t *args, char *buf, size_t size)
{
	_free_ char *text = json_dumps(args, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *pod = json_string_value(json_object_get(args, "pod"));
	const char *ctr = json_string_value(json_object_get(args, "container"));
	char list[TITLE_MAX];
	play_join(args, list, sizeof list);
	if (json_is_string(args))
		(void)snprintf(buf, size, "%s: %s", name, json_string_value(args));
	else if (*list)
		(void)snprintf(buf, size, "%s: %s", name, list);
	else if (pod || ctr)
		(void)snprintf(buf, size, "%s: %s", name, pod ? pod : ctr);
	else if (json_is_true(args) || json_is_null(args))
		(void)snprintf(buf, size, "%s", name);
	else
		(void)snprintf(buf, size, "%s: %s", name, text ? text : "");
	buf[utf8_cut(buf, size - 1)] = '\0';
}

static bool changes_places(const char *name)
{
	static const char *const quiet[] = {"expect", "log",  "wait", "settle",
					    "note",   "show", "kill", "write-config"};
	for (unsigned i = 0; i < sizeof quiet / sizeof *quiet; i++)
		if (str_eq(quiet[i], name))
			return false;
	return true;
}

static void tell_note(const struct player *p, const char *text)
{
	if (p->term.colour)
		printf("\n\x1b[1m%s\x1b[0m\n", text);
	else
		printf("\n%s\n", text);
}

/* Shows moved containers, after nri-rpd's own updates have settled. */
static void tell_places(struct player *p)
{
	_json_ json_t *result = json_object();
	(void)step_run(p->s, "settle", NULL, result, NULL);
	_json_ json_t *now = map_remember(p->s);
	if (json_equal(now, p->places))
		printf("    no container moved\n");
	else
		play_draw(p, stdout);
}

/* Prints a step before it runs. */
static void tell_step(struct player *p, const char *name, const json_t *args)
{
	char text[TITLE_MAX + 40];
	if (!p->options->verbose)
		return;
	if (str_eq(name, "note")) {
		tell_note(p, json_string_value(args) ? json_string_value(args) : "");
	} else if (!str_eq(name, "show")) {
		play_title(name, args, text, sizeof text);
		printf("--- %s\n", text);
	}
	(void)fflush(stdout);
}

static void tell_result(struct player *p, const char *name, const json_t *args,
			const json_t *result)
{
	const char *error = json_string_value(json_object_get(result, "error"));
	if (!p->options->verbose)
		return;
	if (error)
		printf("    refused: %s\n", error);
	if (str_eq(name, "show"))
		show_control(p->s, args);
	else if (changes_places(name))
		tell_places(p);
	(void)fflush(stdout);
}

/* ---- a single scenario ----------------------------------------------------------------------- */

static int new_problems(struct player *p, struct err *err)
{
	struct sim *s = p->s;
	if (!json_array_size(s->problems))
		return 0;
	(void)err_set(err, -EPROTO, "nri-rpd sent what a runtime would refuse: %s",
		      json_string_value(json_array_get(s->problems, 0)));
	(void)json_array_clear(s->problems);
	return -EPROTO;
}

static int play_step(struct player *p, const json_t *step, struct err *err)
{
	const char *name = step_name(step);
	_json_ json_t *result = json_object();
	if (!name)
		return err_set(err, -EINVAL, "a step is one word with its argument");
	const json_t *args = json_object_get(step, name);
	tell_step(p, name, args);
	int r = step_run(p->s, name, args, result, err);
	if (!r)
		r = new_problems(p, err);
	if (!r)
		tell_result(p, name, args, result);
	else
		(void)err_prefix(err, "%s: ", name);
	return r;
}

static int play_begin(struct player *p, const json_t *scenario, struct err *err)
{
	_json_ json_t *result = json_object();
	const json_t *config, *existing, *steps;
	struct args *a = ARGS(scenario, err);
	(void)arg_check(a, head_keys, "scenario");
	(void)arg_list(a, "existing", &existing);
	(void)arg_list(a, "steps", &steps);
	int r = arg_map(a, "config", &config);
	if (!r)
		r = sim_setup(p->s, scenario, err);
	if (!r && !config)
		r = err_set(
			err, -EINVAL,
			"a scenario needs a configuration for nri-rpd: write config: {policy: …}");
	if (!r)
		r = step_run(p->s, "write-config", config, result, err);
	if (!r && existing)
		r = step_run(p->s, "existing", existing, result, err);
	if (!r)
		r = step_run(p->s, "start", NULL, result, err);
	return r ? r : new_problems(p, err);
}

/* Leaves nri-rpd and its map running until SIGINT or SIGTERM. */
static void play_serve_map(struct player *p)
{
	printf("\nThe live map: http://%s/map (Ctrl-C ends it)\n", p->s->options.map);
	(void)fflush(stdout);
	(void)sim_wait(p->s, NULL, NULL, UINT64_MAX);
	p->s->interrupted = false;
}

static int play_end(struct player *p, struct err *err)
{
	_json_ json_t *result = json_object();
	if (p->s->options.map && daemon_running(p->s))
		play_serve_map(p);
	int r = daemon_running(p->s) ? step_run(p->s, "stop", NULL, result, err) : 0;
	return r ? r : new_problems(p, err);
}

static int play_steps(struct player *p, const json_t *scenario, const json_t **ret_where,
		      struct err *err)
{
	json_t *step;
	size_t i;
	int r = 0;
	/* check all steps first, so that a misspelt word is reported before the scenario runs */
	json_array_foreach(json_object_get(scenario, "steps"), i, step)
	{
		*ret_where = step;
		r = r ? r : step_check(step, err);
		if (r)
			return r;
	}
	*ret_where = scenario;
	r = play_begin(p, scenario, err);
	if (!r && p->options->verbose)
		play_draw(p, stdout);
	json_array_foreach(json_object_get(scenario, "steps"), i, step)
	{
		if (r)
			break;
		*ret_where = step;
		r = play_step(p, step, err);
	}
	if (r)
		return r;
	*ret_where = scenario;
	return play_end(p, err);
}

static void tell_failure(struct player *p, const char *name, const json_t *where,
			 const struct err *err)
{
	char place[WHERE_MAX];
	_free_ char *tail = p->s ? daemon_log_tail(p->s, LOG_LINES) : NULL;
	printf("FAILED %s\n%s: %s\n", name, doc_where(&p->doc, where, place, sizeof place),
	       err->text);
	if (p->s && p->s->topo)
		play_draw(p, stdout);
	if (tail && *tail)
		printf("the end of nri-rpd's log:\n%s\n", tail);
	if (p->s && p->options->keep)
		printf("kept: %s\n", p->s->work);
}

static void note_result(struct player *p, const char *name, const struct err *err, uint64_t took_ms)
{
	json_t *to = json_object();
	doc_put_text(to, "scenario", name);
	doc_put_text(to, "file", p->doc.name);
	doc_put_bool(to, "passed", err->code == 0);
	if (err->code)
		doc_put_text(to, "error", err->text);
	doc_put_int(to, "took_ms", (int64_t)took_ms);
	(void)json_array_append_new(p->results, to);
}

static void play_scenario(struct player *p, const json_t *scenario)
{
	struct err err = ERR_INIT;
	const json_t *where = scenario;
	const char *name = json_string_value(json_object_get(scenario, "name"));
	uint64_t start = clock_ms();
	name = name ? name : p->doc.name;
	int r = sim_new(p->options, &p->s, &err);
	if (!r)
		r = play_steps(p, scenario, &where, &err);
	if (r && !err.code)
		(void)err_errno(&err, r, "failed");
	uint64_t took = clock_ms() - start;
	note_result(p, name, &err, took);
	if (r)
		p->n_failed++;
	else
		p->n_passed++;
	if (!p->options->json && r)
		tell_failure(p, name, where, &err);
	else if (!p->options->json)
		printf("ok     %-56s %5.1f s\n", name, (double)took / 1000);
	(void)fflush(stdout);
	json_decref(p->places);
	p->places = NULL;
	p->interrupted = p->s && p->s->interrupted;
	p->s = sim_free(p->s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void play_file(struct player *p, const char *path)
{
	struct err err = ERR_INIT;
	json_t *scenario;
	size_t i;
	if (doc_read(path, &p->doc, &err)) {
		printf("FAILED %s: %s\n", path, err.text);
		p->n_failed++;
		return;
	}
	json_array_foreach(p->doc.documents, i, scenario)
	{
		if (!p->interrupted)
			play_scenario(p, scenario);
	}
	doc_fini(&p->doc);
}

int play(const struct sim_options *options, char *const *files, int n_files)
{
	struct player p = {.options = options, .results = json_array()};
	map_terminal(&p.term);
	for (int i = 0; i < n_files && !p.interrupted; i++)
		play_file(&p, files[i]);
	if (options->json) {
		_free_ char *text = json_dumps(p.results, JSON_INDENT(1));
		(void)puts(text ? text : "[]");
	} else {
		printf("%u passed, %u failed\n", p.n_passed, p.n_failed);
	}
	json_decref(p.results);
	return p.n_failed || !p.n_passed ? 1 : 0;
}
