# SPDX-License-Identifier: Apache-2.0
"""nri-rp-modcheck finds what is planted: a sound module (test/modules/planted.c) with one defect each, the case that has to notice, and words
by which it is named. A defect that cannot be found is kept here with the reason, and counted as missed."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('NRI_RP_BUILD', TOP / 'build'))
PROGRAM = BUILD / 'bin' / 'nri-rp-modcheck'
INSTRUMENTED = 'fsanitize' in (BUILD / 'flags').read_text() or '--coverage' in (BUILD / 'flags').read_text()
CFLAGS = ['-std=gnu11', '-O1', '-g', '-w', '-fPIC', '-fvisibility=hidden', '-I%s/include' % TOP, '-I%s/test/modules' % TOP,
          '-shared', '-Wl,-z,defs', '-Wl,-z,relro,-z,now', '-Wl,-z,noexecstack', '-Wl,--build-id=sha1']
CONTROLLER = {'KIND': 'RP_KIND_CONTROLLER'}
THREAD = 'pthread_t t; if (!pthread_create(&t, NULL, far, inst)) pthread_join(t, NULL)'
FAR = '#include <pthread.h>\nstatic void *far(void *arg) { struct rp_instance *inst = arg; %s; return NULL; }'
BUSY = 'for (clock_t end = clock() + 150000; clock() < end;) ;'


def defects():
    """name, macros, case, words."""
    # its own annotations and configuration
    yield 'annotation-crash', {'IN_ANNOTATION': 'if (!strcmp(text, "high")) abort()'}, 'placement/annotations', 'SIGABRT) in'
    yield 'annotation-index', {'IN_ANNOTATION': 'static volatile int32_t t[4]; record->speed = t[atol(text) * 1000000]'}, 'placement/annotations', 'SIGSEGV'
    yield 'annotation-too-long', {'IN_ANNOTATION': 'if (strlen(text) > 5000) abort()'}, 'faults/annotations', 'SIGABRT'
    yield 'annotation-leak', {'IN_ANNOTATION': 'if (strchr(text, \'{\') && !strdup(text)) return -RP_ENOMEM'}, 'faults/annotations', 'bytes leak each time'
    yield 'annotation-format', {'IN_ANNOTATION': 'char b[64]; int n; (void)n; if (strchr(text, \'%\')) snprintf(b, sizeof b, text)',
                                'FILE_SCOPE': '#include <stdio.h>'}, 'faults/annotations', 'SIG'
    yield 'annotation-offline', {'IN_ANNOTATION': 'if (!strcmp(text, "all")) return cache->set_cpus(ctx, txn, ctr, every())',
                                 'FILE_SCOPE': 'static struct rp_ids every(void) { static struct rp_idset s; rp_idset_add(&s, 1000); return rp_ids_of(&s); }'
                                 }, 'placement/annotations', 'not online'
    yield 'annotation-takes-all', {'IN_ANNOTATION': 'if (!strcmp(text, "exclusive")) { (void)inst->topology->set(ctx, RP_CPUS_ONLINE, &online);'
                                                    'r = cache->set_cpus(ctx, txn, ctr, online); return r ? r : cache->set_exclusive(ctx, txn, ctr, online); }'
                                   }, 'placement/annotations', 'on which other containers run'
    yield 'annotation-odd-code', {'IN_ANNOTATION': 'if (!strcmp(text, "none")) return inst->host->fail(ctx, -5, "what?")'}, 'placement/annotations', 'not an RP_E code'
    yield 'value-of-enum', {'IN_PREPARE': 'if (!strcmp(mode, "odd")) abort()'}, 'config/values', 'prepare while the case ran, with mode: "odd"'
    yield 'value-at-bound', {'IN_PREPARE': 'static volatile char t[1000]; if (number > 1000) t[number * 1000000L] = 1'}, 'config/values', 'with number: 100000'
    yield 'value-empty-list', {'IN_PREPARE': 'if (list && !config->count(ctx, list)) abort()'}, 'config/values', 'with list: []'
    yield 'value-zero', {'IN_PREPARE': 'int64_t l = config->value(ctx, config->get(ctx, cfg, "limit"), RP_T_DURATION, 1); number = 1000 / l'}, \
        'config/values', 'with limit: 0s'
    yield 'value-long-text', {'IN_PREPARE': 'char b[100]; if (strlen(name) > sizeof b) abort(); strncpy(b, name, sizeof b)'}, 'config/values', 'with name: aaa'
    yield 'default-refused', {'NUMBER_DEFAULT': '"0"'}, 'config/defaults', 'with number: 0, its default'
    yield 'default-differs', {'NUMBER_DEFAULT': '"7"', 'IN_PREPARE': 'inst->saved = number == 7 ? 9 : 0', 'IN_PLACE': 'if (inst->saved == 9) return 0'}, \
        'config/defaults', 'with number: 7, its default: containers are placed differently'
    yield 'refusal-without-reason', {'IN_PREPARE': 'if (!strcmp(mode, "odd")) return -RP_EINVAL'}, 'config/values', 'prepare() returned -22 without an error text'
    yield 'refusal-leaks', {'IN_PREPARE': 'char *c = strdup(name)', 'REFUSE_NAME(r)': 'leave_it(r)', 'PREPARED(r)': '(free(c), r)'}, \
        'config/values', 'a configuration that is refused: about'
    yield 'prepare-changes', {'IN_PREPARE': 'if (number == 7) inst->saved = 9', 'IN_PLACE': 'if (inst->saved == 9) return 0'}, \
        'config/values', 'prepare() and abort() changed the active configuration'
    yield 'prepare-plan-kept', {'IN_ABORT': 'inst->plan = plan'}, 'lifecycle/prepare-abort', 'SIG'
    # shorter hosts
    yield 'call-set-group', {'IN_PLACE': '(void)cache->set_group(ctx, txn, ctr, 0)'}, 'abi/shorter-structs', 'set_group() of ABI 1.3 was called on a host of 1.2'
    yield 'call-set-args', {'IN_PLACE': 'const char *a = "x"; (void)cache->set_args(ctx, txn, ctr, &a, 1)'}, 'abi/shorter-structs', 'set_args() of ABI 1.3'
    yield 'call-may-wait', {'IN_PLACE': '(void)cache->may_wait(ctx, txn, 0, 0)'}, 'abi/shorter-structs', 'may_wait() of ABI 1.3'
    yield 'call-pod-ctr', {'IN_PLACE': 'struct rp_pod_ctr_info i = {sizeof i}; (void)cache->pod_ctr(ctx, 1, 0, &i)'}, 'abi/shorter-structs', 'pod_ctr() of ABI 1.3'
    yield 'call-add-cdi', {'IN_PLACE': '(void)cache->add_cdi(ctx, txn, ctr, "v.example/c=0")'}, 'abi/shorter-structs', 'add_cdi() of ABI 1.3'
    yield 'call-post', {'IN_PLACE': 'if (inst->work) (void)inst->work->post(ctx, 0, NULL, 0)'}, 'abi/shorter-structs', 'post() of ABI 1.3'
    yield 'call-arg', {'IN_PLACE': '(void)cache->arg(ctx, ctr, 0)'}, 'abi/shorter-structs', 'arg() of ABI 1.3'
    yield 'call-list-pods', {'IN_PLACE': '(void)cache->list_pods(ctx, NULL, 0)'}, 'abi/shorter-structs', 'list_pods() of ABI 1.3'
    yield 'call-simulated', {'IN_SYNC': '(void)inst->topology->simulated(inst->ctx)'}, 'abi/shorter-structs', 'simulated() of ABI 1.3'
    yield 'call-pod-resource', {'IN_PLACE': 'struct rp_pod_resource_info i = {sizeof i}; (void)cache->pod_resource(ctx, ctr, 0, &i)'}, \
        'abi/shorter-structs', 'pod_resource() of ABI 1.2 was called on a host of 1.1'
    yield 'call-figure', {'IN_SYNC': 'if (inst->work) inst->work->figure(inst->ctx, 0, RP_FIGURE_LLC, 1)'}, 'abi/shorter-structs', 'figure() of ABI 1.1'
    yield 'read-has-cpus', {'AFTER_GET': 'if (!r && !rp_ids_empty(info.has_cpus)) inst->n_calls += rp_ids_count(info.has_cpus)'}, \
        'abi/shorter-structs', 'on a host of ABI 1.1'
    yield 'read-data', {'IN_EVENT': 'if (ev->data) inst->n_calls += *(const char *)ev->data'}, 'abi/shorter-structs', 'SIGSEGV) in event'
    yield 'read-asked', {'AFTER_GET': 'if (!r && info.asked_shares != RP_NOT_SET) (void)cache->set_int(ctx, txn, ctr, RP_F_SHARES, info.asked_shares)'}, \
        'abi/shorter-structs', 'set_int() received a value that a host of ABI 1.2 does not set'
    yield 'service-usage', {'IN_PLACE': 'struct rp_usage u = {sizeof u}; (void)inst->usage->get(ctx, ctr, &u)'}, 'abi/missing-services', 'on a host without nri-rp.host.usage/1'
    yield 'service-usage-older', {'IN_PLACE': 'struct rp_usage u = {sizeof u}; (void)inst->usage->get(ctx, ctr, &u)'}, 'abi/shorter-structs', 'on a host of ABI 1.0'
    yield 'service-settings', {'IN_CREATE': 'inst->n_calls = inst->settings->size'}, 'abi/missing-services', 'on a host without nri-rp.host.settings/1'
    yield 'service-explain', {'IN_PLACE': 'inst->explain->note(ctx, ctr, "x")'}, 'abi/missing-services', 'on a host without nri-rp.host.explain/1'
    yield 'service-timer', {'IN_PLACE': '(void)inst->timer->now_ms(ctx)'}, 'abi/missing-services', 'on a host without nri-rp.host.timer/1'
    yield 'service-work', {'IN_PLACE': 'inst->work->report(ctx, ctr, RP_APPLY_DONE, "")'}, 'abi/missing-services', 'on a host without nri-rp.host.work/1'
    yield 'service-cache', {'NEEDED_IS_MISSING': '!inst->topology || !inst->config'}, 'abi/missing-services', 'on a host without nri-rp.host.cache/1'
    yield 'host-size', {'IN_CREATE': 'if (host->size != sizeof *host) abort()'}, 'abi/longer-structs', 'on a host of a later minor version'
    yield 'service-size', {'IN_CREATE': 'if (inst->cache && inst->cache->size != sizeof *inst->cache) abort()'}, 'abi/longer-structs', 'on a host of a later minor version'
    yield 'info-size', {'INFO_SIZE': '0'}, 'abi/rules', 'set .size to its sizeof'
    # jobs and timers
    yield 'job-reads-cache', {'IN_RUN': 'struct rp_ctr_info i = {sizeof i}; (void)inst->cache->get_ctr(inst->ctx, job->ctr, &i)'}, 'work/jobs', 'get_ctr() was called on a thread other than'
    yield 'job-logs', {'IN_RUN': 'inst->host->log(inst->ctx, RP_LOG_INFO, 0, "x")'}, 'work/jobs', 'log() was called on a thread other than'
    yield 'job-fails', {'IN_RUN': 'inst->host->fail(inst->ctx, -RP_EINVAL, "x")'}, 'work/jobs', 'fail() was called on a thread other than'
    yield 'job-explains', {'IN_RUN': 'inst->explain->note(inst->ctx, job->ctr, "x")'}, 'work/jobs', 'note() was called on a thread other than'
    yield 'job-submits', {'IN_RUN': 'if (inst->n_calls++ < 3) inst->work->submit(inst->ctx, run, NULL, arg)'}, 'work/jobs', 'submit() was called on a thread other than'
    yield 'job-looks-at-machine', {'IN_RUN': '(void)inst->topology->memory(inst->ctx)'}, 'work/jobs', 'memory() was called on a thread other than'
    yield 'job-hangs', {'IN_RUN': 'for (;;) ;'}, 'abi/time', 'jobs on the worker did not end within 5000 ms'
    yield 'job-reports-itself', {'IN_RUN': 'inst->work->report(inst->ctx, job->ctr, RP_APPLY_DONE, "")'}, 'work/jobs', 'report() was called on a thread other than'
    yield 'late-plan', {'IN_DONE': 'inst->n_calls += job->plan->name[0]'}, 'work/late', 'when results arrive late'
    yield 'late-record', {'IN_DONE': 'inst->records = inst->records ? inst->records : NULL; job->record->next->speed++'}, 'work/late', 'SIGSEGV'
    yield 'job-freed-twice', {'IN_DONE': 'free(arg)'}, 'work/jobs', 'SIGABRT'
    yield 'job-leaks', {'FREE_JOB(p)': '(void)p'}, 'lifecycle/containers', 'bytes leak each time'
    yield 'timer-of-record', {'IN_EVENT': 'if (ev->type == RP_EVENT_TIMER) record_of(inst, ev->cookie + 99999)->speed = 1'}, 'work/jobs', 'SIGSEGV) in event'
    yield 'done-writes', {'IN_DONE': 'inst->work->write_file(inst->ctx, "/sys/x", "1")'}, 'work/jobs', 'write_file("/sys/x") in done()'
    yield 'controller-job', {**CONTROLLER, 'IN_RUN': '(void)inst->cache->list(inst->ctx, 0, NULL, 0)'}, 'controller/absent-files', 'list() was called on a thread other than'
    yield 'controller-late', {**CONTROLLER, 'IN_DONE': 'job->record->next->speed = 1'}, 'controller/late', 'when results arrive late'
    yield 'post-crash', {'IN_RUN': 'inst->work->post(inst->ctx, 1, "x", 1)', 'IN_EVENT': 'if (ev->type == RP_EVENT_POSTED) abort()'}, \
        'work/jobs', 'SIGABRT) in event'
    yield 'post-odd-code', {'IN_PLACE': '(void)inst->work->post(ctx, 1, NULL, 0)', 'IN_EVENT': 'if (ev->type == RP_EVENT_POSTED) return -5'}, \
        'work/jobs', 'event() returned -5 without an error text'
    yield 'node-file', {'IN_PLACE': 'char b[64]; (void)inst->work->read_node(ctx, "/etc/machine-id", b, sizeof b)'}, \
        'abi/rules', 'read_node("/etc/machine-id") in allocate()'
    # what others want
    yield 'busy-aborts', {'IN_PLACE': 'if (cache->set_pair(ctx, txn, ctr, RP_F_ENV, "A", "1") == -RP_EBUSY) abort()'}, \
        'creation/conflict', 'another component requests environment variable A with another value'
    yield 'busy-odd-code', {'IN_PLACE': 'if (cache->add_cdi(ctx, txn, ctr, "v.example/c=0") || cache->set_int(ctx, txn, ctr, RP_F_NICE, 3)) return -5'}, \
        'creation/conflict', 'not an RP_E code'
    yield 'late-aborts', {'AFTER_GET': 'if (!r && (info.flags & RP_CTR_RUNS_ALREADY)) abort()'}, 'creation/runtimes', 'with a runtime that supports 0x4'
    # threads
    yield 'thread', {'FILE_SCOPE': FAR % '(void)inst->topology->memory(inst->ctx)', 'IN_ALLOCATE': THREAD}, 'abi/rules', 'memory() was called on a thread other than'
    yield 'thread-logs', {'FILE_SCOPE': FAR % 'inst->host->log(inst->ctx, 6, 0, "x")', 'IN_SYNC': THREAD}, 'abi/rules', 'log() was called on a thread other than'
    yield 'thread-symbols', {'FILE_SCOPE': FAR % '(void)0', 'IN_ALLOCATE': THREAD}, 'static/symbols', 'pthread_create, which starts a thread'
    yield 'thread-stays', {'FILE_SCOPE': '#include <pthread.h>\n#include <unistd.h>\nstatic void *far(void *arg) { for (;;) pause(); }',
                           'IN_CREATE': 'pthread_t t; static int n; if (n++ > 150 && n < 200) pthread_create(&t, NULL, far, inst)'}, 'lifecycle/create-destroy', 'threads remain'
    # leaks
    mmap = '#include <sys/mman.h>\n#define TAKE mmap(NULL, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)'
    yield 'mmap-instance', {'FILE_SCOPE': mmap, 'IN_CREATE': 'inst->kept = TAKE'}, 'lifecycle/create-destroy', 'mapped bytes leak each time (mmap)'
    yield 'mmap-plan', {'FILE_SCOPE': mmap, 'IN_PREPARE': '(void)TAKE'}, 'lifecycle/prepare-abort', 'mapped bytes leak each time'
    yield 'mmap-container', {'FILE_SCOPE': mmap, 'IN_ALLOCATE': '(void)TAKE'}, 'lifecycle/containers', 'mapped bytes leak each time'
    yield 'leak-container', {'FREE_RECORD(p)': '(void)p'}, 'lifecycle/containers', 'bytes leak each time'
    yield 'leak-sync', {'IN_SYNC': 'if (!malloc(40)) return -RP_ENOMEM'}, 'lifecycle/reloads', 'bytes leak each time'
    yield 'leak-set', {'IN_PLACE': 'inst->kept = malloc(100)', 'AFTER_SET': 'if (r) return r; free(inst->kept)'}, 'faults/leaks', 'set_cpus(), fails: about'
    yield 'leak-get', {'IN_ALLOCATE': 'inst->kept = malloc(64)', 'AFTER_GET': 'if (r) return r', 'ALLOCATED(r)': '(r ? r : (free(inst->kept), r))'}, 'faults/leaks', 'get_ctr(), fails: about'
    yield 'leak-unborn', {'FREE_UNBORN(p)': '(void)p', 'IN_CREATE': 'if (!inst->timer) inst->cache = NULL'}, 'abi/missing-services', 'bytes leak each time'
    yield 'leak-save', {'IN_SAVE': 'if (!malloc(40)) return -RP_ENOMEM'}, 'lifecycle/restarts', 'bytes leak each time'
    yield 'leak-load', {'IN_LOAD': 'if (!malloc(40)) return -RP_ENOMEM'}, 'lifecycle/restarts', 'bytes leak each time'
    yield 'leak-metrics', {'IN_COLLECT': 'if (!malloc(40)) return -RP_ENOMEM'}, 'report/metrics', 'bytes leak each time'
    yield 'leak-zones', {'IN_ZONES': 'if (!malloc(40)) return -RP_ENOMEM'}, 'report/zones', 'bytes leak each time'
    yield 'descriptor', {'FILE_SCOPE': '#include <fcntl.h>', 'IN_PREPARE': '(void)open("/dev/null", O_RDONLY)'}, 'lifecycle/prepare-abort', 'file descriptors leak'
    # files in a request
    yield 'writes', {'IN_ALLOCATE': 'if (inst->work) (void)inst->work->write_file(inst->ctx, "/sys/x", "1")'}, 'placement/dry-run', 'write_file("/sys/x") in allocate()'
    yield 'makes-folder', {'IN_SYNC': 'if (inst->work) (void)inst->work->make_dir(inst->ctx, "/sys/x")'}, 'abi/rules', 'make_dir("/sys/x") in sync()'
    yield 'removes-folder', {'IN_PREPARE': 'if (inst->work) (void)inst->work->remove_dir(inst->ctx, "/sys/x")'}, 'abi/config', 'remove_dir("/sys/x") in prepare()'
    yield 'opens', {'FILE_SCOPE': '#include <fcntl.h>', 'IN_ALLOCATE': 'inst->n_calls = open("/dev/null", O_WRONLY)'}, 'static/symbols', 'open, which opens a file'
    yield 'controller-writes', {**CONTROLLER, 'IN_PRE_CREATE': '(void)inst->work->write_file(inst->ctx, "/sys/x", "1")'}, 'controller/absent-files', 'write_file("/sys/x") in pre_create()'
    # what was freed, or never set
    yield 'freed-plan', {'IN_COMMIT': 'inst->kept = inst->plan', 'IN_PLACE': 'if (inst->kept) inst->n_calls += ((struct rp_plan *)inst->kept)->name[0]'}, 'lifecycle/orders', 'SIGSEGV'
    yield 'freed-record', {'IN_RELEASE': 'struct record *o = record_of(inst, ctr); forget(inst, ctr); if (o && o->next) inst->n_calls += o->next->speed'}, 'lifecycle/containers', 'SIGSEGV'
    yield 'kept-text', {'AFTER_GET': 'if (!r && inst->kept && strcmp(inst->kept, "default")) { if (!strchr(inst->kept, \'-\')) abort(); } if (!r) inst->kept = (void *)info.name'}, \
        'lifecycle/containers', 'SIGABRT'
    yield 'never-set', {'IN_PLACE': 'volatile uint32_t *u = malloc(64); uint32_t v = u[3]; free((void *)u); if (v) inst->n_calls += rp_ids_first((struct rp_ids){(void *)(uintptr_t)v, 9})'}, 'abi/rules', 'SIGSEGV'
    yield 'freed-twice', {'IN_DESTROY': 'free(inst->records); inst->kept = malloc(8); free(inst->kept); free(inst->kept)'}, 'abi/config', 'SIGABRT'
    # before it can be checked
    yield 'constructor', {'FILE_SCOPE': 'static volatile int early; __attribute__((constructor)) static void go(void) { early = 1; }'}, 'static/constructors', '1 constructors'
    yield 'init', {'FILE_SCOPE': 'static int early; void go(void) { early = 1; }', 'FLAGS': '-Wl,-init=go'}, 'static/constructors', 'DT_INIT'
    yield 'ifunc', {'FILE_SCOPE': 'static int one(void) { return 1; } static void *pick(void) { return one; } static int chosen(void) __attribute__((ifunc("pick")));',
                    'IN_ALLOCATE': 'inst->n_calls += chosen()'}, 'static/constructors', 'ifunc'
    yield 'run-path', {'FLAGS': '-Wl,-rpath=/tmp'}, 'static/constructors', 'RPATH'
    yield 'stack', {'FLAGS': '-Wl,-z,execstack'}, 'static/memory', 'executable stack'
    yield 'exports', {'FILE_SCOPE': '__attribute__((visibility("default"))) int more = 1;'}, 'static/exports', '2 symbols are exported'
    yield 'symbols', {'FILE_SCOPE': '#include <unistd.h>\n#include <sys/socket.h>', 'IN_ALLOCATE': 'if (inst->n_calls > 1u << 30) { system("x"); usleep(1); socket(1, 1, 1); getenv("x"); }'}, \
        'static/symbols', ['system, which starts a process', 'usleep, which blocks', 'socket, which', 'getenv, which']
    yield 'syscall', {'FILE_SCOPE': '#include <unistd.h>\n#include <sys/syscall.h>', 'IN_ALLOCATE': 'inst->n_calls = syscall(SYS_getpid)'}, 'static/symbols', 'syscall, which calls functions that this list cannot show'
    yield 'unknown-symbol', {'FILE_SCOPE': '#include <sys/sysinfo.h>', 'IN_ALLOCATE': 'struct sysinfo s; inst->n_calls = sysinfo(&s)'}, 'static/symbols', 'sysinfo, which is not a function that modules may call'
    # time
    yield 'slow-allocate', {'IN_ALLOCATE': BUSY, 'FILE_SCOPE': '#include <time.h>'}, 'abi/time', 'allocate() took'
    yield 'slow-sync', {'IN_SYNC': BUSY, 'FILE_SCOPE': '#include <time.h>'}, 'abi/time', 'took 1'
    yield 'slow-create', {'IN_CREATE': BUSY, 'FILE_SCOPE': '#include <time.h>'}, 'abi/config', 'create() took'
    yield 'sleeps', {'FILE_SCOPE': '#include <unistd.h>', 'IN_RELEASE': 'usleep(150000)'}, 'abi/time', 'release() took'
    # results
    for call, macro, case in [('allocate', 'ALLOCATED', 'abi/rules'), ('update', 'UPDATED', 'abi/rules'), ('release', 'RELEASED', 'abi/rules'),
                              ('sync', 'SYNCED', 'abi/rules'), ('prepare', 'PREPARED', 'abi/config'), ('create', 'CREATED', 'abi/config')]:
        yield 'positive-' + call, {macro + '(r)': '3'}, case, call + '() returned 3: success is 0'
    yield 'positive-event', {'EVENT_DONE(r)': '(r ? r : 4)'}, 'lifecycle/containers', 'event() returned 4'
    yield 'odd-rolled-back', {'ROLLED_BACK(r)': '7', 'IN_ALLOCATE': 'if (++inst->n_calls % 5 == 0) return inst->host->fail(inst->ctx, -RP_ENOSPC, "x")'}, 'lifecycle/containers', 'rolled_back() returned 7'
    yield 'positive-zones', {'TOLD(r)': '2'}, 'report/zones', 'zones() returned 2'
    yield 'positive-collect', {'COLLECTED(r)': '2'}, 'report/metrics', 'collect() returned 2'
    yield 'positive-save', {'SAVED(r)': '2'}, 'lifecycle/restarts', 'save() returned 2'
    yield 'positive-load', {'LOADED(r)': '2'}, 'lifecycle/restarts', 'load() returned 2'
    yield 'positive-start', {**CONTROLLER, 'STARTED(r)': '2'}, 'controller/absent-files', 'start() returned 2'
    yield 'positive-pre-create', {**CONTROLLER, 'PRE_CREATED(r)': '2'}, 'controller/absent-files', 'pre_create() returned 2'
    yield 'positive-post-start', {**CONTROLLER, 'POST_STARTED(r)': '2'}, 'controller/absent-files', 'post_start() returned 2'
    yield 'no-instance', {'CREATED(r)': '(*ret_inst = NULL, free(inst), 0)'}, 'abi/config', 'create() returned 0 and no instance'
    # both sides of a mismatch
    both = 'RP_MODULE_DEFINE("planted", "1.0", RP_KIND_POLICY, .create = create, .destroy = destroy, .service = service, .summary = "x", .licence = "MIT", %s);'
    yield 'mismatch-name', {'DEFINE_MODULE': both % '.name = "other"'}, 'static/load', ['other', 'planted']
    yield 'mismatch-kinds', {'DEFINE_MODULE': both % '.kinds = RP_KIND_CONTROLLER'}, 'static/load', ['0x1', '0x2']
    yield 'mismatch-version', {'DEFINE_MODULE': both % '.version = "9.9"'}, 'static/load', ['1.0', '9.9']
    yield 'mismatch-minor', {'DEFINE_MODULE': both % '.abi_minor = 1'}, 'static/load', ['1.1', '1.3']


def seen_by_sanitizers():
    """name, macros, case, words: what goes on as if nothing had been, unless each use of memory is looked at."""
    yield 'read-freed-record', {'IN_RELEASE': 'struct record *o = record_of(inst, ctr); forget(inst, ctr); if (o) inst->n_calls += o->speed'}, \
        'lifecycle/containers', ['use-after-free: READ of size 4 in release']
    yield 'read-freed-plan', {'IN_COMMIT': 'struct rp_plan *old = inst->plan; free_plan(inst->plan); inst->plan = NULL; inst->n_calls += old ? old->number : 0'}, \
        'lifecycle/reloads', ['use-after-free: READ of size 8 in commit']
    yield 'read-freed-name', {'IN_ABORT': 'char *n = plan->name; plan->name = NULL; free(n); inst->n_calls += n[0]'}, 'lifecycle/prepare-abort', ['use-after-free: READ of size 1 in abort_plan']
    yield 'read-freed-job', {'FREE_JOB(p)': 'free(p); inst->n_calls += p->ctr != 0'}, 'work/jobs', ['use-after-free: READ of size 8 in done']
    yield 'read-beyond-heap', {'IN_PLACE': 'volatile uint32_t n = 4; uint32_t *t = calloc(n, sizeof *t); inst->n_calls += t[n]; free(t)'}, 'lifecycle/orders', ['heap-buffer-overflow: READ of size 4 in place']
    yield 'write-beyond-heap', {'IN_PLACE': 'volatile uint32_t n = 20; char *t = malloc(n); ((volatile char *)t)[n] = 1; free(t)'}, 'lifecycle/orders', ['heap-buffer-overflow: WRITE of size 1 in place']
    yield 'read-freed-record-of-controller', {**CONTROLLER, 'IN_POST_STOP': 'struct record *o = record_of(inst, ctr); forget(inst, ctr); if (o) inst->n_calls += o->speed'}, \
        'controller/absent-files', ['use-after-free: READ of size 4 in post_stop']


def seen_by_compiler():
    """The same, of what only code that the compiler has prepared notices."""
    yield 'read-beyond-stack', {'IN_PLACE': 'volatile uint32_t t[4] = {0}; inst->n_calls += t[leave_it(4) + !text]'}, 'lifecycle/orders', ['out of bounds', 'planted.c']
    yield 'overflow', {'IN_PLACE': 'volatile int32_t n = INT32_MAX; n = n + leave_it(1)'}, 'lifecycle/orders', ['signed integer overflow', 'planted.c']


def seen_by_valgrind():
    """The same, of what no sanitizer of the compiler's notices."""
    yield 'never-set-branch', {'IN_PLACE': 'volatile uint32_t *u = malloc(64); if (u[3] == 77) inst->n_calls++; free((void *)u)'}, 'lifecycle/orders', ['uninitialised', 'place (planted.c']


