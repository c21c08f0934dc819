/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE_NAMESPACE_FILE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
#define SERVICE_NAMESPACE "nri-rp"
#define SERVICE_NAME_MAX 254u

/* Replacements of commands, longer ones before their prefixes. %n is the namespace, %p the pod. */
static const char *const service_commands[][2] = {
	{"systemctl status nri-rpd, journalctl -u nri-rpd", "kubectl -n %n logs %p -c nri-rpd"},
	{"systemctl status nri-rp-agent", "kubectl -n %n logs %p -c nri-rp-agent"},
	{"systemctl status nri-rpd", "kubectl -n %n logs %p -c nri-rpd"},
	{"systemctl restart nri-rpd", "kubectl -n %n delete pod %p"},
	{"systemctl start nri-rpd", "kubectl -n %n describe pod %p"},
	{"systemctl reload nri-rpd", "nri-rpctl reload"},
};
#define N_COMMANDS (sizeof service_commands / sizeof service_commands[0])

struct service_place {
	char ns[SERVICE_NAME_MAX], pod[SERVICE_NAME_MAX];
};

/* Reads namespace and name of this pod. The host name of a pod is its name, except for pods in the
 * host's network. */
static void service_read_place(struct service_place *place)
{
	FILE *f = fopen(SERVICE_NAMESPACE_FILE, "re");
	(void)snprintf(place->ns, sizeof place->ns, "%s", SERVICE_NAMESPACE);
	if (f) {
		if (!fgets(place->ns, sizeof place->ns, f) || !*place->ns)
			(void)snprintf(place->ns, sizeof place->ns, "%s", SERVICE_NAMESPACE);
		(void)fclose(f);
	}
	place->ns[strcspn(place->ns, "\n")] = 0;
	if (gethostname(place->pod, sizeof place->pod))
		(void)snprintf(place->pod, sizeof place->pod, "POD");
	place->pod[sizeof place->pod - 1] = 0;
}

static size_t service_append(char *ret, size_t size, size_t at, const char *text, size_t n)
{
	const size_t room = size - 1 - at;
	n = n < room ? n : room;
	memcpy(ret + at, text, n);
	ret[at + n] = 0;
	return at + n;
}

static size_t service_put_command(const char *command, const struct service_place *place, char *ret,
				  size_t size, size_t at)
{
	for (; *command; command++) {
		const char *name = NULL;
		if (*command == '%')
			name = command[1] == 'n' ? place->ns : place->pod;
		at = service_append(ret, size, at, name ? name : command, name ? strlen(name) : 1);
		command += name != NULL;
	}
	return at;
}

const char *service_text(const char *text, char *ret, size_t size)
{
	struct service_place place = {0};
	size_t at = 0;
	if (!text)
		return NULL;
	*ret = 0;
	if (!getenv("KUBERNETES_SERVICE_HOST")) {
		(void)snprintf(ret, size, "%s", text);
		return ret;
	}
	service_read_place(&place);
	while (*text) {
		size_t i = 0;
		while (i < N_COMMANDS &&
		       strncmp(text, service_commands[i][0], strlen(service_commands[i][0])) != 0)
			i++;
		if (i < N_COMMANDS)
			at = service_put_command(service_commands[i][1], &place, ret, size, at);
		else
			at = service_append(ret, size, at, text, 1);
		text += i < N_COMMANDS ? strlen(service_commands[i][0]) : 1;
	}
	return ret;
}
