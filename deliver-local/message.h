/* deliver-local/message.h - what a mailbox or a program gets: two header lines
 * of ours, then the content as it was submitted, byte for byte.
 *
 *	Return-Path: <sender>
 *	Delivered-To: recipient
 *
 * Lines of ours end in LF, as mailboxes and programs of this kind of system
 * expect; line ends of the content are left as they are, CRLF too.
 * Soft: -errno; -EIO also when the file ends before the content does.
 */
#ifndef DELIVER_LOCAL_MESSAGE_H
#define DELIVER_LOCAL_MESSAGE_H

#include "base/buf.h"

#define MESSAGE_CHUNK      65536
/* Of the header, so much is looked at for loops. */
#define MESSAGE_HEADER_MAX ((size_t)256 << 10)

struct message {
	const char *data; /* all of it, or NULL: it is in the file */
	int fd;           /* read with offsets only: its position is shared */
	uint64_t off, len;
	const char *sender, *recipient; /* without control characters */
	/* private: where reading is */
	struct buf prefix;
	uint64_t at; /* of prefix and content together */
};

/* Sets it to the beginning. -ENOMEM. */
int message_begin(struct message *m);
void message_done(struct message *m);
/* The next bytes, at most size; 0 at the end. */
int64_t message_read(struct message *m, char *out, size_t size);

enum message_loop {
	MESSAGE_NO_LOOP,
	MESSAGE_WAS_HERE, /* Delivered-To names this recipient */
	MESSAGE_MANY_HOPS,
};
/* Look for a loop: enum message_loop or -errno. A Delivered-To is this
 * recipient when local parts are equal and domains are but for case. */
int message_find_loop(const struct message *m, uint32_t hopcount_limit);

#endif
