/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/facts.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/conf/fragment.h"
#include "core/lib/util/cleanup.h"

#define CPUINFO_READ 4096u /* bytes; enough for the first CPU */

/* Finds the value of a line "model name : VALUE". */
static bool find_model(const char *text, char *ret, size_t size)
{
	static const char key[] = "model name";
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, sizeof key - 1) != 0)
			continue;
		const char *at = line + sizeof key - 1;
		at += strspn(at, " \t");
		if (*at++ != ':')
			continue;
		at += strspn(at, " \t");
		size_t len = strcspn(at, "\n");
		if (!len || len >= size)
			return false;
		memcpy(ret, at, len);
		ret[len] = '\0';
		return true;
	}
	return false;
}

static bool read_model(const struct fs_root *root, char *ret, size_t size)
{
	char text[CPUINFO_READ + 1];
	_close_ int fd = fs_open(root, "proc/cpuinfo", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, CPUINFO_READ);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return find_model(text, ret, size);
}

static bool is_one(const struct fs_root *root, const char *path, bool otherwise)
{
	int64_t v;
	return fs_read_i64(root, path, &v) == 0 ? v == 1 : otherwise;
}

void cpu_facts_read(const struct fs_root *root, struct cpu_facts *ret)
{
	*ret = (struct cpu_facts){0};
	ret->known = read_model(root, ret->model, sizeof ret->model);
	ret->hyper_threads = is_one(root, "sys/devices/system/cpu/smt/active", false);
	ret->turbo = fs_exists(root, "sys/devices/system/cpu/intel_pstate/no_turbo")
			     ? !is_one(root, "sys/devices/system/cpu/intel_pstate/no_turbo", true)
			     : is_one(root, "sys/devices/system/cpu/cpufreq/boost", false);
}

void cpu_facts_parse(const char *text, struct cpu_facts *ret)
{
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	*ret = (struct cpu_facts){0};
	if (fragment_parse(text, &f, &root, NULL))
		return;
	const char *model = conf_text(conf_get(root, "cpuModel"), "");
	size_t len = strlen(model);
	ret->known = len && len < sizeof ret->model;
	if (ret->known)
		memcpy(ret->model, model, len + 1);
	ret->hyper_threads = conf_value(conf_get(root, "hyperThreadEnabled"), RP_T_BOOL, 0) == 1;
	ret->turbo = conf_value(conf_get(root, "turboEnabled"), RP_T_BOOL, 0) == 1;
	fragment_free(f);
}
