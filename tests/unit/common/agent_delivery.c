#include "agent/agent.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/address.h"
#include "base/io.h"
#include "config/conf.h"

/* A queue file of 100 bytes, open for reading only. */
static int
open_file(int flags)
{
	char name[] = "/tmp/agent-job-XXXXXX";
	int fd = mkstemp(name), ret;

	cr_assert(fd >= 0 && ftruncate(fd, 100) == 0);
	ret = open(name, flags | O_CLOEXEC);
	unlink(name);
	close(fd);
	cr_assert(ret >= 0);
	return ret;
}

static struct buf rcpts;

static struct msg_DELIVER
good_frame(void)
{
	buf_reset(&rcpts);
	cr_assert(agent_rcpt_add(&rcpts, 4, "one@example.org", 15) == 0);
	cr_assert(agent_rcpt_add(&rcpts, 7, "two", 3) == 0);
	return (struct msg_DELIVER){
		.job = 42,
		.id = MSG_S("05F3A"),
		.kind = AGENT_LOCAL,
		.transport = MSG_S("local"),
		.nexthop = MSG_S("example.org"),
		.sender = MSG_S("s@example.net"),
		.content_off = 16,
		.content_len = 84,
		.flags = 1,
		.nrcpts = 2,
		.rcpts = { rcpts.data, rcpts.len },
	};
}

static void
rcpts_done(void)
{
	buf_done(&rcpts);
}

Test(agent_delivery, a_good_frame_becomes_a_delivery, .fini = rcpts_done)
{
	struct msg_DELIVER f = good_frame();
	struct agent_delivery *d = NULL;
	const char *what = NULL;
	int fd = open_file(O_RDONLY);

	cr_assert_eq(agent_delivery_new(&f, fd, &d, &what), 0, "%s", what);
	cr_expect_eq(d->number, 42);
	cr_expect_eq(d->kind, AGENT_LOCAL);
	cr_expect_str_eq(d->id, "05F3A");
	cr_expect_str_eq(d->transport, "local");
	cr_expect_str_eq(d->nexthop, "example.org");
	cr_expect_str_eq(d->sender, "s@example.net");
	cr_expect_eq(d->fd, fd);
	cr_expect_eq(d->content_off, 16);
	cr_expect_eq(d->content_len, 84);
	cr_expect_eq(d->flags, 1);
	cr_assert_eq(d->nrcpts, 2);
	cr_expect_eq(d->rcpts[0].index, 4);
	cr_expect_str_eq(d->rcpts[0].address, "one@example.org");
	cr_expect_eq(d->rcpts[1].index, 7);
	cr_expect_str_eq(d->rcpts[1].address, "two");
	cr_expect_not(d->rcpts[0].reported);
	agent_delivery_free(&d);
	cr_expect_null(d);
	cr_expect(fcntl(fd, F_GETFD) < 0, "the descriptor was the job's");
}

Test(
    agent_delivery, the_null_sender_and_no_nexthop_are_good, .fini = rcpts_done)
{
	struct msg_DELIVER f = good_frame();
	struct agent_delivery *d = NULL;
	const char *what = NULL;

	f.sender = f.nexthop = (struct msg_str){ NULL, 0 };
	cr_assert_eq(agent_delivery_new(&f, open_file(O_RDONLY), &d, &what), 0,
	    "%s", what);
	cr_expect_str_eq(d->sender, "");
	cr_expect_str_eq(d->nexthop, "");
	agent_delivery_free(&d);
}

static char long_text[2048];
static struct buf other;

static void
other_done(void)
{
	buf_done(&rcpts);
	buf_done(&other);
}

static void
set_other(struct msg_DELIVER *f)
{
	f->rcpts = (struct msg_str){ other.data, other.len };
}

/* clang-format off */
static void bad_kind(struct msg_DELIVER *f) { f->kind = AGENT_NKINDS; }
static void no_id(struct msg_DELIVER *f) { f->id = MSG_S(""); }
static void id_line(struct msg_DELIVER *f) { f->id = MSG_S("A\nB"); }
static void id_long(struct msg_DELIVER *f) { f->id.data = long_text; f->id.len = AGENT_ID_MAX + 1; }
static void no_transport(struct msg_DELIVER *f) { f->transport = MSG_S(""); }
static void transport_del(struct msg_DELIVER *f) { f->transport = MSG_S("a\x7f"); }
static void nexthop_tab(struct msg_DELIVER *f) { f->nexthop = MSG_S("a\tb"); }
static void nexthop_long(struct msg_DELIVER *f) { f->nexthop.data = long_text; f->nexthop.len = AGENT_NEXTHOP_MAX + 1; }
static void sender_line(struct msg_DELIVER *f) { f->sender = MSG_S("a\r@b"); }
static void sender_long(struct msg_DELIVER *f) { f->sender.data = long_text; f->sender.len = ADDRESS_MAX + 1; }
static void none(struct msg_DELIVER *f) { f->nrcpts = 0; f->rcpts.len = 0; }
static void one_less(struct msg_DELIVER *f) { f->nrcpts = 1; }
static void one_more(struct msg_DELIVER *f) { f->nrcpts = 3; }
static void huge_count(struct msg_DELIVER *f) { f->nrcpts = UINT32_MAX; }
static void cut(struct msg_DELIVER *f) { f->rcpts.len--; }
static void cut_head(struct msg_DELIVER *f) { f->nrcpts = 1; f->rcpts.len = 7; }
static void off_end(struct msg_DELIVER *f) { f->content_off = 17; }
static void off_huge(struct msg_DELIVER *f) { f->content_off = UINT64_MAX; }
static void len_huge(struct msg_DELIVER *f) { f->content_len = UINT64_MAX; }
/* clang-format on */

