/* smtp/server_parts.h - what the files of the state machine share. */
#ifndef SMTP_SERVER_PARTS_H
#define SMTP_SERVER_PARTS_H

#include "smtp/server.h"

/* ---- server_reply.c ---- */

/* Add a reply of one line, and count it if it is a refusal. dsn may be NULL.
 * SMTP_SERVER_WANT: the reply is all that its command makes. */
enum smtp_server_event smtp_server_reply(struct smtp_server *s, unsigned code,
    const char *dsn, const char *fmt, ...) PRINTF(4, 5);
void smtp_server_vreply(struct smtp_server *s, unsigned code, const char *dsn,
    const char *fmt, va_list ap) PRINTF(4, 0);
/* The answer to EHLO: one line for each extension. */
enum smtp_server_event smtp_server_reply_ehlo(struct smtp_server *s);

/* ---- server_command.c ---- */

/* The line in s->line is a whole command without its line end. The event that
 * it makes; WANT: none, the reply is there. */
enum smtp_server_event smtp_server_command(struct smtp_server *s);

/* ---- server_param.c ---- */

/* Read `FROM:<path> parameters` into s->mail, `TO:<path> parameters` into
 * s->rcpt. 0; -1: refused, the reply is there. */
int smtp_server_read_mail(struct smtp_server *s, char *args);
int smtp_server_read_rcpt(struct smtp_server *s, char *args);

#endif
