/* SPDX-License-Identifier: Apache-2.0 */
/* Reads frequencies and energy preference of a CPU at their first use. */
#include <stdio.h>

#include "core/lib/topo/impl.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

/* Parses a name of the kernel or a number from 0 to 255. "default" means the firmware's setting,
 * which is unknown. */
static uint32_t parse_epp(const char *text)
{
	static const struct {
		const char *name;
		uint32_t value;
	} names[] = {
		{"performance", 0},
		{"balance_performance", 128},
		{"balance_power", 192},
		{"power", 255},
	};
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (str_eq(text, names[i].name))
			return names[i].value;
	uint64_t v;
	return str_to_u64(text, &v) == 0 && v <= 255 ? (uint32_t)v : RP_EPP_UNKNOWN;
}

static uint32_t read_khz(int fd, const char *file)
{
	uint32_t khz;
	return topo_read_u32_at(fd, file, &khz) ? 0 : khz;
}

static void load_all(const struct topo *t, uint32_t number, struct topo_cpu *c)
{
	char path[64], epp[64];
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq", number);
	_close_ int fd = fs_open_dir(&t->root, path);
	if (fd < 0)
		return;
	c->base_khz = read_khz(fd, "base_frequency");
	c->min_khz = read_khz(fd, "cpuinfo_min_freq");
	c->max_khz = read_khz(fd, "cpuinfo_max_freq");
	if (fs_read_at(fd, "energy_performance_preference", epp, sizeof epp) >= 0) {
		c->has_epp = true;
		c->epp = parse_epp(epp);
	}
}

static void load_epp(const struct topo *t, uint32_t number, struct topo_cpu *c)
{
	char path[80], epp[64];
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/cpufreq/energy_performance_preference",
		       number);
	if (fs_read(&t->root, path, epp, sizeof epp) >= 0)
		c->epp = parse_epp(epp);
}

/* Loads the frequencies of a CPU. They are common to a core and read from its first CPU; the energy
 * preference differs by thread. */
void topo_load_freq(const struct topo *t, uint32_t number, struct topo_cpu *c)
{
	if (c->has_freq)
		return;
	c->has_freq = true;
	struct rp_ids core = t->levels[RP_LEVEL_CORE].units[c->unit[RP_LEVEL_CORE]].cpus;
	uint32_t first = rp_ids_first(core);
	if (first == number) {
		load_all(t, number, c);
		return;
	}
	struct topo_cpu *head = &t->cpus[topo_cpu_index(t, first)];
	topo_load_freq(t, first, head);
	c->base_khz = head->base_khz;
	c->min_khz = head->min_khz;
	c->max_khz = head->max_khz;
	if (head->has_epp)
		load_epp(t, number, c);
}

bool topo_next_freq(const struct topo *t, uint32_t *cpu, struct topo_freq *ret)
{
	for (; *cpu < t->n_cpu_index; ++*cpu) {
		uint16_t index = t->cpu_index[*cpu];
		const struct topo_cpu *c = index != TOPO_NO_INDEX ? &t->cpus[index] : NULL;
		if (!c || !c->has_freq)
			continue;
		*ret = (struct topo_freq){.cpu = (*cpu)++,
					  .base_khz = c->base_khz,
					  .min_khz = c->min_khz,
					  .max_khz = c->max_khz,
					  .epp = c->epp,
					  .has_epp = c->has_epp};
		return true;
	}
	return false;
}

uint32_t topo_n_freqs(const struct topo *t)
{
	uint32_t n = 0, cpu = 0;
	struct topo_freq f;
	while (topo_next_freq(t, &cpu, &f))
		n++;
	return n;
}

int topo_put_freq(struct topo *t, const struct topo_freq *f)
{
	uint16_t index = topo_cpu_index(t, f->cpu);
	if (index == TOPO_NO_INDEX)
		return -ENOENT;
	struct topo_cpu *c = &t->cpus[index];
	if (c->has_freq)
		return 0;
	c->has_freq = true;
	c->has_epp = f->has_epp;
	c->base_khz = f->base_khz;
	c->min_khz = f->min_khz;
	c->max_khz = f->max_khz;
	c->epp = f->epp;
	return 0;
}
