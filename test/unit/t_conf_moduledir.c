/* SPDX-License-Identifier: Apache-2.0 */
/* A build that installs its modules elsewhere looks for them there. */
#undef NRI_RP_MODULEDIR
#define NRI_RP_MODULEDIR "/opt/elsewhere/modules"
#include "core/lib/conf/core.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"

#include "coverage_exit.h"

static void test_module_path(void **state)
{
	struct conf_strings dirs;
	_arena_ struct arena *arena = arena_new(4096, 65536);
	assert_non_null(arena);
	assert_string_equal(core_default("modules.path"),
			    "[/opt/elsewhere/modules, /usr/local/lib/nri-rp/modules]");
	assert_int_equal(core_module_path(arena, NULL, &dirs), 0);
	assert_int_equal(dirs.n, 2);
	assert_string_equal(dirs.items[0], "/opt/elsewhere/modules");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_module_path)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
