#include "spool/queue_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"
#include "spool_scratch.h"

static int
memory_file(void)
{
	int fd = memfd_create("queue-file", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	fault_reset();
	return fd;
}

Test(queue_file, crc32c_is_the_one_of_rfc_3720)
{
	char zeros[32] = { 0 };

	cr_expect_eq(format_crc(0, "123456789", 9), 0xe3069283u);
	cr_expect_eq(format_crc(0, zeros, sizeof(zeros)), 0x8a9136aau);
	cr_expect_eq(format_crc(format_crc(0, "1234", 4), "56789", 5),
	    0xe3069283u, "in parts");
	cr_expect_eq(format_crc(0, NULL, 0), 0u);
}

/* Member by member: between them lies what nobody has set. */
static bool
is_same(const struct queue_file *a, const struct queue_file *b)
{
	return a->size == b->size && a->content_off == b->content_off &&
	    a->content_len == b->content_len && a->env_off == b->env_off &&
	    a->env_len == b->env_len && a->rcpt_off == b->rcpt_off &&
	    a->rcpt_len == b->rcpt_len && a->rcpt_count == b->rcpt_count &&
	    a->queue == b->queue && a->arrival_wall == b->arrival_wall &&
	    a->uid == b->uid && a->flags == b->flags && a->nonce == b->nonce &&
	    a->version == b->version;
}

Test(queue_file, what_was_written_is_read)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file wrote, file;
	struct buf sender = { 0 };
	char content[64] = "";
	struct stat st;
	int i, fd = memory_file();

	cr_assert_eq(scratch_write(fd, &fault_sys, &scratch_mail, &wrote), 0);
	cr_expect_eq(fault_count(FAULT_WRITE), 1u, "one write");
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect(is_same(&file, &wrote));
	cr_expect_eq(fstat(fd, &st), 0);
	cr_expect_eq(file.size, (uint64_t)st.st_size);
	cr_expect_eq(file.arrival_wall, 1700000000123456);
	cr_expect_eq(file.queue, 7u);
	cr_expect_eq(file.uid, 1000u);
	cr_expect_eq(file.nonce, 0xa5);
	cr_expect_eq(file.flags, 0u);
	cr_expect_eq(file.rcpt_count, 2u);
	cr_expect_eq(queue_file_verify(fd, &file), 0);

	cr_expect_eq(file.content_len, strlen(scratch_mail.content));
	cr_expect_eq(io_pread_all(fd, content, file.content_len,
			 (int64_t)file.content_off),
	    (int64_t)file.content_len);
	cr_expect_str_eq(content, scratch_mail.content);
	cr_expect_eq(queue_file_sender(fd, &file, &sender), 0);
	cr_expect_str_eq(buf_str(&sender), scratch_mail.sender);
	buf_done(&sender);

	queue_rcpt_begin(&cursor, &file);
	for (i = 0; scratch_mail.rcpts[i] != NULL; i++) {
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
		cr_expect_eq(rcpt.index, (uint32_t)i);
		cr_expect_eq(rcpt.mark, RCPT_PENDING);
		cr_expect_str_eq(rcpt.address, scratch_mail.rcpts[i]);
		cr_expect_eq(rcpt.len, strlen(rcpt.address));
	}
	cr_expect_eq(queue_rcpt_next(&cursor, fd, &rcpt), 0);
	cr_expect_eq(queue_rcpt_next(&cursor, fd, &rcpt), 0, "and stays so");
	close(fd);
}

static const char *const one_rcpt[] = { "b", NULL };

