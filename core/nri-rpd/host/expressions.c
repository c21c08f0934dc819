/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the matcher of modules/lib on an instance that has no module. */
#include "core/nri-rpd/host/expressions.h"

#include <stdlib.h>

#include "core/nri-rpd/host/service/services.h"
#include "modules/lib/private/match.h"

struct expressions {
	struct instance self; /* filled as far as services use it */
	struct modhost h;
	struct blocks memory;
	struct exprs exprs;
};

int expressions_read(struct host_env *env, rp_cfg list, struct expressions **ret, struct err *err)
{
	static struct module core = {.name = "nri-rpd"};
	struct expressions *e = calloc(1, sizeof *e);
	if (!e)
		return err_errno(err, -ENOMEM, "expressions");
	e->self.env = env;
	e->self.module = &core;
	instance_fill_host(&e->self);
	int r = modhost_init(&e->h, &e->self.host, MODHOST_CACHE | MODHOST_CONFIG);
	if (!r)
		r = match_read(&e->h, &e->memory, list, "containers", &e->exprs);
	if (r) {
		(void)err_set(err, r, "%s", e->self.failed.text);
		expressions_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

struct expressions *expressions_free(struct expressions *e)
{
	if (e)
		blocks_fini(&e->memory);
	free(e);
	return NULL;
}

bool expressions_match(struct expressions *e, const struct ctr *ctr)
{
	struct rp_ctr_info info = {.size = sizeof info};
	return e->h.cache->get_ctr(e->h.ctx, ctr->handle, &info) == 0 &&
	       match_any(&e->h, &e->exprs, &info) >= 0;
}
