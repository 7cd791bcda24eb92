/* The codec of msg.def and the channel: what goes in comes out, and no byte
 * from a peer does more than be refused. */
#include "ipc/msg.h"

#include "base/file.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct msg
sample_result(void)
{
	return (struct msg){
		.type = MSG_RESULT,
		.u.RESULT = {
			.job = 0x1122334455667788,
			.rcpt = 7,
			.outcome = 2,
			.dsn = MSG_S("4.4.1"),
			.relay = MSG_S("mx.example.org[192.0.2.1]:25"),
			.text = MSG_S(""),
			.conn_usec = -1,
			.xfer_usec = INT64_MAX,
		},
	};
}

static struct buf
encoded(const struct msg *msg)
{
	struct buf out = { 0 };

	cr_assert_eq(msg_encode(msg, &out), 0);
	return out;
}

static void
assert_str(struct msg_str got, const char *want)
{
	cr_assert_eq(got.len, strlen(want));
	cr_assert_arr_eq(got.data, want, got.len);
}

Test(ipc_msg, what_is_encoded_is_decoded)
{
	struct msg in = sample_result(), out;
	struct buf frame = encoded(&in);

	cr_assert_eq(msg_decode(frame.data, frame.len, &out), 0);
	cr_assert_eq(out.type, MSG_RESULT);
	cr_assert_eq(out.u.RESULT.job, in.u.RESULT.job);
	cr_assert_eq(out.u.RESULT.rcpt, 7);
	cr_assert_eq(out.u.RESULT.outcome, 2);
	cr_assert_eq(out.u.RESULT.conn_usec, -1);
	cr_assert_eq(out.u.RESULT.xfer_usec, INT64_MAX);
	assert_str(out.u.RESULT.dsn, "4.4.1");
	assert_str(out.u.RESULT.relay, "mx.example.org[192.0.2.1]:25");
	assert_str(out.u.RESULT.text, "");
	buf_done(&frame);
}

/* The bytes are the contract (docs/IPC.md), not whatever both ends agree on. */
Test(ipc_msg, bytes_on_the_wire)
{
	const struct msg msg = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("bell"), .generation = 258 } };
	static const unsigned char want[] = { 20, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0,
		0, 'b', 'e', 'l', 'l', 2, 1, 0, 0 };
	struct buf frame = encoded(&msg);

	cr_assert_eq(frame.len, sizeof(want));
	cr_assert_arr_eq(frame.data, want, sizeof(want));
	buf_done(&frame);
}

Test(ipc_msg, every_shorter_and_longer_record_is_refused)
{
	struct msg in = sample_result(), out;
	struct buf frame = encoded(&in);
	char *copy;
	uint32_t len;

	for (len = 0; len < frame.len; len++) {
		copy = malloc(len + 1); /* of its size: ASan sees an overrun */
		cr_assert_not_null(copy);
		memcpy(copy, frame.data, len);
		if (len >= 4)
			memcpy(copy, &len, 4);
		cr_assert_eq(msg_decode(copy, len, &out), -EBADMSG,
		    "%u of %zu bytes", len, frame.len);
		free(copy);
	}
	cr_assert_eq(buf_add_char(&frame, 'x'), 0);
	cr_assert_eq(msg_decode(frame.data, frame.len, &out), -EBADMSG);
	len = (uint32_t)frame.len;
	memcpy(frame.data, &len, 4);
	cr_assert_eq(msg_decode(frame.data, frame.len, &out), -EBADMSG);
	buf_done(&frame);
}

Test(ipc_msg, bad_records)
{
	static const struct {
		const char *name;
		size_t len;
		unsigned char bytes[24];
	} bad[] = {
		{ "empty", 0, { 0 } },
		{ "unknown number", 8, { 8, 0, 0, 0, 0xff, 0xff } },
		{ "number 0", 8, { 8 } },
		{ "length 0", 12, { 0, 0, 0, 0, 3, 0, 0, 0, 1 } },
		{ "length of 4 GiB", 12,
		    { 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 1 } },
		{ "string longer than the record", 20,
		    { 20, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255, 'a' } },
		{ "string that takes the next field", 20,
		    { 20, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 'a', 'b', 'c', 'd',
			'e', 'f', 'g', 'h' } },
		{ "NUL in a string", 20,
		    { 20, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 'a', 0, 'c', 'd',
			1 } },
	};
	struct msg msg = { .type = MSG_STOP };
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		cr_expect_eq(msg_decode(bad[i].bytes, bad[i].len, &msg),
		    -EBADMSG, "%s", bad[i].name);
	cr_expect_eq(msg.type, MSG_STOP, "the output was touched");
}

