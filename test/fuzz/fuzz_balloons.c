/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what the balloons policy reads of users and of files: globs, expressions, groups, amounts,
 * annotations, its saved state. The first byte says what the rest is; parts of it end with a zero
 * byte. After each accepted input, balloons are disjoint.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"
#include "test/unit/fake_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX 1024u
#define RUNS_A_HOST 100u /* the host keeps each configuration */

extern const struct rp_module rp_module_1;

static struct fake_host *host(void)
{
	static const struct fake_machine machine = {
		.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
	static struct fake_host *f;
	static uint32_t n_runs;
	if (f && ++n_runs % RUNS_A_HOST)
		return f;
	fake_host_free(f);
	f = fake_host_new(&machine);
	if (fake_policy_open(f, &rp_module_1) ||
	    fake_configure(f,
			   "{reservedResources: {cpu: 1}, schedulingClasses: [{name: s, policy: "
			   "batch}], balloonTypes: [{name: a, groupBy: \"${labels/x}\"}, {name: b, "
			   "minBalloons: 1, minCPUs: 2}, {name: c, components: [{balloonType: a}, "
			   "{balloonType: b}]}]}"))
		abort();
	return f;
}

/* The next part as text. */
static void take(const uint8_t **data, size_t *size, char *buf)
{
	const uint8_t *end = memchr(*data, 0, *size);
	size_t all = end ? (size_t)(end - *data) + 1 : *size, n = end ? all - 1 : all;
	n = n < TEXT_MAX ? n : TEXT_MAX - 1;
	memcpy(buf, *data, n);
	buf[n] = '\0';
	*data += all;
	*size -= all;
}

/* Takes a text that can stand between quotes in a configuration. */
static void take_quoted(const uint8_t **data, size_t *size, char *buf)
{
	take(data, size, buf);
	for (char *p = buf; *p; p++)
		if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '_';
}

static void take_cpus(const struct balloon *b, struct rp_idset *left)
{
	for (uint32_t i = 0; i < b->n_parts; i++)
		take_cpus(b->parts[i], left);
	if (b->n_parts)
		return;
	assert(rp_ids_subset(rp_ids_of(&b->cpus), rp_ids_of(left)));
	rp_idset_andnot(left, rp_ids_of(left), rp_ids_of(&b->cpus));
}

static void check_state(struct fake_host *f)
{
	const struct state *s = fake_instance(f)->state;
	struct rp_idset left;
	rp_idset_copy(&left, rp_ids_of(&s->plan->allowed));
	for (uint32_t i = 0; i < s->n; i++)
		take_cpus(s->list[i], &left);
	assert(rp_ids_equal(rp_ids_of(&left), rp_ids_of(&s->free)));
}

/* ---- parsers --------------------------------------------------------------------------------- */

static void try_glob(const uint8_t *data, size_t size)
{
	char glob[TEXT_MAX], text[TEXT_MAX], literal[2 * TEXT_MAX], *p = literal;
	take(&data, &size, glob);
	take(&data, &size, text);
	assert(!glob_match(glob, text) || glob_valid(glob));
	for (const char *t = text; *t; t++) {
		*p++ = '\\';
		*p++ = *t;
	}
	*p = '\0';
	assert(glob_valid(literal) && glob_match(literal, text));
}

static rp_ctr new_container(struct fake_host *f, const char *annotations, const char *labels)
{
	return fake_ctr(f, &(struct fake_ctr){.name = "x",
					      .qos = RP_QOS_BURSTABLE,
					      .cpu_request = 1500,
					      .annotations = annotations,
					      .labels = labels});
}

static void try_text(const uint8_t *data, size_t size)
{
	struct fake_host *f = host();
	struct rp_ctr_info info = {.size = sizeof info};
	char text[TEXT_MAX], buf[64];
	const struct modhost *h = &fake_instance(f)->h;
	rp_ctr c = new_container(f, "", "x=y");
	take(&data, &size, text);
	assert(h->cache->get_ctr(h->ctx, c, &info) == 0);
	bool found = match_expand(h, &info, text, buf, sizeof buf);
	assert(strlen(buf) < sizeof buf);
	if (match_check_text(text))
		assert(!found && !*buf);
	(void)match_value(h, &info, text, buf, sizeof buf);
	assert(strlen(buf) < sizeof buf);
	fake_forget(f, c);
}

static void try_annotation(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"balloon.balloons", "hide-hyperthreads", "memory-type",
					   "scheduling-class"};
	struct fake_host *f = host();
	char value[TEXT_MAX], annotations[TEXT_MAX + 100];
	if (!size)
		return;
	const char *key = keys[data[0] % 4];
	data++;
	size--;
	take(&data, &size, value);
	(void)snprintf(annotations, sizeof annotations, "%s." ANNOTATION_DOMAIN "=%s", key, value);
	rp_ctr c = new_container(f, annotations, "x=y");
	if (fake_allocate(f, c))
		return;
	check_state(f);
	if (fake_release(f, c))
		abort();
	check_state(f);
}

