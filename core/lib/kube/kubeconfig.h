/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API server is, and as whom to talk to it: from a kubeconfig file, or from what
 * Kubernetes puts into a container. What needs a program to be run (exec plug-ins, auth providers)
 * is refused: the agent starts none.
 */
#ifndef KUBE_KUBECONFIG_H
#define KUBE_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/err.h"

#define KUBECONFIG_MAX (1u << 20) /* bytes of the file */
#define KUBECONFIG_PEM_MAX (256u << 10) /* bytes of a certificate or key that is written in it */
#define KUBECONFIG_TOKEN_MAX (64u << 10) /* bytes of a token */
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* A PEM text: in a file, or here. Neither: NULL and NULL. */
struct kube_pem {
	char *file;
	char *data;
	size_t len;
};

/* All of it owned; NULL where nothing is said. */
struct kubeconfig {
	char *server; /* "https://10.0.0.1:6443", without a slash at the end */
	char *ns; /* of the service account or the context */
	struct kube_pem ca, cert, key;
	char *token, *token_file; /* the file is read for each request: it changes */
	char *user, *password;
	char *proxy;
	bool insecure; /* the server's certificate is not checked */
};

/* `context` NULL: the file's current one. -EINVAL: it cannot be used, with the place and the
 * reason. */
int kubeconfig_read(const char *path, const char *context, struct kubeconfig *ret, struct err *err);
/* The same of a text; `name` is that of its file, which paths in it are relative to. */
int kubeconfig_parse(const char *name, const char *text, size_t len, const char *context,
		     struct kubeconfig *ret, struct err *err);
/* Is this a container that Kubernetes has told where its API server is? */
bool kubeconfig_is_in_cluster(void);
/* From KUBERNETES_SERVICE_HOST and _PORT and the files ca.crt, namespace and token of dir. */
int kubeconfig_in_cluster(const char *dir, struct kubeconfig *ret, struct err *err);
void kubeconfig_fini(struct kubeconfig *k);

/*
 * The token to send now, malloc'd; *ret NULL: there is none. -EINVAL: the file holds none that can
 * be sent; another: it cannot be read.
 */
int kubeconfig_token(const struct kubeconfig *k, char **ret, struct err *err);
/* A file of at most max bytes, malloc'd and NUL-terminated. */
int kube_read_file(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err);

#endif
