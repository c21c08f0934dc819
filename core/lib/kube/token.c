/* SPDX-License-Identifier: Apache-2.0 */
/* Returns the bearer token, which is read from its file for each request. */
#include "core/lib/kube/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/cleanup.h"

int kube_read_file(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
{
	*ret = NULL;
	*ret_len = 0;
	_fclose_ FILE *f = fopen(path, "re");
	if (!f)
		return err_errno(err, errno ? -errno : -EIO, "%s", path);
	_free_ char *text = malloc(max + 2);
	if (!text)
		return err_errno(err, -ENOMEM, "%s", path);
	size_t n = fread(text, 1, max + 1, f);
	if (ferror(f))
		return err_errno(err, -EIO, "%s", path);
	if (n > max)
		return err_set(err, -EFBIG, "%s: more than %zu bytes", path, max);
	text[n] = '\0';
	*ret = TAKE(text);
	*ret_len = n;
	return 0;
}

int kubeconfig_token(const struct kubeconfig *k, char **ret, struct err *err)
{
	size_t len;
	_free_ char *token = NULL;
	*ret = NULL;
	if (!k->token_file && !k->token)
		return 0;
	int r = 0;
	if (k->token_file)
		r = kube_read_file(k->token_file, KUBECONFIG_TOKEN_MAX, &token, &len, err);
	else
		token = strdup(k->token);
	if (r || !token)
		return r ? r : err_errno(err, -ENOMEM, "token");
	token[strcspn(token, "\r\n")] = '\0';
	for (const char *c = token; *c || c == token; c++)
		if (*c <= ' ' || *c > '~')
			return err_set(err, -EINVAL, "%s: contains no token",
				       k->token_file ? k->token_file : "token of the kubeconfig");
	*ret = TAKE(token);
	return 0;
}
