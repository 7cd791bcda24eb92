/* parts.h - what the files of common/report share. An error stays in the buf.
 */
#ifndef REPORT_PARTS_H
#define REPORT_PARTS_H

#include "report/report.h"

#define LINE_LIMIT 998 /* RFC 5322 section 2.1.1, without the line end */

/* ---- encode.c: text as lines of 7 bit ---- */

/* A line of quoted-printable, and its end. */
void quoted_line(struct buf *out, const char *s, size_t len);
/* `text` cleaned, filled to lines of 72, as quoted-printable; `indent` is in
 * front of each line but the first. */
void quoted_fill(struct buf *out, const char *indent, const char *text);
/* "NAME: " and a text for programs: printable ASCII, other characters as
 * \x{HEX}, folded. */
void
field_text(struct buf *out, const char *name, const char *text, size_t len);
/* "NAME: TYPE; ADDRESS"; of an address that is not ASCII the type is utf-8, in
 * the 7-bit form of RFC 6533 section 3. */
void field_address(
    struct buf *out, const char *name, const char *type, const char *address);
/* Append the bytes that xtext (RFC 3461 section 4) stands for. */
void xtext_decode(struct buf *out, const char *xtext);

/* ---- original.c: the message that the report is about ---- */

enum original_form {
	ORIGINAL_HEADER,         /* text/rfc822-headers, as it is */
	ORIGINAL_HEADER_ENCODED, /* the same, quoted-printable */
	ORIGINAL_WHOLE,          /* message/rfc822 */
	ORIGINAL_WHOLE_8BIT,     /* the same, with bytes above 127 */
	ORIGINAL_GLOBAL,         /* message/global: header with UTF-8 */
};

/* How the message can be returned. */
enum original_form original_judge(const struct report_facts *r);
bool original_is_8bit(const struct report_facts *r);
/* The part without its boundaries. */
void original_add(const struct report_facts *r, struct buf *out);

/* ---- prose.c: the part for people, without its boundaries ---- */

const char *prose_subject(const struct report_facts *r);
void prose_begin(const struct report_facts *r, struct buf *out);
/* written: the address that the sender wrote, "" where that is not known. */
void
prose_rcpt(const struct report_rcpt *to, const char *written, struct buf *out);
void prose_end(const struct report_facts *r, struct buf *out);

/* ---- status.c: the part for programs, without its boundaries ---- */

void status_begin(const struct report_facts *r, struct buf *out);
void status_rcpt(const struct report_facts *r, const struct report_rcpt *to,
    struct buf *out);

#endif
