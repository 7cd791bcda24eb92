#include "spool/queue_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"

/* Smallest file: header, null sender, one recipient of one byte, trailer. */
#define SIZE_MIN                                               \
	(QUEUE_FILE_HEADER + FORMAT_RECORD + FORMAT_RCPT_MIN + \
	    QUEUE_FILE_TRAILER)

/* All bytes or -EBADMSG: the file was longer a moment ago. */
static int
read_exact(int fd, void *out, size_t len, uint64_t off)
{
	const int64_t n = io_pread_all(fd, out, len, (int64_t)off);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : format_damaged("file became shorter");
}

int
queue_file_content(int fd, uint64_t content_off, void *out, size_t len)
{
	return read_exact(fd, out, len, content_off);
}

int
queue_file_trailer(int fd, uint64_t size, struct queue_file *ret_file)
{
	unsigned char trailer[QUEUE_FILE_TRAILER];
	struct queue_file file;
	int r;

	if (size < SIZE_MIN)
		return format_damaged("no trailer: file too short");
	r = read_exact(fd, trailer, sizeof(trailer), size - sizeof(trailer));
	if (r == 0)
		r = format_get_trailer(trailer, &file);
	if (r == 0 && file.size != size)
		r = format_damaged("file is not as long as its trailer says");
	if (r == 0)
		*ret_file = file;
	return r;
}

int
queue_file_read(int fd, struct queue_file *ret_file)
{
	unsigned char header[QUEUE_FILE_HEADER];
	struct queue_file file;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return format_damaged("not a regular file");
	r = queue_file_trailer(fd, (uint64_t)st.st_size, &file);
	if (r == 0)
		r = read_exact(fd, header, sizeof(header), 0);
	if (r == 0)
		r = format_check_header(header);
	if (r == 0)
		*ret_file = file;
	return r;
}

static int
sum_content(int fd, const struct queue_file *file, uint32_t *ret_crc)
{
	char chunk[65536];
	uint64_t off = 0;
	uint32_t crc = 0;

	while (off < file->env_off) {
		uint64_t left = file->env_off - off;
		size_t n = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
		int r = read_exact(fd, chunk, n, off);

		if (r < 0)
			return r;
		crc = format_crc(crc, chunk, n);
		off += n;
	}
	*ret_crc = crc;
	return 0;
}

/* ---- the envelope ---- */

/* All of it that is behind the sender. */
static int
parse_wishes(const unsigned char *record, size_t len, struct dsn_mail *ret_dsn)
{
	const char *envid = (const char *)record + FORMAT_RECORD;
	struct dsn_mail dsn = { 0 };

	if (len < FORMAT_RECORD || record[0] != FORMAT_MAIL_DSN ||
	    format_record_len(record) != len - FORMAT_RECORD)
		return format_damaged("record behind the sender");
	len -= FORMAT_RECORD;
	dsn.ret = record[1];
	if (!dsn_ret_is_valid(dsn.ret) || (dsn.ret == 0 && len == 0))
		return format_damaged("RET");
	if (len > 0 && dsn_envid_set(&dsn, envid, len) < 0)
		return format_damaged("ENVID");
	*ret_dsn = dsn;
	return 0;
}

/* Outputs are set when all is right. */
static int
read_envelope(int fd, const struct queue_file *file, struct buf *ret_sender,
    struct dsn_mail *ret_dsn)
{
	unsigned char record[FORMAT_ENV_MAX];
	const size_t all = (size_t)file->env_len - FORMAT_RECORD;
	const char *text = (const char *)record + FORMAT_RECORD;
	struct dsn_mail dsn = { 0 };
	size_t len;
	int r;

	ASSERT(
	    file->env_len >= FORMAT_RECORD && file->env_len <= sizeof(record));
	r = read_exact(fd, record, (size_t)file->env_len, file->env_off);
	if (r < 0)
		return r;
	len = format_record_len(record);
	if (record[0] != FORMAT_SENDER || record[1] != 0 || len > all ||
	    (file->version == QUEUE_FILE_PLAIN && len != all))
		return format_damaged("sender record");
	if (len > 0 && address_check(text, len) < 0)
		return format_damaged("sender address");
	if (len < all)
		r = parse_wishes(record + FORMAT_RECORD + len, all - len, &dsn);
	if (r < 0)
		return r;
	buf_reset(ret_sender);
	*ret_dsn = dsn;
	return buf_add(ret_sender, text, len);
}

static uint32_t
crc_record(uint32_t crc, int type, int value, const char *text, size_t len)
{
	unsigned char record[FORMAT_RECORD];

	format_put_record(record, type, value, len);
	crc = format_crc(crc, record, sizeof(record));
	return format_crc(crc, text, len);
}

static uint32_t
crc_rcpt(uint32_t crc, const struct queue_rcpt *rcpt)
{
	const struct dsn_rcpt *dsn = &rcpt->dsn;

	crc = crc_record(
	    crc, FORMAT_RCPT, RCPT_PENDING, rcpt->address, rcpt->len);
	if (dsn_rcpt_is_empty(dsn))
		return crc;
	return crc_record(
	    crc, FORMAT_RCPT_DSN, dsn->notify, dsn->orcpt, strlen(dsn->orcpt));
}

