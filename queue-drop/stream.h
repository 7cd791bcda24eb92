/* queue-drop/stream.h - the records of spool/door.h as they come in. Bounded:
 * a buffer of STREAM_BUFFER bytes, whatever a record says of its length.
 *
 * Soft: -errno of read(); -EPROTO for what is no stream of records. */
#ifndef QUEUE_DROP_STREAM_H
#define QUEUE_DROP_STREAM_H

#include "base/base.h"

#define STREAM_BUFFER 65536

struct stream {
	int fd;
	size_t from, to; /* what of buf is not taken */
	char buf[STREAM_BUFFER];
};

struct stream_record {
	char type;
	uint32_t left; /* bytes of it that are still to come */
};

void stream_init(struct stream *s, int fd);
/* The head of the next record. -EPROTO at the end of the input. */
int stream_next(struct stream *s, struct stream_record *ret_record);
/* Bytes of the record, at least one, until left is 0; valid until the next
 * call. The length. */
int64_t
stream_bytes(struct stream *s, struct stream_record *record, const char **ret);
/* All of a short record: -EPROTO when it is longer than max. */
int stream_short(
    struct stream *s, struct stream_record *record, char *out, uint32_t max);
/* 0 at the end of the input, -EPROTO when something comes. */
int stream_end(struct stream *s);

#endif
