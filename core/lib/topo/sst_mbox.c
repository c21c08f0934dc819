/* SPDX-License-Identifier: Apache-2.0 */
/* Speed Select by mailboxes: commands to a CPU, which apply to its punit. Classes are in registers
 * if the machine has them. */
#include "core/lib/topo/sst_impl.h"

static int sst_mbox_mailbox(const struct sst_device *d, const struct sst_place *at,
			    uint32_t command, uint32_t sub, uint32_t parameter, uint32_t request,
			    uint32_t *ret)
{
	struct isst_mbox m = {
		.n = 1,
		.cpu = at->cpu,
		.parameter = parameter,
		.request = request,
		.command = (uint16_t)command,
		.sub = (uint16_t)sub,
	};
	int r = sst_command(d, ISST_MBOX, &m);
	if (!r && ret)
		*ret = m.response;
	return r;
}

/* Reads or writes a register of classes, through the mailbox on machines that do not expose the
 * register. */
static int class_register(const struct sst_device *d, const struct sst_place *at, uint32_t sub,
			  uint32_t index, bool write, uint32_t *value)
{
	if (!d->platform.mmio)
		return sst_mbox_mailbox(d, at, MBOX_CLOS, sub,
					index | (write ? MBOX_PARAMETER_WRITE : 0u),
					write ? *value : 0, write ? NULL : value);
	struct isst_io io = {
		.n = 1,
		.write = write,
		.cpu = at->cpu,
		.reg = (sub == MBOX_CLOS_ASSOC ? IO_CLOS_ASSOC : IO_CLOS_PARAM) + 4 * index,
		.value = write ? *value : 0,
	};
	int r = sst_command(d, ISST_IO, &io);
	if (!r && !write)
		*value = io.value;
	return r;
}

static void locate(uint32_t physical, struct sst_place *at)
{
	at->core = ISST_MBOX_CORE(physical);
}

static int check(const struct sst_device *d, const struct sst_place *at)
{
	return 0;
}

static int get_level(const struct sst_device *d, const struct sst_place *at, uint32_t *ret)
{
	uint32_t v = 0;
	int r = sst_mbox_mailbox(d, at, MBOX_TDP, MBOX_TDP_LEVELS, 0, 0, &v);
	if (r)
		return r;
	*ret = LEVELS_CURRENT(v);
	return LEVELS_VERSION(v) < LEVELS_VERSION_MIN ? -ENOTSUP : 0;
}

static int state(const struct sst_device *d, const struct sst_place *at, struct sst_state *ret)
{
	uint32_t control = 0, pm = 0, qos = 0;
	*ret = (struct sst_state){.priority = RP_SST_PROPORTIONAL};
	int r = get_level(d, at, &ret->level);
	if (r)
		return r;
	r = sst_mbox_mailbox(d, at, MBOX_TDP, MBOX_TDP_GET_CONTROL, 0, ret->level, &control);
	if (!r)
		r = sst_mbox_mailbox(d, at, MBOX_READ_PM, MBOX_PM_FEATURE, 0, 0, &pm);
	if (!r && (pm & PM_CP_SUPPORTED))
		r = sst_mbox_mailbox(d, at, MBOX_CLOS, MBOX_CLOS_QOS, 0, 0, &qos);
	if (r)
		return r;
	ret->supported = (pm & PM_CP_SUPPORTED ? RP_SST_CP : 0u) |
			 (control & CONTROL_TF_SUPPORTED ? RP_SST_TF : 0u) |
			 (control & CONTROL_BF_SUPPORTED ? RP_SST_BF : 0u);
	/* Report SST-CP by the switch of the classes of service. Some firmware refuses to set the
	 * switch of power management and does not store it. */
	ret->enabled = (qos & QOS_ON ? RP_SST_CP : 0u) | (control & CONTROL_TF ? RP_SST_TF : 0u) |
		       (control & CONTROL_BF ? RP_SST_BF : 0u);
	ret->priority = qos & QOS_ORDERED ? RP_SST_ORDERED : RP_SST_PROPORTIONAL;
	return 0;
}

