/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the frequencies after a policy switch that is refused although its trial has succeeded: the
 * original values, or the values of the previous policy's classes. */
#include "core/nri-rpd/pipeline/internal.h"
#include "test/unit/t_reload.h"

#define FILE_OF(cpu) "/sys/devices/system/cpu/cpu" #cpu "/cpufreq/scaling_max_freq"
#define BALLOONS                                                                                   \
	"policy: balloons\nballoons: {reservedResources: {cpu: 'cpuset:15'}, idleCPUClass: lo, "   \
	"cpuClasses: [{name: lo, maxFreq: 2GHz}]}\n"

static struct world *start(const char *conf)
{
	struct world *w = world_bare();
	tree_put(&w->tree, FILE_OF(3), "3000000\n");
	tree_put(&w->tree, FILE_OF(4), "3100000\n");
	world_configure(w, conf);
	world_must_start(w);
	assert_int_equal(boxes_sync(w, NULL, 0), 0);
	return w;
}

struct content {
	const char *path, *text;
};

static bool has(struct world *w, void *arg)
{
	const struct content *c = arg;
	char now[64];
	ssize_t n = fs_read(&w->tree.root, c->path, now, sizeof now);
	return n >= 0 && strncmp(now, c->text, strlen(c->text)) == 0;
}

static void wait_for(struct world *w, const char *path, const char *text)
{
	struct content c = {path, text};
	world_until(w, has, &c);
}

/* Reloads with a policy that sets a file before it refuses: the refusal happens in the daemon
 * alone, and has the result of any refusal. */
static void reload_fickle(struct world *w, const char *path)
{
	char conf[2 * PATH_MAX];
	(void)snprintf(conf, sizeof conf,
		       "policy: fickle\nfickle: {once: %s/once, set: %s, to: '1100000'}\n",
		       w->tree.dir, path);
	reload_idle(w, conf, "not twice");
	char once[PATH_MAX + 8];
	(void)snprintf(once, sizeof once, "%s/once", w->tree.dir);
	assert_int_equal(unlink(once), 0);
}

static void test_refused(void **state)
{
	struct world *w = start("policy: none\n");
	reload_fickle(w, FILE_OF(3));
	wait_for(w, FILE_OF(3), "3000000");
	reload_idle(w, BALLOONS, NULL);
	wait_for(w, FILE_OF(3), "2000000");
	wait_for(w, FILE_OF(4), "2000000");
	/* The value found by the refusing policy is not restored. */
	reload_fickle(w, FILE_OF(3));
	wait_for(w, FILE_OF(3), "2000000");
	reload_idle(w, "policy: none\n", NULL);
	wait_for(w, FILE_OF(3), "3000000");
	wait_for(w, FILE_OF(4), "3100000");
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