/* The checksum is over the records that the cursor returns, so that readers get
 * the bytes that were summed, and no others. */
static int
sum_envelope(int fd, const struct queue_file *file, struct buf *sender,
    struct queue_rcpt_cursor *cursor, uint32_t *ret_crc)
{
	struct queue_rcpt rcpt;
	struct dsn_mail dsn;
	uint32_t crc;
	int r = read_envelope(fd, file, sender, &dsn);

	if (r < 0)
		return r;
	crc = crc_record(0, FORMAT_SENDER, 0, buf_str(sender), sender->len);
	if (!dsn_mail_is_empty(&dsn))
		crc = crc_record(crc, FORMAT_MAIL_DSN, dsn.ret, dsn.envid,
		    strlen(dsn.envid));
	queue_rcpt_begin(cursor, file);
	while ((r = queue_rcpt_next(cursor, fd, &rcpt)) > 0)
		crc = crc_rcpt(crc, &rcpt);
	*ret_crc = crc;
	return r;
}

static int
verify_envelope(int fd, const struct queue_file *file, struct buf *sender,
    struct queue_rcpt_cursor *cursor)
{
	uint32_t crc = 0;
	int r = sum_envelope(fd, file, sender, cursor, &crc);

	return r == 0 && crc != file->crc_env
	    ? format_damaged(QUEUE_FILE_WRONG_ENVELOPE)
	    : r;
}

int
queue_file_sum(
    int fd, const struct queue_file *file, struct queue_file_sums *ret_sums)
{
	struct queue_rcpt_cursor cursor;
	struct buf sender = { 0 };
	int r = sum_content(fd, file, &ret_sums->content);

	if (r < 0)
		return r;
	ret_sums->content_is_right = ret_sums->content == file->crc_content;
	r = sum_envelope(fd, file, &sender, &cursor, &ret_sums->env);
	if (r == 0)
		ret_sums->envelope_is_right = ret_sums->env == file->crc_env;
	buf_done(&sender);
	return r;
}

int
queue_file_verify_envelope(int fd, const struct queue_file *file)
{
	struct queue_rcpt_cursor cursor;
	struct buf sender = { 0 };
	int r = verify_envelope(fd, file, &sender, &cursor);

	buf_done(&sender);
	return r;
}

int
queue_file_verify_for(int fd, const struct queue_file *file,
    struct buf *ret_sender, struct queue_rcpt_cursor *ret_cursor)
{
	uint32_t crc = 0;
	int r = sum_content(fd, file, &crc);

	if (r == 0 && crc != file->crc_content)
		r = format_damaged(QUEUE_FILE_WRONG_CONTENT);
	return r < 0 ? r : verify_envelope(fd, file, ret_sender, ret_cursor);
}

int
queue_file_verify(int fd, const struct queue_file *file)
{
	struct queue_rcpt_cursor cursor;
	struct buf sender = { 0 };
	int r = queue_file_verify_for(fd, file, &sender, &cursor);

	buf_done(&sender);
	return r;
}

int
queue_file_sender(int fd, const struct queue_file *file, struct buf *ret_sender)
{
	struct dsn_mail dsn;

	return read_envelope(fd, file, ret_sender, &dsn);
}

int
queue_file_dsn(int fd, const struct queue_file *file, struct dsn_mail *ret_dsn)
{
	struct buf sender = { 0 };
	int r = read_envelope(fd, file, &sender, ret_dsn);

	buf_done(&sender);
	return r;
}

void
queue_rcpt_begin(struct queue_rcpt_cursor *c, const struct queue_file *file)
{
	queue_rcpt_seek(c, file, file->rcpt_off, 0);
}

void
queue_rcpt_seek(struct queue_rcpt_cursor *c, const struct queue_file *file,
    uint64_t offset, uint32_t index)
{
	ASSERT(index <= file->rcpt_count);
	c->next = offset;
	c->end = file->rcpt_off + file->rcpt_len;
	c->index = index;
	c->left = file->rcpt_count - index;
	c->version = file->version;
	c->ahead = sizeof(c->buf);
	c->buf_off = 0;
	c->buf_len = 0;
}

void
queue_rcpt_again(struct queue_rcpt_cursor *c, const struct queue_file *file)
{
	c->next = file->rcpt_off;
	c->index = 0;
	c->left = file->rcpt_count;
}

void
queue_rcpt_give(struct queue_rcpt_cursor *c, uint64_t offset,
    const void *records, size_t len)
{
	ASSERT(len <= sizeof(c->buf));
	c->buf_off = offset;
	c->buf_len = len;
	memcpy(c->buf, records, len);
}

const char *
queue_rcpt_bytes(
    const struct queue_rcpt_cursor *c, const struct queue_file *file)
{
	return c->buf_off == file->rcpt_off && c->buf_len == file->rcpt_len
	    ? c->buf
	    : NULL;
}

