/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of doctor that need no daemon, above all why no daemon is running. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/conf/conf.h"
#include "core/nri-rpctl/cli.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/runc.h"
#include "core/lib/util/service.h"
#include "core/lib/util/str.h"

#define HINT_MAX 1024u
#define NRI_SOCKET "/var/run/nri/nri.sock"

__attribute__((format(printf, 5, 6))) static void local_doctor_finding(json_t *list,
								       const char *check,
								       const char *verdict,
								       const char *hint,
								       const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	_free_ char *text = str_vprintf(fmt, ap);
	va_end(ap);
	char here[HINT_MAX];
	(void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s?}", "check", check,
						    "verdict", verdict, "text", text ? text : "?",
						    "hint", service_text(hint, here, sizeof here)));
}

static void look_at_socket(json_t *list, const char *path)
{
	_free_ char *copy = strdup(path);
	const char *folder = copy ? dirname(copy) : "?";
	struct stat st;
	if (stat(folder, &st) < 0) {
		local_doctor_finding(list, "control socket", "error", "systemctl start nri-rpd",
				     "the folder %s of the control socket: %s", folder,
				     strerror(errno));
		return;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
		local_doctor_finding(list, "control socket", "warning",
				     "chmod go-w, so that only root can write it",
				     "%s is writable by other users (mode %04o)", folder,
				     st.st_mode & 07777u);
	if (lstat(path, &st) < 0)
		local_doctor_finding(list, "control socket", "error",
				     "systemctl start nri-rpd; for another path: nri-rpctl "
				     "--socket PATH, or NRI_RP_SOCKET",
				     "%s: %s", path, strerror(errno));
	else if (!S_ISSOCK(st.st_mode))
		local_doctor_finding(list, "control socket", "error",
				     "remove it and restart nri-rpd", "%s is not a socket", path);
	else
		local_doctor_finding(
			list, "control socket", "error",
			"the daemon died: systemctl status nri-rpd, journalctl -u nri-rpd",
			"%s exists, but no process listens on it", path);
}

static void look_at_nri(json_t *list)
{
	struct stat st;
	if (stat(NRI_SOCKET, &st) == 0)
		local_doctor_finding(list, "runtime", "ok", NULL,
				     "the runtime offers NRI at " NRI_SOCKET);
	else
		local_doctor_finding(
			list, "runtime", "warning",
			"containerd: [plugins.\"io.containerd.nri.v1.nri\"] disable = false; "
			"CRI-O: [crio.nri] "
			"enable_nri = true; then restart the runtime; a runtime without NRI: "
			"nri-rp-bridge(8)",
			NRI_SOCKET ": %s", strerror(errno));
}

static void look_at_config(json_t *list, const char *path)
{
	_free_ struct conf_errors *errs = malloc(sizeof *errs);
	struct conf *conf = NULL;
	if (!errs)
		return;
	conf_errors_init(errs);
	int r = conf_load(path, NULL, &conf, errs);
	conf_free(conf);
	if (r == 0)
		local_doctor_finding(list, "configuration", "ok", NULL, "%s can be read", path);
	else
		local_doctor_finding(list, "configuration", "error", "nri-rpctl config check", "%s",
				     errs->n_items ? errs->items[0].text : strerror(-r));
}

/* Paths at which packages and runtimes install runc. */
static const char *const runc_paths[] = {
	"/usr/sbin/runc",      "/usr/bin/runc",		 "/usr/local/sbin/runc",
	"/usr/local/bin/runc", "/usr/libexec/crio/runc", "/usr/lib/cri-o-runc/sbin/runc",
};

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Returns true if an earlier path is the same file. */
static bool seen_before(size_t p)
{
	for (size_t i = 0; i < p; i++)
		if (same_file(runc_paths[i], runc_paths[p]))
			return true;
	return false;
}

static bool is_systemd(const json_t *findings)
{
	const json_t *f;
	size_t i;
	json_array_foreach(findings, i, f)
	{
		if (str_eq(js(f, "check"), "cgroup") && strstr(js(f, "text"), "driver systemd"))
			return true;
	}
	return false;
}

static void look_at_runc(json_t *list, const char *path, bool many_cpus)
{
	struct runc_version v;
	if (runc_version_of(path, &v) || !runc_swaps_bytes(&v))
		return;
	local_doctor_finding(
		list, "runc", many_cpus ? "warning" : "note",
		"update runc to 1.1.6 or later, or check whether the runtime uses another runc",
		"%s is version %u.%u.%u: with the systemd driver it reverses the bytes of CPU "
		"sets%s",
		path, v.major, v.minor, v.patch,
		many_cpus ? "; a reload of systemd moves containers to wrong CPUs"
			  : ", which is harmless on up to 8 CPUs");
}

void local_runc_findings(json_t *list, const json_t *findings)
{
	bool many_cpus = sysconf(_SC_NPROCESSORS_CONF) > 8;
	for (size_t i = 0; i < sizeof runc_paths / sizeof *runc_paths && is_systemd(findings); i++)
		if (!seen_before(i))
			look_at_runc(list, runc_paths[i], many_cpus);
}

json_t *local_findings(const struct cli *cli, int link_error, const struct err *err)
{
	json_t *list = json_array();
	if (!list)
		return NULL;
	if (!link_error) {
		local_doctor_finding(list, "daemon", "ok", NULL, "nri-rpd answers at %s",
				     cli->socket);
		return list;
	}
	if (link_error == -EACCES || link_error == -EPERM) {
		local_doctor_finding(list, "daemon", "error", "run it as root", "%s",
				     err_text(err, link_error));
		return list;
	}
	local_doctor_finding(list, "daemon", "error",
			     "systemctl status nri-rpd, journalctl -u nri-rpd",
			     "nri-rpd does not answer: %s", err_text(err, link_error));
	look_at_socket(list, cli->socket);
	look_at_config(list, cli->config ? cli->config : CONF_DEFAULT_PATH);
	look_at_nri(list);
	return list;
}
