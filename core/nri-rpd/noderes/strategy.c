/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/conf/fragment.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define MILLION 1000000

/* LENIENT_WORD: unknown words are treated as the first one. */
enum type { BOOL, INTEGER, RATIO, WORD, LENIENT_WORD };

static const struct field {
	const char *name;
	enum type type;
	int64_t min, max, fallback;
	/* for a WORD: the words, in the order of their values; for a LENIENT_WORD too */
	const char *words;
} fields[RP_NR_FIELDS] = {
	[RP_NR_ENABLE] = {"enable", BOOL, 0, 1, 0, NULL},
	[RP_NR_AGGREGATE_SECONDS] = {"metricAggregateDurationSeconds", INTEGER, 1, INT32_MAX, 300,
				     NULL},
	[RP_NR_REPORT_SECONDS] = {"metricReportIntervalSeconds", INTEGER, 1, INT32_MAX, 60, NULL},
	[RP_NR_MEMORY_COLLECT] = {"metricMemoryCollectPolicy", WORD, 0, 2, 0,
				  "usageWithoutPageCache|usageWithHotPageCache|usageWithPageCache"},
	[RP_NR_CPU_RECLAIM_PERCENT] = {"cpuReclaimThresholdPercent", INTEGER, 0, INT32_MAX, 60,
				       NULL},
	[RP_NR_CPU_POLICY] = {"cpuCalculatePolicy", LENIENT_WORD, 0, 2, 0,
			      "usage||maxUsageRequest"},
	[RP_NR_MEMORY_RECLAIM_PERCENT] = {"memoryReclaimThresholdPercent", INTEGER, 0, INT32_MAX,
					  65, NULL},
	[RP_NR_MEMORY_POLICY] = {"memoryCalculatePolicy", WORD, 0, 2, 0,
				 "usage|request|maxUsageRequest"},
	[RP_NR_DEGRADE_MINUTES] = {"degradeTimeMinutes", INTEGER, 1, INT32_MAX, 15, NULL},
	[RP_NR_UPDATE_SECONDS] = {"updateTimeThresholdSeconds", INTEGER, 1, INT32_MAX, 300, NULL},
	[RP_NR_DIFF_THRESHOLD] = {"resourceDiffThreshold", RATIO, 1, MILLION, MILLION / 10, NULL},
	[RP_NR_MID_MODE] = {"midReclaimMode", WORD, 0, 1, 0, "|static"},
	[RP_NR_MID_CPU_PERCENT] = {"midCPUThresholdPercent", INTEGER, 0, 100, 100, NULL},
	[RP_NR_MID_MEMORY_PERCENT] = {"midMemoryThresholdPercent", INTEGER, 0, 100, 100, NULL},
	[RP_NR_MID_UNALLOCATED_PERCENT] = {"midUnallocatedPercent", INTEGER, 0, 100, 0, NULL},
	[RP_NR_MID_STATIC_CPU_PERCENT] = {"midStaticCPUReservedPercent", INTEGER, 0, 100, 0, NULL},
	[RP_NR_MID_STATIC_MEMORY_PERCENT] = {"midStaticMemoryReservedPercent", INTEGER, 0, 100, 0,
					     NULL},
	[RP_NR_BATCH_CPU_PERCENT] = {"batchCPUThresholdPercent", INTEGER, 0, INT32_MAX, RP_NOT_SET,
				     NULL},
	[RP_NR_BATCH_MEMORY_PERCENT] = {"batchMemoryThresholdPercent", INTEGER, 0, INT32_MAX,
					RP_NOT_SET, NULL},
};

static const int64_t durations_ms[] = {5 * 60000, 10 * 60000, 30 * 60000};

const char *strategy_field_name(uint32_t field)
{
	return field < RP_NR_FIELDS ? fields[field].name : "?";
}

void strategy_default(struct strategy *s, uint32_t field)
{
	s->values[field] = fields[field].fallback;
	s->origins[field] = STRATEGY_DEFAULT;
}

void strategy_defaults(struct strategy *s)
{
	for (uint32_t i = 0; i < RP_NR_FIELDS; i++)
		strategy_default(s, i);
	s->n_durations = sizeof durations_ms / sizeof *durations_ms;
	memcpy(s->durations_ms, durations_ms, sizeof durations_ms);
	s->durations_origin = STRATEGY_DEFAULT;
}

/* Returns the number of a word in "a|b|c"; 0 for an empty text, which stands for the default; -1:
 * none of the words. */
static int64_t word_of(const char *words, const char *text)
{
	size_t len = strlen(text);
	int64_t n = 0;
	for (const char *w = words; *text && w; n++) {
		const char *end = strchr(w, '|');
		size_t n_w = end ? (size_t)(end - w) : strlen(w);
		if (n_w == len && memcmp(w, text, len) == 0)
			return n;
		w = end ? end + 1 : NULL;
	}
	return *text ? -1 : 0;
}

static int refuse_word(const struct field *f, const char *text, struct err *err)
{
	const char *first = f->words + (*f->words == '|');
	return err_set(err, -EINVAL, "%s: \"%s\": expected %s", f->name, text, first);
}