/* Returns len bytes from c->next on, in the buffer; NULL with *ret_error. */
static const unsigned char *
cursor_peek(struct queue_rcpt_cursor *c, int fd, size_t len, int *ret_error)
{
	if (c->next > c->end || len > c->end - c->next) {
		*ret_error = format_damaged("recipients end in a record");
		return NULL;
	}
	if (c->next < c->buf_off || c->next + len > c->buf_off + c->buf_len) {
		const uint64_t left = c->end - c->next;
		const size_t want = len > c->ahead ? len : c->ahead;

		c->buf_off = c->next;
		c->buf_len = left < want ? (size_t)left : want;
		*ret_error = read_exact(fd, c->buf, c->buf_len, c->buf_off);
		if (*ret_error < 0) {
			c->buf_len = 0;
			return NULL;
		}
	}
	return (const unsigned char *)c->buf + (c->next - c->buf_off);
}

static const struct {
	char byte;
	uint8_t version; /* that has it first */
	enum rcpt_mark mark;
	enum rcpt_done done;
} marks[] = {
	{ RCPT_PENDING, 1, RCPT_PENDING, DONE_DELIVERED },
	{ RCPT_DONE, 1, RCPT_DONE, DONE_DELIVERED },
	{ RCPT_FAILED, 1, RCPT_FAILED, DONE_DELIVERED },
	{ RCPT_RELAYED, 2, RCPT_DONE, DONE_RELAYED },
	{ RCPT_EXPANDED, 2, RCPT_DONE, DONE_EXPANDED },
	{ RCPT_PASSED, 2, RCPT_DONE, DONE_PASSED },
};

static bool
take_mark(int byte, uint8_t version, struct queue_rcpt *ret_rcpt)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(marks); i++) {
		if (marks[i].byte != byte || marks[i].version > version)
			continue;
		ret_rcpt->mark = marks[i].mark;
		ret_rcpt->done = marks[i].done;
		return true;
	}
	return false;
}

/* Behind the recipient, if there is one. */
static int
next_wish(struct queue_rcpt_cursor *c, int fd, struct dsn_rcpt *ret_dsn)
{
	const unsigned char *record;
	size_t len;
	int r = 0;

	ret_dsn->notify = 0;
	ret_dsn->orcpt[0] = '\0';
	if (c->version == QUEUE_FILE_PLAIN || c->next == c->end)
		return 0;
	record = cursor_peek(c, fd, FORMAT_RECORD, &r);
	if (record == NULL || record[0] != FORMAT_RCPT_DSN)
		return r;
	len = format_record_len(record);
	record = cursor_peek(c, fd, FORMAT_RECORD + len, &r);
	if (record == NULL)
		return r;
	ret_dsn->notify = record[1];
	if (!dsn_notify_is_valid(record[1]) || (record[1] == 0 && len == 0))
		return format_damaged("NOTIFY");
	if (len > 0 &&
	    dsn_orcpt_set(ret_dsn, (const char *)record + FORMAT_RECORD, len) <
		0)
		return format_damaged("ORCPT");
	c->next += FORMAT_RECORD + len;
	return 0;
}

int
queue_rcpt_next(
    struct queue_rcpt_cursor *c, int fd, struct queue_rcpt *ret_rcpt)
{
	const unsigned char *record;
	size_t len;
	int r = 0;

	if (c->left == 0)
		return c->next == c->end
		    ? 0
		    : format_damaged("more recipients than the trailer says");
	record = cursor_peek(c, fd, FORMAT_RECORD, &r);
	if (record == NULL)
		return r;
	if (record[0] != FORMAT_RCPT ||
	    !take_mark(record[1], c->version, ret_rcpt))
		return format_damaged("recipient record");
	len = format_record_len(record);
	record = cursor_peek(c, fd, FORMAT_RECORD + len, &r);
	if (record == NULL)
		return r;
	if (address_check((const char *)record + FORMAT_RECORD, len) < 0)
		return format_damaged("recipient address");
	ret_rcpt->offset = c->next;
	ret_rcpt->len = len;
	memcpy(ret_rcpt->address, record + FORMAT_RECORD, len);
	ret_rcpt->address[len] = '\0';
	c->next += FORMAT_RECORD + len;
	r = next_wish(c, fd, &ret_rcpt->dsn);
	if (r < 0) {
		c->next = ret_rcpt->offset;
		return r;
	}
	ret_rcpt->index = c->index++;
	c->left--;
	return 1;
}

int
queue_file_rcpt(int fd, const struct queue_file *file, uint64_t offset,
    uint32_t index, struct queue_rcpt *ret_rcpt)
{
	struct queue_rcpt_cursor cursor;
	int r;

	queue_rcpt_seek(&cursor, file, offset, index);
	r = queue_rcpt_next(&cursor, fd, ret_rcpt);
	return r == 0 ? format_damaged("no such recipient") : r < 0 ? r : 0;
}

int
queue_file_mark(const struct spool_sys *sys, int fd, uint64_t rcpt_offset,
    enum rcpt_mark mark)
{
	const char byte = (char)mark;

	return spool_write_at(sys, fd, &byte, 1, (off_t)(rcpt_offset + 1));
}
