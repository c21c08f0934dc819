/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address of the API server and credentials, from a kubeconfig file or from what Kubernetes puts
 * into a container. Credentials that need another program (exec plug-ins, auth providers) are
 * refused, because the agent starts no programs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/err.h"

#define KUBECONFIG_MAX (1u << 20) /* largest size of a kubeconfig file, in bytes */
/* largest size of a certificate or key within the file, in bytes */
#define KUBECONFIG_PEM_MAX (256u << 10)
#define KUBECONFIG_TOKEN_MAX (64u << 10) /* largest size of a token, in bytes */
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* A PEM text, in a file or in memory; neither: NULL and NULL. */
struct kube_pem {
	char *file;
	char *data;
	size_t len;
};

/* A configuration. All texts are owned; NULL: not stated. */
struct kubeconfig {
	char *server; /* "https://10.0.0.1:6443", without a slash at the end */
	char *ns; /* namespace of the service account or the context */
	struct kube_pem ca, cert, key;
	char *token, *token_file; /* the file is read for each request, because it changes */
	char *user, *password;
	char *proxy;
	bool insecure; /* do not check the server's certificate */
};

/* Reads a file. `context` NULL: the file's current one. -EINVAL: not usable, with the place and the
 * reason. */
int kubeconfig_read(const char *path, const char *context, struct kubeconfig *ret, struct err *err);
/* Parses a text. `name` is the path of its file; relative paths in the text begin at that file's
 * folder. */
int kubeconfig_parse(const char *name, const char *text, size_t len, const char *context,
		     struct kubeconfig *ret, struct err *err);
/* Returns true in a container to which Kubernetes has passed the API server's address. */
bool kubeconfig_is_in_cluster(void);
/* Reads KUBERNETES_SERVICE_HOST and _PORT and the files ca.crt, namespace and token of dir. */
int kubeconfig_in_cluster(const char *dir, struct kubeconfig *ret, struct err *err);
void kubeconfig_fini(struct kubeconfig *k);
