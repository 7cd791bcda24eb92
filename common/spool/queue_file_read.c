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
	int64_t n = io_pread_all(fd, out, len, (int64_t)off);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : format_damaged("file became shorter");
}

static int
read_trailer(int fd, struct queue_file *ret_file, struct format_sums *ret_sums)
{
	unsigned char trailer[QUEUE_FILE_TRAILER];
	struct stat st;
	uint64_t size;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return format_damaged("not a regular file");
	size = (uint64_t)st.st_size;
	if (size < SIZE_MIN)
		return format_damaged("no trailer: file too short");
	r = read_exact(fd, trailer, sizeof(trailer), size - sizeof(trailer));
	if (r == 0)
		r = format_get_trailer(trailer, ret_file, ret_sums);
	if (r == 0 && ret_file->size != size)
		r = format_damaged("file is not as long as its trailer says");
	return r;
}

int
queue_file_read(int fd, struct queue_file *ret_file)
{
	unsigned char header[QUEUE_FILE_HEADER];
	struct queue_file file;
	struct format_sums sums;
	int r = read_trailer(fd, &file, &sums);

	if (r == 0)
		r = read_exact(fd, header, sizeof(header), 0);
	if (r == 0)
		r = format_check_header(header);
	if (r == 0)
		*ret_file = file;
	return r;
}

static int
verify_content(int fd, const struct queue_file *file, uint32_t want)
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
	return crc == want ? 0 : format_damaged("content checksum");
}

/* The checksum is over the records that the cursor returns, so that readers get
 * the bytes that were summed, and no others. */
static int
verify_envelope(int fd, const struct queue_file *file, uint32_t want)
{
	unsigned char record[FORMAT_RECORD];
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct buf sender = { 0 };
	uint32_t crc;
	int r = queue_file_sender(fd, file, &sender);

	if (r < 0)
		return r;
	format_put_record(record, FORMAT_SENDER, 0, sender.len);
	crc = format_crc(0, record, sizeof(record));
	crc = format_crc(crc, buf_str(&sender), sender.len);
	buf_done(&sender);

	queue_rcpt_begin(&cursor, file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		format_put_record(record, FORMAT_RCPT, RCPT_PENDING, rcpt.len);
		crc = format_crc(crc, record, sizeof(record));
		crc = format_crc(crc, rcpt.address, rcpt.len);
	}
	if (r < 0)
		return r;
	return crc == want ? 0 : format_damaged("envelope checksum");
}

int
queue_file_verify(int fd, const struct queue_file *file)
{
	struct queue_file now;
	struct format_sums sums;
	int r = read_trailer(fd, &now, &sums);

	if (r == 0 && now.size != file->size)
		r = format_damaged("file has changed since it was opened");
	if (r == 0)
		r = verify_content(fd, file, sums.content);
	if (r == 0)
		r = verify_envelope(fd, file, sums.env);
	return r;
}

int
queue_file_sender(int fd, const struct queue_file *file, struct buf *ret_sender)
{
	unsigned char record[FORMAT_RCPT_MAX];
	size_t len = (size_t)file->env_len - FORMAT_RECORD;
	const char *text = (const char *)record + FORMAT_RECORD;
	int r;

	ASSERT(
	    file->env_len >= FORMAT_RECORD && file->env_len <= sizeof(record));
	r = read_exact(fd, record, (size_t)file->env_len, file->env_off);
	if (r < 0)
		return r;
	if (record[0] != FORMAT_SENDER || record[1] != 0 ||
	    format_record_len(record) != len)
		return format_damaged("sender record");
	if (len > 0 && address_check(text, len) < 0)
		return format_damaged("sender address");
	buf_reset(ret_sender);
	return buf_add(ret_sender, text, len);
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
	c->buf_off = 0;
	c->buf_len = 0;
}

/* Returns len bytes from c->next on, in the buffer; NULL with *ret_error. */
static const unsigned char *
cursor_peek(struct queue_rcpt_cursor *c, int fd, size_t len, int *ret_error)
{
	uint64_t left;

	if (c->next > c->end || len > c->end - c->next) {
		*ret_error = format_damaged("recipients end in a record");
		return NULL;
	}
	if (c->next < c->buf_off || c->next + len > c->buf_off + c->buf_len) {
		left = c->end - c->next;
		c->buf_off = c->next;
		c->buf_len =
		    left < sizeof(c->buf) ? (size_t)left : sizeof(c->buf);
		*ret_error = read_exact(fd, c->buf, c->buf_len, c->buf_off);
		if (*ret_error < 0) {
			c->buf_len = 0;
			return NULL;
		}
	}
	return (const unsigned char *)c->buf + (c->next - c->buf_off);
}

static bool
is_mark(int mark)
{
	return mark == RCPT_PENDING || mark == RCPT_DONE || mark == RCPT_FAILED;
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
	if (record[0] != FORMAT_RCPT || !is_mark(record[1]))
		return format_damaged("recipient record");
	len = format_record_len(record);
	record = cursor_peek(c, fd, FORMAT_RECORD + len, &r);
	if (record == NULL)
		return r;
	if (address_check((const char *)record + FORMAT_RECORD, len) < 0)
		return format_damaged("recipient address");
	ret_rcpt->index = c->index++;
	ret_rcpt->offset = c->next;
	ret_rcpt->mark = (enum rcpt_mark)record[1];
	ret_rcpt->len = len;
	memcpy(ret_rcpt->address, record + FORMAT_RECORD, len);
	ret_rcpt->address[len] = '\0';
	c->next += FORMAT_RECORD + len;
	c->left--;
	return 1;
}

int
queue_file_mark(const struct spool_sys *sys, int fd, uint64_t rcpt_offset,
    enum rcpt_mark mark)
{
	char byte = (char)mark;
	ssize_t n;

	do
		n = sys->pwrite(fd, &byte, 1, (off_t)(rcpt_offset + 1));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 1 ? 0 : -EIO;
}
