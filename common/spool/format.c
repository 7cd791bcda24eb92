#include "spool/format.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>

#include "base/bytes.h"

#define MAGIC_LEN      8
#define HEADER_VERSION 1 /* of the header; the trailer has that of the file */
static const char header_magic[] = "QSMAIL\r\n";
static const char trailer_magic[] = "QSEND\r\n";

/* Offsets in the trailer; the fields are packed in this order. */
enum trailer_at {
	AT_SIZE = 0,
	AT_CONTENT_OFF = 8,
	AT_CONTENT_LEN = 16,
	AT_ENV_OFF = 24,
	AT_ENV_LEN = 32,
	AT_RCPT_OFF = 40,
	AT_RCPT_LEN = 48,
	AT_ARRIVAL = 56,
	AT_RCPT_COUNT = 64,
	AT_QUEUE = 68,
	AT_UID = 72,
	AT_FLAGS = 76,
	AT_NONCE = 80,
	AT_VERSION = 84,
	AT_CRC_CONTENT = 88,
	AT_CRC_ENV = 92,
	AT_ZEROS = 96,
	AT_MAGIC = 116,
	AT_CRC = 124,
};
_Static_assert(AT_CRC + 4 == QUEUE_FILE_TRAILER, "the CRC is the end");
_Static_assert(AT_MAGIC + MAGIC_LEN == AT_CRC, "the magic is before it");
_Static_assert(sizeof(trailer_magic) == MAGIC_LEN, "with its NUL");

static _Thread_local const char *last_reason = "";

const char *
queue_file_reason(void)
{
	return last_reason;
}

int
format_damaged(const char *reason)
{
	last_reason = reason;
	return -EBADMSG;
}

int
format_refused(const char *reason)
{
	last_reason = reason;
	return -EPERM;
}

/* The function of the library takes an int length and a pointer that is not
 * const, and its caller inverts before and after. */
uint32_t
format_crc(uint32_t crc, const void *data, size_t len)
{
	const size_t chunk = 1 << 30;
	uintptr_t at = (uintptr_t)data;

	crc = ~crc;
	while (len > 0) {
		size_t n = len < chunk ? len : chunk;

		crc = crc32_iscsi((unsigned char *)at, (int)n, crc);
		at += n;
		len -= n;
	}
	return ~crc;
}

void
format_put_header(unsigned char out[QUEUE_FILE_HEADER])
{
	memset(out, 0, QUEUE_FILE_HEADER);
	memcpy(out, header_magic, MAGIC_LEN);
	bytes_put_u32(out + MAGIC_LEN, HEADER_VERSION);
}

int
format_check_header(const unsigned char in[QUEUE_FILE_HEADER])
{
	unsigned char want[QUEUE_FILE_HEADER];

	if (memcmp(in, header_magic, MAGIC_LEN) != 0)
		return format_damaged("header magic");
	if (bytes_get_u32(in + MAGIC_LEN) != HEADER_VERSION)
		return format_damaged("header version unknown");
	format_put_header(want);
	if (memcmp(in, want, sizeof(want)) != 0)
		return format_damaged("header not as version 1 has it");
	return 0;
}

void
format_put_record(
    unsigned char out[FORMAT_RECORD], int type, int mark, size_t len)
{
	out[0] = (unsigned char)type;
	out[1] = (unsigned char)mark;
	bytes_put_u16(out + 2, (uint16_t)len);
}

size_t
format_record_len(const unsigned char in[FORMAT_RECORD])
{
	return bytes_get_u16(in + 2);
}

void
format_put_trailer(
    unsigned char out[QUEUE_FILE_TRAILER], const struct queue_file *file)
{
	memset(out, 0, QUEUE_FILE_TRAILER);
	bytes_put_u64(out + AT_SIZE, file->size);
	bytes_put_u64(out + AT_CONTENT_OFF, file->content_off);
	bytes_put_u64(out + AT_CONTENT_LEN, file->content_len);
	bytes_put_u64(out + AT_ENV_OFF, file->env_off);
	bytes_put_u64(out + AT_ENV_LEN, file->env_len);
	bytes_put_u64(out + AT_RCPT_OFF, file->rcpt_off);
	bytes_put_u64(out + AT_RCPT_LEN, file->rcpt_len);
	bytes_put_u64(out + AT_ARRIVAL, (uint64_t)file->arrival_wall);
	bytes_put_u32(out + AT_RCPT_COUNT, file->rcpt_count);
	bytes_put_u32(out + AT_QUEUE, file->queue);
	bytes_put_u32(out + AT_UID, file->uid);
	bytes_put_u32(out + AT_FLAGS, file->flags);
	bytes_put_u32(out + AT_NONCE, file->nonce);
	bytes_put_u32(out + AT_VERSION, file->version);
	bytes_put_u32(out + AT_CRC_CONTENT, file->crc_content);
	bytes_put_u32(out + AT_CRC_ENV, file->crc_env);
	memcpy(out + AT_MAGIC, trailer_magic, MAGIC_LEN);
	bytes_put_u32(out + AT_CRC, format_crc(0, out, AT_CRC));
}

