/* An owner of the SMTP server that writes everything down, for its tests. */
#ifndef TESTS_UNIT_SMTP_SERVER_OWNER_H
#define TESTS_UNIT_SMTP_SERVER_OWNER_H

#include "smtp/server.h"

#define BYTES(s) s, sizeof(s) - 1

/* All extensions, 1000 octets, 3 recipients: for the network, and as `sendmail
 * -bs` has it. */
extern const struct smtp_server_rules owner_strict, owner_local;

/* Replies, and questions in braces. Senders and recipients with "refused" in
 * them are refused, DATA of a sender with "nodata", the end of one with
 * "noend". */
#define EHLO_REPLY                                              \
	"250-mx.example\r\n250-PIPELINING\r\n250-SIZE 1000\r\n" \
	"250-8BITMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n"           \
	"250 ENHANCEDSTATUSCODES\r\n"
#define OK      "250 2.1.0 Ok\r\n"
#define MAIL_AB "{mail a@b 0  }" OK
#define RCPT_CD "{rcpt c@d  }" OK
#define DATA_OK "{data}354 go on\r\n"
#define END_OK  "{end}250 2.0.0 Ok: queued\r\n"
#define OPEN    "EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"
#define OPENED  EHLO_REPLY MAIL_AB RCPT_CD DATA_OK

/* Write `out` to the log. */
void owner_write(struct smtp_server *s, struct buf *log);
/* Feed one slice, in memory of its own. False: the session has ended. */
bool owner_feed(
    struct smtp_server *s, const char *data, size_t len, struct buf *log);
/* Everything that is said and asked in a session, without the greeting, and
 * "{close}" at its end. */
void owner_converse(const struct smtp_server_rules *rules, const char *data,
    size_t len, size_t slice, struct buf *log);

#endif
