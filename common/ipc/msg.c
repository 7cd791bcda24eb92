#include "ipc/msg.h"

#include <errno.h>

#include "base/bytes.h"

enum field_type {
	FIELD_u8,
	FIELD_u32,
	FIELD_u64,
	FIELD_i32,
	FIELD_i64,
	FIELD_str,
	FIELD_blob,
};

struct field {
	enum field_type type;
	size_t offset; /* in the message's own struct */
};

/* Width on the wire and in memory; 0: a length and bytes. */
static const size_t widths[] = {
	[FIELD_u8] = sizeof(msg_u8),
	[FIELD_u32] = sizeof(msg_u32),
	[FIELD_u64] = sizeof(msg_u64),
	[FIELD_i32] = sizeof(msg_i32),
	[FIELD_i64] = sizeof(msg_i64),
	[FIELD_str] = 0,
	[FIELD_blob] = 0,
};

/* One function a message, so that "self" can name its struct. */
#define F(type, name) { FIELD_##type, offsetof(self, name) },
#define MSG(name, number, link, list)                          \
	static const struct field *fields_##name(size_t *n)    \
	{                                                      \
		typedef struct msg_##name self;                \
		static const struct field fields[] = { list }; \
		*n = ARRAY_LEN(fields);                        \
		return fields;                                 \
	}
#include "ipc/msg.def"
#undef MSG
#undef F

struct row {
	enum msg_type type;
	const char *name;
	enum msg_link link;
	const struct field *(*fields)(size_t *n);
};

static const struct row rows[] = {
#define MSG(name, number, link, list) \
	{ MSG_##name, #name, MSG_LINK_##link, fields_##name },
#include "ipc/msg.def"
#undef MSG
};

#define HEAD 8 /* length, number */

static const struct row *
find_row(uint32_t number)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		if ((uint32_t)rows[i].type == number)
			return &rows[i];
	return NULL;
}

const char *
msg_name(enum msg_type type)
{
	const struct row *row = find_row((uint32_t)type);

	return row == NULL ? "?" : row->name;
}

enum msg_link
msg_link(enum msg_type type)
{
	const struct row *row = find_row((uint32_t)type);

	ASSERT(row != NULL);
	return row->link;
}

static int
put_u32(struct buf *out, size_t value)
{
	unsigned char bytes[sizeof(uint32_t)];

	bytes_put_u32(bytes, (uint32_t)value);
	return buf_add(out, bytes, sizeof(bytes));
}

static int
put_int(struct buf *out, const void *field, size_t width)
{
	uint8_t u8;
	uint32_t u32;
	uint64_t u64;
	unsigned char bytes[sizeof(u64)];

	if (width == sizeof(u8)) {
		memcpy(&u8, field, width);
		return buf_add(out, &u8, width);
	}
	if (width == sizeof(u32)) {
		memcpy(&u32, field, width);
		return put_u32(out, u32);
	}
	memcpy(&u64, field, width);
	bytes_put_u64(bytes, u64);
	return buf_add(out, bytes, width);
}

static int
put_bytes(struct buf *out, const struct msg_str *s, bool is_str)
{
	int r;

	if (s->len > MSG_FRAME_MAX)
		return -EMSGSIZE;
	if (is_str && s->len > 0 && memchr(s->data, '\0', s->len) != NULL)
		return -EBADMSG;
	r = put_u32(out, s->len);
	return r < 0 ? r : buf_add(out, s->data, s->len);
}

static int
put_field(struct buf *out, const struct field *f, const void *field)
{
	if (widths[f->type] == 0)
		return put_bytes(out, field, f->type == FIELD_str);
	return put_int(out, field, widths[f->type]);
}

static int
put_message(struct buf *out, const struct row *row, const struct msg *msg)
{
	const struct field *fields;
	size_t start = out->len, n, i;
	int r;

	r = put_u32(out, 0);
	if (r == 0)
		r = put_u32(out, (size_t)row->type);
	fields = row->fields(&n);
	for (i = 0; r == 0 && i < n; i++)
		r = put_field(
		    out, &fields[i], (const char *)&msg->u + fields[i].offset);
	if (r < 0)
		return r;
	if (out->len - start > MSG_FRAME_MAX)
		return -EMSGSIZE;
	bytes_put_u32(out->data + start, (uint32_t)(out->len - start));
	return 0;
}

int
msg_encode(const struct msg *msg, struct buf *out)
{
	const struct row *row = find_row((uint32_t)msg->type);
	size_t start = out->len;
	int r;

	ASSERT(row != NULL);
	r = put_message(out, row, msg);
	if (r < 0 && out->data != NULL) {
		out->len = start;
		out->data[start] = '\0';
	}
	return r;
}

struct reader {
	const char *data;
	size_t left;
};

static int
get_u32(struct reader *in, uint32_t *ret_value)
{
	if (in->left < sizeof(*ret_value))
		return -EBADMSG;
	*ret_value = bytes_get_u32(in->data);
	in->data += sizeof(*ret_value);
	in->left -= sizeof(*ret_value);
	return 0;
}

static int
get_int(struct reader *in, void *field, size_t width)
{
	uint32_t u32;
	uint64_t u64;

	if (width == sizeof(u32)) {
		if (get_u32(in, &u32) < 0)
			return -EBADMSG;
		memcpy(field, &u32, width);
		return 0;
	}
	if (in->left < width)
		return -EBADMSG;
	memcpy(field, in->data, width);
	if (width == sizeof(u64)) {
		u64 = bytes_get_u64(field);
		memcpy(field, &u64, width);
	}
	in->data += width;
	in->left -= width;
	return 0;
}

static int
get_bytes(struct reader *in, struct msg_str *field, bool is_str)
{
	uint32_t len;

	if (get_u32(in, &len) < 0 || len > in->left)
		return -EBADMSG;
	if (is_str && memchr(in->data, '\0', len) != NULL)
		return -EBADMSG;
	*field = (struct msg_str){ in->data, len };
	in->data += len;
	in->left -= len;
	return 0;
}

static int
get_field(struct reader *in, const struct field *f, void *field)
{
	if (widths[f->type] == 0)
		return get_bytes(in, field, f->type == FIELD_str);
	return get_int(in, field, widths[f->type]);
}

int
msg_decode(const void *frame, size_t len, struct msg *ret_msg)
{
	struct reader in = { frame, len };
	const struct field *fields;
	const struct row *row;
	struct msg msg;
	uint32_t length, number;
	size_t n, i;

	if (len > MSG_FRAME_MAX || get_u32(&in, &length) < 0 || length != len ||
	    get_u32(&in, &number) < 0)
		return -EBADMSG;
	row = find_row(number);
	if (row == NULL)
		return -EBADMSG;
	memset(&msg, 0, sizeof(msg));
	msg.type = row->type;
	fields = row->fields(&n);
	for (i = 0; i < n; i++)
		if (get_field(
			&in, &fields[i], (char *)&msg.u + fields[i].offset) < 0)
			return -EBADMSG;
	if (in.left != 0)
		return -EBADMSG;
	*ret_msg = msg;
	return 0;
}
