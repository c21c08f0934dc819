/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/kube/kubeconfig.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/conf/documents.h"
#include "core/lib/kube/token.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

/* ---- files and texts ------------------------------------------------------------------------- */

static int base64_digit(unsigned char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* Decodes base64 and skips white space. NULL: invalid, or no memory. */
static char *base64_decode(const char *text, size_t *ret_len)
{
	char *data = malloc(strlen(text) / 4 * 3 + 4);
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t n = 0;
	for (; data && *text && *text != '='; text++) {
		int digit = base64_digit((unsigned char)*text);
		if (digit < 0 && strchr(" \t\r\n", *text))
			continue;
		if (digit < 0)
			break;
		bits = bits << 6 | (uint32_t)digit;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			data[n++] = (char)(bits >> n_bits & 0xff);
		}
	}
	if (!data || text[strspn(text, "= \t\r\n")]) {
		free(data);
		return NULL;
	}
	data[n] = '\0';
	*ret_len = n;
	return data;
}

/* ---- parts of a kubeconfig ------------------------------------------------------------------- */

struct reading {
	const char *name; /* name of the file */
	struct kubeconfig *k;
	struct err *err;
};

static int take_text(const struct reading *r, rp_cfg map, const char *key, char **ret)
{
	const char *text = conf_text(conf_get(map, key), NULL);
	if (!text || !*text)
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : err_errno(r->err, -ENOMEM, "%s", r->name);
}

/* Takes a path, which is relative to the folder of the kubeconfig file. */
static int take_path(const struct reading *r, rp_cfg map, const char *key, char **ret)
{
	char dir[4096];
	const char *path = conf_text(conf_get(map, key), NULL);
	if (!path || !*path)
		return 0;
	fs_parent(r->name, dir, sizeof dir);
	*ret = path[0] == '/' ? strdup(path) : str_printf("%s/%s", dir, path);
	return *ret ? 0 : err_errno(r->err, -ENOMEM, "%s", r->name);
}

/* Takes the PEM text KEY-data, or else the file that KEY names. */
static int take_pem(const struct reading *r, rp_cfg map, const char *key, struct kube_pem *ret)
{
	char data_key[64], place[CONF_PLACE_MAX];
	(void)snprintf(data_key, sizeof data_key, "%s-data", key);
	rp_cfg data = conf_get(map, data_key);
	const char *text = conf_text(data, NULL);
	if (!text || !*text)
		return take_path(r, map, key, &ret->file);
	if (strlen(text) > KUBECONFIG_PEM_MAX)
		return err_set(r->err, -EINVAL, "%s: more than %u bytes",
			       conf_place(data, place, sizeof place), KUBECONFIG_PEM_MAX);
	ret->data = base64_decode(text, &ret->len);
	if (!ret->data || !ret->len)
		return err_set(r->err, -EINVAL, "%s: expected a certificate or key in base64",
			       conf_place(data, place, sizeof place));
	return 0;
}

static int kubeconfig_refuse(const struct reading *r, rp_cfg map, const char *key, const char *why)
{
	char place[CONF_PLACE_MAX];
	rp_cfg node = conf_get(map, key);
	const char *text = conf_text(node, NULL);
	if (!node || conf_kind(node) == RP_NODE_NULL || (text && !*text))
		return 0;
	return err_set(r->err, -EINVAL, "%s: %s", conf_place(node, place, sizeof place), why);
}

static int take_server(const struct reading *r, rp_cfg cluster)
{
	char place[CONF_PLACE_MAX];
	rp_cfg node = conf_get(cluster, "server");
	const char *server = conf_text(node, "");
	size_t len = strlen(server);
	if (!str_has_prefix(server, "https://") && !str_has_prefix(server, "http://"))
		return err_set(r->err, -EINVAL,
			       "%s: expected the server's address, as https://HOST:PORT",
			       conf_place(node ? node : cluster, place, sizeof place));
	while (server[len - 1] == '/')
		len--;
	r->k->server = strndup(server, len);
	return r->k->server ? 0 : err_errno(r->err, -ENOMEM, "%s", r->name);
}

static int take_cluster(const struct reading *r, rp_cfg cluster)
{
	int e = kubeconfig_refuse(r, cluster, "tls-server-name",
				  "tls-server-name is not supported; use a server address that the "
				  "certificate contains");
	r->k->insecure = conf_value(conf_get(cluster, "insecure-skip-tls-verify"), RP_T_BOOL, 0);
	e = e ? e : take_server(r, cluster);
	e = e ? e : take_pem(r, cluster, "certificate-authority", &r->k->ca);
	return e ? e : take_text(r, cluster, "proxy-url", &r->k->proxy);
}

