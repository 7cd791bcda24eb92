/* spool/queue_file.h - the format of one message on disk (docs/SPOOL.md).
 *
 * content, then the envelope, then a trailer with the place of each:
 *
 *   header      16 bytes  magic, version
 *   content     as it was submitted, plus the Received field put in front
 *   envelope    records: type, 0, u16 length, bytes. One sender; version 2:
 *               what he asked of reports
 *   recipients  records: 'R', mark, u16 length, bytes; version 2: what the
 *               sender asked of reports about this recipient
 *   trailer     QUEUE_FILE_TRAILER bytes: offsets, lengths, times, CRC32C of
 *               content, of envelope and recipients (marks taken as pending)
 *               and of itself; the file is exactly as long as it says
 *
 * Integers are little-endian, fixed width. After acceptance only the marks
 * change, one byte each, in place. A file without a whole trailer was never
 * accepted.
 *
 * Soft: -errno; -EBADMSG for a damaged file, with a reason from
 * queue_file_reason(). Never logs. The caller owns a reader or writer, and
 * passes and closes the descriptor.
 */
#ifndef SPOOL_QUEUE_FILE_H
#define SPOOL_QUEUE_FILE_H

#include "base/address.h"
#include "base/buf.h"
#include "base/dsn.h"
#include "spool/id.h"
#include "spool/sys.h"

#define QUEUE_FILE_HEADER  16
#define QUEUE_FILE_TRAILER 128
#define QUEUE_FILE_PLAIN   1 /* version of a file without wishes */
#define QUEUE_FILE_VERSION 2 /* the newest */

enum rcpt_mark {
	RCPT_PENDING = '.', /* to be delivered */
	RCPT_DONE = 'D',    /* delivered */
	RCPT_FAILED = 'F',  /* failed for good; the reason is in bounce/ */
	/* On disk, version 2 alone; a reader gets RCPT_DONE and enum rcpt_done:
	 */
	RCPT_RELAYED = 'R',
	RCPT_EXPANDED = 'E',
	RCPT_PASSED = 'P',
};

/* How a recipient with RCPT_DONE was dealt with. */
enum rcpt_done {
	DONE_DELIVERED,
	DONE_RELAYED,  /* no notice of success comes from beyond */
	DONE_EXPANDED, /* an alias of several recipients */
	/* The one recipient of an alias, or a server that tells of a success,
	 * has the wishes of the sender. */
	DONE_PASSED,
};

enum queue_file_flags {
	QUEUE_FILE_8BIT = 1 << 0,     /* content has octets above 127 */
	QUEUE_FILE_EXPANDED = 1 << 1, /* made by the expansion of an alias */
	QUEUE_FILE_FINAL = 1 << 2,    /* no failure of it is reported */
	QUEUE_FILE_REPORT = 1 << 3,   /* made by this system */
	QUEUE_FILE_RELEASED = 1 << 4, /* made of a message that an operator
				       * released: no rule of hold fits it */
};

/* The fields of the trailer. */
struct queue_file {
	uint64_t size; /* of the file */
	uint64_t content_off, content_len;
	uint64_t env_off, env_len;
	uint64_t rcpt_off, rcpt_len;
	uint32_t rcpt_count;
	uint32_t queue;       /* number of the queue it was accepted for */
	usec_t arrival_wall;  /* when it was accepted */
	uint32_t uid;         /* of the submitter */
	uint32_t flags;       /* enum queue_file_flags */
	uint32_t crc_content; /* CRC32C of header and content */
	uint32_t crc_env;     /* of envelope and recipients, marks as pending */
	uint8_t nonce;        /* of the queue id */
	uint8_t version;
};

static inline struct queue_id
queue_file_id(const struct queue_file *file, uint64_t inode)
{
	return (struct queue_id){ file->arrival_wall, file->nonce, file->queue,
		inode };
}

static inline bool
queue_file_is(const struct queue_file *file, const struct queue_id *id)
{
	return file->arrival_wall == id->arrival_wall &&
	    file->nonce == id->nonce && file->queue == id->queue;
}

/* ---- writing: strictly in this order, through a buffer ---- */

struct queue_file_writer {
	const struct spool_sys *sys;
	int fd;
	struct queue_file file; /* arrival_wall, queue, uid, nonce: set by the
				   caller after init and before finish */
	uint64_t max_content;   /* 0: no limit */
	int phase, error;       /* private; the first error sticks */
	bool may_wish;          /* private: a wish may follow */
	struct buf out;
};

/* -ENOMEM. Parts that are added out of order are a bug. The first error sticks:
 * each later call, finish too, returns it again. */
int queue_file_writer_init(struct queue_file_writer *w,
    const struct spool_sys *sys, int fd, uint64_t max_content);
void queue_file_writer_done(struct queue_file_writer *w);
/* -EFBIG when the content would pass max_content. */
int queue_file_add_content(
    struct queue_file_writer *w, const void *data, size_t len);
/* "" is the null sender; "#@[]", qmail's sender of a double bounce, is stored
 * as the null sender and sets QUEUE_FILE_FINAL. -EINVAL, -EILSEQ,
 * -ENAMETOOLONG: address_check(). */
int queue_file_add_sender(
    struct queue_file_writer *w, const char *sender, size_t len);
int
queue_file_add_rcpt(struct queue_file_writer *w, const char *rcpt, size_t len);
/* Right behind the sender; and right behind the recipient that it is of. What
 * is empty adds nothing; else the file gets version 2. -EBADRQC: no value that
 * RFC 3461 allows. */
int queue_file_add_dsn(struct queue_file_writer *w, const struct dsn_mail *dsn);
int queue_file_add_rcpt_dsn(
    struct queue_file_writer *w, const struct dsn_rcpt *dsn);
