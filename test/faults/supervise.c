/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise PLAN COMMAND …: runs the command, and has system calls of it fail when a test says so.
 * The file PLAN holds a struct plan that the test writes and reads meanwhile: of the calls with
 * that number, `skip` pass, the next `fail` ones give `error` or move a single byte, and all later
 * ones pass again. With `every`, so many calls are between one that fails and the next.
 *
 * The calls are seen by a seccomp notifier, so that those of libraries and of the loader are among
 * them, and so are those of children. The supervisor is the child and the command this process, so
 * that signals and exit codes are the command's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MADE_MAX 512 /* call numbers; higher ones are not counted */

struct plan {
	int32_t call; /* a number of SYS_…; -1: none; written last by the test */
	int32_t error; /* 0: of reads and writes one byte is moved, by the supervisor */
	int32_t skip, fail;
	uint32_t failed; /* how many have failed */
	uint32_t seen; /* how many there were since the test has set it to 0 */
	int32_t every; /* failures are this many calls apart; 0: consecutive */
	uint32_t made[MADE_MAX]; /* how many calls of each number there were, whatever `call` is */
};

/* Calls that the programs and their libraries make, except calls that cannot fail and sendmsg,
 * which hands over the notifier. */
static const int calls[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_readv,
	SYS_writev,
	SYS_openat,
	SYS_openat2,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_fstatfs,
	SYS_mkdir,
	SYS_mkdirat,
	SYS_rename,
	SYS_renameat,
	SYS_unlink,
	SYS_unlinkat,
	SYS_linkat,
	SYS_ftruncate,
	SYS_fsync,
	SYS_flock,
	SYS_fchmod,
	SYS_mmap,
	SYS_brk,
	SYS_clone,
	SYS_clone3,
	SYS_pipe2,
	SYS_socket,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_accept4,
	SYS_sendto,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_setsockopt,
	SYS_getsockopt,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_wait,
	SYS_poll,
	SYS_eventfd2,
	SYS_timerfd_create,
	SYS_timerfd_settime,
	SYS_inotify_init1,
	SYS_inotify_add_watch,
	SYS_ioctl,
	SYS_getdents64,
	SYS_readlinkat,
	SYS_getrandom,
	SYS_wait4,
};
#define N_CALLS (sizeof calls / sizeof *calls)

static void die(const char *what)
{
	perror(what);
	_exit(126);
}

static int install(void)
{
	struct sock_filter code[N_CALLS + 5];
	unsigned n = 0;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < N_CALLS; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], (uint8_t)(N_CALLS - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("no_new_privs");
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0)
		die("seccomp");
	return fd;
}

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static void hand_over(int socket, int fd)
{
	union control control = {0};
	char byte = 0;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (sendmsg(socket, &m, 0) != 1)
		die("sendmsg");
}

static int take(int socket)
{
	union control control;
	char byte;
	int fd = -1;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	if (recvmsg(socket, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* The process, not the thread, has the descriptors that pidfd_getfd() takes. */
static pid_t process_of(pid_t thread)
{
	char path[64], line[256];
	int pid = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/status", thread);
	FILE *file = fopen(path, "re");
	while (file && !pid && fgets(line, sizeof line, file))
		(void)sscanf(line, "Tgid: %d", &pid);
	if (file)
		(void)fclose(file);
	return pid;
}

static int descriptor_of(const struct seccomp_notif *ask)
{
	int process = (int)syscall(SYS_pidfd_open, process_of((pid_t)ask->pid), 0);
	int fd = process < 0 ? -1
			     : (int)syscall(SYS_pidfd_getfd, process, (int)ask->data.args[0], 0);
	if (process >= 0)
		(void)close(process);
	return fd;
}

/* Where the caller has its first byte, or wants it. */
static void *first_byte(const struct seccomp_notif *ask)
{
	struct iovec first = {0};
	struct iovec here = {&first, sizeof first};
	struct iovec there = {(void *)(uintptr_t)ask->data.args[1], sizeof first};
	if (ask->data.nr != SYS_readv && ask->data.nr != SYS_writev)
		return ask->data.args[2] > 1 ? there.iov_base : NULL;
	if (process_vm_readv((pid_t)ask->pid, &here, 1, &there, 1, 0) != sizeof first)
		return NULL;
	return first.iov_len ? first.iov_base : NULL;
}

static ssize_t move_one(const struct seccomp_notif *ask, int fd, void *at)
{
	int nr = ask->data.nr, flags = (int)ask->data.args[3];
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {at, 1};
	bool in = nr == SYS_read || nr == SYS_readv || nr == SYS_recvfrom;
	struct pollfd ready = {.fd = fd, .events = in ? POLLIN : POLLOUT};
	if (poll(&ready, 1, 0) != 1)
		return -1;
	if (in) {
		ssize_t n = nr == SYS_recvfrom ? recv(fd, &byte, 1, flags) : read(fd, &byte, 1);
		return n == 1 ? process_vm_writev((pid_t)ask->pid, &here, 1, &there, 1, 0) : n;
	}
	if (process_vm_readv((pid_t)ask->pid, &here, 1, &there, 1, 0) != 1)
		return -1;
	return nr == SYS_sendto ? send(fd, &byte, 1, flags) : write(fd, &byte, 1);
}

/* How many bytes were moved in place of the caller's; 0: the caller shall do that. */
static ssize_t cut_short(const struct seccomp_notif *ask)
{
	void *at = first_byte(ask);
	int fd = at ? descriptor_of(ask) : -1;
	ssize_t n = fd < 0 ? 0 : move_one(ask, fd, at);
	if (fd >= 0)
		(void)close(fd);
	return n > 0 ? n : 0;
}

static bool is_next(struct plan *plan, int call)
{
	if (__atomic_load_n(&plan->call, __ATOMIC_ACQUIRE) != call)
		return false;
	plan->seen++;
	if (plan->skip-- > 0 || plan->fail-- <= 0)
		return false;
	plan->skip = plan->every ? plan->every - 1 : 0;
	return true;
}

static void answer(struct plan *plan, int notifier)
{
	struct seccomp_notif ask;
	memset(&ask, 0, sizeof ask);
	if (ioctl(notifier, SECCOMP_IOCTL_NOTIF_RECV, &ask) < 0)
		return; /* the calling process has been killed */
	struct seccomp_notif_resp told = {.id = ask.id};
	if (ask.data.nr >= 0 && ask.data.nr < MADE_MAX)
		plan->made[ask.data.nr]++;
	if (is_next(plan, ask.data.nr)) {
		told.error = -plan->error;
		told.val = plan->error ? 0 : cut_short(&ask);
	}
	if (told.error || told.val)
		plan->failed++;
	else
		told.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	(void)ioctl(notifier, SECCOMP_IOCTL_NOTIF_SEND, &told);
}

/* Answers notifications until the last supervised process has ended. */
static void supervise(struct plan *plan, int notifier)
{
	struct pollfd p = {.fd = notifier, .events = POLLIN};
	while (poll(&p, 1, -1) >= 0 || errno == EINTR) {
		if (p.revents & POLLIN)
			answer(plan, notifier);
		else if (p.revents)
			return;
	}
}

int main(int argc, char **argv)
{
	int pair[2], fd = argc > 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		die("supervise PLAN COMMAND …");
	struct plan *plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (plan == MAP_FAILED)
		die(argv[1]);
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		(void)setsid(); /* signals of a terminal are not for it */
		supervise(plan, take(pair[1]));
		return 0;
	}
	hand_over(pair[0], install());
	execv(argv[2], argv + 2);
	die(argv[2]);
}