static int take_user(const struct reading *r, rp_cfg user)
{
	int e = kubeconfig_refuse(
		r, user, "exec",
		"exec plug-ins are not run by nri-rp-agent; give it a token file, a token, "
		"or a certificate and key");
	e = e ? e
	      : kubeconfig_refuse(r, user, "auth-provider",
				  "authentication providers are not supported; give a token file, "
				  "a token, or "
				  "a certificate and key");
	e = e ? e : take_pem(r, user, "client-certificate", &r->k->cert);
	e = e ? e : take_pem(r, user, "client-key", &r->k->key);
	e = e ? e : take_path(r, user, "tokenFile", &r->k->token_file);
	e = e ? e : take_text(r, user, "token", &r->k->token);
	e = e ? e : take_text(r, user, "username", &r->k->user);
	return e ? e : take_text(r, user, "password", &r->k->password);
}

/* Returns the member `what` of the item of `list` with that name. NULL with err. */
static rp_cfg find_named(const struct reading *r, rp_cfg root, const char *list, const char *what,
			 const char *name)
{
	rp_cfg items = conf_get(root, list);
	for (uint32_t i = 0; i < conf_count(items); i++) {
		rp_cfg item = conf_item(items, i), found = conf_get(item, what);
		if (str_eq(conf_text(conf_get(item, "name"), ""), name) && found &&
		    conf_kind(found) == RP_NODE_MAP)
			return found;
	}
	(void)err_set(r->err, -EINVAL, "%s: no %s \"%.100s\" in %s", r->name, what, name, list);
	return NULL;
}

static int take_context(const struct reading *r, rp_cfg root, const char *name)
{
	if (!name)
		name = conf_text(conf_get(root, "current-context"), "");
	if (!*name)
		return err_set(r->err, -EINVAL,
			       "%s: no current-context; name a context with --context", r->name);
	rp_cfg context = find_named(r, root, "contexts", "context", name);
	if (!context)
		return -EINVAL;
	rp_cfg cluster = find_named(r, root, "clusters", "cluster",
				    conf_text(conf_get(context, "cluster"), ""));
	int e = cluster ? take_cluster(r, cluster) : -EINVAL;
	const char *user = conf_text(conf_get(context, "user"), "");
	rp_cfg found = !e && *user ? find_named(r, root, "users", "user", user) : NULL;
	if (!e && *user)
		e = found ? take_user(r, found) : -EINVAL;
	return e ? e : take_text(r, context, "namespace", &r->k->ns);
}

int kubeconfig_parse(const char *name, const char *text, size_t len, const char *context,
		     struct kubeconfig *ret, struct err *err)
{
	struct documents docs;
	struct kubeconfig k = {0};
	const struct reading r = {name, &k, err};
	int e = documents_parse(name, text, len, &docs, err);
	if (e)
		return e;
	e = docs.n_roots == 1 ? take_context(&r, docs.roots[0], context)
			      : err_set(err, -EINVAL, "%s: expected one YAML document", name);
	documents_fini(&docs);
	if (e)
		kubeconfig_fini(&k);
	else
		*ret = k;
	return e;
}

int kubeconfig_read(const char *path, const char *context, struct kubeconfig *ret, struct err *err)
{
	_free_ char *text = NULL;
	size_t len;
	int r = kube_read_file(path, KUBECONFIG_MAX, &text, &len, err);
	return r ? r : kubeconfig_parse(path, text, len, context, ret, err);
}

/* ---- in a cluster ---------------------------------------------------------------------------- */

bool kubeconfig_is_in_cluster(void)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	return host && *host;
}

int kubeconfig_in_cluster(const char *dir, struct kubeconfig *ret, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	struct err ignored = ERR_INIT;
	size_t len;
	if (!host || !*host)
		return err_set(err, -EINVAL,
			       "KUBERNETES_SERVICE_HOST is not set, so this is not a container of "
			       "Kubernetes; use --kubeconfig");
	bool v6 = strchr(host, ':') != NULL;
	_free_ char *ns_file = str_printf("%s/namespace", dir);
	struct kubeconfig k = {
		.server = str_printf(v6 ? "https://[%s]:%s" : "https://%s:%s", host,
				     port && *port ? port : "443"),
		.ca.file = str_printf("%s/ca.crt", dir),
		.token_file = str_printf("%s/token", dir),
	};
	if (!ns_file || !k.server || !k.ca.file || !k.token_file) {
		kubeconfig_fini(&k);
		return err_errno(err, -ENOMEM, "service account");
	}
	if (kube_read_file(ns_file, KUBECONFIG_TOKEN_MAX, &k.ns, &len, &ignored) == 0 && k.ns)
		k.ns[strcspn(k.ns, " \t\r\n")] = '\0';
	*ret = k;
	return 0;
}

static void pem_fini(struct kube_pem *pem)
{
	free(pem->file);
	if (pem->data)
		explicit_bzero(pem->data, pem->len);
	free(pem->data);
}

static void secret_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void kubeconfig_fini(struct kubeconfig *k)
{
	free(k->server);
	free(k->ns);
	pem_fini(&k->ca);
	pem_fini(&k->cert);
	pem_fini(&k->key);
	secret_free(k->token);
	free(k->token_file);
	free(k->user);
	secret_free(k->password);
	free(k->proxy);
	*k = (struct kubeconfig){0};
}
