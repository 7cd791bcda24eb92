/* deliver-smtp/content.h - the content of a message, encoded, a bounded
 * slice at a time: memory does not grow with the message. */
#ifndef DELIVER_SMTP_CONTENT_H
#define DELIVER_SMTP_CONTENT_H

#include "smtp/smtp.h"

struct evbuffer;

/* Octets read from the file for one slice. */
#define CONTENT_SLICE 32768

struct content {
	const char *data; /* all of it, or NULL: read it from fd */
	int fd;           /* both the caller's */
	uint64_t off, left;
	bool ended; /* the dot was put */
	struct smtp_encode encode;
};

/* From data, or if that is NULL from off in the file. */
void content_begin(
    struct content *c, const char *data, int fd, uint64_t off, uint64_t len);
/* Append the next slice to out, after the last one the dot. -errno: the file
 * cannot be read (-ENODATA: it is shorter than it was), -ENOMEM; the message
 * must not be ended then. */
int content_add(struct content *c, struct evbuffer *out);

#endif