# What is not found, and why.
MISSED = {}
TABLE = {row[0]: row[1:] for row in defects()}


SANITIZE = ['-fsanitize=address,undefined', '-fno-sanitize-recover=undefined', '-fno-omit-frame-pointer', '-Wl,-z,undefs']
SANITIZED = 'fsanitize' in (BUILD / 'flags').read_text()


def build(folder, macros, more=()):
    folder.mkdir(parents=True)
    text = ''.join('#define %s %s\n' % (m, v) for m, v in macros.items() if m not in ('FLAGS', 'FILE_SCOPE'))
    (folder / 'scope.h').write_text(macros.get('FILE_SCOPE', '') + '\n')
    (folder / 'planted.c').write_text(text + '#include "%s/test/modules/planted.c"\n' % TOP)
    flags = [*more, *filter(None, [macros.get('FLAGS')])]
    subprocess.run(['gcc', *CFLAGS, '-I%s' % folder, '-o', folder / 'planted.so', folder / 'planted.c', *flags], check=True)
    return folder / 'planted.so'


def look(folder, name, macros, case, words, option=(), flags=()):
    """What modcheck says in that case; None: nothing."""
    path = build(folder / name, macros, flags)
    slow = [] if case == 'abi/time' or name.startswith('slow-') else ['--slow', '5000']  # of a busy machine
    done = subprocess.run([PROGRAM, '--json', *slow, *option, '--cases', '^(static/(note|exports|memory|load|constructors|symbols)$|%s( (two-sockets|laptop))?( seed [12])?$)' % case
                           if '/' in case else case, path], capture_output=True, text=True, timeout=120)
    failed = {c['name']: c['reason'] for c in json.loads(done.stdout)['cases'] if c['result'] == 'failed'}
    found = [r for n, r in failed.items() if case in n]
    words = words if isinstance(words, list) else [words] if words else []
    return name, any(all(w in r for w in words) for r in found), failed


