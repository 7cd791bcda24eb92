#include "deliver-smtp/smtp.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <asm/sockios.h>
#include <unistd.h>

/* Refused always. */
static const int calls[] = {
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise),
	SCMP_SYS(process_mrelease),
	SCMP_SYS(kcmp),
	SCMP_SYS(migrate_pages),
	SCMP_SYS(move_pages),
	SCMP_SYS(setpriority),
	SCMP_SYS(ioprio_set),
	SCMP_SYS(sched_setaffinity),
	SCMP_SYS(sched_setscheduler),
	SCMP_SYS(sched_setparam),
	SCMP_SYS(sched_setattr),
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
};

/* Refused with this argument: the process that gets the signals of a
 * descriptor, and the signal. */
static const struct {
	int call;
	unsigned arg;
	uint32_t value;
} arguments[] = {
	{ SCMP_SYS(fcntl), 1, F_SETOWN },
	{ SCMP_SYS(fcntl), 1, F_SETOWN_EX },
	{ SCMP_SYS(fcntl), 1, F_SETSIG },
	{ SCMP_SYS(ioctl), 1, FIOSETOWN },
	{ SCMP_SYS(ioctl), 1, SIOCSPGRP },
};

/* The kernel takes these arguments as 32 bits: so does the filter. */
static struct scmp_arg_cmp
equals(unsigned arg, uint32_t value)
{
	return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, UINT32_MAX, value);
}

static struct scmp_arg_cmp
differs(unsigned arg, scmp_datum_t value)
{
	return SCMP_CMP(arg, SCMP_CMP_NE, value, 0);
}

static int
add_calls(scmp_filter_ctx filter)
{
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_LEN(calls) && r == 0; i++)
		r = seccomp_rule_add(
		    filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
	for (i = 0; i < ARRAY_LEN(arguments) && r == 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM),
		    arguments[i].call, 1,
		    equals(arguments[i].arg, arguments[i].value));
	return r;
}

/* tgkill, which abort() uses, and prlimit, for this process alone. A process
 * number has 22 bits at most, so the comparison of all 64 refuses no less. */
static int
add_own(scmp_filter_ctx filter)
{
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM),
	    SCMP_SYS(tgkill), 1, differs(0, (scmp_datum_t)getpid()));

	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM),
		    SCMP_SYS(prlimit64), 1, differs(0, 0));
	return r;
}

int
lockdown_install(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (filter == NULL)
		return -ENOMEM;
	r = add_calls(filter);
	if (r == 0)
		r = add_own(filter);
	/* A tree instead of a list: few steps for each call of the loop. */
	if (r == 0)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}
