#include "queue-inject/job.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

int
job_copy(struct job *job)
{
	const char *data;
	size_t len;
	int r;

	while ((r = source_peek(&job->source, &data, &len)) > 0) {
		r = submission_content(job->submission, data, len);
		if (r < 0)
			return r;
		source_take(&job->source, len);
	}
	return r < 0 ? message_refuse_source(&job->why, r) : 0;
}

static int
put_envelope(struct job *job)
{
	const struct envelope *e = &job->envelope;
	const char *rcpt;
	size_t pos = 0, len;
	int r = submission_sender(
	    job->submission, buf_str(&e->sender), e->sender.len);

	while (r == 0 && (rcpt = envelope_next_rcpt(e, &pos, &len)) != NULL)
		r = submission_rcpt(job->submission, rcpt, len);
	return r;
}

/* Once for a message, whichever queue takes it in the end. */
static int
wait_in_line(struct job *job)
{
	struct pollfd stop = { .fd = job->stop_fd, .events = POLLIN };
	usec_t now = clock_mono(),
	       until = now + submission_pause(job->submission);

	if (job->waited)
		return 0;
	job->waited = until > now;
	for (; now < until; now = clock_mono())
		if (poll(&stop, 1, (int)((until - now) / USEC_PER_MSEC) + 1) >
		    0)
			return message_refuse_source(&job->why, -ECANCELED);
	return 0;
}

static int
store_once(struct job *job, struct queue_id *ret_id)
{
	int r = job->face->content(job);

	if (r == 0 && !job->has_envelope) {
		r = job->face->envelope(job);
		job->has_envelope = r == 0;
	}
	if (r == 0)
		r = put_envelope(job);
	if (r == 0)
		r = wait_in_line(job);
	if (r == 0)
		r = submission_commit(job->submission, ret_id);
	return r;
}

static int
refuse_storage(struct job *job, int error)
{
	if (error == -EFBIG && job->conf.message_size_limit != 0)
		return refuse(&job->why, REFUSAL_TOO_BIG,
		    "the message is larger than %llu bytes "
		    "(message_size_limit)",
		    (unsigned long long)job->conf.message_size_limit);
	return refuse_error(
	    &job->why, error, submission_reason(job->submission));
}

/* In one queue after the other, while the message can be had again. */
static int
store(struct job *job, struct queue_id *ret_id)
{
	const struct submit_origin origin = { job->identity.uid,
		job->identity.host, job->eol, job->announced };
	int r = submission_begin(job->submission, &origin);

	while (r == 0) {
		r = store_once(job, ret_id);
		if (r == 0)
			return 0;
		if (job->why.kind != REFUSAL_NONE || r == -EFBIG)
			submission_abort(job->submission, 0);
		else
			submission_abort(job->submission, r);
		if (job->why.kind != REFUSAL_NONE)
			return -1;
		if (!source_rewind(&job->source))
			break;
		r = submission_again(job->submission, r, &origin);
	}
	return refuse_storage(job, r);
}

/* What a file on standard input still has; 0 where that is not known. */
static uint64_t
announced(void)
{
	const off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct stat st;

	if (at < 0 || fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size <= at)
		return 0;
	return (uint64_t)(st.st_size - at);
}

int
job_run(struct job *job, struct queue_id *ret_id)
{
	if (job->no_input)
		return refuse(
		    &job->why, REFUSAL_READ, "standard input is closed");
	identity_init(&job->identity, &job->conf);
	job->announced = announced();
	job->envelope.rcpt_limit = job->conf.message_recipient_limit;
	if (source_init(&job->source, 0, !job->options.ignore_dot,
		job->deadline_mono, job->stop_fd) < 0 ||
	    submit_new(&job->conf, job->sys, &job->submit) < 0 ||
	    submission_new(job->submit, &job->submission) < 0)
		return refuse(&job->why, REFUSAL_MEMORY, "out of memory");
	if (job->face->prepare(job) < 0)
		return -1;
	source_mark(&job->source);
	return store(job, ret_id);
}

void
job_done(struct job *job)
{
	submission_free(&job->submission);
	submit_free(&job->submit);
	source_done(&job->source);
	message_done(&job->message);
	envelope_done(&job->envelope);
	conf_done(&job->conf);
}