Test(ipc_msg, random_changes_never_do_harm)
{
	struct msg in = sample_result(), out;
	struct buf frame = encoded(&in);
	size_t at;
	int i, bit;

	for (at = 0; at < frame.len; at++)
		for (bit = 0; bit < 8; bit++) {
			frame.data[at] ^= (char)(1 << bit);
			i = msg_decode(frame.data, frame.len, &out);
			cr_assert(i == 0 || i == -EBADMSG);
			frame.data[at] ^= (char)(1 << bit);
		}
	buf_done(&frame);
}

Test(ipc_msg, too_large_to_send_leaves_the_buffer)
{
	static char large[MSG_FRAME_MAX];
	struct msg msg = { .type = MSG_STATUS };
	struct buf out = { 0 };

	memset(large, 'x', sizeof(large));
	cr_assert_eq(buf_add_str(&out, "kept"), 0);
	msg.u.STATUS.text = (struct msg_str){ large, sizeof(large) };
	cr_assert_eq(msg_encode(&msg, &out), -EMSGSIZE);
	msg.u.STATUS.text.len = MSG_FRAME_MAX - 12 + 1;
	cr_assert_eq(msg_encode(&msg, &out), -EMSGSIZE);
	msg.u.STATUS.text = (struct msg_str){ "a\0b", 3 };
	cr_assert_eq(msg_encode(&msg, &out), -EBADMSG);
	cr_assert_eq(out.len, 4);
	cr_assert_str_eq(buf_str(&out), "kept");
	buf_done(&out);
}

Test(ipc_msg, names_and_links)
{
	cr_expect_str_eq(msg_name(MSG_DELIVER), "DELIVER");
	cr_expect_str_eq(msg_name((enum msg_type)0xdead), "?");
	cr_expect_eq(msg_link(MSG_LINK), MSG_LINK_SUP);
	cr_expect_eq(msg_link(MSG_SET_LOAD_FOR), MSG_LINK_ASK);
}

/* The document is normative: a message that is not in it is not ours. */
Test(ipc_msg, the_document_has_every_message)
{
	static const char *const want[] = {
#define F(type, name) ", " #type " " #name
#define MSG(name, number, link, fields) \
	"| " #number " | " #name " | " #link " | " fields,
#include "ipc/msg.def"
#undef MSG
#undef F
	};
	struct buf text = { 0 }, row = { 0 }, why = { 0 };
	const char *fields;
	size_t i;

	if (access("docs/IPC.md", R_OK) < 0)
		cr_skip_test("needs the source tree");
	cr_assert_eq(file_read("docs/IPC.md", 1 << 20, &text, &why), 0);
	for (i = 0; i < ARRAY_LEN(want); i++) {
		fields = strstr(want[i], "| , ");
		cr_assert_not_null(fields);
		buf_reset(&row);
		buf_add(&row, want[i], (size_t)(fields - want[i]));
		buf_printf(&row, "| %s |\n", fields + 4);
		cr_expect_not_null(strstr(buf_str(&text), buf_str(&row)),
		    "docs/IPC.md lacks: %s", buf_str(&row));
	}
	buf_done(&text);
	buf_done(&row);
	buf_done(&why);
}

/* ---- the channel ---- */

static struct chan_frame frame; /* large */

Test(ipc_chan, several_of_the_largest_frames_fit)
{
	static char large[MSG_FRAME_MAX];
	struct msg msg = { .type = MSG_STATUS };
	int s[2], i;

	memset(large, 'x', sizeof(large));
	msg.u.STATUS.text = (struct msg_str){ large, MSG_FRAME_MAX - 12 };
	cr_assert_eq(chan_pair(s), 0);
	for (i = 0; i < 3; i++)
		cr_assert_eq(chan_send(s[0], &msg, -1), 0, "frame %d", i);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(chan_recv(s[1], &frame), 1);
		cr_assert_eq(frame.msg.u.STATUS.text.len, MSG_FRAME_MAX - 12);
	}
	cr_assert_eq(chan_recv(s[1], &frame), -EAGAIN);
	close(s[0]);
	cr_assert_eq(chan_recv(s[1], &frame), 0);
	close(s[1]);
}

