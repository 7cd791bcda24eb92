#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"
#include "spool_scratch.h"

/* A valid file in memory, to be damaged. */
struct sample {
	unsigned char data[1024];
	size_t len;
	struct queue_file file;
	int fd;
};

static void
sample_open_wishes(struct sample *s, const struct scratch_wishes *wishes)
{
	int fd = memfd_create("sample", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	fault_reset();
	cr_assert_eq(scratch_write_wishes(
			 fd, &spool_sys_real, &scratch_mail, wishes, &s->file),
	    0);
	s->fd = fd;
	s->len = (size_t)io_pread_all(fd, s->data, sizeof(s->data), 0);
	cr_assert_lt(s->len, sizeof(s->data));
}

static void
sample_open(struct sample *s)
{
	sample_open_wishes(s, NULL);
}

static void
write_at(int fd, const void *data, size_t len, size_t off)
{
	cr_assert_eq(pwrite(fd, data, len, (off_t)off), (ssize_t)len);
}

static void
store(int fd, const void *data, size_t len)
{
	cr_assert_eq(ftruncate(fd, 0), 0);
	write_at(fd, data, len, 0);
}

/* What a reader does before it trusts a file. */
static int
read_all(int fd)
{
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	return r < 0 ? r : queue_file_verify(fd, &file);
}

static void
refused_at_every_length(const struct sample *s)
{
	size_t len;

	cr_assert_eq(read_all(s->fd), 0);
	for (len = 0; len < s->len; len++) {
		store(s->fd, s->data, len);
		cr_assert_eq(read_all(s->fd), -EBADMSG, "%zu bytes", len);
		cr_assert_neq(queue_file_reason()[0], '\0');
	}
}

static void
refused_with_any_bit_flipped(struct sample *s)
{
	size_t at;
	unsigned bit;

	for (at = 0; at < s->len; at++) {
		for (bit = 0; bit < 8; bit++) {
			s->data[at] ^= (unsigned char)(1u << bit);
			store(s->fd, s->data, s->len);
			cr_assert_eq(read_all(s->fd), -EBADMSG,
			    "byte %zu, bit %u", at, bit);
			s->data[at] ^= (unsigned char)(1u << bit);
		}
	}
	store(s->fd, s->data, s->len);
	cr_expect_eq(read_all(s->fd), 0);
}

Test(damage, D13_every_truncation_is_refused)
{
	struct sample s;

	sample_open(&s);
	refused_at_every_length(&s);
	close(s.fd);
}

Test(damage, D13_a_file_of_zeros)
{
	static const unsigned char zeros[4096];
	struct sample s;

	sample_open(&s);
	store(s.fd, zeros, sizeof(zeros));
	cr_expect_eq(read_all(s.fd), -EBADMSG);
	cr_expect_str_eq(queue_file_reason(), "no trailer");
	/* Size came to the disk, data did not: the end is zeros. */
	memset(s.data + s.len - 200, 0, 200);
	store(s.fd, s.data, s.len);
	cr_expect_eq(read_all(s.fd), -EBADMSG);
	close(s.fd);
}

static bool
is_mark_at(const struct sample *s, size_t at)
{
	size_t off = s->file.rcpt_off;
	const char *const *rcpt;

	for (rcpt = scratch_mail.rcpts; *rcpt != NULL; rcpt++) {
		if (at == off + 1)
			return true;
		off += FORMAT_RECORD + strlen(*rcpt);
	}
	return false;
}

Test(damage, D14_every_flipped_bit_is_seen)
{
	struct sample s;

	sample_open(&s);
	refused_with_any_bit_flipped(&s);
	close(s.fd);
}

/* The same of version 2, but for the marks, which have their own test. */
Test(damage, D14_damage_of_wishes_is_seen)
{
	struct sample s;

	sample_open_wishes(&s, &scratch_wishes);
	refused_at_every_length(&s);
	refused_with_any_bit_flipped(&s);
	close(s.fd);
}

Test(damage, D14_a_legal_mark_of_version_2)
{
	static const char legal[] = ".DFREP";
	struct sample s;
	int mark;

	sample_open_wishes(&s, &scratch_wishes);
	for (mark = 1; mark < 256; mark++) {
		s.data[s.file.rcpt_off + 1] = (unsigned char)mark;
		store(s.fd, s.data, s.len);
		cr_assert_eq(read_all(s.fd),
		    strchr(legal, mark) != NULL ? 0 : -EBADMSG, "mark %d",
		    mark);
	}
	close(s.fd);
}

/* Marks are the one thing that may change; and only among the three. */
Test(damage, D14_a_legal_mark_is_no_damage)
{
	struct sample s;
	size_t at, seen = 0;
	int mark;

	sample_open(&s);
	for (at = 0; at < s.len; at++) {
		if (!is_mark_at(&s, at))
			continue;
		seen++;
		for (mark = 0; mark < 256; mark++) {
			const bool legal =
			    mark == '.' || mark == 'D' || mark == 'F';

			s.data[at] = (unsigned char)mark;
			store(s.fd, s.data, s.len);
			cr_assert_eq(read_all(s.fd), legal ? 0 : -EBADMSG,
			    "mark %d", mark);
		}
		s.data[at] = '.';
	}
	cr_expect_eq(seen, 2u);
	close(s.fd);
}

Test(damage, D15_trailing_garbage)
{
	static const char *const garbage[] = { "x", "\n", "QSEND\r\n",
		"a longer line that an editor might have left at the end\n" };
	struct sample s;
	size_t i;

	sample_open(&s);
	for (i = 0; i < ARRAY_LEN(garbage); i++) {
		store(s.fd, s.data, s.len);
		write_at(s.fd, garbage[i], strlen(garbage[i]) + 1, s.len);
		cr_expect_eq(read_all(s.fd), -EBADMSG);
	}
	/* Another whole trailer behind: regions no longer meet it. */
	store(s.fd, s.data, s.len);
	write_at(s.fd, s.data + s.len - QUEUE_FILE_TRAILER, QUEUE_FILE_TRAILER,
	    s.len);
	cr_expect_eq(read_all(s.fd), -EBADMSG);
	close(s.fd);
}

/* Damage that fits its checksums: made on purpose, or by a program of another
 * version. All sums are made right again after the change. */
static void
sum_again(struct sample *s)
{
	unsigned char *trailer = s->data + s->len - QUEUE_FILE_TRAILER;
	const struct queue_file *f = &s->file;
	uint32_t crc;

	crc = htole32(format_crc(0, s->data, f->env_off));
	memcpy(trailer + 88, &crc, 4);
	crc = htole32(
	    format_crc(0, s->data + f->env_off, f->env_len + f->rcpt_len));
	memcpy(trailer + 92, &crc, 4);
	crc = htole32(format_crc(0, trailer, 124));
	memcpy(trailer + 124, &crc, 4);
}

enum place {
	IN_HEADER,
	IN_SENDER,
	IN_WISH, /* behind the sender */
	IN_RCPTS,
	IN_RCPT_WISH, /* behind the first recipient */
	IN_TRAILER,
};

static size_t
place_of(const struct sample *s, enum place place)
{
	const size_t base[] = {
		[IN_HEADER] = 0,
		[IN_SENDER] = s->file.env_off,
		[IN_WISH] = s->file.env_off + FORMAT_RECORD +
		    strlen(scratch_mail.sender),
		[IN_RCPTS] = s->file.rcpt_off,
		[IN_RCPT_WISH] = s->file.rcpt_off + FORMAT_RECORD +
		    strlen(scratch_mail.rcpts[0]),
		[IN_TRAILER] = s->len - QUEUE_FILE_TRAILER,
	};

	return base[place];
}

/* A reason of NULL: the file stays valid. */
struct foreign {
	const char *name;
	enum place place;
	size_t at;
	int to;
	const char *reason;
};

static void
check_foreign(const struct foreign *row, const struct scratch_wishes *wishes)
{
	struct sample s;
	int r;

	sample_open_wishes(&s, wishes);
	s.data[place_of(&s, row->place) + row->at] = (unsigned char)row->to;
	sum_again(&s);
	store(s.fd, s.data, s.len);
	r = read_all(s.fd);
	cr_expect_eq(
	    r, row->reason == NULL ? 0 : -EBADMSG, "%s: %d", row->name, r);
	if (row->reason != NULL && r < 0)
		cr_expect_str_eq(queue_file_reason(), row->reason, "%s: %s",
		    row->name, queue_file_reason());
	close(s.fd);
}

Test(damage, D15_what_is_whole_but_not_ours)
{
	static const struct foreign rows[] = {
		{ "header: version 2", IN_HEADER, 8, 2,
		    "header version unknown" },
		{ "header: reserved", IN_HEADER, 12, 1,
		    "header not as version 1 has it" },
		{ "sender: another type", IN_SENDER, 0, 'X', "sender record" },
		{ "sender: reserved", IN_SENDER, 1, 1, "sender record" },
		{ "sender: length", IN_SENDER, 2, 99, "sender record" },
		{ "sender: LF", IN_SENDER, 5, '\n', "sender address" },
		{ "rcpt: another type", IN_RCPTS, 0, 'S', "recipient record" },
		{ "rcpt: mark", IN_RCPTS, 1, 'x', "recipient record" },
		{ "rcpt: length 0", IN_RCPTS, 2, 0, "recipient address" },
		{ "rcpt: length above the limit", IN_RCPTS, 3, 3,
		    "recipients end in a record" },
		{ "rcpt: NUL", IN_RCPTS, 5, 0, "recipient address" },
		{ "rcpt: another address", IN_RCPTS, 5, 'z', NULL },
		{ "trailer: version 0", IN_TRAILER, 84, 0,
		    "trailer version unknown" },
		{ "trailer: version 3", IN_TRAILER, 84, 3,
		    "trailer version unknown" },
		{ "trailer: version 257", IN_TRAILER, 85, 1,
		    "trailer version unknown" },
		{ "trailer: version 2 without a wish", IN_TRAILER, 84, 2,
		    NULL },
		{ "trailer: a flag of the future", IN_TRAILER, 76, 0x80,
		    "trailer: not as its version has it" },
		{ "trailer: nonce", IN_TRAILER, 81, 1,
		    "trailer: not as its version has it" },
		{ "trailer: reserved", IN_TRAILER, 96, 1,
		    "trailer: not as its version has it" },
		{ "trailer: reserved, its end", IN_TRAILER, 115, 1,
		    "trailer: not as its version has it" },
		{ "trailer: arrival before 1970", IN_TRAILER, 63, 0x80,
		    "trailer: arrival time out of range" },
		{ "trailer: queue 4103", IN_TRAILER, 69, 0x10,
		    "trailer: queue number out of range" },
		{ "trailer: no recipients", IN_TRAILER, 64, 0,
		    "trailer: counts do not fit" },
		{ "trailer: fewer recipients", IN_TRAILER, 64, 1,
		    "more recipients than the trailer says" },
		{ "trailer: more recipients", IN_TRAILER, 64, 3,
		    "recipients end in a record" },
		{ "trailer: 2^31 recipients", IN_TRAILER, 67, 0x80,
		    "trailer: counts do not fit" },
		{ "trailer: size", IN_TRAILER, 0, 0,
		    "trailer: regions do not fit" },
		{ "trailer: content offset", IN_TRAILER, 8, 17,
		    "trailer: regions do not fit" },
		{ "trailer: content length 2^63", IN_TRAILER, 23, 0x80,
		    "trailer: regions do not fit" },
		{ "trailer: envelope length 2^64 - x", IN_TRAILER, 39, 0xff,
		    "trailer: regions do not fit" },
		{ "trailer: recipients length", IN_TRAILER, 55, 0xff,
		    "trailer: regions do not fit" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		check_foreign(&rows[i], NULL);
}

Test(damage, D15_wishes_that_are_whole_but_not_ours)
{
	static const struct foreign rows[] = {
		{ "version 1 with wishes", IN_TRAILER, 84, 1, "sender record" },
		{ "wish: another type", IN_WISH, 0, 'R',
		    "record behind the sender" },
		{ "wish: RET", IN_WISH, 1, 'X', "RET" },
		{ "wish: no RET", IN_WISH, 1, 0, NULL },
		{ "wish: length", IN_WISH, 2, 3, "record behind the sender" },
		{ "wish: ENVID with a line end", IN_WISH, 5, '\n', "ENVID" },
		{ "wish: ENVID with a NUL", IN_WISH, 5, 0, "ENVID" },
		{ "rcpt wish: another type", IN_RCPT_WISH, 0, 'X',
		    "recipient record" },
		{ "rcpt wish: NOTIFY", IN_RCPT_WISH, 1, 3, "NOTIFY" },
		{ "rcpt wish: another NOTIFY", IN_RCPT_WISH, 1, 1, NULL },
		{ "rcpt wish: no NOTIFY", IN_RCPT_WISH, 1, 0, NULL },
		{ "rcpt wish: length 0", IN_RCPT_WISH, 2, 0,
		    "recipient record" },
		{ "rcpt wish: length above all", IN_RCPT_WISH, 3, 9,
		    "recipients end in a record" },
		{ "rcpt wish: ORCPT with a line end", IN_RCPT_WISH, 14, '\n',
		    "ORCPT" },
		{ "rcpt wish: ORCPT without a type", IN_RCPT_WISH, 4, ';',
		    "ORCPT" },
		{ "recipients beyond what version 2 can have", IN_TRAILER, 66,
		    0x80, "trailer: counts do not fit" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		check_foreign(&rows[i], &scratch_wishes);
}

/* Bytes from anywhere: never a crash, never accepted, never beyond the file.
 * Half of the rounds keep the frame valid, so that what is inside is read. */
Test(damage, random_bytes)
{
	struct sample s, t;
	int round, i;

	srandom(4711);
	sample_open(&s);
	for (round = 0; round < 20000; round++) {
		struct queue_file file;
		int r;

		t = s;
		for (i = 1 + (int)(random() % 16); i > 0; i--)
			t.data[(size_t)random() % t.len] =
			    (unsigned char)random();
		if (round % 2 == 0)
			sum_again(&t);
		store(s.fd, t.data, t.len);
		r = queue_file_read(s.fd, &file);
		if (r == 0) {
			cr_assert_eq(file.size, (uint64_t)t.len);
			r = queue_file_verify(s.fd, &file);
		}
		cr_assert(r == 0 || r == -EBADMSG, "round %d: %d", round, r);
		if (r == 0 && round % 2 != 0)
			cr_assert_eq(memcmp(t.data, s.data, 16), 0);
	}
	for (round = 0; round < 5000; round++) {
		size_t len = (size_t)random() % sizeof(t.data);

		for (i = 0; (size_t)i < len; i++)
			t.data[i] = (unsigned char)random();
		store(s.fd, t.data, len);
		cr_assert_eq(read_all(s.fd), -EBADMSG);
	}
	close(s.fd);
}

/* The file gets shorter between the look and the read. */
Test(damage, a_file_that_shrinks)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct buf sender = { 0 };
	struct queue_file file;
	struct sample s;

	sample_open(&s);
	cr_assert_eq(queue_file_read(s.fd, &file), 0);
	cr_assert_eq(ftruncate(s.fd, 20), 0);
	cr_expect_eq(queue_file_verify(s.fd, &file), -EBADMSG);
	cr_expect_eq(queue_file_sender(s.fd, &file, &sender), -EBADMSG);
	queue_rcpt_begin(&cursor, &file);
	cr_expect_eq(queue_rcpt_next(&cursor, s.fd, &rcpt), -EBADMSG);
	cr_expect_eq(queue_rcpt_next(&cursor, s.fd, &rcpt), -EBADMSG);
	close(s.fd);
}

Test(damage, D16_not_a_regular_file)
{
	struct queue_file file;
	int pair[2], dir;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_expect_eq(queue_file_read(pair[0], &file), -EBADMSG);
	close(pair[0]);
	close(pair[1]);
	dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_expect_eq(queue_file_read(dir, &file), -EBADMSG);
	close(dir);
	cr_expect_eq(queue_file_read(-1, &file), -EBADF);
}
