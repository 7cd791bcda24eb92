/* Frames between our processes: what decodes encodes to the same bytes, what
 * was encoded decodes, a refusal touches nothing. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "ipc/msg.h"

static const uint32_t numbers[] = {
#define MSG(name, number, link, fields) number,
#include "ipc/msg.def"
#undef MSG
};

/* ---- frames from outside ---- */

static void
check_frame(const char *frame, size_t len)
{
	struct buf again = { 0 };
	struct msg msg;
	int r;

	FUZZ_FILL(msg);
	r = msg_decode(frame, len, &msg);
	if (r < 0) {
		MUST(r == -EBADMSG);
		MUST(FUZZ_UNTOUCHED(msg));
		return;
	}
	MUST(strcmp(msg_name(msg.type), "?") != 0);
	MUST(msg_link(msg.type) <= MSG_LINK_ACT);
	MUST(msg_encode(&msg, &again) == 0);
	MUST(again.len == len && memcmp(again.data, frame, len) == 0);
	buf_done(&again);
}

/* The head made right, so that what is behind it is looked at. */
static void
put_head(char *frame, size_t len, uint8_t which)
{
	const uint32_t head[2] = { (uint32_t)len,
		numbers[which % ARRAY_LEN(numbers)] };

	if (len >= sizeof(head))
		memcpy(frame, head, sizeof(head));
}

/* ---- frames of our own ---- */

static struct {
	char *text[8];
	size_t n;
	bool bad; /* a string with a NUL, or too long */
	size_t want;
} made;

static struct msg_str
take_bytes(struct fuzz_in *in, bool is_str)
{
	size_t len = fuzz_number(in, 1);
	char *s;

	if (len == 255)
		len = MSG_FRAME_MAX - 100 + fuzz_number(in, 1);
	s = calloc(1, len + 1);
	MUST(s != NULL);
	memset(s, 'x', len);
	if (in->left > 0 && len > 0)
		memcpy(s, in->next, len < in->left ? len : in->left);
	made.bad |= is_str && memchr(s, '\0', len) != NULL;
	made.text[made.n++ % ARRAY_LEN(made.text)] = s;
	MUST(made.n <= ARRAY_LEN(made.text));
	made.want += 4 + len;
	return (struct msg_str){ s, len };
}

static uint64_t
take_number(struct fuzz_in *in, size_t width)
{
	made.want += width;
	return fuzz_number(in, width);
}

#define take_u8(in)   ((uint8_t)take_number(in, 1))
#define take_u32(in)  ((uint32_t)take_number(in, 4))
#define take_u64(in)  take_number(in, 8)
#define take_i32(in)  ((int32_t)take_number(in, 4))
#define take_i64(in)  ((int64_t)take_number(in, 8))
#define take_str(in)  take_bytes(in, true)
#define take_blob(in) take_bytes(in, false)

#define F(type, name) self->name = take_##type(in);
#define MSG(name, number, link, list)                              \
	static void fill_##name(struct fuzz_in *in, struct msg *m) \
	{                                                          \
		struct msg_##name *self = &m->u.name;              \
                                                                   \
		m->type = MSG_##name;                              \
		list                                               \
	}
#include "ipc/msg.def"
#undef MSG
#undef F

static void (*const fill[])(struct fuzz_in *in, struct msg *m) = {
#define MSG(name, number, link, list) fill_##name,
#include "ipc/msg.def"
#undef MSG
};

static void
check_made(struct fuzz_in *in)
{
	struct buf frame = { 0 };
	struct msg msg = { 0 }, got;
	int r;

	memset(&made, 0, sizeof(made));
	made.want = 8;
	MUST(buf_add_str(&frame, "before") == 0);
	fill[fuzz_number(in, 1) % ARRAY_LEN(fill)](in, &msg);
	r = msg_encode(&msg, &frame);
	if (r < 0) {
		MUST(r == -EBADMSG || r == -EMSGSIZE);
		MUST(made.bad || made.want > MSG_FRAME_MAX);
		MUST(frame.len == 6 && strcmp(frame.data, "before") == 0);
	} else {
		MUST(!made.bad && made.want <= MSG_FRAME_MAX);
		MUST(frame.len == 6 + made.want);
		MUST(msg_decode(frame.data + 6, frame.len - 6, &got) == 0);
		MUST(got.type == msg.type);
		check_frame(frame.data + 6, frame.len - 6);
	}
	buf_done(&frame);
	while (made.n > 0)
		free(made.text[--made.n]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint8_t way = (uint8_t)fuzz_number(&in, 1);
	char *frame;
	size_t len;

	if (way == 0) {
		check_made(&in);
		return 0;
	}
	frame = fuzz_rest(&in, &len);
	if (way > 1)
		put_head(frame, len, way);
	check_frame(frame, len);
	free(frame);
	return 0;
}