static void
trailing(struct msg_DELIVER *f)
{
	buf_add(&other, f->rcpts.data, f->rcpts.len);
	buf_add_char(&other, 'x');
	set_other(f);
}

/* An address is made wrong behind the back of agent_rcpt_add(). */
static void
address_byte(struct msg_DELIVER *f, char byte)
{
	buf_add(&other, f->rcpts.data, f->rcpts.len);
	other.data[10] = byte;
	set_other(f);
}

static void
address_nul(struct msg_DELIVER *f)
{
	address_byte(f, '\0');
}

static void
address_line(struct msg_DELIVER *f)
{
	address_byte(f, '\n');
}

static void
length_huge(struct msg_DELIVER *f)
{
	buf_add(&other, f->rcpts.data, f->rcpts.len);
	memset(other.data + 4, 0xff, 4);
	set_other(f);
}

static void
length_zero(struct msg_DELIVER *f)
{
	buf_add(&other, "\0\0\0\0\0\0\0\0", 8);
	f->nrcpts = 1;
	set_other(f);
}

static void
too_many(struct msg_DELIVER *f)
{
	uint32_t i;

	for (i = 0; i <= AGENT_RCPTS_MAX; i++)
		agent_rcpt_add(&other, i, "a@b", 3);
	f->nrcpts = i;
	set_other(f);
}

Test(agent_delivery, I18_a_wrong_frame_is_no_delivery, .fini = other_done)
{
	static const struct {
		const char *name;
		void (*spoil)(struct msg_DELIVER *f);
		const char *what;
	} rows[] = {
		{ "kind", bad_kind, "kind" },
		{ "no id", no_id, "queue id" },
		{ "id with a line end", id_line, "queue id" },
		{ "id too long", id_long, "queue id" },
		{ "no transport", no_transport, "transport" },
		{ "transport with DEL", transport_del, "transport" },
		{ "nexthop with a tab", nexthop_tab, "nexthop" },
		{ "nexthop too long", nexthop_long, "nexthop" },
		{ "sender with CR", sender_line, "sender" },
		{ "sender too long", sender_long, "sender" },
		{ "no recipient", none, "recipients" },
		{ "fewer announced", one_less, "recipients" },
		{ "more announced", one_more, "recipients" },
		{ "a huge number", huge_count, "recipients" },
		{ "more than there may be", too_many, "recipients" },
		{ "cut", cut, "recipients" },
		{ "cut in a head", cut_head, "recipients" },
		{ "trailing byte", trailing, "recipients" },
		{ "NUL in an address", address_nul, "recipients" },
		{ "LF in an address", address_line, "recipients" },
		{ "huge length", length_huge, "recipients" },
		{ "empty address", length_zero, "recipients" },
		{ "content too long", off_end,
		    "content beyond the end of the file" },
		{ "huge offset", off_huge,
		    "content beyond the end of the file" },
		{ "huge length of content", len_huge,
		    "content beyond the end of the file" },
	};
	size_t i;
	int fd = open_file(O_RDONLY);

	memset(long_text, 'a', sizeof(long_text));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct msg_DELIVER f = good_frame();
		struct agent_delivery *d = NULL;
		const char *what = "";

		buf_reset(&other);
		rows[i].spoil(&f);
		cr_expect_eq(agent_delivery_new(&f, fd, &d, &what), -EBADMSG,
		    "%s", rows[i].name);
		cr_expect_str_eq(
		    what, rows[i].what, "%s: %s", rows[i].name, what);
		cr_expect_null(d, "%s", rows[i].name);
	}
	cr_expect(fcntl(fd, F_GETFD) >= 0, "the descriptor stays the caller's");
	close(fd);
}

