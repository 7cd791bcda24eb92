/* deliver-smtp/mime/mime_inside.h - shared by the sources of mime.h only.
 *
 *	mime.c       lines and fields
 *	mime_part.c  parts: what a survey notes, what a conversion declares
 */
#ifndef DELIVER_SMTP_MIME_MIME_INSIDE_H
#define DELIVER_SMTP_MIME_MIME_INSIDE_H

#include "deliver-smtp/mime/mime.h"

/* The beginning of a line that may be a boundary or a field. */
#define HOLD_MAX  512
#define VALUE_MAX 2048

enum where {
	IN_HEADER,
	IN_LEAF,
	IN_MULTI, /* before the first part, or behind the last */
};

enum line {
	LINE_HELD, /* anything yet */
	LINE_BODY,
	LINE_FIELD,
};

enum field {
	FIELD_NONE, /* no field was read yet */
	FIELD_TYPE,
	FIELD_CODING,
	FIELD_VERSION,
	FIELD_OTHER,
};

/* A part around the current one. */
struct level {
	uint32_t part;
	struct mime_type type;
	bool seen, closed; /* a boundary was; the last one was */
	bool eight;        /* octets above 127 between its parts */
};

/* The header of the current part. */
struct head {
	bool message; /* of a message, not of a part of one */
	enum mime_kind kind;
	struct mime_type type;
	enum mime_coding coding;
	bool has_type, has_coding, has_version;
	bool malformed; /* a field twice, or too long */
	enum field field;
	size_t len;
	char value[VALUE_MAX]; /* of the field, without line ends */
};

struct mime {
	const struct mime_plan *plan; /* NULL: a survey, which makes its own */
	struct mime_plan own;
	struct level levels[MIME_DEPTH_MAX];
	size_t depth;
	enum where where;
	struct head head;
	uint32_t part, nparts;
	bool change;    /* the current part */
	bool encodable; /* the same: an encoding may be declared */
	bool marked;    /* the same: that it has octets above 127 */
	bool dropping;  /* the field is left out */
	unsigned utf8_due;
	struct quoted quoted;
	enum line line;
	size_t held;
	char hold[HOLD_MAX];
	/* Octets of a line that are to be judged again. */
	size_t back_at, back_len;
	char back[HOLD_MAX];
	struct buf *out;
	bool ended;
	int error;
};

/* Of a conversion: append to its output. */
void mime_put(struct mime *m, const char *data, size_t len);
void mime_put_text(struct mime *m, const char *text);
/* Of a survey: an octet above 127 in the current part, or between parts. */
void mime_note_eight(struct mime *m);
/* Of a survey: an octet of a header. */
void mime_note_header(struct mime *m, unsigned char c);
/* A header begins; kind: of the part where the header does not say. */
void mime_begin_part(struct mime *m, bool message, enum mime_kind kind);
/* Parts beyond this depth have ended. */
void mime_pop_to(struct mime *m, size_t depth);
/* blank: the line that ends the header, or NULL when another line does. */
void mime_end_header(struct mime *m, const char *blank, size_t len);

#endif