/* Trailer and flush; nothing is synced. -EDESTADDRREQ without a recipient. */
int queue_file_finish(struct queue_file_writer *w);

/* ---- reading ---- */

/* Reads the trailer alone. Checks file type, size, magic,
 * version, the trailer's own CRC and that all regions fit each other. */
int queue_file_read(int fd, struct queue_file *ret_file);
/* The same of a regular file of that size, but for the magic at its start: for
 * a question about the message's identity. */
int queue_file_trailer(int fd, uint64_t size, struct queue_file *ret_file);
/* Could a trailer of any version say this, of a file of that size? */
bool queue_file_is_possible(const struct queue_file *file);
/* Reads so many bytes of the content, from its beginning; -EBADMSG: there are
 * fewer. */
int queue_file_content(int fd, uint64_t content_off, void *out, size_t len);
struct queue_rcpt_cursor;
/* Reads the whole file and compares the checksums; bounded memory. */
int queue_file_verify(int fd, const struct queue_file *file);
/* The same for a reader of sender and recipients, who gets the sender, and in
 * the cursor the recipients that were read last: queue_rcpt_again(). */
int queue_file_verify_for(int fd, const struct queue_file *file,
    struct buf *ret_sender, struct queue_rcpt_cursor *ret_cursor);

/* Compares the checksum of sender and recipients alone. */
int queue_file_verify_envelope(int fd, const struct queue_file *file);

/* The checksums of the bytes in a file, and whether the trailer has them. */
struct queue_file_sums {
	uint32_t content, env;
	bool content_is_right, envelope_is_right;
};
/* Reads the whole file; what is read before an error is set. -EBADMSG: sender
 * or recipients cannot be read. */
int queue_file_sum(
    int fd, const struct queue_file *file, struct queue_file_sums *ret_sums);
/* Writes a trailer with these checksums in place; nothing is synced. */
int queue_file_renew(const struct spool_sys *sys, int fd,
    const struct queue_file *file, const struct queue_file_sums *sums);
/* The sender; *ret_sender gets a string ("" for the null sender). */
int queue_file_sender(
    int fd, const struct queue_file *file, struct buf *ret_sender);

/* The wishes of the sender about the message (base/dsn.h). */
int
queue_file_dsn(int fd, const struct queue_file *file, struct dsn_mail *ret_dsn);

struct queue_rcpt {
	uint32_t index;  /* counted from 0 in the file */
	uint64_t offset; /* of the record, for queue_file_mark() */
	enum rcpt_mark mark;
	enum rcpt_done done; /* with RCPT_DONE */
	struct dsn_rcpt dsn; /* wishes of the sender about it */
	size_t len;
	char address[ADDRESS_MAX + 1];
};

/* Walk the recipients through one buffer of fixed size. */
#define QUEUE_RCPT_CURSOR_BUF 16384
struct queue_rcpt_cursor {
	uint64_t next;  /* offset of the next record */
	uint64_t end;   /* of the last one */
	uint32_t index; /* of the next record */
	uint32_t left;  /* records still to come, by the trailer */
	uint8_t version;
	size_t ahead; /* bytes of one read at most, but a whole record */
	uint64_t buf_off;
	size_t buf_len;
	char buf[QUEUE_RCPT_CURSOR_BUF];
};

/* The bytes that are read at once where so many recipients are wanted. */
static inline size_t
queue_rcpt_ahead(uint32_t rcpts)
{
	const uint64_t bytes = 512 + 128 * (uint64_t)rcpts;

	return bytes < QUEUE_RCPT_CURSOR_BUF ? (size_t)bytes
					     : QUEUE_RCPT_CURSOR_BUF;
}

void
queue_rcpt_begin(struct queue_rcpt_cursor *c, const struct queue_file *file);
/* From the first one again; what lies in its buffer is not read again. */
void
queue_rcpt_again(struct queue_rcpt_cursor *c, const struct queue_file *file);
/* Continue at a record that was read before (a later batch). */
void queue_rcpt_seek(struct queue_rcpt_cursor *c, const struct queue_file *file,
    uint64_t offset, uint32_t index);
/* Behind one of these two: the records from the offset on are these, and are
 * copied, at most QUEUE_RCPT_CURSOR_BUF bytes: no descriptor is read for them.
 */
void queue_rcpt_give(struct queue_rcpt_cursor *c, uint64_t offset,
    const void *records, size_t len);
/* 1: *ret_rcpt is the next recipient; 0: there is none. After a failure
 * *ret_rcpt is not to be used. */
int queue_rcpt_next(
    struct queue_rcpt_cursor *c, int fd, struct queue_rcpt *ret_rcpt);

/* The records of all recipients, file->rcpt_len bytes, as the cursor has read
 * them; NULL: they are more than its buffer holds, or were not read. */
const char *queue_rcpt_bytes(
    const struct queue_rcpt_cursor *c, const struct queue_file *file);

/* The recipient at this place again. -EBADMSG: there is none. */
int queue_file_rcpt(int fd, const struct queue_file *file, uint64_t offset,
    uint32_t index, struct queue_rcpt *ret_rcpt);

/* Write a recipient's mark in place: one byte, before it is reported. */
int queue_file_mark(const struct spool_sys *sys, int fd, uint64_t rcpt_offset,
    enum rcpt_mark mark);

/* The reason of this thread's last -EBADMSG (here) or -EPERM (spool.h):
 * "trailer checksum differs". */
const char *queue_file_reason(void);
#define QUEUE_FILE_WRONG_CONTENT \
	"content checksum differs from the one stored at acceptance"
#define QUEUE_FILE_WRONG_ENVELOPE                                           \
	"checksum of sender and recipients differs from the one stored at " \
	"acceptance"

#endif
