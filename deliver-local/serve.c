#include "deliver-local/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/address.h"

/* One packet: this, the strings with their ends, the content. */
struct job {
	uint64_t number;
	usec_t started_at;
	uint32_t flags, rcpt_index;
	uint32_t sender_size, recipient_size; /* with the ends */
	uint32_t content_len;
	uint32_t reserved;
};

#define JOB_MAX \
	(sizeof(struct job) + 2 * ((size_t)ADDRESS_MAX + 1) + AGENT_WHOLE_MAX)

/* Of what is only read. */
static struct iovec
part(const void *data, size_t len)
{
	struct iovec iov = { .iov_len = len };

	memcpy(&iov.iov_base, &data, sizeof(data));
	return iov;
}

/* ---- the agent ---- */

int
serve_send(const struct child_plan *plan, int fd)
{
	const struct agent_delivery *d = plan->delivery;
	struct job job = { .number = plan->number,
		.started_at = plan->started_at,
		.flags = d->flags,
		.rcpt_index = plan->rcpt_index,
		.sender_size = (uint32_t)strlen(d->sender) + 1,
		.recipient_size = (uint32_t)strlen(plan->recipient) + 1,
		.content_len = (uint32_t)d->content_len };
	struct iovec parts[] = {
		part(&job, sizeof(job)),
		part(d->sender, job.sender_size),
		part(plan->recipient, job.recipient_size),
		part(d->content, job.content_len),
	};
	const struct msghdr msg = { .msg_iov = parts,
		.msg_iovlen = ARRAY_LEN(parts) };

	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- the process ---- */

/* The string of this size, its end among it, at *at. */
static char *
take_string(char **at, size_t *left, uint32_t size)
{
	char *s = *at;

	if (size == 0 || size > *left || s[size - 1] != '\0')
		return NULL;
	*at += size;
	*left -= size;
	return s;
}

/* The packet becomes the delivery and the plan, which point into it. */
static int
read_job(
    char *packet, size_t len, struct agent_delivery *d, struct child_plan *plan)
{
	char *at = packet + sizeof(struct job), *recipient;
	struct job job;
	size_t left;

	if (len < sizeof(job))
		return -EBADMSG;
	memcpy(&job, packet, sizeof(job));
	left = len - sizeof(job);
	d->sender = take_string(&at, &left, job.sender_size);
	recipient = take_string(&at, &left, job.recipient_size);
	if (d->sender == NULL || recipient == NULL || left != job.content_len)
		return -EBADMSG;
	d->content = at;
	d->content_len = left;
	d->flags = job.flags;
	plan->recipient = recipient;
	plan->rcpt_index = job.rcpt_index;
	plan->number = job.number;
	plan->started_at = job.started_at;
	return 0;
}

/* In one packet, so that the verdict is there when the octet is. The number
 * says which delivery it is of. */
static bool
answer_and_stay(uint64_t number, const struct verdict *v)
{
	const char octet = (char)VERDICT_STAYS;
	const struct iovec parts[] = {
		part(&octet, 1),
		part(&number, sizeof(number)),
		part(v, verdict_size(v)),
	};

	return writev(CHILD_RESULT_FD, parts, ARRAY_LEN(parts)) ==
	    (ssize_t)(1 + sizeof(number) + verdict_size(v));
}

/* The verdict has to be the last word, unless the process can deliver again. */
static void
answer(const struct child_plan *plan, const struct verdict *v)
{
	if (plan->stay->may) {
		if (!answer_and_stay(plan->number, v))
			_exit(EXIT_TEMPORARY);
		return;
	}
	_exit(verdict_write(v, CHILD_RESULT_FD) < 0 ? EXIT_TEMPORARY : 0);
}

static void
answer_anew(void)
{
	const char octet = (char)VERDICT_ANEW;

	_exit(write(CHILD_RESULT_FD, &octet, 1) == 1 ? 0 : EXIT_TEMPORARY);
}

_Noreturn void
serve_more(struct child_plan *plan, struct agent_delivery *d,
    const struct verdict *first)
{
	char *packet = malloc(JOB_MAX);
	struct verdict v;
	ssize_t n;

	plan->stay->may = plan->stay->may && packet != NULL;
	answer(plan, first);
	plan->stay->again = true;
	while ((n = recv(CHILD_RESULT_FD, packet, JOB_MAX, 0)) > 0) {
		if (read_job(packet, (size_t)n, d, plan) < 0 ||
		    !child_is_plain(plan))
			answer_anew();
		plan->stay->may = false;
		child_deliver(plan, &v);
		answer(plan, &v);
	}
	_exit(0);
}
