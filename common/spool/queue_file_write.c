#include "spool/queue_file.h"

#include <errno.h>
#include <string.h>

#include "spool/format.h"

/* A message of common size goes to disk in one write. */
#define BUFFER_SIZE 65536

enum phase {
	PHASE_CONTENT = 1,
	PHASE_RCPTS,
	PHASE_FINISHED,
};

static int
fail(struct queue_file_writer *w, int r)
{
	if (w->error == 0)
		w->error = r;
	return w->error;
}

static int
write_all(struct queue_file_writer *w, const void *data, size_t len)
{
	int r = spool_write_all(w->sys, w->fd, data, len);

	return r < 0 ? fail(w, r) : 0;
}

static int
flush(struct queue_file_writer *w)
{
	int r = write_all(w, w->out.data, w->out.len);

	buf_reset(&w->out);
	return r;
}

/* Writes through the buffer, which never grows; longer data are written
 * directly. */
static int
put(struct queue_file_writer *w, const void *data, size_t len)
{
	int r;

	if (w->out.len + len > BUFFER_SIZE) {
		r = flush(w);
		if (r < 0)
			return r;
	}
	if (len > BUFFER_SIZE)
		return write_all(w, data, len);
	r = buf_add(&w->out, data, len);
	return r < 0 ? fail(w, r) : 0;
}

int
queue_file_writer_init(struct queue_file_writer *w, const struct spool_sys *sys,
    int fd, uint64_t max_content)
{
	unsigned char header[QUEUE_FILE_HEADER];

	*w = (struct queue_file_writer){
		.sys = sys,
		.fd = fd,
		.max_content = max_content,
		.phase = PHASE_CONTENT,
		.file.version = QUEUE_FILE_PLAIN,
	};
	if (buf_reserve(&w->out, BUFFER_SIZE) < 0)
		return fail(w, -ENOMEM);
	format_put_header(header);
	w->file.crc_content = format_crc(0, header, sizeof(header));
	w->file.content_off = sizeof(header);
	return put(w, header, sizeof(header));
}

void
queue_file_writer_done(struct queue_file_writer *w)
{
	buf_done(&w->out);
}

static bool
has_8bit(const char *data, size_t len)
{
	uint64_t word, all = 0;

	for (; len >= sizeof(word); len -= sizeof(word), data += sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		all |= word;
	}
	for (; len > 0; len--)
		all |= (unsigned char)*data++;
	return (all & 0x8080808080808080) != 0;
}

int
queue_file_add_content(
    struct queue_file_writer *w, const void *data, size_t len)
{
	uint64_t total;

	ASSERT(w->phase == PHASE_CONTENT);
	if (w->error != 0)
		return w->error;
	if (__builtin_add_overflow(w->file.content_len, len, &total) ||
	    (w->max_content > 0 && total > w->max_content))
		return fail(w, -EFBIG);
	if (has_8bit(data, len))
		w->file.flags |= QUEUE_FILE_8BIT;
	w->file.crc_content = format_crc(w->file.crc_content, data, len);
	w->file.content_len = total;
	return put(w, data, len);
}

static int
put_record(struct queue_file_writer *w, int type, int mark, const char *text,
    size_t len)
{
	unsigned char record[FORMAT_RCPT_MAX];

	format_put_record(record, type, mark, len);
	memcpy(record + FORMAT_RECORD, text, len);
	len += FORMAT_RECORD;
	w->file.crc_env = format_crc(w->file.crc_env, record, len);
	return put(w, record, len);
}

int
queue_file_add_sender(
    struct queue_file_writer *w, const char *sender, size_t len)
{
	int r = len == 0 ? 0 : address_check(sender, len);

	ASSERT(w->phase == PHASE_CONTENT);
	if (w->error != 0)
		return w->error;
	if (r < 0)
		return fail(w, r);
	/* qmail's sender of a double bounce: the null sender, and no failure
	 * is reported. */
	if (len == sizeof(ADDRESS_DOUBLE_BOUNCE) - 1 &&
	    memcmp(sender, ADDRESS_DOUBLE_BOUNCE, len) == 0) {
		w->file.flags |= QUEUE_FILE_FINAL;
		len = 0;
	}
	w->phase = PHASE_RCPTS;
	w->may_wish = true;
	w->file.env_off = w->file.content_off + w->file.content_len;
	w->file.env_len = FORMAT_RECORD + len;
	w->file.rcpt_off = w->file.env_off + w->file.env_len;
	return put_record(w, FORMAT_SENDER, 0, sender, len);
}