static int read_field(const struct field *f, rp_cfg node, int64_t *ret, struct err *err)
{
	const char *text = conf_text(node, "");
	double ratio;
	if (conf_kind(node) != RP_NODE_SCALAR)
		return err_set(err, -EINVAL, "%s: expected a value", f->name);
	switch (f->type) {
	case BOOL:
		*ret = conf_value(node, RP_T_BOOL, -1);
		break;
	case INTEGER:
		*ret = conf_value(node, RP_T_INT, INT64_MIN);
		break;
	case RATIO:
		ratio = conf_number(node, 0);
		*ret = ratio > 0 && ratio <= 1 ? (int64_t)llround(ratio * MILLION) : 0;
		break;
	case WORD:
		*ret = word_of(f->words, text);
		if (*ret < 0)
			return refuse_word(f, text, err);
		break;
	default:
		*ret = word_of(f->words, text);
		*ret = *ret < 0 ? 0 : *ret;
	}
	if (*ret < f->min || *ret > f->max)
		return err_set(err, -EINVAL, "%s: %s is out of range", f->name, text);
	return 0;
}

static int read_durations(struct strategy *s, rp_cfg list, struct err *err)
{
	if (conf_kind(list) != RP_NODE_LIST || conf_count(list) > AGGREGATES_MAX)
		return err_set(err, -EINVAL, STRATEGY_DURATIONS ": expected a list of at most %u",
			       AGGREGATES_MAX);
	s->n_durations = conf_count(list);
	for (uint32_t i = 0; i < s->n_durations; i++) {
		s->durations_ms[i] = conf_value(conf_item(list, i), RP_T_DURATION, -1);
		if (s->durations_ms[i] < 1000 || s->durations_ms[i] > AGGREGATE_MAX_MS)
			return err_set(err, -EINVAL,
				       STRATEGY_DURATIONS
				       ": \"%s\": expected durations from 1s to 30m",
				       conf_text(conf_item(list, i), "?"));
	}
	return 0;
}

int strategy_merge(struct strategy *s, rp_cfg map, enum strategy_origin origin, struct err *err)
{
	struct strategy next = *s;
	for (uint32_t i = 0; i < RP_NR_FIELDS; i++) {
		rp_cfg node = conf_get(map, fields[i].name);
		if (!node || conf_kind(node) == RP_NODE_NULL)
			continue;
		int r = read_field(&fields[i], node, &next.values[i], err);
		if (r)
			return r;
		next.origins[i] = origin;
	}
	rp_cfg durations = conf_get(map, STRATEGY_DURATIONS);
	if (durations && conf_kind(durations) != RP_NODE_NULL) {
		int r = read_durations(&next, durations, err);
		if (r)
			return r;
		next.durations_origin = origin;
	}
	*s = next;
	return 0;
}

/* Returns 70 for "0.7"; digits beyond a percent are cut. -1: no valid number. */
static int64_t percent_of(const char *text)
{
	char *end;
	errno = 0;
	if (!*text || text[strspn(text, "0123456789.")])
		return -1;
	unsigned long whole = strtoul(text, &end, 10);
	if (errno || whole > INT32_MAX / 100)
		return -1;
	int64_t percent = (int64_t)whole * 100;
	if (!*end)
		return percent;
	if (*end != '.' || strchr(end + 1, '.') || (end == text && !end[1]))
		return -1;
	if (end[1])
		percent += 10 * (int64_t)(end[1] - '0');
	if (end[1] && end[2])
		percent += end[2] - '0';
	return percent;
}

static void take_ratios(struct strategy *s, const struct prefixes *names, const struct kv *labels,
			unsigned n_labels)
{
	static const struct {
		const char *key;
		uint32_t field;
	} rows[] = {
		{"node.koordinator.sh/cpu-reclaim-ratio", RP_NR_CPU_RECLAIM_PERCENT},
		{"node.koordinator.sh/memory-reclaim-ratio", RP_NR_MEMORY_RECLAIM_PERCENT},
		{"node.koordinator.sh/mid-static-cpu-reserved-ratio", RP_NR_MID_STATIC_CPU_PERCENT},
		{"node.koordinator.sh/mid-static-memory-reserved-ratio",
		 RP_NR_MID_STATIC_MEMORY_PERCENT},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct site_name name;
		const char *text = kv_text(labels, n_labels, site_name(names, rows[i].key, &name));
		int64_t percent = text ? percent_of(text) : -1;
		if (percent < 0 || percent > fields[rows[i].field].max)
			continue;
		s->values[rows[i].field] = percent;
		s->origins[rows[i].field] = STRATEGY_NODE_LABEL;
	}
}

void strategy_of_node(struct strategy *s, const struct prefixes *names, const struct kv *labels,
		      unsigned n_labels, const struct kv *annotations, unsigned n_annotations)
{
	struct err err = ERR_INIT;
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	struct site_name name;
	const char *text =
		kv_text(annotations, n_annotations, site_name(names, STRATEGY_ANNOTATION, &name));
	if (text && fragment_parse(text, &f, &root, &err) == 0)
		(void)strategy_merge(s, root, STRATEGY_NODE_ANNOTATION, &err);
	fragment_free(f);
	take_ratios(s, names, labels, n_labels);
}

bool strategy_selects(rp_cfg match_labels, const struct kv *labels, unsigned n_labels)
{
	uint32_t n = conf_count(match_labels);
	for (uint32_t i = 0; i < n; i++) {
		const char *has = kv_text(labels, n_labels, conf_key(match_labels, i));
		if (!has || !str_eq(has, conf_text(conf_item(match_labels, i), "")))
			return false;
	}
	return n > 0;
}