@pytest.mark.skipif(INSTRUMENTED, reason='leaks, symbols and freed memory are looked at in plain builds')
def test_what_is_planted_is_found(tmp_path):
    assert len(TABLE) >= 90
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda row: look(tmp_path, row[0], *row[1]), TABLE.items()))
    missed = {name: failed for name, found, failed in done if not found}
    assert missed.keys() == MISSED.keys(), missed


def not_found(folder, table, option, flags=()):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda row: look(folder, *row, [option], flags), table))
    return {name: failed for name, found, failed in done if not found}


@pytest.mark.skipif(not SANITIZED and not (BUILD / 'lib/nri-rp/nri-rp-modcheck-sanitized').exists(), reason='make sanitized-modcheck has not been run')
def test_sanitizers_name_uses_of_memory(tmp_path):
    assert not_found(tmp_path, [*seen_by_sanitizers(), *seen_by_compiler()], '--sanitize', SANITIZE) == {}
    plain = build(tmp_path / 'plain', {})
    done = subprocess.run([PROGRAM, '--sanitize', '--cases', 'static/load', plain], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and 'it was built without sanitizers' in done.stdout


@pytest.mark.skipif(INSTRUMENTED, reason='valgrind looks at plain builds')
@pytest.mark.skipif(not shutil.which('valgrind'), reason='no valgrind')
def test_valgrind_names_uses_of_memory(tmp_path):
    # a few, since each takes seconds
    told = re.compile(r'.*: (\w+) of size \d in (\w+)')
    few = [(name, macros, case, ['Invalid ' + told.match(words[0])[1].lower(), told.match(words[0])[2] + ' (planted.c'])
             for name, macros, case, words in seen_by_sanitizers() if name in ('read-freed-record', 'read-freed-job', 'write-beyond-heap', 'read-freed-record-of-controller')]
    assert not_found(tmp_path, [*few, *seen_by_valgrind()], '--valgrind') == {}
    sound = build(tmp_path / 'sound', {})
    done = subprocess.run([PROGRAM, '--json', '--valgrind', '--cases', '^(lifecycle/(orders|containers)|work/jobs)', sound], capture_output=True, text=True, timeout=300)
    assert [c for c in json.loads(done.stdout)['cases'] if c['result'] == 'failed'] == []


@pytest.mark.skipif(SANITIZED, reason='a checker with sanitizers looks')
def test_a_checker_that_is_not_there_is_named(tmp_path):
    """Without the package's, and without make sanitized-modcheck."""
    alone = tmp_path / 'bin' / 'nri-rp-modcheck'
    alone.parent.mkdir()
    shutil.copy(PROGRAM, alone)
    done = subprocess.run([alone, '--sanitize', build(tmp_path / 'sound', {})], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and 'package nri-rp-dev; in the sources, make sanitized-modcheck' in done.stderr


@pytest.mark.parametrize('macros', [{}, CONTROLLER])
def test_nothing_is_found_where_nothing_is_planted(tmp_path, macros):
    path = build(tmp_path / 'sound', macros, SANITIZE if SANITIZED else [])
    done = subprocess.run([PROGRAM, '--json', '--cases', '^(static|abi|lifecycle|config|work|faults|controller)/|two-sockets', path], capture_output=True,
                          text=True, timeout=120)
    assert [c for c in json.loads(done.stdout)['cases'] if c['result'] == 'failed'] == []