Test(queue_file, contents_at_the_edges)
{
	static const struct {
		const char *name, *content;
		uint32_t flags;
	} rows[] = {
		{ "empty", "", 0 },
		{ "one byte", "x", 0 },
		{ "7 bit", "0123456789abcdef", 0 },
		{ "8 bit at the front", "\xe4stlich und so weiter",
		    QUEUE_FILE_8BIT },
		{ "8 bit in the odd end", "0123456789abcd\xff",
		    QUEUE_FILE_8BIT },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct scratch_mail mail = { rows[i].content, "",
			one_rcpt };
		struct buf sender = { 0 };
		struct queue_file file;
		int fd = memory_file();

		cr_assert_eq(scratch_write(fd, &fault_sys, &mail, NULL), 0);
		cr_assert_eq(queue_file_read(fd, &file), 0, "%s: %s",
		    rows[i].name, queue_file_reason());
		cr_expect_eq(queue_file_verify(fd, &file), 0);
		cr_expect_eq(file.flags, rows[i].flags, "%s", rows[i].name);
		cr_expect_eq(queue_file_sender(fd, &file, &sender), 0);
		cr_expect_str_eq(buf_str(&sender), "", "the null sender");
		buf_done(&sender);
		close(fd);
	}
}

/* Pieces below, at and above the size of the writer's buffer. */
Test(queue_file, large_content_in_any_pieces)
{
	static const size_t pieces[] = { 1, 100, 65519, 65520, 65536, 65537,
		200000, 3, 65536, 0 };
	struct queue_file_writer w;
	struct queue_file file;
	char *data, *back;
	size_t i, total = 0;
	int fd = memory_file();

	data = malloc(1 << 20);
	back = malloc(1 << 20);
	for (i = 0; i < 1 << 20; i++)
		data[i] = (char)(i * 7 + i / 251);
	cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 0), 0);
	for (i = 0; i < ARRAY_LEN(pieces); i++) {
		cr_assert_eq(
		    queue_file_add_content(&w, data + total, pieces[i]), 0);
		total += pieces[i];
	}
	cr_assert_eq(queue_file_add_sender(&w, "a", 1), 0);
	cr_assert_eq(queue_file_add_rcpt(&w, "b", 1), 0);
	cr_assert_eq(queue_file_finish(&w), 0);
	queue_file_writer_done(&w);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_assert_eq(file.content_len, total);
	cr_assert_eq(io_pread_all(fd, back, total, (int64_t)file.content_off),
	    (int64_t)total);
	cr_expect_eq(memcmp(data, back, total), 0);
	free(data);
	free(back);
	close(fd);
}

/* More of them than the cursor's buffer holds, of every length. */
Test(queue_file, many_recipients_in_batches)
{
	enum {
		COUNT = 3000,
		BATCH = 70
	};
	static struct queue_rcpt all[COUNT];
	struct queue_file_writer w;
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	char address[ADDRESS_MAX + 1];
	uint32_t i;
	int fd = memory_file();

	cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 0), 0);
	cr_assert_eq(queue_file_add_sender(&w, "", 0), 0);
	for (i = 0; i < COUNT; i++) {
		size_t len = 1 + i % ADDRESS_MAX;

		memset(address, 'a' + (int)(i % 26), len);
		cr_assert_eq(queue_file_add_rcpt(&w, address, len), 0);
	}
	cr_assert_eq(queue_file_finish(&w), 0);
	queue_file_writer_done(&w);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_expect_eq(file.rcpt_count, (uint32_t)COUNT);

	queue_rcpt_begin(&cursor, &file);
	for (i = 0; i < COUNT; i++) {
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &all[i]), 1);
		cr_assert_eq(all[i].index, i);
		cr_assert_eq(all[i].len, 1 + i % ADDRESS_MAX);
		cr_assert_eq(all[i].address[0], 'a' + (char)(i % 26));
	}
	cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 0);
	cr_expect_null(queue_rcpt_bytes(&cursor, &file));

	for (i = 0; i < COUNT; i++) {
		if (i % BATCH == 0)
			queue_rcpt_seek(&cursor, &file, all[i].offset, i);
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
		cr_assert_eq(rcpt.offset, all[i].offset);
		cr_assert_eq(rcpt.index, i);
	}
	close(fd);
}

