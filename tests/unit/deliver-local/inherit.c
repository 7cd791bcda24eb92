/* Which wishes of the sender the messages of an expansion have. */
#include "expand.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SENDER  "s@far.test"
#define WRITTEN "rfc822;te+2Bam@one.test"

static struct queue_file_writer writer;
static struct buf found;

static int
memory_file(void)
{
	int fd = memfd_create("inherit", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

/* "SENDER[hdrs id]: RCPT[success orcpt]", wishes that are there. */
static void
add(const char *text, const char *what, const char *more)
{
	cr_assert_eq(buf_add_str(&found, text), 0);
	if (what[0] != '\0' || more[0] != '\0')
		cr_assert_eq(buf_printf(&found, "[%s %s]", what, more), 0);
}

static void
describe(int fd)
{
	struct buf sender = { 0 };
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	struct dsn_mail mail;
	char notify[DSN_NOTIFY_MAX];

	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_assert_eq(queue_file_sender(fd, &file, &sender), 0);
	cr_assert_eq(queue_file_dsn(fd, &file, &mail), 0);
	add(buf_str(&sender), dsn_ret_name(mail.ret), mail.envid);
	buf_done(&sender);
	queue_rcpt_begin(&cursor, &file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0) {
		dsn_notify_format(rcpt.dsn.notify, notify);
		cr_assert_eq(buf_add_char(&found, ' '), 0);
		add(rcpt.address, notify, rcpt.dsn.orcpt);
	}
	cr_assert_eq(buf_add_str(&found, "; "), 0);
}

static void
write_parent(int fd, const struct dsn_mail *mail, const struct dsn_rcpt *wish)
{
	cr_assert_eq(
	    queue_file_writer_init(&writer, &spool_sys_real, fd, 0), 0);
	queue_file_add_sender(&writer, SENDER, strlen(SENDER));
	queue_file_add_dsn(&writer, mail);
	queue_file_add_rcpt(&writer, "alias", 5);
	queue_file_add_rcpt_dsn(&writer, wish);
	cr_assert_eq(queue_file_finish(&writer), 0);
	queue_file_writer_done(&writer);
}

/* Messages: senders, each followed by its recipients; the owner's end in `!`.
 */
static enum rcpt_mark
expand(const char *const *words, const struct dsn_mail *mail,
    const struct dsn_rcpt *wish)
{
	int parent = memory_file(), fd = -1;
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	const struct members_of of = { "te+am", "te+am@one.test", SENDER,
		NULL };
	struct inherit h;
	enum rcpt_mark mark;

	buf_reset(&found);
	write_parent(parent, mail, wish);
	cr_assert_eq(queue_file_read(parent, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	cr_assert_eq(queue_rcpt_next(&cursor, parent, &rcpt), 1);
	cr_assert_eq(inherit_begin(&h, parent, &file, &rcpt, &of), 0);
	for (; *words != NULL; words++) {
		const size_t len = strlen(*words);
		const bool is_sender =
		    strcmp(*words, SENDER) == 0 || (*words)[len - 1] == '!';

		if (is_sender) {
			fd = memory_file();
			cr_assert_eq(queue_file_writer_init(
					 &writer, &spool_sys_real, fd, 0),
			    0);
			queue_file_add_sender(&writer, *words, len);
			cr_assert_eq(inherit_sender(&h, &writer, *words), 0);
		} else {
			cr_assert_eq(inherit_before_rcpt(&h, &writer), 0);
			queue_file_add_rcpt(&writer, *words, len);
			inherit_after_rcpt(&h, alias_is_program(*words));
		}
		if (words[1] != NULL && strcmp(words[1], SENDER) != 0 &&
		    words[1][strlen(words[1]) - 1] != '!')
			continue;
		cr_assert_eq(inherit_end(&h, &writer, words[1] == NULL), 0);
		cr_assert_eq(queue_file_finish(&writer), 0);
		queue_file_writer_done(&writer);
		describe(fd);
		close(fd);
	}
	mark = inherit_mark(&h, &file);
	close(parent);
	return mark;
}

#define MAIL                       \
	{                          \
		DSN_RET_HDRS, "id" \
	}
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

Test(inherit, whom_a_wish_goes_to)
{
	const struct {
		const char *name;
		const char *const *words;
		uint8_t notify;
		enum rcpt_mark mark;
		const char *want;
	} rows[] = {
		{ "one", WORDS(SENDER, "a"), DSN_SUCCESS | DSN_DELAY,
		    RCPT_PASSED, "s@far.test[hdrs id] a[success,delay x;y]; " },
		{ "two", WORDS(SENDER, "a", "b"), DSN_SUCCESS | DSN_FAILURE,
		    RCPT_EXPANDED,
		    "s@far.test[hdrs id] a[failure x;y] b[failure x;y]; " },
		{ "two, for success alone", WORDS(SENDER, "a", "b"),
		    DSN_SUCCESS, RCPT_EXPANDED,
		    "s@far.test[hdrs id] a[never x;y] b[never x;y]; " },
		{ "two, never", WORDS(SENDER, "a", "b"), DSN_NEVER,
		    RCPT_EXPANDED,
		    "s@far.test[hdrs id] a[never x;y] b[never x;y]; " },
		{ "two, not given", WORDS(SENDER, "a", "b"), 0, RCPT_EXPANDED,
		    "s@far.test[hdrs id] a[ x;y] b[ x;y]; " },
		{ "a list", WORDS("owner!", "a", "b"), DSN_SUCCESS, RCPT_DONE,
		    "owner! a b; " },
		{ "a list of one", WORDS("owner!", "a"), DSN_SUCCESS, RCPT_DONE,
		    "owner! a; " },
		{ "one and a list", WORDS(SENDER, "a", "owner!", "b"),
		    DSN_SUCCESS | DSN_FAILURE, RCPT_EXPANDED,
		    "s@far.test[hdrs id] a[failure x;y]; owner! b; " },
		{ "a list and one", WORDS("owner!", "b", SENDER, "a"),
		    DSN_SUCCESS | DSN_FAILURE, RCPT_EXPANDED,
		    "owner! b; s@far.test[hdrs id] a[failure x;y]; " },
		{ "two lists", WORDS("owner!", "a", "other!", "b"), DSN_SUCCESS,
		    RCPT_DONE, "owner! a; other! b; " },
	};
	const struct dsn_mail mail = MAIL;
	struct dsn_rcpt wish = { .orcpt = "x;y" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		wish.notify = rows[i].notify;
		cr_expect_eq(expand(rows[i].words, &mail, &wish), rows[i].mark,
		    "%s", rows[i].name);
		cr_expect_str_eq(buf_str(&found), rows[i].want, "%s: %s",
		    rows[i].name, buf_str(&found));
	}
}

/* mutation: deliver-local/inherit.c: add_wish() without dsn_orcpt_write(). */
Test(inherit, each_has_the_address_that_was_written)
{
	const struct dsn_mail mail = { 0 };
	const struct dsn_rcpt none = { 0 }, wish = { DSN_FAILURE, "x;y" };

	cr_expect_eq(
	    expand(WORDS(SENDER, "a", "|run"), &mail, &none), RCPT_DONE);
	cr_expect_str_eq(
	    buf_str(&found), "s@far.test a[ " WRITTEN "] |run[ " WRITTEN "]; ");
	cr_expect_eq(
	    expand(WORDS("owner!", "a", ":include:/l:|run"), &mail, &none),
	    RCPT_DONE);
	cr_expect_str_eq(
	    buf_str(&found), "owner! a :include:/l:|run[ " WRITTEN "]; ");
	cr_expect_eq(expand(WORDS(SENDER, "|run"), &mail, &wish), RCPT_PASSED);
	cr_expect_str_eq(buf_str(&found), "s@far.test |run[failure x;y]; ");
}