int
queue_file_add_rcpt(struct queue_file_writer *w, const char *rcpt, size_t len)
{
	int r = address_check(rcpt, len);

	if (w->error != 0)
		return w->error;
	ASSERT(w->phase == PHASE_RCPTS);
	if (r < 0)
		return fail(w, r);
	if (w->file.rcpt_count == UINT32_MAX)
		return fail(w, -EFBIG);
	w->may_wish = true;
	w->file.rcpt_count++;
	w->file.rcpt_len += FORMAT_RECORD + len;
	return put_record(w, FORMAT_RCPT, RCPT_PENDING, rcpt, len);
}

/* A record of wishes, and its place in the trailer. */
static int
add_wish(struct queue_file_writer *w, int type, int value, const char *text)
{
	const size_t len = strlen(text);
	struct queue_file *f = &w->file;

	ASSERT(w->phase == PHASE_RCPTS && w->may_wish);
	w->may_wish = false;
	f->version = QUEUE_FILE_VERSION;
	if (type == FORMAT_MAIL_DSN) {
		ASSERT(f->rcpt_count == 0);
		f->env_len += FORMAT_RECORD + len;
		f->rcpt_off += FORMAT_RECORD + len;
	} else {
		ASSERT(f->rcpt_count > 0);
		f->rcpt_len += FORMAT_RECORD + len;
	}
	return put_record(w, type, value, text, len);
}

int
queue_file_add_dsn(struct queue_file_writer *w, const struct dsn_mail *dsn)
{
	if (w->error != 0)
		return w->error;
	if (dsn_mail_is_empty(dsn))
		return 0;
	if (!dsn_ret_is_valid(dsn->ret) ||
	    (dsn->envid[0] != '\0' &&
		dsn_envid_check(dsn->envid, strlen(dsn->envid)) < 0))
		return fail(w, -EBADRQC);
	return add_wish(w, FORMAT_MAIL_DSN, dsn->ret, dsn->envid);
}

int
queue_file_add_rcpt_dsn(struct queue_file_writer *w, const struct dsn_rcpt *dsn)
{
	if (w->error != 0)
		return w->error;
	if (dsn_rcpt_is_empty(dsn))
		return 0;
	if (!dsn_notify_is_valid(dsn->notify) ||
	    (dsn->orcpt[0] != '\0' &&
		dsn_orcpt_check(dsn->orcpt, strlen(dsn->orcpt)) < 0))
		return fail(w, -EBADRQC);
	return add_wish(w, FORMAT_RCPT_DSN, dsn->notify, dsn->orcpt);
}

int
queue_file_finish(struct queue_file_writer *w)
{
	unsigned char trailer[QUEUE_FILE_TRAILER];
	struct queue_file *f = &w->file;
	int r;

	if (w->error != 0)
		return w->error;
	if (f->rcpt_count == 0)
		return fail(w, -EDESTADDRREQ);
	ASSERT(w->phase == PHASE_RCPTS);
	f->size = f->rcpt_off + f->rcpt_len + sizeof(trailer);
	format_put_trailer(trailer, f);
	w->phase = PHASE_FINISHED;
	r = put(w, trailer, sizeof(trailer));
	return r < 0 ? r : flush(w);
}

int
queue_file_renew(const struct spool_sys *sys, int fd,
    const struct queue_file *file, const struct queue_file_sums *sums)
{
	struct queue_file renewed = *file;
	unsigned char trailer[QUEUE_FILE_TRAILER];

	renewed.crc_content = sums->content;
	renewed.crc_env = sums->env;
	format_put_trailer(trailer, &renewed);
	return spool_write_at(sys, fd, trailer, sizeof(trailer),
	    (off_t)(file->size - sizeof(trailer)));
}