Test(queue_file, a_mark_is_one_byte_in_place)
{
	static const enum rcpt_mark marks[] = { RCPT_DONE, RCPT_FAILED,
		RCPT_PENDING };
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt first, second;
	struct queue_file file;
	size_t i;
	int fd = memory_file();

	cr_assert_eq(scratch_write(fd, &fault_sys, &scratch_mail, NULL), 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	cr_assert_eq(queue_rcpt_next(&cursor, fd, &first), 1);
	cr_assert_eq(queue_rcpt_next(&cursor, fd, &second), 1);
	for (i = 0; i < ARRAY_LEN(marks); i++) {
		cr_assert_eq(
		    queue_file_mark(&fault_sys, fd, second.offset, marks[i]),
		    0);
		cr_expect_eq(queue_file_verify(fd, &file), 0, "not damage");
		queue_rcpt_begin(&cursor, &file);
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &first), 1);
		cr_expect_eq(first.mark, RCPT_PENDING);
		cr_assert_eq(queue_rcpt_next(&cursor, fd, &first), 1);
		cr_expect_eq(first.mark, marks[i]);
	}
	fail_nth(FAULT_PWRITE, 1, EINTR);
	cr_expect_eq(
	    queue_file_mark(&fault_sys, fd, second.offset, RCPT_DONE), 0);
	fail_nth(FAULT_PWRITE, 1, ENOSPC);
	cr_expect_eq(queue_file_mark(&fault_sys, fd, second.offset, RCPT_DONE),
	    -ENOSPC, "D4");
	close(fd);
}

/* A mark that comes later is not in them. */
Test(queue_file, records_of_a_few_recipients_as_they_were_read)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	char before[1024];
	int fd = memory_file();

	cr_assert_eq(scratch_write(fd, &fault_sys, &scratch_mail, NULL), 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_leq(file.rcpt_len, sizeof(before));
	cr_assert_eq(queue_file_content(
			 fd, file.rcpt_off, before, (size_t)file.rcpt_len),
	    0);
	queue_rcpt_begin(&cursor, &file);
	cr_expect_null(queue_rcpt_bytes(&cursor, &file), "not read");
	while (queue_rcpt_next(&cursor, fd, &rcpt) == 1)
		;
	cr_assert_eq(
	    queue_file_mark(&fault_sys, fd, file.rcpt_off, RCPT_DONE), 0);
	cr_assert_not_null(queue_rcpt_bytes(&cursor, &file));
	cr_expect_arr_eq(
	    queue_rcpt_bytes(&cursor, &file), before, (size_t)file.rcpt_len);
	close(fd);
}

Test(queue_file, what_is_refused_sticks)
{
	static const struct {
		const char *name, *sender, *rcpt;
		size_t rcpt_len;
		int want;
	} rows[] = {
		{ "S13 no recipient", "a", NULL, 0, -EDESTADDRREQ },
		{ "S2 LF in the sender", "a\nb", "b", 1, -EILSEQ },
		{ "S2 CR in a recipient", "a", "b\r", 2, -EILSEQ },
		{ "S2 NUL in a recipient", "a", "b\0c", 3, -EILSEQ },
		{ "empty recipient", "a", "", 0, -EINVAL },
		{ "fine", "a", "b", 1, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct queue_file_writer w;
		int fd = memory_file();

		cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 0), 0);
		cr_assert_eq(queue_file_add_content(&w, "x", 1), 0);
		queue_file_add_sender(
		    &w, rows[i].sender, strlen(rows[i].sender));
		if (rows[i].rcpt != NULL)
			queue_file_add_rcpt(&w, rows[i].rcpt, rows[i].rcpt_len);
		cr_expect_eq(
		    queue_file_finish(&w), rows[i].want, "%s", rows[i].name);
		queue_file_writer_done(&w);
		close(fd);
	}
}

