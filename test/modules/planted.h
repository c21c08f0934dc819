/* SPDX-License-Identifier: Apache-2.0 */
/* The places of planted.c in which nothing is planted. */
#ifndef IN_RUN
#define IN_RUN
#endif
#ifndef IN_DONE
#define IN_DONE
#endif
#ifndef IN_PREPARE
#define IN_PREPARE
#endif
#ifndef IN_COMMIT
#define IN_COMMIT
#endif
#ifndef IN_ABORT
#define IN_ABORT
#endif
#ifndef AFTER_GET
#define AFTER_GET
#endif
#ifndef IN_ANNOTATION
#define IN_ANNOTATION
#endif
#ifndef IN_PLACE
#define IN_PLACE
#endif
#ifndef AFTER_SET
#define AFTER_SET
#endif
#ifndef IN_ALLOCATE
#define IN_ALLOCATE
#endif
#ifndef IN_UPDATE
#define IN_UPDATE
#endif
#ifndef IN_RELEASE
#define IN_RELEASE
#endif
#ifndef IN_SYNC
#define IN_SYNC
#endif
#ifndef IN_EVENT
#define IN_EVENT
#endif
#ifndef IN_START
#define IN_START
#endif
#ifndef IN_STOP
#define IN_STOP
#endif
#ifndef IN_PRE_CREATE
#define IN_PRE_CREATE
#endif
#ifndef IN_POST_START
#define IN_POST_START
#endif
#ifndef IN_POST_STOP
#define IN_POST_STOP
#endif
#ifndef IN_MEASURE
#define IN_MEASURE
#endif
#ifndef IN_ZONES
#define IN_ZONES
#endif
#ifndef IN_COLLECT
#define IN_COLLECT
#endif
#ifndef IN_SAVE
#define IN_SAVE
#endif
#ifndef IN_LOAD
#define IN_LOAD
#endif
#ifndef IN_CREATE
#define IN_CREATE
#endif
#ifndef IN_DESTROY
#define IN_DESTROY
#endif
#ifndef PREPARED
#define PREPARED(r) leave_it(r)
#endif
#ifndef ALLOCATED
#define ALLOCATED(r) leave_it(r)
#endif
#ifndef UPDATED
#define UPDATED(r) leave_it(r)
#endif
#ifndef RELEASED
#define RELEASED(r) leave_it(r)
#endif
#ifndef SYNCED
#define SYNCED(r) leave_it(r)
#endif
#ifndef EVENT_DONE
#define EVENT_DONE(r) leave_it(r)
#endif
#ifndef ROLLED_BACK
#define ROLLED_BACK(r) leave_it(r)
#endif
#ifndef STARTED
#define STARTED(r) leave_it(r)
#endif
#ifndef PRE_CREATED
#define PRE_CREATED(r) leave_it(r)
#endif
#ifndef POST_STARTED
#define POST_STARTED(r) leave_it(r)
#endif
#ifndef TOLD
#define TOLD(r) leave_it(r)
#endif
#ifndef COLLECTED
#define COLLECTED(r) leave_it(r)
#endif
#ifndef SAVED
#define SAVED(r) leave_it(r)
#endif
#ifndef LOADED
#define LOADED(r) leave_it(r)
#endif
#ifndef CREATED
#define CREATED(r) leave_it(r)
#endif
#ifndef REFUSE_NAME
#define REFUSE_NAME(r) leave_it(r)
#endif
#ifndef FREE_JOB
#define FREE_JOB(p) free(p)
#endif
#ifndef FREE_RECORD
#define FREE_RECORD(p) free(p)
#endif
#ifndef FREE_UNBORN
#define FREE_UNBORN(p) free(p)
#endif
#ifndef INFO_SIZE
#define INFO_SIZE sizeof(struct rp_ctr_info)
#endif
#ifndef NEEDED_IS_MISSING
#define NEEDED_IS_MISSING !inst->cache || !inst->topology || !inst->config
#endif
#ifndef DEFINE_MODULE
#define DEFINE_MODULE                                                                              \
	RP_MODULE_DEFINE("planted", "1.0", KIND, .summary = "A test", .licence = "Apache-2.0",     \
			 .create = create, .destroy = destroy, .service = service);
#endif