/* Regions follow each other from the header to the trailer without gaps. */
static bool
regions_fit(const struct queue_file *f)
{
	uint64_t end;

	return f->content_off == QUEUE_FILE_HEADER &&
	    !__builtin_add_overflow(f->content_off, f->content_len, &end) &&
	    f->env_off == end &&
	    !__builtin_add_overflow(f->env_off, f->env_len, &end) &&
	    f->rcpt_off == end &&
	    !__builtin_add_overflow(f->rcpt_off, f->rcpt_len, &end) &&
	    !__builtin_add_overflow(end, QUEUE_FILE_TRAILER, &end) &&
	    f->size == end && end <= INT64_MAX;
}

/* u32 times a small constant cannot overflow 64 bits. */
static bool
counts_fit(const struct queue_file *f)
{
	const bool wishes = f->version > QUEUE_FILE_PLAIN;
	const uint64_t env_max = wishes ? FORMAT_ENV_MAX : FORMAT_RCPT_MAX;
	const uint64_t rcpt_max =
	    FORMAT_RCPT_MAX + (wishes ? FORMAT_WISH_MAX : 0);

	return f->env_len >= FORMAT_RECORD && f->env_len <= env_max &&
	    f->rcpt_count > 0 &&
	    f->rcpt_len >= (uint64_t)f->rcpt_count * FORMAT_RCPT_MIN &&
	    f->rcpt_len <= (uint64_t)f->rcpt_count * rcpt_max;
}

static const char *
find_fault(const struct queue_file *f)
{
	if (!regions_fit(f))
		return "trailer: regions do not fit";
	if (!counts_fit(f))
		return "trailer: counts do not fit";
	if (f->arrival_wall < 0 || f->arrival_wall > QUEUE_ID_ARRIVAL_MAX)
		return "trailer: arrival time out of range";
	if (f->queue > QUEUE_NUM_MAX)
		return "trailer: queue number out of range";
	if ((f->flags & ~FORMAT_FLAGS_ALL) != 0)
		return "trailer: not as its version has it";
	return NULL;
}

bool
queue_file_is_possible(const struct queue_file *file)
{
	return file->version >= QUEUE_FILE_PLAIN &&
	    file->version <= QUEUE_FILE_VERSION && find_fault(file) == NULL;
}

static int
judge(const unsigned char in[QUEUE_FILE_TRAILER], const struct queue_file *f)
{
	static const unsigned char zeros[AT_MAGIC - AT_ZEROS];

	const char *fault = find_fault(f);

	if (fault != NULL)
		return format_damaged(fault);
	if (bytes_get_u32(in + AT_NONCE) > UINT8_MAX ||
	    memcmp(in + AT_ZEROS, zeros, sizeof(zeros)) != 0)
		return format_damaged("trailer: not as its version has it");
	return 0;
}

int
format_get_trailer(
    const unsigned char in[QUEUE_FILE_TRAILER], struct queue_file *ret_file)
{
	struct queue_file f = {
		.size = bytes_get_u64(in + AT_SIZE),
		.content_off = bytes_get_u64(in + AT_CONTENT_OFF),
		.content_len = bytes_get_u64(in + AT_CONTENT_LEN),
		.env_off = bytes_get_u64(in + AT_ENV_OFF),
		.env_len = bytes_get_u64(in + AT_ENV_LEN),
		.rcpt_off = bytes_get_u64(in + AT_RCPT_OFF),
		.rcpt_len = bytes_get_u64(in + AT_RCPT_LEN),
		.rcpt_count = bytes_get_u32(in + AT_RCPT_COUNT),
		.queue = bytes_get_u32(in + AT_QUEUE),
		.arrival_wall = (usec_t)bytes_get_u64(in + AT_ARRIVAL),
		.uid = bytes_get_u32(in + AT_UID),
		.flags = bytes_get_u32(in + AT_FLAGS),
		.crc_content = bytes_get_u32(in + AT_CRC_CONTENT),
		.crc_env = bytes_get_u32(in + AT_CRC_ENV),
		.nonce = in[AT_NONCE],
		.version = in[AT_VERSION],
	};
	int r;

	if (memcmp(in + AT_MAGIC, trailer_magic, MAGIC_LEN) != 0)
		return format_damaged("no trailer");
	if (bytes_get_u32(in + AT_CRC) != format_crc(0, in, AT_CRC))
		return format_damaged("trailer checksum differs");
	if (bytes_get_u32(in + AT_VERSION) < QUEUE_FILE_PLAIN ||
	    bytes_get_u32(in + AT_VERSION) > QUEUE_FILE_VERSION)
		return format_damaged("trailer version unknown");
	r = judge(in, &f);
	if (r < 0)
		return r;
	*ret_file = f;
	return 0;
}