Test(queue_file, addresses_up_to_the_limit)
{
	char address[ADDRESS_MAX + 1];
	struct queue_file_writer w;
	struct queue_file file;
	int fd = memory_file();

	memset(address, 'x', sizeof(address));
	cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 0), 0);
	cr_assert_eq(queue_file_add_sender(&w, address, ADDRESS_MAX), 0);
	cr_assert_eq(queue_file_add_rcpt(&w, address, ADDRESS_MAX), 0);
	cr_assert_eq(queue_file_finish(&w), 0);
	queue_file_writer_done(&w);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(queue_file_verify(fd, &file), 0);

	cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 0), 0);
	cr_expect_eq(
	    queue_file_add_sender(&w, address, ADDRESS_MAX + 1), -ENAMETOOLONG);
	queue_file_writer_done(&w);
	close(fd);
}

Test(queue_file, C2_the_size_limit_is_exact)
{
	struct queue_file_writer w;
	int fd = memory_file();

	cr_assert_eq(queue_file_writer_init(&w, &fault_sys, fd, 10), 0);
	cr_expect_eq(queue_file_add_content(&w, "12345678", 8), 0);
	cr_expect_eq(queue_file_add_content(&w, "90", 2), 0);
	cr_expect_eq(queue_file_add_content(&w, "", 0), 0);
	cr_expect_eq(queue_file_add_content(&w, "1", 1), -EFBIG);
	cr_expect_eq(queue_file_add_content(&w, "", 0), -EFBIG, "sticks");
	cr_expect_eq(queue_file_add_sender(&w, "a", 1), -EFBIG);
	cr_expect_eq(queue_file_add_rcpt(&w, "b", 1), -EFBIG);
	cr_expect_eq(queue_file_finish(&w), -EFBIG);
	cr_expect_eq(w.file.content_len, 10u);
	queue_file_writer_done(&w);
	close(fd);
}

/* The sample of version 1: what was written by the first of us is read by all
 * later ones, and written the same as long as this is the version. */
Test(queue_file, golden_version_1)
{
	static const char *const rcpts[] = { "pending@example.org",
		"done@example.org", "\"quoted local\"@example.net",
		"failed@[192.0.2.1]", "umlaut-\xc3\xa4@example.com", NULL };
	static const enum rcpt_mark marks[] = { RCPT_PENDING, RCPT_DONE,
		RCPT_PENDING, RCPT_FAILED, RCPT_PENDING };
	const struct scratch_mail mail = {
		"Received: by example.com; 14 Nov 2023 22:13:20 +0000\n"
		"Subject: gr\xc3\xbc\xc3\x9f\x65\n\n.\n..\nno final newline",
		"sender@example.com", rcpts
	};
	char want[4096], got[4096];
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	int64_t want_len, got_len;
	int i, fd = memory_file(), golden;

	cr_assert_eq(scratch_write(fd, &fault_sys, &mail, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	for (i = 0; queue_rcpt_next(&cursor, fd, &rcpt) > 0; i++)
		queue_file_mark(&fault_sys, fd, rcpt.offset, marks[i]);
	got_len = io_pread_all(fd, got, sizeof(got), 0);
	close(fd);

	golden = open("tests/golden/queue-file-1", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(golden, 0, "run in the top directory");
	cr_assert_eq(
	    queue_file_read(golden, &file), 0, "%s", queue_file_reason());
	cr_expect_eq(queue_file_verify(golden, &file), 0);
	cr_expect_eq(file.flags, (uint32_t)QUEUE_FILE_8BIT);
	queue_rcpt_begin(&cursor, &file);
	for (i = 0; rcpts[i] != NULL; i++) {
		cr_assert_eq(queue_rcpt_next(&cursor, golden, &rcpt), 1);
		cr_expect_str_eq(rcpt.address, rcpts[i]);
		cr_expect_eq(rcpt.mark, marks[i]);
	}
	want_len = io_pread_all(golden, want, sizeof(want), 0);
	close(golden);
	cr_assert_eq(got_len, want_len);
	cr_expect_eq(memcmp(got, want, (size_t)got_len), 0);
}
