/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the files of resctrl: info/ and schemata of a machine, groups that are set up over it,
 * monitoring data; and configured shares. */
#include <stdlib.h>

#include "modules/rdt/rdt.h"
#include "test/fuzz/fake_work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(const uint8_t *data, size_t size)
{
	struct rdt_share share;
	char *text = malloc(size + 1);
	if (!text)
		return;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	(void)rdt_share_parse(text, true, &share);
	(void)rdt_schemata_equal(text, "L3:0=ff;1=f\nL3CODE:0=1;1=1\nMB:0=50;1=10\n");
	free(text);
}

static void set_up(struct fake_work *f)
{
	struct rdt_groups groups = {.h = &f->h};
	struct rdt_want want = {.name = "gold", .schemata = (char[]){"L3:0=ff;1=ff\n"}};
	struct rdt_setup setup = {.want = &want, .n_want = 1, .root = "/sys/fs/resctrl"};
	struct rdt_readings readings = {0};
	(void)rdt_names_add(&setup.owned, "silver");
	rdt_groups_set_up(&groups, &setup);
	rdt_monitor_read(&groups, &readings);
	free(readings.list);
	rdt_names_fini(&setup.owned);
	rdt_groups_fini(&groups);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_work f;
	static struct rdt_machine machine;
	read_text(data, size);
	fake_work_init(&f, data, size);
	(void)rdt_machine_read(&f.h, &machine);
	fake_work_init(&f, data, size);
	set_up(&f);
	fake_work_init(&f, data, size);
	struct rdt_groups groups = {.h = &f.h, .root = "/sys/fs/resctrl"};
	struct rdt_assign assign = {.item.ref = (char[]){"1 /cg"}, .known = true, .monitor = "c"};
	rdt_assign_run(&groups, &assign);
	return 0;
}