static int buckets(const struct sst_device *d, const struct sst_place *at, uint32_t level,
		   uint32_t cores[RP_SST_BUCKETS])
{
	int r = 0;
	for (uint32_t i = 0; !r && i < RP_SST_BUCKETS / 4; i++) {
		uint32_t v = 0;
		r = sst_mbox_mailbox(d, at, MBOX_TDP, MBOX_TDP_TF_CORES, 0, i << 8 | level, &v);
		for (uint32_t k = 0; k < 4; k++)
			cores[4 * i + k] = v >> 8 * k & 0xffu;
	}
	return r;
}

static int bf_cores(const struct sst_device *d, const struct sst_place *at, uint32_t level,
		    uint64_t *ret_mask)
{
	uint32_t half[2] = {0, 0};
	int r = 0;
	for (uint32_t i = 0; !r && i < 2; i++)
		r = sst_mbox_mailbox(d, at, MBOX_TDP, MBOX_TDP_BF_MASK, 0, i << 8 | level,
				     &half[i]);
	*ret_mask = half[0] | (uint64_t)half[1] << 32;
	return r;
}

static int get_clos(const struct sst_device *d, const struct sst_place *at, uint32_t clos,
		    struct rp_clos *ret)
{
	uint32_t v = 0;
	int r = class_register(d, at, MBOX_CLOS_PARAM, clos, false, &v);
	*ret = (struct rp_clos){.min_mhz = PARAM_MIN(v) * RP_SST_MHZ_STEP,
				.max_mhz = PARAM_MAX(v) * RP_SST_MHZ_STEP,
				.weight = PARAM_WEIGHT(v)};
	return r;
}

static int set_clos(const struct sst_device *d, const struct sst_place *at, uint32_t clos,
		    const struct rp_clos *value)
{
	uint32_t v = value->weight << 4 | value->min_mhz / RP_SST_MHZ_STEP << 8 |
		     value->max_mhz / RP_SST_MHZ_STEP << 16;
	return class_register(d, at, MBOX_CLOS_PARAM, clos, true, &v);
}

static int get_assoc(const struct sst_device *d, const struct sst_place *at, uint32_t *ret)
{
	uint32_t v = 0;
	int r = class_register(d, at, MBOX_CLOS_ASSOC, at->core, false, &v);
	*ret = ASSOC_CLOS(v);
	return r;
}

static int set_assoc(const struct sst_device *d, const struct sst_place *at, uint32_t clos)
{
	uint32_t v = clos << 16;
	return class_register(d, at, MBOX_CLOS_ASSOC, at->core, true, &v);
}

static int set_cp(const struct sst_device *d, const struct sst_place *at, bool on,
		  uint32_t priority)
{
	uint32_t qos = 0;
	int r = sst_mbox_mailbox(d, at, MBOX_CLOS, MBOX_CLOS_QOS, 0, 0, &qos);
	if (r)
		return r;
	qos &= ~(QOS_ON | QOS_ORDERED);
	qos |= (on ? QOS_ON : 0u) | (priority == RP_SST_ORDERED ? QOS_ORDERED : 0u);
	/* Firmware that refuses this command does everything by the following command. */
	(void)sst_mbox_mailbox(d, at, MBOX_WRITE_PM, MBOX_PM_FEATURE, 0, on ? PM_CP : 0u, NULL);
	return sst_mbox_mailbox(d, at, MBOX_CLOS, MBOX_CLOS_QOS, MBOX_PARAMETER_WRITE, qos, NULL);
}

static int set_tf(const struct sst_device *d, const struct sst_place *at, bool on)
{
	uint32_t level, control = 0;
	int r = get_level(d, at, &level);
	if (!r)
		r = sst_mbox_mailbox(d, at, MBOX_TDP, MBOX_TDP_GET_CONTROL, 0, level, &control);
	if (r)
		return r;
	/* Leave BF unchanged. */
	control = (control & CONTROL_BF) | (on ? CONTROL_TF : 0u);
	return sst_mbox_mailbox(d, at, MBOX_TDP, MBOX_TDP_SET_CONTROL, 0, control, NULL);
}

const struct sst_ops sst_mbox_ops = {
	.locate = locate,
	.check = check,
	.state = state,
	.buckets = buckets,
	.bf_cores = bf_cores,
	.get_clos = get_clos,
	.set_clos = set_clos,
	.get_assoc = get_assoc,
	.set_assoc = set_assoc,
	.set_cp = set_cp,
	.set_tf = set_tf,
};