Test(agent_delivery, only_a_regular_file_open_for_reading, .fini = rcpts_done)
{
	int pipes[2], i;

	cr_assert(pipe(pipes) == 0);
	int fds[] = { -1, 9999, open_file(O_RDWR), open_file(O_WRONLY),
		open("/tmp", O_RDONLY | O_DIRECTORY),
		open("/tmp", O_PATH | O_DIRECTORY), open_file(O_PATH), pipes[0],
		open("/dev/zero", O_RDONLY) };

	for (i = 0; i < (int)ARRAY_LEN(fds); i++) {
		struct msg_DELIVER f = good_frame();
		struct agent_delivery *d = NULL;
		const char *what = "";

		cr_expect_eq(agent_delivery_new(&f, fds[i], &d, &what),
		    -EBADMSG, "descriptor %d", i);
		cr_expect_null(d);
	}
}

Test(agent_delivery, rcpt_add_judges_addresses, .fini = rcpts_done)
{
	char big[ADDRESS_MAX + 1];

	memset(big, 'a', sizeof(big));
	cr_expect_eq(agent_rcpt_add(&rcpts, 0, "", 0), -EINVAL);
	cr_expect_eq(agent_rcpt_add(&rcpts, 0, "a\nb", 3), -EILSEQ);
	cr_expect_eq(
	    agent_rcpt_add(&rcpts, 0, big, sizeof(big)), -ENAMETOOLONG);
	cr_expect_eq(rcpts.len, 0, "nothing was added");
	cr_expect_eq(agent_rcpt_add(&rcpts, 0x01020304, "a@b", 3), 0);
	cr_expect_eq(rcpts.len, 11);
	cr_expect_eq(memcmp(rcpts.data, "\4\3\2\1\3\0\0\0a@b", 11), 0);
}

static struct msg_DELIVER_WHOLE
whole_of(struct msg_DELIVER f, const char *content, size_t len)
{
	return (struct msg_DELIVER_WHOLE){ .job = f.job,
		.id = f.id,
		.kind = f.kind,
		.transport = f.transport,
		.nexthop = f.nexthop,
		.sender = f.sender,
		.flags = f.flags,
		.nrcpts = f.nrcpts,
		.rcpts = f.rcpts,
		.content = { content, len } };
}

/* The job outlives the frame, whose bytes are used again. */
Test(agent_delivery, X14_a_frame_with_the_content, .fini = rcpts_done)
{
	char content[] = "Subject: x\n\n\0y";
	struct msg_DELIVER_WHOLE f =
	    whole_of(good_frame(), content, sizeof(content) - 1);
	struct agent_delivery *d = NULL;
	const char *what = NULL;

	cr_assert_eq(agent_delivery_new_whole(&f, &d, &what), 0);
	memset(content, 'z', sizeof(content));
	cr_expect_eq(d->fd, -1);
	cr_expect_eq(d->content_len, sizeof(content) - 1);
	cr_expect_eq(memcmp(d->content, "Subject: x\n\n\0y", 14), 0);
	cr_expect_str_eq(d->sender, "s@example.net");
	cr_expect_str_eq(d->rcpts[1].address, "two");
	agent_delivery_free(&d);
	f = whole_of(good_frame(), "", 0);
	cr_assert_eq(agent_delivery_new_whole(&f, &d, &what), 0);
	cr_expect_not_null(d->content);
	cr_expect_eq(d->content_len, 0u);
	agent_delivery_free(&d);
	f = whole_of(good_frame(), "x", 1);
	f.kind = AGENT_NKINDS;
	cr_expect_eq(agent_delivery_new_whole(&f, &d, &what), -EBADMSG);
	cr_expect_str_eq(what, "kind");
}

Test(agent_delivery, I18_hostile_wishes_are_refused)
{
	static const char *const lists[] = {
		"",
		"\2\0\0\0\0\0\0",
		"\3\0\0\0\0\0\0\0",
		"\2\0\0\0\xff\xff\xff\xff",
		"\2\0\0\0\1\0\0\0x",
		"\2\0\0\0\11\0\0\0rfc822;\ra",
		"\2\1\0\0\0\0\0\0",
	};
	static const size_t lens[] = { 0, 7, 8, 8, 9, 17, 8 };
	struct agent_rcpt rcpt = { 0 };
	struct agent_delivery d = { .nrcpts = 1, .rcpts = &rcpt };
	const char *what;
	size_t i;

	for (i = 0; i < ARRAY_LEN(lists); i++) {
		const struct msg_WISHES f = { .envid = MSG_S(""),
			.rcpts = { lists[i], lens[i] } };

		cr_expect_eq(agent_delivery_wish(&d, &f, &what), -EBADMSG,
		    "list %zu", i);
		cr_expect(d.wishes == NULL && rcpt.orcpt == NULL);
	}
}
