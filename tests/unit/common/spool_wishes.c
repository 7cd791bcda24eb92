#include "spool/queue_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "spool_scratch.h"

static int
memory_file(void)
{
	int fd = memfd_create("queue-file", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	fault_reset();
	return fd;
}

Test(wishes, wishes_are_read_and_make_version_2)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	struct dsn_mail dsn;
	struct buf sender = { 0 };
	int i, round, fd = memory_file();

	cr_assert_eq(scratch_write_wishes(
			 fd, &fault_sys, &scratch_mail, &scratch_wishes, NULL),
	    0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(file.version, 2);
	cr_expect_eq(queue_file_verify(fd, &file), 0);
	cr_expect_eq(queue_file_sender(fd, &file, &sender), 0);
	cr_expect_str_eq(buf_str(&sender), scratch_mail.sender);
	buf_done(&sender);
	cr_expect_eq(queue_file_dsn(fd, &file, &dsn), 0);
	cr_expect_eq(dsn.ret, DSN_RET_HDRS);
	cr_expect_str_eq(dsn.envid, "QQ+2B314159");
	queue_rcpt_begin(&cursor, &file);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 2; i++) {
			const struct dsn_rcpt *want = &scratch_wishes.rcpts[i];

			cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
			cr_expect_str_eq(rcpt.address, scratch_mail.rcpts[i]);
			cr_expect_eq(rcpt.dsn.notify, want->notify);
			cr_expect_str_eq(rcpt.dsn.orcpt, want->orcpt);
		}
		cr_expect_eq(queue_rcpt_next(&cursor, fd, &rcpt), 0);
		queue_rcpt_begin(&cursor, &file);
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
		queue_rcpt_seek(&cursor, &file, rcpt.offset, rcpt.index);
	}
	close(fd);
}

Test(wishes, without_a_wish_the_version_is_1)
{
	static const struct scratch_wishes none;
	struct queue_file file, plain;
	struct dsn_mail dsn;
	int fd = memory_file(), other = memory_file();

	cr_assert_eq(scratch_write(fd, &fault_sys, &scratch_mail, &plain), 0);
	cr_assert_eq(scratch_write_wishes(
			 other, &fault_sys, &scratch_mail, &none, &file),
	    0);
	cr_expect_eq(plain.version, 1);
	cr_expect_eq(memcmp(&file, &plain, sizeof(file)), 0);
	cr_expect_eq(queue_file_dsn(fd, &file, &dsn), 0);
	cr_expect(dsn_mail_is_empty(&dsn));
	close(fd);
	close(other);
}

Test(wishes, wishes_that_no_sender_can_have)
{
	static const struct {
		const char *name;
		struct scratch_wishes wishes;
	} rows[] = {
		{ "RET", { .mail.ret = 'x' } },
		{ "ENVID: a line end", { .mail.envid = "a\nb" } },
		{ "ENVID: no xtext", { .mail.envid = "a=b" } },
		{ "NOTIFY: never and more",
		    { .rcpts[1].notify = DSN_NEVER | DSN_DELAY } },
		{ "NOTIFY", { .rcpts[0].notify = 16 } },
		{ "ORCPT: no type", { .rcpts[0].orcpt = "bob" } },
		{ "ORCPT: escape", { .rcpts[0].orcpt = "rfc822;\033[2J" } },
		{ "ORCPT: an encoded escape",
		    { .rcpts[0].orcpt = "rfc822;+1B[2J" } },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = memory_file();

		cr_expect_eq(scratch_write_wishes(fd, &fault_sys, &scratch_mail,
				 &rows[i].wishes, NULL),
		    -EBADRQC, "%s", rows[i].name);
		close(fd);
	}
}

/* The cursor's buffer ends in each part of a record. */
Test(wishes, many_wishes_of_all_lengths)
{
	struct queue_file_writer w;
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	struct dsn_rcpt dsn = { 0 };
	uint32_t i;
	int fd = memory_file();

	cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 0), 0);
	cr_assert_eq(queue_file_add_sender(&w, "", 0), 0);
	for (i = 0; i < 400; i++) {
		memset(dsn.orcpt, 'x', sizeof(dsn.orcpt));
		memcpy(dsn.orcpt, "x;", 2);
		dsn.orcpt[3 + i] = '\0';
		cr_assert_eq(queue_file_add_rcpt(&w, "a@b", 3), 0);
		if (i % 3 != 0)
			cr_assert_eq(queue_file_add_rcpt_dsn(&w, &dsn), 0);
	}
	cr_assert_eq(queue_file_finish(&w), 0);
	queue_file_writer_done(&w);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(queue_file_verify(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	for (i = 0; i < 400; i++) {
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
		cr_expect_eq(strlen(rcpt.dsn.orcpt), i % 3 != 0 ? 3 + i : 0);
		cr_expect_eq(rcpt.dsn.notify, 0);
	}
	cr_expect_eq(queue_rcpt_next(&cursor, fd, &rcpt), 0);
	close(fd);
}

Test(wishes, marks_of_version_2_say_how_it_was_done)
{
	static const struct {
		enum rcpt_mark write, read;
		enum rcpt_done done;
	} rows[] = {
		{ RCPT_DONE, RCPT_DONE, DONE_DELIVERED },
		{ RCPT_RELAYED, RCPT_DONE, DONE_RELAYED },
		{ RCPT_EXPANDED, RCPT_DONE, DONE_EXPANDED },
		{ RCPT_PASSED, RCPT_DONE, DONE_PASSED },
		{ RCPT_FAILED, RCPT_FAILED, DONE_DELIVERED },
		{ RCPT_PENDING, RCPT_PENDING, DONE_DELIVERED },
	};
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	size_t i;
	int fd = memory_file();

	cr_assert_eq(scratch_write_wishes(
			 fd, &fault_sys, &scratch_mail, &scratch_wishes, &file),
	    0);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		queue_rcpt_begin(&cursor, &file);
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
		cr_assert_eq(
		    queue_file_mark(&fault_sys, fd, rcpt.offset, rows[i].write),
		    0);
		cr_expect_eq(queue_file_verify(fd, &file), 0);
		queue_rcpt_begin(&cursor, &file);
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
		cr_expect_eq(rcpt.mark, rows[i].read);
		cr_expect_eq(rcpt.done, rows[i].done);
	}
	close(fd);
}

/* The sample of version 2, in the same way as that of version 1. */
Test(wishes, golden_version_2)
{
	char want[1024], got[1024];
	struct queue_file file;
	struct dsn_mail dsn;
	int64_t want_len, got_len;
	int fd = memory_file(), golden;

	cr_assert_eq(scratch_write_wishes(
			 fd, &fault_sys, &scratch_mail, &scratch_wishes, NULL),
	    0);
	got_len = io_pread_all(fd, got, sizeof(got), 0);
	close(fd);
	golden = open("tests/golden/queue-file-2", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(golden, 0, "run in the top directory");
	cr_assert_eq(
	    queue_file_read(golden, &file), 0, "%s", queue_file_reason());
	cr_expect_eq(queue_file_verify(golden, &file), 0);
	cr_expect_eq(queue_file_dsn(golden, &file, &dsn), 0);
	cr_expect_str_eq(dsn.envid, "QQ+2B314159");
	want_len = io_pread_all(golden, want, sizeof(want), 0);
	close(golden);
	cr_assert_eq(got_len, want_len);
	cr_expect_eq(memcmp(got, want, (size_t)got_len), 0);
}