static void try_config(const uint8_t *data, size_t size)
{
	static const char *const forms[] = {
		"{balloonTypes: [{name: x, groupBy: \"%s\"}]}",
		"{balloonTypes: [{name: x, namespaces: [\"%s\"]}]}",
		"{balloonTypes: [{name: x, matchExpressions: [{key: \"%s\", operator: Exists}]}]}",
		"{balloonTypes: [{name: x, matchExpressions: [{key: name, operator: \"%s\"}]}]}",
		"{preserve: {matchExpressions: [{key: id, operator: In, values: [\"%s\"]}]}}",
		"{availableResources: {cpu: \"%s\"}}",
		"{reservedResources: {cpu: \"%s\"}}",
		"{controllableInterrupts: [\"%s\"]}",
		"{balloonTypes: [{name: x, memoryTypes: [\"%s\"]}]}",
		"{balloonTypes: [{name: \"%s\", components: [{balloonType: default}]}]}",
		"{schedulingClasses: [{name: x, flags: [\"%s\"]}]}",
		"{cpuClasses: [{name: \"%s\"}]}",
		"{balloonTypes: [{name: x, preferCloseToDevices: [\"%s\"]}]}",
	};
	struct fake_host *f = host();
	char text[TEXT_MAX], config[TEXT_MAX + 200];
	if (!size)
		return;
	const char *form = forms[data[0] % (sizeof forms / sizeof forms[0])];
	data++;
	size--;
	take_quoted(&data, &size, text);
	const char *at = strstr(form, "%s");
	(void)snprintf(config, sizeof config, "%.*s%s%s", (int)(at - form), form, text, at + 2);
	if (fake_prepare_only(f, config))
		assert(*fake_error(f));
	check_state(f);
}

/* ---- saved state ----------------------------------------------------------------------------- */

static void try_state(const uint8_t *data, size_t size)
{
	struct fake_host *f = host();
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	rp_ctr c = new_container(f, "balloon.balloons." ANNOTATION_DOMAIN "=c", NULL);
	if (fake_allocate(f, c))
		abort();
	/* As after a restart: there is no state yet that could be saved over it. */
	struct rp_instance *inst = fake_instance(f);
	bool taken = s->load(inst, data, (uint32_t)size) == 0;
	assert(taken == image_valid(data, (uint32_t)size));
	inst->state = state_free(inst->state);
	if (fake_sync(f))
		abort();
	check_state(f);
	assert(!rp_ids_empty(fake_cpu_ids(f, c)));
	if (fake_release(f, c))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const uint8_t *data, size_t size) = {
		try_glob, try_text, try_annotation, try_config, try_state};
	if (size)
		tries[data[0] % 5](data + 1, size - 1);
	return 0;
}