Test(ipc_chan, a_descriptor_travels_and_is_closed_on_exec)
{
	const struct msg msg = { .type = MSG_FLUSH };
	int s[2], p[2];
	char c;

	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(chan_send(s[0], &msg, p[0]), 0);
	close(p[0]);
	cr_assert_eq(chan_recv(s[1], &frame), 1);
	cr_assert_geq(frame.fd, 0);
	cr_assert(fcntl(frame.fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(write(p[1], "x", 1), 1);
	cr_assert_eq(read(frame.fd, &c, 1), 1);
}

/* Bytes and n copies of descriptor fd, as a hostile peer would send them. */
static void
send_raw(int sock, const void *data, size_t len, int fd, size_t n)
{
	_Alignas(
	    struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	size_t i;

	memcpy(&iov.iov_base, &data, sizeof(data));
	if (n > 0) {
		hdr.msg_control = control;
		hdr.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	cr_assert_eq(sendmsg(sock, &hdr, 0), (ssize_t)len);
}

Test(ipc_chan, I18_a_bad_frame_is_dropped_with_its_descriptors)
{
	static char large[MSG_FRAME_MAX + 1];
	const struct msg msg = { .type = MSG_FLUSH };
	struct buf good = encoded(&msg);
	unsigned before;
	int s[2];

	cr_assert_eq(chan_pair(s), 0);
	before = unit_descriptors();
	send_raw(s[0], "garbage", 7, 0, 1);
	cr_assert_eq(chan_recv(s[1], &frame), -EBADMSG);
	send_raw(s[0], large, sizeof(large), 0, 1);
	cr_assert_eq(chan_recv(s[1], &frame), -EBADMSG);
	send_raw(s[0], good.data, good.len, 0, 2);
	cr_assert_eq(chan_recv(s[1], &frame), -EBADMSG);
	send_raw(s[0], good.data, good.len, 0, 8);
	cr_assert_eq(chan_recv(s[1], &frame), -EBADMSG);
	send_raw(s[0], "", 0, 0, 1);
	cr_assert_eq(chan_recv(s[1], &frame), 0);
	cr_assert_eq(frame.fd, -1);
	cr_assert_eq(unit_descriptors(), before);
	send_raw(s[0], good.data, good.len, -1, 0);
	cr_assert_eq(chan_recv(s[1], &frame), 1);
	cr_assert_eq(frame.fd, -1);
	buf_done(&good);
}

/* The process has no free number for a descriptor: the frame is not lost, its
 * reader can answer for it. */
Test(ipc_chan, P12_frame_without_its_descriptor)
{
	const struct msg msg = { .type = MSG_FLUSH };
	struct rlimit lim;
	int s[2], top;

	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(chan_send(s[0], &msg, 0), 0);
	top = dup(0);
	close(top);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = (rlim_t)top;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect_eq(chan_recv(s[1], &frame), 1);
	cr_expect_eq(frame.fd, -1);
	lim.rlim_cur = lim.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

/* A peer that dies with frames of ours unread makes the kernel report a reset
 * first; what it had said before must still be read. */
Test(ipc_chan, P1_last_words_of_a_dead_peer)
{
	const struct msg msg = { .type = MSG_FLUSH, .u.FLUSH = { 1 } };
	int s[2];

	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(chan_send(s[0], &msg, -1), 0);
	cr_assert_eq(chan_send(s[1], &msg, -1), 0);
	cr_assert_eq(chan_send(s[1], &msg, -1), 0);
	close(s[1]);
	cr_expect_eq(chan_recv(s[0], &frame), 1);
	cr_expect_eq(chan_recv(s[0], &frame), 1);
	cr_expect_eq(chan_recv(s[0], &frame), 0);
	cr_expect_eq(chan_send(s[0], &msg, -1), -EPIPE);
}

Test(ipc_chan, a_full_channel_says_so_and_nothing_is_split)
{
	const struct msg msg = { .type = MSG_FLUSH };
	int s[2], sent = 0, got = 0;

	cr_assert_eq(chan_pair(s), 0);
	while (chan_send(s[0], &msg, -1) == 0)
		sent++;
	cr_assert_eq(chan_send(s[0], &msg, -1), -EAGAIN);
	while (chan_recv(s[1], &frame) == 1)
		got++;
	cr_assert_eq(got, sent);
}
