/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves commands of tests and other programs. Input: {"id": 1, "create": {…}}. Output: {"id": 1,
 * "ok": true, …}, and events ({"event": "updated", …}) when they happen. The first command sets up
 * the node: {"setup": {machine: …}}.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rp-sim/map.h"
#include "core/nri-rp-sim/serve.h"
#include "core/nri-rp-sim/steps.h"
#include "core/lib/util/cleanup.h"

#define LINE_MAX_BYTES (64u << 20)
#define PIECE 65536u

struct server {
	struct sim *s;
	struct loop_io *in;
	struct buf line; /* unprocessed input */
	bool ended;
};

static void serve_say(json_t *what)
{
	char *text = json_dumps(what, JSON_COMPACT);
	if (text) {
		(void)puts(text);
		(void)fflush(stdout);
	}
	free(text);
}

static void on_event(json_t *event, void *arg)
{
	serve_say(event);
	json_decref(event);
}

static void on_input(unsigned events, void *arg)
{
	struct server *v = arg;
	uint8_t *room = buf_reserve(&v->line, PIECE);
	ssize_t n = room ? read(STDIN_FILENO, room, PIECE) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		buf_commit(&v->line, (size_t)n);
	if (n <= 0 || buf_len(&v->line) > LINE_MAX_BYTES) {
		v->ended = true;
		if (v->in)
			(void)loop_io_set(v->in, 0);
	}
	sim_wake(v->s);
}

/* Reads all input at once if standard input is a file, which a loop cannot wait for. */
static int read_file(struct server *v)
{
	while (!v->ended)
		on_input(LOOP_READ, v);
	return v->line.failed;
}

static bool has_line(struct sim *s, void *arg)
{
	const struct server *v = arg;
	return v->ended ||
	       (buf_len(&v->line) && memchr(buf_bytes(&v->line), '\n', buf_len(&v->line)));
}

static int show_map(struct sim *s, const json_t *args, json_t *result)
{
	struct out text;
	int64_t width = 100;
	struct err err = ERR_INIT;
	(void)arg_int(ARGS(args, &err), "width", 100, MAP_WIDTH_MIN, 1000, &width);
	out_init(&text, &(struct term){.width = (unsigned)width, .utf8 = true});
	map_draw(s, NULL, &text);
	doc_put_text(result, "map", buf_text(&text.buf));
	out_fini(&text);
	return 0;
}

static int serve_run(struct server *v, const char *name, const json_t *args, json_t *result,
		     struct err *err)
{
	if (strcmp(name, "setup") == 0) {
		const json_t *config = json_object_get(args, "config");
		int r = sim_setup(v->s, args, err);
		return r || !config ? r : step_run(v->s, "write-config", config, result, err);
	}
	if (strcmp(name, "map") == 0)
		return show_map(v->s, args, result);
	return step_run(v->s, name, args, result, err);
}

static void serve_command(struct server *v, const char *text, size_t len)
{
	struct err err = ERR_INIT;
	json_error_t why;
	_json_ json_t *line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	_json_ json_t *result = json_object();
	int r = 0;
	if (!json_is_object(line))
		r = err_set(&err, -EINVAL, "not a JSON object: %s", why.text);
	json_t *id = json_incref(json_object_get(line, "id"));
	if (!r)
		(void)json_object_del(line, "id");
	const char *name = step_name(line);
	if (!r && !name)
		r = err_set(&err, -EINVAL, "expected one command");
	if (!r)
		r = serve_run(v, name, json_object_get(line, name), result, &err);
	if (id)
		(void)json_object_set_new(result, "id", id);
	doc_put_bool(result, "ok", r == 0);
	if (r) {
		doc_put_text(result, "failed", err_text(&err, r));
		doc_put_int(result, "code", -r);
	}
	serve_say(result);
}

static int listen_to_input(struct server *v, struct err *err)
{
	struct stat st;
	if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		return read_file(v) ? err_errno(err, -ENOMEM, "serve") : 0;
	int flags = fcntl(STDIN_FILENO, F_GETFL);
	(void)fcntl(STDIN_FILENO, F_SETFL, flags | O_NONBLOCK);
	v->in = loop_io_new(v->s->loop, STDIN_FILENO, LOOP_READ, on_input, v);
	return v->in ? 0 : err_errno(err, -EIO, "cannot wait for standard input");
}

static int serve_attend(struct server *v, struct err *err)
{
	int r = listen_to_input(v, err);
	if (r)
		return r;
	for (;;) {
		(void)sim_wait(v->s, has_line, v, UINT64_MAX);
		const uint8_t *end = buf_len(&v->line)
					     ? memchr(buf_bytes(&v->line), '\n', buf_len(&v->line))
					     : NULL;
		if (!end)
			break;
		size_t len = (size_t)(end - buf_bytes(&v->line));
		_free_ char *text = malloc(len + 1);
		if (!text)
			return err_errno(err, -ENOMEM, "serve");
		memcpy(text, buf_bytes(&v->line), len);
		buf_consume(&v->line, len + 1);
		serve_command(v, text, len);
	}
	return 0;
}

int serve(const struct sim_options *options)
{
	struct server v = {.line = BUF_INIT};
	struct err err = ERR_INIT;
	(void)signal(SIGPIPE, SIG_IGN);
	int r = sim_new(options, &v.s, &err);
	if (!r) {
		v.s->on_event = on_event;
		r = serve_attend(&v, &err);
		loop_io_free(v.in);
		sim_free(v.s);
	}
	buf_fini(&v.line);
	if (r)
		(void)fprintf(stderr, "nri-rp-sim: %s\n", err_text(&err, r));
	return r ? 1 : 0;
}
