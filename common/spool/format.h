/* spool/format.h - the bytes of a queue file (docs/SPOOL.md), shared by the
 * writer and the reader alone: magics, records, the trailer on disk, the
 * checksum. */
#ifndef SPOOL_FORMAT_H
#define SPOOL_FORMAT_H

#include "spool/queue_file.h"

#define FORMAT_SENDER   'S'
#define FORMAT_RCPT     'R'
#define FORMAT_MAIL_DSN 'M' /* version 2, behind the sender */
#define FORMAT_RCPT_DSN 'N' /* version 2, behind a recipient */
#define FORMAT_RECORD   4   /* type, mark or 0, u16 length */
#define FORMAT_RCPT_MIN (FORMAT_RECORD + 1)
#define FORMAT_RCPT_MAX (FORMAT_RECORD + ADDRESS_MAX)
/* The most of an envelope, and of a recipient, of any version. */
#define FORMAT_ENV_MAX  (FORMAT_RCPT_MAX + FORMAT_RECORD + DSN_ENVID_MAX)
#define FORMAT_WISH_MAX (FORMAT_RECORD + DSN_ORCPT_MAX)
#define FORMAT_FLAGS_ALL                                                       \
	((uint32_t)(QUEUE_FILE_8BIT | QUEUE_FILE_EXPANDED | QUEUE_FILE_FINAL | \
	    QUEUE_FILE_REPORT | QUEUE_FILE_RELEASED))

/* CRC32C (Castagnoli); crc is the value of the bytes before, 0 at first. */
uint32_t format_crc(uint32_t crc, const void *data, size_t len);

void format_put_header(unsigned char out[QUEUE_FILE_HEADER]);
int format_check_header(const unsigned char in[QUEUE_FILE_HEADER]);

void format_put_record(
    unsigned char out[FORMAT_RECORD], int type, int mark, size_t len);
size_t format_record_len(const unsigned char in[FORMAT_RECORD]);

void format_put_trailer(
    unsigned char out[QUEUE_FILE_TRAILER], const struct queue_file *file);
/* Checks all that can be checked without the rest of the file. */
int format_get_trailer(
    const unsigned char in[QUEUE_FILE_TRAILER], struct queue_file *ret_file);

/* -EBADMSG, and -EPERM; queue_file_reason() then returns the reason. */
int format_damaged(const char *reason);
int format_refused(const char *reason);

#endif
